//! `nxv explain`.

use crate::{
    global::Global,
    output::{Answer, Outcome, Problem, json},
    spec,
};
use nx_vulkan_conformance::vet::Named;
use nx_vulkan_host::{Attr, Kind, Runtime};
use nx_vulkan_ops::{Request, Spec};
use std::fmt::Write as _;

/// Who runs one request, every kernel that was considered, and why it was passed over.
///
/// Attributes default to: all axes of a reduction, the flat index of an arg reduction, the last axis of a with the
/// first free axis of b for dot.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
Examples:
  nxv explain dot f32[512,512] f32[512,512]
  nxv explain sum f16[64,1000] --attr axes=1 --out f32[64]
  nxv explain as_type s64[8] --out bf16[8]
  nxv explain swish f32[8] --out f32[8] --packs examples/packs

JSON: {request, device, generation, picked, rules, candidates: [{kernel, outcome, reason, line, measured_us}], shaders: [{file, subgroup_size, \
figures: [{name, value}]}]}, the last with --shaders where the driver tells.
Exit code: 1 when nobody runs it.")]
pub(crate) struct Explain {
    /// The op, as in docs/ops.md, or with --out one that only a pack knows
    pub(crate) op: String,

    /// Type and shape of each operand, f32[512,512], s64[], u8[3]; name=value is an attribute
    #[arg(value_name = "OPERAND", value_parser = spec::word)]
    pub(crate) operands: Vec<spec::Word>,

    /// An attribute as in docs/ops.md: integers (axes=0,1 or axes=[0,1]), floats (x=0.5), text (tie_break=high)
    #[arg(long = "attr", value_name = "NAME=VALUE", value_parser = spec::attr)]
    pub(crate) attrs: Vec<Attr>,

    /// Type and shape of the result, inferred as Nx does where it can be; of an op that only a pack knows that of each
    #[arg(long, value_name = "RESULT", value_parser = spec::spec)]
    pub(crate) out: Vec<Spec>,

    /// Also what the driver's compiler tells of the picked kernel's shaders: registers, spills, shared memory
    #[arg(long)]
    shaders: bool,
}

impl Explain {
    /// Explains one request.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let request = self.request()?;
        let runtime = Runtime::open(&global.config())?;
        let explanation = runtime.explain(&request)?;
        let (mut text, mut json) = (explanation.to_string(), json(&explanation));
        if let Some(kernel) = explanation.picked.as_ref().filter(|_| self.shaders) {
            tell(&runtime, kernel, &request, &mut text, &mut json)?;
        }
        Ok(Outcome {
            text,
            json,
            holds: explanation.picked.is_some(),
        })
    }

    fn request(&self) -> Result<Request<'static, Spec>, Problem> {
        if let (Err(unknown), true) = (spec::op(&self.op), self.out.is_empty()) {
            let apart = if unknown.ends_with('?') {
                " One"
            } else {
                "; one"
            };
            let why = format!("{unknown}{apart} that only a pack knows needs --out");
            return Err(Problem::Usage(why));
        }
        let mut named = Named {
            attrs: self.attrs.clone(),
            results: self.out.clone(),
            ..Named::default()
        };
        for word in &self.operands {
            match word {
                spec::Word::Operand(operand) => named.operands.push(operand.clone()),
                spec::Word::Attr(attr) => named.attrs.push(attr.clone()),
            }
        }
        let request = named.request(&self.op);
        request.map_err(|error| Problem::Usage(error.to_string()))
    }
}

/// Adds what the driver tells of a kernel's shaders, or why it does not.
pub(crate) fn tell(
    runtime: &Runtime,
    kernel: &str,
    request: &Request<'_, Spec>,
    text: &mut String,
    to: &mut serde_json::Value,
) -> Result<(), Problem> {
    match runtime.compiled_by(kernel, request) {
        Ok(shaders) => {
            for shader in &shaders {
                let _ = writeln!(text, "    {shader}");
            }
            to["shaders"] = json(&shaders);
        }
        Err(error) if error.kind() == Kind::DeviceLost => return Err(error.into()),
        Err(error) => {
            let _ = writeln!(text, "    {error}");
        }
    }
    Ok(())
}
