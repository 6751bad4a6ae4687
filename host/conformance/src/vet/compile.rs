//! The shaders of a pack compiled to SPIR-V, as they would be for a device that need not be there.

use super::{
    options::Options,
    report::Report,
    shaders::{REQUESTS, Seen, plans, takes},
};
use crate::sweep;
use nx_vulkan_abi::{DeviceInfo, ShaderVariant};
use nx_vulkan_host::{Compiler, Error, Kind, Result};
use nx_vulkan_ops::find;
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
    let mut idle = Vec::new();
    let compiler = Compiler::new(&options.config, &table);
    let compile = |shader: &ShaderVariant| compiler.shader(pack, &table.packs, shader);
    let mut seen = Seen::new(&compile, &mut report);
    for kernel in &pack.kernels {
        (options.progress)(&kernel.id);
        let Some(op) = find(&kernel.op) else {
            idle.push((&kernel.id, format!("the host knows no op {}", kernel.op)));
            continue;
        };
        let mut requests = sweep::in_order(op, options.seed, REQUESTS, &takes(kernel))?;
        requests.extend(options.named(op, kernel));
        let plans = plans(kernel, device, requests);
        if plans.is_empty() {
            let what = "it planned none of the requests, so nothing of it was compiled: name one that it runs with --request";
            idle.push((&kernel.id, what.to_owned()));
        }
        plans.iter().for_each(|plan| seen.plan(&kernel.id, plan));
    }
    seen.count();
    for (kernel, what) in idle {
        report.warning(kernel, what);
    }
    Ok(report)
}
