//! `nxv devices`.

use crate::{
    global::Global,
    output::{Answer, Outcome, json},
};
use nx_vulkan_host::device;
use std::fmt::Write;

/// The Vulkan devices of this machine, best first, in the order in which --device counts them.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: a list of {index, name, kind, uuid, driver, api, memory, features, matrices, unusable}.")]
pub(crate) struct Devices {}

impl Devices {
    /// Lists the devices.
    pub(crate) fn run(&self, _: &Global) -> Answer {
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
            for matrix in &d.matrices {
                let _ = writeln!(text, "   matrix    {matrix}");
            }
            if let Some(why) = &d.unusable {
                let _ = writeln!(text, "   unusable  {why}");
            }
        }
        Ok(Outcome::good(text, json(&devices)))
    }
}
