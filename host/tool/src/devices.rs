//! `nxv devices`.

use crate::{
    global::Global,
    output::{Answer, Outcome, json},
};
use nx_vulkan_abi::Features;
use nx_vulkan_host::{
    DeviceChoice,
    device::{self, DeviceSummary},
    fragments::{self, Fragments},
};
use std::fmt::Write;

/// A device with what was found out about it.
#[derive(serde::Serialize)]
struct Row {
    #[serde(flatten)]
    summary: DeviceSummary,
    fragments: Option<Fragments>,
}

/// The Vulkan devices of this machine, best first, in the order in which --device counts them; with that option the one it names.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: a list of {index, name, kind, uuid, driver, api, memory, features, matrices, fragments, unusable}.

How lanes hold the fragments of cooperative matrices is measured once for a driver, and then kept in the cache folder.")]
pub(crate) struct Devices {}

impl Devices {
    /// Lists the devices.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let config = global.config();
        let mut devices = device::list()?;
        if let Some(name) = &global.device {
            let at = device::choose(&DeviceChoice::parse(name), &devices)?;
            devices = vec![devices.swap_remove(at)];
        }
        let mut text = String::new();
        let mut rows = Vec::new();
        for mut d in devices {
            let fragments = fragments::of_summary(&config, &d);
            if fragments == Some(Fragments::Known) {
                d.features.extend(Features::COOPMAT_ORDER.names());
            }
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
            if let Some(fragments) = &fragments {
                let _ = writeln!(text, "   fragments {fragments}");
            }
            if let Some(why) = &d.unusable {
                let _ = writeln!(text, "   unusable  {why}");
            }
            rows.push(Row {
                summary: d,
                fragments,
            });
        }
        Ok(Outcome::good(text, json(&rows)))
    }
}
