//! The shaders of a pack compiled to SPIR-V, as they would be for a device that need not be there.

use super::{
    hostile,
    options::Options,
    report::Report,
    shaders::{REQUESTS, Seen, plans, takes},
};
use crate::sweep;
use nx_vulkan_abi::{DeviceInfo, ShaderVariant};
use nx_vulkan_host::{Compiler, Error, Kind, Result};
use nx_vulkan_ops::{find, values::Rng};
use nx_vulkan_registry as registry;

/// Asks every kernel of the pack for plans on `device`, and compiles the shaders of each. No driver sees them.
///
/// # Errors
/// When the pack does not load. What does not compile is in the report.
pub fn compile(options: &Options, device: &DeviceInfo<'_>) -> Result<Report> {
    let sha256 = registry::sha256_of(&options.file)?;
    let table = registry::load(&options.config.registry_options())?;
    let pack = table.packs.iter().find(|pack| pack.sha256 == sha256);
    let pack = pack.ok_or_else(|| {
        let why: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
        let text = format!("the pack does not load: {}", why.join("; "));
        Error::new(Kind::Pack, text)
    })?;
    let mut report = Report::default();
    options.tell_unasked(&pack.kernels, &mut report);
    let mut idle = Vec::new();
    let compiler = Compiler::new(&options.config, &table);
    let compile = |shader: &ShaderVariant| compiler.shader(pack, &table.packs, shader);
    let mut seen = Seen::new(&compile, device, &mut report);
    for kernel in &pack.kernels {
        (options.progress)(&kernel.id);
        let mut requests = match find(&kernel.op) {
            Some(op) => sweep::in_order(op, options.seed, REQUESTS, &takes(kernel))?,
            None => hostile::plains(kernel, REQUESTS, &mut Rng(options.seed)),
        };
        requests.extend(options.named(kernel));
        let plans = plans(kernel, device, requests);
        if plans.is_empty() {
            idle.push(&kernel.id);
        }
        plans.iter().for_each(|plan| seen.plan(&kernel.id, plan));
    }
    seen.count();
    for kernel in idle {
        let what = "it planned none of the requests, so nothing of it was compiled: name one that it runs with --request";
        report.warning(kernel, what);
    }
    Ok(report)
}
