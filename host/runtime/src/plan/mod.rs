//! From a pack's plan to something that can be recorded: every number is checked first, as hostile input.

mod check;
mod counts;
mod derived;
mod refusal;
mod repeat;
mod room;
mod source;
mod step;

use crate::{
    Error, Result, checked,
    checked::Watched,
    device::Device,
    faults::Site,
    memory::Buffer,
    pipeline::{Pipelines, spec::PipelineSpec},
    queue::{Label, Step},
    shader::{Shaders, Variant},
    spirv::Module,
};
use check::Check;
pub(crate) use check::Sizes;
use derived::{Claim, Derivations};
use nx_vulkan_abi::{DeviceInfo, Features, Plan, RString, ShaderVariant};
pub(crate) use refusal::NEWER;
use refusal::invalid;
pub(crate) use source::{Files, Source, counts, header};
use std::sync::Arc;
pub(crate) use step::CheckedStep;

/// A plan with its pipelines made.
#[derive(Debug)]
pub(crate) struct Compiled {
    /// The request.
    pub(crate) name: Arc<str>,
    pub(crate) steps: Vec<Step>,
    /// Scratch buffers that depend on one input alone, each with the steps that fill it.
    pub(crate) derived: Box<Derivations>,
    /// Sizes of the scratch buffers.
    pub(crate) scratch: Vec<u64>,
    pub(crate) params: Option<Arc<Buffer>>,
    /// In checked mode the shaders that report, into one buffer after those above.
    pub(crate) watched: Option<Watched>,
    /// What a word after all other buffers tells of, where a shader may set one.
    pub(crate) site: Option<Arc<Site>>,
}

/// Checks `plan` of `kernel`, which declares to need `declared`, for the request that is shown as `name`, and makes its pipelines;
/// without `pipelines` it has no steps then. Buffers are numbered inputs, outputs, scratch, params.
///
/// # Errors
/// [`Kind::Pack`] when the plan is invalid, [`Kind::Shader`] when a shader does not compile,
/// [`Kind::Unsupported`] when the device lacks what it needs, or allows less.
pub(crate) fn compile(
    plan: &Plan,
    (files, declared): (Files<'_>, Features),
    sizes: Sizes<'_>,
    (name, kernel, site): (Arc<str>, &str, Option<Site>),
    device: &Device,
    shaders: &Shaders,
    pipelines: Option<&Pipelines>,
) -> Result<(Compiled, Vec<u8>)> {
    let partial = site.is_some();
    let checked = check(
        plan,
        sizes,
        &device.info(),
        declared,
        &Modules {
            source: &|number, _| source::source(number, (plan, declared), files, shaders, partial),
            counts: &|| source::counts(shaders),
        },
    )?;
    let kernel = kernel.into();
    let labels = plan.shaders.iter().map(|variant| variant.file.as_str());
    let labels = labels.chain([source::COUNTS]);
    let labels: Vec<Arc<Label>> = labels.map(|file| Label::new(&kernel, file)).collect();
    let make = |step: CheckedStep, pipelines: &Pipelines| {
        let spec = PipelineSpec {
            module: &step.module,
            bindings: step.args.len() as u32,
            push_bytes: step.push.len() as u32,
            subgroup_size: step.subgroup_size,
            constants: &step.constants,
        };
        let key = spec.key();
        let pipeline = pipelines.get_by(&spec, key);
        let pipeline = pipeline.map_err(|e| e.context(file(&step, plan)))?;
        pipelines.tell(file(&step, plan), &pipeline)?;
        let step = Step {
            pipeline,
            groups: step.groups,
            counts: step.counts,
            args: step.args,
            push: step.push,
            barrier: step.barrier,
            reports: step.reports,
            label: labels[step.shader.unwrap_or(plan.shaders.len())].clone(),
        };
        Ok((step, key))
    };
    let claims = checked.claims;
    let steps = pipelines.map(|pipelines| {
        let steps = checked.steps.into_iter();
        steps.map(|step| make(step, pipelines)).collect()
    });
    let steps: Result<Vec<(Step, [u8; 32])>> = steps.unwrap_or_else(|| Ok(Vec::new()));
    let (steps, keys): (Vec<Step>, Vec<[u8; 32]>) = steps?.into_iter().unzip();
    let claims = claims.into_iter().filter(|_| !steps.is_empty());
    let derived = claims.map(|claim| claim.derivation(plan, &steps, &keys));
    let derived = Box::new(Derivations::of(derived.collect()));
    let reports = steps.iter().any(|step| step.reports);
    let compiled = Compiled {
        name,
        steps,
        derived,
        scratch: checked.scratch,
        params: None,
        watched: Watched::new(files.id(), checked.watched),
        site: site.filter(|_| reports).map(Arc::new),
    };
    Ok((compiled, plan.params.to_vec()))
}

impl Compiled {
    /// The steps, without those that fill the scratch buffers of the derivations whose bits are set in `made`.
    pub(crate) fn steps_without(&self, made: usize) -> &[Step] {
        self.derived.left(made, &self.steps)
    }

    /// The same plan, which has nothing kept of what it makes of its inputs.
    pub(crate) fn keeping_nothing(mut self) -> Compiled {
        self.derived = Box::default();
        self
    }
}

fn file<'a>(step: &CheckedStep, plan: &'a Plan) -> &'a str {
    let shader = step.shader.and_then(|shader| plan.shaders.get(shader));
    shader.map_or(source::COUNTS, |variant| variant.file.as_str())
}

/// Where the modules of a plan come from.
pub(crate) struct Modules<'a> {
    /// Shader of that number.
    pub(crate) source: &'a dyn Fn(usize, &ShaderVariant) -> Result<Source>,
    /// The host's own, which bounds workgroup counts.
    pub(crate) counts: &'a dyn Fn() -> Result<Arc<Module>>,
}

/// A plan whose every number is in bounds.
#[derive(Debug)]
pub(crate) struct CheckedPlan {
    /// Dispatches, in order, each as often as it runs.
    pub(crate) steps: Vec<CheckedStep>,
    /// Sizes of the scratch buffers: the plan's, then the host's own for workgroup counts, where a step reads some.
    scratch: Vec<u64>,
    /// Scratch buffers that depend on one input alone.
    claims: Vec<Claim>,
    /// By the number of a shader its files, where it reports in checked mode.
    watched: Vec<Vec<checked::File>>,
}

/// Checks `plan` against the buffers, the device and what its kernel declares to need. Makes nothing.
pub(crate) fn check(
    plan: &Plan,
    sizes: Sizes<'_>,
    limits: &DeviceInfo<'_>,
    declared: Features,
    modules: &Modules<'_>,
) -> Result<CheckedPlan> {
    let check = Check::new(plan, sizes, limits, declared);
    check.totals()?;
    let ranges = repeat::ranges(plan)?;
    let mut sources = Vec::with_capacity(plan.shaders.len());
    for (number, variant) in plan.shaders.iter().enumerate() {
        sources.push(check.source(number, variant, modules.source)?);
    }
    let mut counts = None;
    let mut steps: Vec<CheckedStep> = Vec::with_capacity(plan.steps.len());
    for (place, dispatch) in plan.steps.iter().enumerate() {
        let at = |e: Error| e.context(format!("step {place}"));
        if dispatch.groups.contains(&0) {
            continue;
        }
        let mut args = check.args(dispatch).map_err(at)?;
        let shader = dispatch.shader as usize;
        let source = sources.get(shader).ok_or_else(|| {
            invalid(format!(
                "step {place}: shader {shader} of {}",
                sources.len()
            ))
        })?;
        let variant = &plan.shaders[shader];
        let constants = check
            .dispatch(dispatch, variant, &source.module)
            .map_err(at)?;
        let wanted = check.wanted(dispatch, &args).map_err(at)?;
        if let Some(wanted) = wanted {
            let module = match &counts {
                Some(module) => Arc::clone(module),
                None => counts.insert((modules.counts)()?).clone(),
            };
            steps.push(check.bounded_counts(place, dispatch.groups, wanted, module));
        }
        if !source.watched.is_empty() {
            args.push(check.reports());
        }
        if source.faults {
            args.push(check.word(sources.iter().any(|other| !other.watched.is_empty())));
        }
        steps.push(CheckedStep {
            place,
            shader: Some(shader),
            module: source.module.clone(),
            subgroup_size: variant.subgroup_size,
            constants,
            groups: dispatch.groups,
            counts: wanted.map(|_| check.counts(place)),
            args,
            push: dispatch.push.to_vec(),
            counter: check.counter(dispatch).map_err(at)?,
            barrier: false,
            reports: source.faults,
        });
    }
    check.outputs_are_covered(&steps)?;
    let repeats = |place| repeat::is_in(&ranges, place);
    let claims = derived::claims(&check, &steps, &repeats)?;
    let watched = sources.into_iter().map(|source| source.watched);
    let steps = repeat::unrolled(&steps, &ranges);
    Ok(CheckedPlan {
        claims: claims
            .into_iter()
            .map(|claim| claim.among(&steps))
            .collect(),
        steps,
        scratch: check.scratch,
        watched: watched.collect(),
    })
}

/// Checks that the text of a plan is UTF-8, before anybody reads it as such.
pub(crate) fn check_text(plan: &Plan) -> Result<()> {
    let is_text = |text: &RString| std::str::from_utf8(text.as_bytes()).is_ok();
    let is_readable = |shader: &ShaderVariant| {
        let mut defines = shader.defines.iter();
        is_text(&shader.file) && defines.all(|d| is_text(&d.name) && is_text(&d.value))
    };
    match plan.shaders.iter().position(|shader| !is_readable(shader)) {
        None => Ok(()),
        Some(number) => Err(invalid(format!(
            "the file or a define of shader {number} is not UTF-8"
        ))),
    }
}

/// Checks that a module can run where a plan used a shader before, as [`check`] does.
pub(crate) fn check_in_place(
    used: &Variant,
    module: &Arc<Module>,
    limits: &DeviceInfo<'_>,
) -> Result<()> {
    let plan = Plan {
        shaders: vec![used.shader.clone()].into(),
        ..Plan::default()
    };
    let none = Sizes {
        inputs: &[],
        outputs: &[],
    };
    let check = Check::new(&plan, none, limits, used.declared);
    check.source(0, &used.shader, &|_, _| Ok(Source::from(module.clone())))?;
    for step in &used.steps {
        check.dispatch(step, &used.shader, module)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests;
