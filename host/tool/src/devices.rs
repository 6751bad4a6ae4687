//! `nxv devices`.

use crate::output::{Outcome, Problem, json};
use nx_vulkan_host::device;
use std::fmt::Write;

/// Lists the devices.
pub(crate) fn run() -> Result<Outcome, Problem> {
    let devices = device::list()?;
    let mut text = String::new();
    for d in &devices {
        let memory = d.memory as f64 / f64::from(1 << 30);
        let _ = writeln!(
            text,
            "{}  {}  ({}, {memory:.1} GiB, Vulkan {})",
            d.index, d.name, d.kind, d.api
        );
        let _ = writeln!(text, "   driver    {}", d.driver);
        let _ = writeln!(text, "   uuid      {}", d.uuid);
        let _ = writeln!(text, "   features  {}", d.features.join(" "));
        if let Some(why) = &d.unusable {
            let _ = writeln!(text, "   unusable  {why}");
        }
    }
    Ok(Outcome {
        text,
        json: json(&devices),
        holds: true,
    })
}
