//! Plans, one dispatch after another.

use crate::span::ALIGN;
use nx_vulkan_abi::{
    Access, BufArg, Define, Dispatch, Plan, RVec, ShaderVariant, Slot, SpecConst, glsl,
};

/// A dispatch before it is part of a plan.
#[derive(Debug, Clone, Default)]
pub struct Step {
    /// Name of the shader's source.
    pub file: &'static str,
    /// What is put in front of it.
    pub defines: Vec<Define>,
    /// Specialization constants.
    pub constants: Vec<SpecConst>,
    /// Buffer of each binding.
    pub args: Vec<BufArg>,
    /// Push constants.
    pub push: RVec<u8>,
    /// Invocations of a subgroup; 0 leaves it to the device.
    pub subgroup_size: u32,
    /// Workgroup counts.
    pub groups: [u32; 3],
}

impl Step {
    /// Puts the step at the end of `plan`. Shaders that are equal are listed once.
    pub fn add_to(self, plan: &mut Plan) {
        let variant = ShaderVariant {
            file: self.file.into(),
            defines: self.defines.into(),
            bindings: self.args.len() as u32,
            push_bytes: self.push.len() as u32,
            subgroup_size: self.subgroup_size,
            ..ShaderVariant::default()
        };
        let shader = shader(plan, variant);
        plan.steps.push(Dispatch {
            shader,
            groups: self.groups,
            spec: self.constants.into(),
            args: self.args.into(),
            push: self.push,
            ..Dispatch::default()
        });
    }

    /// The same, where the push constants become params of the plan if the device has no room for them.
    pub fn add_within(mut self, plan: &mut Plan, room: u32) {
        if self.push.len() > room as usize {
            let at = plan.params.len().next_multiple_of(ALIGN as usize);
            plan.params.resize(at, 0);
            let binding = self.args.len() as u64;
            self.defines.push(number("PARAMS_BINDING", binding));
            self.args
                .push(BufArg::params().range(at as u64, self.push.len() as u64));
            plan.params.extend(std::mem::take(&mut self.push));
        }
        self.add_to(plan);
    }
}

/// Defines of several operands, each once: types of one size ask for the same switch.
pub fn distinct(all: Vec<Define>) -> Vec<Define> {
    let mut defines: Vec<Define> = Vec::new();
    for new in all {
        if defines.iter().all(|define| define.name != new.name) {
            defines.push(new);
        }
    }
    defines
}

/// The number of a shader in `plan`, which lists it once.
pub fn shader(plan: &mut Plan, variant: ShaderVariant) -> u32 {
    let known = plan.shaders.iter().position(|shader| *shader == variant);
    known.unwrap_or_else(|| {
        plan.shaders.push(variant);
        plan.shaders.len() - 1
    }) as u32
}

/// A new scratch buffer of `plan`, to be written.
pub fn scratch(plan: &mut Plan, bytes: u64) -> BufArg {
    plan.scratch.push(bytes);
    BufArg::scratch(plan.scratch.len() as u32 - 1, Access::WRITE)
}

/// Says that the steps which fill scratch buffer `to` read `from` alone: where that is an input, the host may keep the buffer
/// with the tensor, and leaves these steps out from then on. Hosts that do not know of it are not told.
pub fn derive(plan: &mut Plan, to: BufArg, from: BufArg) {
    let knows = nx_vulkan_abi::host().is_none_or(|host| host.abi_minor() >= 1);
    if knows && from.slot == Slot::INPUT && to.slot == Slot::SCRATCH {
        plan.derive(to.index, from.index);
    }
}

/// The same buffer, to be read.
pub fn read(arg: BufArg) -> BufArg {
    BufArg {
        access: Access::READ,
        ..arg
    }
}

/// Words as the bytes that shaders read.
pub fn bytes_of(words: &[u32]) -> RVec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

/// A define whose value is a number.
pub fn number(name: &str, value: impl Into<u64>) -> Define {
    glsl::define(name, value.into().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_shaders_are_listed_once() {
        let mut plan = Plan::default();
        let to = scratch(&mut plan, 64);
        let step = |width: u32, args: Vec<BufArg>| Step {
            file: "k.comp",
            defines: vec![number("WIDTH", width)],
            args,
            push: bytes_of(&[7, 8]),
            groups: [1; 3],
            ..Step::default()
        };
        step(1, vec![BufArg::input(0), to]).add_to(&mut plan);
        step(1, vec![BufArg::input(1), read(to)]).add_to(&mut plan);
        step(2, vec![read(to), BufArg::output(0)]).add_to(&mut plan);
        let shaders: Vec<u32> = plan.steps.iter().map(|step| step.shader).collect();
        assert_eq!(shaders, [0, 0, 1]);
        assert_eq!(plan.shaders.len(), 2);
        assert_eq!(
            (plan.shaders[1].bindings, plan.shaders[1].push_bytes),
            (2, 8)
        );
        assert_eq!(plan.scratch.as_slice(), [64]);
        assert_eq!(plan.steps[1].args[1].access, Access::READ);
    }

    #[test]
    fn what_depends_on_an_input_alone_is_said_of_scratch_buffers_only() {
        let mut plan = Plan::default();
        let [first, second] = [64, 32].map(|bytes| scratch(&mut plan, bytes));
        derive(&mut plan, second, BufArg::input(1));
        derive(&mut plan, first, read(second));
        derive(&mut plan, BufArg::output(0), BufArg::input(0));
        assert_eq!(plan.derived().collect::<Vec<_>>(), [Some((1, 1))]);
    }
}
