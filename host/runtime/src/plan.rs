//! From a pack's plan to something that can be recorded: every number is checked first, as hostile input.

use crate::{
    Error, Kind, Result,
    checked::{self, Watched},
    device::Device,
    faults::{self, Site},
    memory::Buffer,
    pipeline::{PipelineSpec, Pipelines},
    queue::{Step, StepArg},
    shader::{GlslFile, Shaders, Variant},
    spirv::{self, Module},
};
use nx_vulkan_abi as abi;
pub(crate) use nx_vulkan_abi::plan::MAX_BINDINGS;
use nx_vulkan_abi::plan::{MAX_PARAMS, MAX_SCRATCH, MAX_STEPS};
use nx_vulkan_abi::{Access, BufArg, DeviceInfo, Dispatch, Features, Plan, ShaderVariant, Slot};
use nx_vulkan_registry::LoadedPack;
use std::sync::Arc;

/// Why a spare field that is not zero is refused: what it means is unknown here, and ignoring it may be wrong.
pub(crate) const NEWER: &str =
    "it sets a field that this ABI has no meaning for; the pack needs a newer host";

/// A plan with its pipelines made.
#[derive(Debug)]
pub(crate) struct Compiled {
    pub(crate) steps: Vec<Step>,
    /// Sizes of the scratch buffers.
    pub(crate) scratch: Vec<u64>,
    pub(crate) params: Option<Arc<Buffer>>,
    /// In checked mode the shaders that report, into one buffer after those above.
    pub(crate) watched: Option<Watched>,
    /// What a word after all other buffers tells of, where a shader may set one.
    pub(crate) site: Option<Arc<Site>>,
}

/// Byte sizes of the buffers that a plan may touch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Sizes<'a> {
    pub(crate) inputs: &'a [u64],
    pub(crate) outputs: &'a [u64],
}

/// Checks `plan` of a kernel that declares to need `declared` and makes its pipelines. Buffers are numbered inputs,
/// outputs, scratch, params.
///
/// # Errors
/// [`Kind::Pack`] when the plan is invalid, [`Kind::Shader`] when a shader does not compile,
/// [`Kind::Unsupported`] when a buffer is larger than one binding may cover.
pub(crate) fn compile(
    plan: &Plan,
    (pack, declared): (&LoadedPack, Features),
    sizes: Sizes<'_>,
    site: Option<Site>,
    device: &Device,
    shaders: &Shaders,
    pipelines: &Pipelines,
) -> Result<(Compiled, Vec<u8>)> {
    let partial = site.is_some();
    let source =
        |number: usize, variant: &ShaderVariant| source(number, variant, pack, shaders, partial);
    let checked = check(plan, sizes, &device.info(), declared, &source)?;
    let mut steps: Vec<Step> = Vec::with_capacity(checked.steps.len());
    for step in checked.steps {
        let variant = &plan.shaders[step.shader];
        let pipeline = pipelines
            .get(&PipelineSpec {
                module: &step.module,
                bindings: step.args.len() as u32,
                push_bytes: variant.push_bytes,
                subgroup_size: variant.subgroup_size,
                constants: &step.constants,
            })
            .map_err(|e| e.context(&variant.file))?;
        steps.push(Step {
            pipeline,
            groups: step.groups,
            args: step.args,
            push: step.push,
            barrier: step.barrier,
            reports: step.reports,
        });
    }
    let reports = steps.iter().any(|step| step.reports);
    let compiled = Compiled {
        steps,
        scratch: plan.scratch.to_vec(),
        params: None,
        watched: Watched::new(&pack.id, checked.watched),
        site: site.filter(|_| reports).map(Arc::new),
    };
    Ok((compiled, plan.params.to_vec()))
}

/// A plan whose every number is in bounds.
#[derive(Debug)]
pub(crate) struct CheckedPlan {
    pub(crate) steps: Vec<CheckedStep>,
    /// By the number of a shader its files, where it reports in checked mode.
    watched: Vec<Vec<checked::File>>,
}

/// A dispatch whose every number is in bounds.
#[derive(Debug)]
pub(crate) struct CheckedStep {
    /// Index into the plan's shaders.
    pub(crate) shader: usize,
    module: Arc<Module>,
    /// Specialization constants, by id.
    pub(crate) constants: Vec<(u32, u32)>,
    pub(crate) groups: [u32; 3],
    pub(crate) args: Vec<StepArg>,
    push: Vec<u8>,
    barrier: bool,
    /// Whether it may set the word of faults.
    reports: bool,
}

/// Checks `plan` against the buffers, the device and what its kernel declares to need; `source` gives a shader's module.
/// Makes nothing.
pub(crate) fn check(
    plan: &Plan,
    sizes: Sizes<'_>,
    limits: &DeviceInfo<'_>,
    declared: Features,
    source: &dyn Fn(usize, &ShaderVariant) -> Result<Source>,
) -> Result<CheckedPlan> {
    let check = Check {
        plan,
        sizes,
        limits,
        declared,
    };
    check.totals()?;
    let mut sources = Vec::with_capacity(plan.shaders.len());
    for (number, variant) in plan.shaders.iter().enumerate() {
        sources.push(check.source(number, variant, source)?);
    }
    let mut steps: Vec<CheckedStep> = Vec::with_capacity(plan.steps.len());
    for (index, dispatch) in plan.steps.iter().enumerate() {
        let at = |e: Error| e.context(format!("step {index}"));
        if dispatch.groups.contains(&0) {
            continue;
        }
        let mut args = check.args(dispatch).map_err(at)?;
        let shader = dispatch.shader as usize;
        let source = sources.get(shader).ok_or_else(|| {
            invalid(format!(
                "step {index}: shader {shader} of {}",
                sources.len()
            ))
        })?;
        let constants = check
            .dispatch(dispatch, &plan.shaders[shader], &source.module)
            .map_err(at)?;
        if !source.watched.is_empty() {
            args.push(check.reports());
        }
        if source.faults {
            args.push(check.word(sources.iter().any(|other| !other.watched.is_empty())));
        }
        let barrier = steps.iter().any(|earlier| depends(&earlier.args, &args));
        steps.push(CheckedStep {
            shader,
            module: source.module.clone(),
            constants,
            groups: dispatch.groups,
            args,
            push: dispatch.push.to_vec(),
            barrier,
            reports: source.faults,
        });
    }
    check.outputs_are_covered(&steps)?;
    let watched = sources.into_iter().map(|source| source.watched);
    Ok(CheckedPlan {
        steps,
        watched: watched.collect(),
    })
}

/// A shader as it runs.
#[derive(Debug, Clone)]
pub(crate) struct Source {
    pub(crate) module: Arc<Module>,
    /// In checked mode the files of a shader that reports; else none.
    watched: Vec<checked::File>,
    /// Whether it may set the word of faults.
    faults: bool,
}

impl From<Arc<Module>> for Source {
    fn from(module: Arc<Module>) -> Source {
        Source {
            module,
            watched: Vec::new(),
            faults: false,
        }
    }
}

/// Shader `number` of a plan of `pack`, compiled where the pack has GLSL.
fn source(
    number: usize,
    variant: &ShaderVariant,
    pack: &LoadedPack,
    shaders: &Shaders,
    partial: bool,
) -> Result<Source> {
    if let Some(words) = pack.spirv(&variant.file) {
        let module = Module::admit(words.into(), pack.origin())
            .map_err(|why| invalid(format!("{}: {why}", variant.file)))?;
        return Ok(Source::from(Arc::new(module)));
    }
    let find = |name: &str| glsl_of(pack, name);
    let mut compiled = compile_glsl(number, variant, (shaders, pack.origin()), partial, &find);
    if let Err(error) = &compiled
        && !pack.edited.is_empty()
    {
        // An edit is tried on what was used last; this variant was not, and the pack's own text serves it.
        nx_vulkan_registry::log::error(&format!("pack {}: {error}", pack.id));
        let own = |name: &str| own_glsl_of(pack, name);
        compiled = compile_glsl(number, variant, (shaders, pack.own_origin()), partial, &own);
    }
    let defines = variant.defines.iter();
    shaders.note(
        &pack.id,
        Variant {
            file: variant.file.to_string(),
            defines: defines
                .map(|d| (d.name.to_string(), d.value.to_string()))
                .collect(),
        },
    );
    compiled.map_err(|e| e.context(format!("pack {} {}", pack.id, pack.version)))
}

fn compile_glsl<'a>(
    number: usize,
    variant: &ShaderVariant,
    (shaders, origin): (&Shaders, spirv::Origin),
    partial: bool,
    find: &dyn Fn(&str) -> Option<GlslFile<'a>>,
) -> Result<Source> {
    let mut watched = Vec::new();
    if shaders.are_checked() && (variant.bindings as usize) < MAX_BINDINGS {
        watched = shaders.files(&variant.file, find)?;
    }
    if !checked::reports(&watched) {
        watched.clear();
    }
    let next = variant.bindings + u32::from(!watched.is_empty());
    let faults = partial && (next as usize) < MAX_BINDINGS && {
        let files = shaders.files(&variant.file, find)?;
        faults::may_set(files.iter().map(|file| file.text.as_str()))
    };
    let own = checked::defines(variant.bindings, number);
    let own = own.into_iter().filter(|_| !watched.is_empty());
    let own: Vec<_> = own.chain(faults.then(|| faults::define(next))).collect();
    let defines: Vec<_> = variant
        .defines
        .iter()
        .map(|d| (d.name.as_str(), d.value.as_str()))
        .chain(own.iter().map(|(name, value)| (*name, value.as_str())))
        .collect();
    let module = shaders.compile(&variant.file, &defines, find, origin)?;
    Ok(Source {
        module,
        watched,
        faults,
    })
}

struct Check<'a> {
    plan: &'a Plan,
    sizes: Sizes<'a>,
    limits: &'a DeviceInfo<'a>,
    declared: Features,
}

impl Check<'_> {
    fn totals(&self) -> Result<()> {
        let plan = self.plan;
        let counts = [
            ("steps", plan.steps.len(), MAX_STEPS),
            ("shaders", plan.shaders.len(), MAX_STEPS),
            ("scratch buffers", plan.scratch.len(), MAX_SCRATCH),
            ("bytes of params", plan.params.len(), MAX_PARAMS),
        ];
        for (what, count, limit) in counts {
            if count > limit {
                return Err(invalid(format!("{count} {what}, and the limit is {limit}")));
            }
        }
        let spare = plan.spare == [0; 4]
            && plan.shaders.iter().all(|shader| shader.spare == 0)
            && plan.steps.iter().all(|step| {
                step.spare == [0; 2] && step.args.iter().all(|argument| argument.spare == 0)
            });
        if !spare {
            return Err(invalid(NEWER.to_owned()));
        }
        let scratch = plan
            .scratch
            .iter()
            .try_fold(0u64, |sum, &len| sum.checked_add(len));
        if plan.scratch.contains(&0) || scratch.is_none_or(|sum| sum > 1 << 40) {
            return Err(invalid(format!("scratch sizes {:?}", plan.scratch)));
        }
        Ok(())
    }

    /// The module of shader `number`, and what it is made of.
    fn source(
        &self,
        number: usize,
        variant: &ShaderVariant,
        source: &dyn Fn(usize, &ShaderVariant) -> Result<Source>,
    ) -> Result<Source> {
        let limits = self.limits;
        if variant.bindings as usize > MAX_BINDINGS {
            return Err(invalid(format!(
                "{} bindings, and the limit is {MAX_BINDINGS}",
                variant.bindings
            )));
        }
        if !variant.push_bytes.is_multiple_of(4) || variant.push_bytes > limits.push_bytes {
            return Err(invalid(format!(
                "{} bytes of push constants; it must be a multiple of 4 up to {}",
                variant.push_bytes, limits.push_bytes
            )));
        }
        let subgroup_sizes = limits.min_subgroup_size.max(1)..=limits.max_subgroup_size;
        if variant.subgroup_size != 0
            && !(variant.subgroup_size.is_power_of_two()
                && subgroup_sizes.contains(&variant.subgroup_size))
        {
            return Err(invalid(format!(
                "a subgroup size of {}, and the device promises powers of two from {} to {}",
                variant.subgroup_size, limits.min_subgroup_size, limits.max_subgroup_size
            )));
        }
        let source = source(number, variant)?;
        let module = &source.module;
        let bindings =
            variant.bindings + u32::from(!source.watched.is_empty()) + u32::from(source.faults);
        if module.bindings.iter().any(|&b| b >= bindings) {
            return Err(invalid(format!(
                "{} uses bindings {:?}, and the plan declares {}",
                variant.file, module.bindings, variant.bindings
            )));
        }
        if module.push_bytes > variant.push_bytes.into() {
            return Err(invalid(format!(
                "{} reads {} bytes of push constants, and the plan declares {}",
                variant.file, module.push_bytes, variant.push_bytes
            )));
        }
        let missing = spirv::missing(module.needs, limits.features);
        if !missing.is_empty() {
            return Err(invalid(format!(
                "{} needs SPIR-V capability {missing}, which the device lacks",
                variant.file
            )));
        }
        let undeclared = spirv::missing(spirv::DECLARED, self.declared);
        if module.needs.has(spirv::DECLARED) && !undeclared.is_empty() {
            return Err(invalid(format!(
                "{} needs SPIR-V capability {undeclared}, which its kernel does not declare",
                variant.file
            )));
        }
        Ok(source)
    }

    fn dispatch(
        &self,
        dispatch: &Dispatch,
        variant: &ShaderVariant,
        module: &Module,
    ) -> Result<Vec<(u32, u32)>> {
        let limits = self.limits;
        let counts = [
            (
                "buffer arguments",
                dispatch.args.len(),
                variant.bindings as usize,
            ),
            (
                "bytes of push constants",
                dispatch.push.len(),
                variant.push_bytes as usize,
            ),
        ];
        for (what, got, declared) in counts {
            if got != declared {
                return Err(invalid(format!(
                    "{got} {what}, and {} declares {declared}",
                    variant.file
                )));
            }
        }
        for (binding, arg) in (0..).zip(&dispatch.args) {
            if arg.access == Access::READ && module.written.contains(&binding) {
                return Err(invalid(format!(
                    "{} writes to binding {binding}, which the plan only reads: {} {}",
                    variant.file,
                    slot_name(arg.slot),
                    arg.index
                )));
            }
        }
        if dispatch
            .groups
            .iter()
            .zip(limits.max_groups)
            .any(|(&n, max)| n > max)
        {
            return Err(invalid(format!(
                "{:?} workgroups, and the device allows {:?}",
                dispatch.groups, limits.max_groups
            )));
        }
        let mut constants: Vec<_> = dispatch.spec.iter().map(|c| (c.id, c.value)).collect();
        constants.sort_unstable();
        if constants.windows(2).any(|pair| pair[0].0 == pair[1].0) {
            return Err(invalid(
                "a specialization constant is given twice".to_owned(),
            ));
        }
        let special = module
            .specialize(&constants)
            .map_err(|why| invalid(format!("{}: {why}", variant.file)))?;
        if special.shared_bytes > limits.shared_bytes.into() {
            return Err(invalid(format!(
                "{} has {} bytes of shared memory, and the device {}",
                variant.file, special.shared_bytes, limits.shared_bytes
            )));
        }
        let size = special
            .local_size
            .ok_or_else(|| invalid(format!("{} has no workgroup size", variant.file)))?;
        let invocations = size.iter().try_fold(1u32, |n, &e| n.checked_mul(e));
        let fits = invocations.is_some_and(|n| n > 0 && n <= limits.max_invocations)
            && size
                .iter()
                .zip(limits.max_workgroup_size)
                .all(|(&n, max)| n <= max);
        if !fits {
            return Err(invalid(format!(
                "a workgroup of {size:?}, and the device allows {:?} with {} invocations",
                limits.max_workgroup_size, limits.max_invocations
            )));
        }
        Ok(constants)
    }

    fn args(&self, dispatch: &Dispatch) -> Result<Vec<StepArg>> {
        dispatch.args.iter().map(|arg| self.arg(arg)).collect()
    }

    fn arg(&self, arg: &BufArg) -> Result<StepArg> {
        let (inputs, outputs) = (self.sizes.inputs, self.sizes.outputs);
        let scratch = self.plan.scratch.as_slice();
        let params = [self.plan.params.len() as u64];
        let (first, of, writable): (usize, &[u64], bool) = match arg.slot {
            Slot::INPUT => (0, inputs, false),
            Slot::OUTPUT => (inputs.len(), outputs, true),
            Slot::SCRATCH => (inputs.len() + outputs.len(), scratch, true),
            Slot::PARAMS => (inputs.len() + outputs.len() + scratch.len(), &params, false),
            other => return Err(invalid(format!("an unknown buffer slot {}", other.0))),
        };
        let index = arg.index as usize;
        let &size = of.get(index).filter(|&&size| size > 0).ok_or_else(|| {
            invalid(format!(
                "{} {index} does not exist or is empty",
                slot_name(arg.slot)
            ))
        })?;
        let (reads, writes) = match arg.access {
            Access::READ => (true, false),
            Access::WRITE => (false, true),
            Access::READ_WRITE => (true, true),
            other => return Err(invalid(format!("an unknown access {}", other.0))),
        };
        if writes && !writable {
            return Err(invalid(format!(
                "it writes to {} {index}",
                slot_name(arg.slot)
            )));
        }
        let limits = self.limits;
        let end = arg.offset.checked_add(arg.len);
        if arg.offset >= size
            || end.is_none_or(|end| end > size)
            || !arg.offset.is_multiple_of(limits.buffer_align)
        {
            return Err(invalid(format!(
                "bytes {}+{} of {} {index}, which has {size} (offsets are multiples of {})",
                arg.offset,
                arg.len,
                slot_name(arg.slot),
                limits.buffer_align
            )));
        }
        let len = if arg.len == 0 {
            size - arg.offset
        } else {
            arg.len
        };
        if len > limits.max_buffer_range {
            return Err(Error::new(
                Kind::Unsupported,
                format!(
                    "{} {index} takes {len} bytes, and one binding covers at most {} (maxStorageBufferRange)",
                    slot_name(arg.slot),
                    limits.max_buffer_range
                ),
            ));
        }
        Ok(StepArg {
            buffer: first + index,
            offset: arg.offset,
            len,
            reads,
            writes,
        })
    }

    /// The buffer of reports: it comes after all others.
    fn reports(&self) -> StepArg {
        let params = usize::from(!self.plan.params.is_empty());
        let tensors = self.sizes.inputs.len() + self.sizes.outputs.len();
        StepArg {
            buffer: tensors + self.plan.scratch.len() + params,
            offset: 0,
            len: checked::BYTES as u64,
            reads: true,
            writes: true,
        }
    }

    /// The word of faults: it comes last, after the buffer of reports if there is one.
    fn word(&self, reports: bool) -> StepArg {
        let last = self.reports();
        StepArg {
            buffer: last.buffer + usize::from(reports),
            len: faults::BYTES,
            ..last
        }
    }

    /// Every byte of every output must be in a range that some step writes.
    fn outputs_are_covered(&self, steps: &[CheckedStep]) -> Result<()> {
        for (index, &size) in self.sizes.outputs.iter().enumerate() {
            let buffer = self.sizes.inputs.len() + index;
            let mut ranges: Vec<_> = steps
                .iter()
                .flat_map(|step| &step.args)
                .filter(|arg| arg.buffer == buffer && arg.writes)
                .map(|arg| (arg.offset, arg.offset + arg.len))
                .collect();
            ranges.sort_unstable();
            let covered = ranges.iter().fold(
                0,
                |end, &(from, to)| if from <= end { end.max(to) } else { end },
            );
            if covered < size {
                return Err(invalid(format!(
                    "output {index} has {size} bytes, and those from {covered} on are not written"
                )));
            }
        }
        Ok(())
    }
}

/// A GLSL file of the pack, or a header of the ABI.
pub(crate) fn glsl_of<'a>(pack: &'a LoadedPack, file: &str) -> Option<GlslFile<'a>> {
    let own = pack.glsl(file).map(|text| GlslFile {
        text,
        path: pack.path_of(file),
    });
    own.or_else(|| header(file))
}

/// As [`glsl_of`], without what was edited.
fn own_glsl_of<'a>(pack: &'a LoadedPack, file: &str) -> Option<GlslFile<'a>> {
    let own = pack.own_glsl(file).map(|text| GlslFile {
        text,
        path: pack.own_path_of(file),
    });
    own.or_else(|| header(file))
}

/// A header of the ABI.
pub(crate) fn header(file: &str) -> Option<GlslFile<'static>> {
    let header = abi::glsl::HEADERS.iter().find(|h| h.0 == file)?;
    Some(GlslFile {
        text: header.1,
        path: None,
    })
}

/// Whether `later` touches bytes that `earlier` writes, or writes bytes that it reads.
fn depends(earlier: &[StepArg], later: &[StepArg]) -> bool {
    later.iter().any(|b| {
        earlier.iter().any(|a| {
            let overlap =
                a.buffer == b.buffer && a.offset < b.offset + b.len && b.offset < a.offset + a.len;
            overlap && (a.writes || b.writes)
        })
    })
}

fn slot_name(slot: Slot) -> &'static str {
    match slot {
        Slot::INPUT => "input",
        Slot::OUTPUT => "output",
        Slot::SCRATCH => "scratch buffer",
        _ => "params",
    }
}

fn invalid(what: String) -> Error {
    Error::new(Kind::Pack, format!("the plan is invalid: {what}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A plan of one step whose two bindings are an input and an output.
    fn checked(body: &str, declared: Features) -> std::result::Result<(), String> {
        let text = format!("#version 450\n{body}\n");
        let find = |_: &str| {
            Some(GlslFile {
                text: &text,
                path: None,
            })
        };
        let module = Shaders::new(None).compile("k.comp", &[], &find, spirv::Origin::Library);
        let source = Source::from(module.unwrap());
        let plan = Plan {
            shaders: vec![ShaderVariant {
                file: "k.comp".into(),
                bindings: 2,
                push_bytes: 4,
                ..ShaderVariant::default()
            }]
            .into(),
            steps: vec![Dispatch {
                groups: [1, 1, 1],
                args: vec![BufArg::input(0), BufArg::output(0)].into(),
                push: vec![0; 4].into(),
                ..Dispatch::default()
            }]
            .into(),
            ..Plan::default()
        };
        let limits = DeviceInfo {
            features: Features(u64::MAX),
            push_bytes: 128,
            shared_bytes: 1024,
            max_invocations: 1024,
            max_workgroup_size: [1024; 3],
            max_groups: [1024; 3],
            max_buffer_range: 1 << 30,
            buffer_align: 4,
            ..DeviceInfo::default()
        };
        let sizes = Sizes {
            inputs: &[64],
            outputs: &[64],
        };
        check(&plan, sizes, &limits, declared, &|_, _| Ok(source.clone()))
            .map(drop)
            .map_err(|error| error.to_string())
    }

    #[test]
    fn what_a_shader_does_must_fit_its_plan() {
        let of = |declared: &str, body: &str| {
            checked(
                &format!(
                    "layout(local_size_x = 8) in;\nlayout(set = 0, binding = 0) buffer A {{ uint a[]; }};\n\
                     layout(set = 0, binding = 1) buffer B {{ uint b[]; }};\n{declared}\nvoid main() {{ {body} }}"
                ),
                Features::NONE,
            )
        };
        assert_eq!(of("", "b[0] = a[0];"), Ok(()));
        let cases = [
            (
                of("", "b[0] = atomicOr(a[0], 0);"),
                "writes to binding 0, which the plan only reads",
            ),
            (
                of(
                    "layout(push_constant) uniform P { uint p[2]; };",
                    "b[0] = p[1];",
                ),
                "reads 8 bytes of push constants, and the plan declares 4",
            ),
            (
                of("shared uint s[257];", "s[a[0]] = 1; b[0] = s[a[1]];"),
                "1028 bytes of shared memory, and the device 1024",
            ),
        ];
        for (result, expected) in cases {
            let error = result.unwrap_err();
            assert!(error.contains(expected), "{error}");
        }
    }

    #[test]
    fn cooperative_matrices_are_declared() {
        let body = "#extension GL_KHR_cooperative_matrix : require\n#extension GL_KHR_memory_scope_semantics : require\n\
            layout(local_size_x = 32) in;\nlayout(set = 0, binding = 0) buffer A { float a[]; };\n\
            layout(set = 0, binding = 1) buffer B { float b[]; };\n\
            void main() {\n\
                coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> m;\n\
                coopMatLoad(m, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n\
                coopMatStore(m, b, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n\
            }";
        assert_eq!(checked(body, Features::COOPMAT), Ok(()));
        let error = checked(body, Features::FP16).unwrap_err();
        assert!(
            error.contains("CooperativeMatrixKHR, which its kernel does not declare"),
            "{error}"
        );
    }

    #[test]
    fn disjoint_ranges_of_one_buffer_do_not_depend() {
        let arg = |offset, len, writes: bool| StepArg {
            buffer: 0,
            offset,
            len,
            reads: !writes,
            writes,
        };
        assert!(!depends(&[arg(0, 256, true)], &[arg(256, 256, true)]));
        assert!(depends(&[arg(0, 257, true)], &[arg(256, 256, false)]));
        assert!(depends(&[arg(0, 8, false)], &[arg(0, 8, true)]));
        assert!(!depends(&[arg(0, 8, false)], &[arg(0, 8, false)]));
    }
}
