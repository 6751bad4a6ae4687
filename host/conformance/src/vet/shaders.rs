//! The shaders of a pack's plans: each variant is compiled, validated and compared with what plans say of it.

use super::{hostile, options::Options, report::Report};
use crate::sweep;
use nx_vulkan_abi::{Access, DType, DeviceInfo, Outcome, Plan, ShaderVariant};
use nx_vulkan_host::{Result, Shader};
use nx_vulkan_ops::{Request, find, values::Rng};
use nx_vulkan_registry::{
    KernelEntry,
    private::Temporary,
    request::{Operand, with_abi},
};
use std::{
    collections::{HashMap, HashSet},
    process::{Command, Stdio},
};

/// Requests of each kernel.
pub(super) const REQUESTS: usize = 24;
/// Variants that the validator sees: it is a process for each.
const VALIDATED: usize = 300;

pub(super) fn check(options: &Options, report: &mut Report) -> Result<()> {
    let (runtime, place) = options.open()?;
    let table = runtime.table();
    let pack = &table.packs[place];
    let compile = |shader: &ShaderVariant| runtime.shader(pack, &table.packs, shader);
    let device = runtime.device_info();
    let mut seen = Seen::new(&compile, &device, report);
    for kernel in &pack.kernels {
        (options.progress)(&kernel.id);
        if !device.features.has(kernel.needs) {
            continue;
        }
        let mut requests = match find(&kernel.op) {
            Some(op) => sweep::laid(&runtime, op, options.seed, REQUESTS, &takes(kernel))?,
            None => hostile::plains(kernel, REQUESTS, &mut Rng(options.seed)),
        };
        requests.extend(options.named(kernel));
        for plan in plans(kernel, &device, requests) {
            seen.plan(&kernel.id, &plan);
        }
    }
    if seen.count() == 0 {
        report.warning(
            "shaders",
            "no kernel planned anything on this device, so none was compiled",
        );
    }
    Ok(())
}

/// Whether a kernel lists the types of operands and result.
pub(super) fn takes(kernel: &KernelEntry) -> impl Fn(&[DType], DType) -> bool {
    |types, output| {
        types.iter().all(|dtype| kernel.inputs.has(*dtype)) && kernel.outputs.has(output)
    }
}

/// A request as a host asks a kernel for it, whatever its types are; `None` where it does not.
pub(super) fn asked(
    kernel: &KernelEntry,
    request: Request<'static, Operand>,
) -> Option<Request<'static, Operand>> {
    let attrs = kernel.asked_with(&request.attrs).ok()?.into_owned();
    Some(Request {
        attrs: attrs.into(),
        ..request
    })
}

/// Plans of a kernel, as it gives them once its inputs are in order.
pub(super) fn plans(
    kernel: &KernelEntry,
    device: &DeviceInfo<'_>,
    requests: Vec<Request<'static, Operand>>,
) -> Vec<Plan> {
    let mut plans = Vec::new();
    for mut request in requests
        .into_iter()
        .filter_map(|request| asked(kernel, request))
    {
        let mut reply = with_abi(&request, device, |request| kernel.plan(request));
        if reply.outcome == Outcome::INPUTS_AS {
            for wish in &reply.inputs_as {
                if let Some(input) = request.inputs.to_mut().get_mut(wish.index as usize) {
                    *input = Operand::contiguous(wish.dtype, &input.shape);
                }
            }
            reply = with_abi(&request, device, |request| kernel.plan(request));
        }
        if reply.outcome == Outcome::PLAN {
            plans.push(reply.plan);
        }
    }
    plans
}

/// The variants that plans have named so far.
pub(super) struct Seen<'a> {
    compile: &'a dyn Fn(&ShaderVariant) -> Result<Shader>,
    /// By everything that makes a variant; nothing where it does not compile.
    variants: HashMap<String, Option<Shader>>,
    validator: Option<Validator>,
    /// Bytes of shared memory that the device has.
    shared_bytes: u32,
    /// Shaders that have more, by place and bytes.
    large: HashSet<(String, u64)>,
    report: &'a mut Report,
}

impl<'a> Seen<'a> {
    pub(super) fn new(
        compile: &'a dyn Fn(&ShaderVariant) -> Result<Shader>,
        device: &DeviceInfo<'_>,
        report: &'a mut Report,
    ) -> Seen<'a> {
        let validator = Validator::find();
        if validator.is_none() {
            report.warning(
                "spirv-val",
                "it is not installed, so modules are only parsed; it comes with the SPIR-V tools",
            );
        }
        Seen {
            compile,
            variants: HashMap::new(),
            validator,
            shared_bytes: device.shared_bytes,
            large: HashSet::new(),
            report,
        }
    }

    /// How many there are; they go into the report.
    pub(super) fn count(self) -> u64 {
        let count = self.variants.len() as u64;
        self.report.count("shader variants", count);
        count
    }

    pub(super) fn plan(&mut self, kernel: &str, plan: &Plan) {
        for step in &plan.steps {
            let Some(shader) = plan.shaders.get(step.shader as usize) else {
                // The plan group reports it.
                continue;
            };
            let defines: Vec<String> = shader
                .defines
                .iter()
                .map(|define| format!("{}={}", define.name, define.value))
                .collect();
            let key = format!(
                "{} {} {} {}",
                shader.file,
                shader.bindings,
                shader.push_bytes,
                defines.join(" ")
            );
            if !self.variants.contains_key(&key) {
                let variant = self.variant(kernel, shader);
                self.variants.insert(key.clone(), variant);
            }
            let Some(Some(variant)) = self.variants.get(&key) else {
                continue;
            };
            let at = format!("{} ({kernel})", shader.file);
            // The plan group reports constants that are unfit.
            let (has, shared) = (self.shared_bytes, variant.shared_bytes(step).unwrap_or(0));
            if shared > has.into() && self.large.insert((at.clone(), shared)) {
                let what = format!(
                    "it has {shared} bytes of shared memory, and the device {has}: a host declines the plan"
                );
                self.report.warning(&at, what);
            }
            for constant in &step.spec {
                if !variant.spec_ids.contains(&constant.id) {
                    let what = format!(
                        "the plan sets specialization constant {}, which the shader does not have",
                        constant.id
                    );
                    self.report.error(&at, what);
                }
            }
            for (binding, arg) in (0..).zip(&step.args) {
                if arg.access == Access::READ && variant.written.contains(&binding) {
                    let what = format!(
                        "the plan says that binding {binding} is only read, and the shader writes to it"
                    );
                    self.report.error(&at, what);
                }
            }
        }
    }

    /// Compiles a variant and compares it with its declaration.
    fn variant(&mut self, kernel: &str, shader: &ShaderVariant) -> Option<Shader> {
        let at = format!("{} ({kernel})", shader.file);
        let module = match (self.compile)(shader) {
            Ok(module) => module,
            Err(error) => {
                self.report.error(at, error.to_string());
                return None;
            }
        };
        if let Some(beyond) = module.bindings.iter().find(|b| **b >= shader.bindings) {
            let what = format!(
                "it uses binding {beyond}, and the plan declares {} bindings",
                shader.bindings
            );
            self.report.error(&at, what);
        }
        if let Some(unused) = (0..shader.bindings).find(|b| !module.bindings.contains(b)) {
            let what = format!("the plan declares binding {unused}, which it does not use");
            self.report.warning(&at, what);
        }
        let (has, declared) = (module.push_bytes, u64::from(shader.push_bytes));
        if has > declared {
            let what = format!(
                "its push constants have {has} bytes, and the plan gives {declared}: it reads what nobody wrote"
            );
            self.report.error(&at, what);
        } else if has < declared {
            let what =
                format!("its push constants have {has} bytes, and the plan gives {declared}");
            self.report.warning(&at, what);
        }
        if self.variants.len() < VALIDATED
            && let Some(validator) = &self.validator
        {
            match validator.validate(&module.words) {
                // The host knows every capability that it lets pass; an installed validator may be older.
                Err(why) if why.contains("Invalid capability operand") => self
                    .report
                    .warning(&at, format!("spirv-val is too old for it: {why}")),
                Err(why) => self.report.error(&at, format!("spirv-val: {why}")),
                Ok(()) => self.report.count("validated by spirv-val", 1),
            }
        }
        Some(module)
    }
}

/// The validator of the SPIR-V tools.
struct Validator {
    folder: Temporary,
}

impl Validator {
    /// `None` where it is not installed, or has no place for its input.
    fn find() -> Option<Validator> {
        let mut command = Command::new("spirv-val");
        command
            .arg("--version")
            .stdout(Stdio::null())
            .stderr(Stdio::null());
        command.status().ok().filter(|status| status.success())?;
        let folder = Temporary::new().ok()?;
        Some(Validator { folder })
    }

    fn validate(&self, words: &[u32]) -> std::result::Result<(), String> {
        let bytes: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
        let file = self.folder.write("module.spv", &bytes);
        let file = file.map_err(|error| error.to_string())?;
        let is_newer = words.get(1).is_some_and(|version| *version > 0x0001_0500);
        let target = if is_newer { "vulkan1.3" } else { "vulkan1.2" };
        let output = Command::new("spirv-val")
            .args(["--target-env", target, "--scalar-block-layout"])
            .arg(file)
            .output()
            .map_err(|error| error.to_string())?;
        match output.status.success() {
            true => Ok(()),
            false => {
                let text = [output.stdout, output.stderr].concat();
                let text = String::from_utf8_lossy(&text);
                Err(text.lines().next().unwrap_or("it fails").to_owned())
            }
        }
    }
}
