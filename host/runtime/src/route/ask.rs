//! Asking one kernel: its reply, the form in which it wants its inputs, and its plan made ready.

use super::words::tidy;
use crate::{
    Error, Kind, Request,
    device::Device,
    failures::Failures,
    faults::Site,
    measured::Measured,
    pipeline::Pipelines,
    plan::{self, Compiled, Files, Sizes},
    shader::Shaders,
};
use nx_vulkan_abi as abi;
use nx_vulkan_abi::InputAs;
use nx_vulkan_registry::{
    KernelEntry, Table,
    request::{Operand, with_abi},
};
use parking_lot::RwLock;
use std::sync::Arc;

/// Most axes of a tensor that packs are asked about. The host's own kernels take any number.
const MAX_ASKED_RANK: usize = 16;

/// Everything needed to plan.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Planner<'a> {
    pub(crate) table: &'a Table,
    pub(crate) device: &'a Device,
    pub(crate) shaders: &'a Shaders,
    /// Without them plans are checked, and nothing is made of them.
    pub(crate) pipelines: Option<&'a Pipelines>,
    pub(crate) measured: &'a RwLock<Measured>,
    pub(crate) failures: &'a Failures,
    /// Kernels that are left out, since their scratch buffers found no room.
    pub(crate) without: &'a [Arc<str>],
}

enum Answered {
    Plan(abi::Plan, String),
    InputsAs(Vec<InputAs>),
}

/// Why a kernel does not run a request.
pub(super) enum Pass {
    Declined(String),
    Failed(Error),
}

/// A plan made ready.
pub(super) struct Ready {
    pub(super) compiled: Compiled,
    pub(super) params: Vec<u8>,
    /// Inputs to be made ready first.
    pub(super) prepare: Vec<InputAs>,
    /// Why it is as it is, in the pack's words.
    pub(super) why: String,
}

pub(super) type Passed = std::result::Result<Ready, Pass>;

impl Planner<'_> {
    pub(super) fn ask_kernel(
        &self,
        pack: usize,
        kernel: &KernelEntry,
        request: &Request<'_, Operand>,
    ) -> Passed {
        if let Some(rank) = request.rank().filter(|&rank| rank > MAX_ASKED_RANK) {
            return Err(Pass::Declined(format!(
                "a tensor has {rank} axes, and packs are asked for at most {MAX_ASKED_RANK}"
            )));
        }
        let attrs = kernel.asked_with(&request.attrs).map_err(Pass::Declined)?;
        let request = &Request {
            attrs,
            ..request.over(&*request.inputs)
        };
        let passed = self.ask_with((pack, kernel), request, Vec::new());
        let scattered = self.scattered(request);
        match passed {
            Err(why) if why.is_decline() && !scattered.is_empty() => {
                match self.ask_with((pack, kernel), request, scattered) {
                    Err(again) if again.is_decline() => Err(why),
                    passed => passed,
                }
            }
            passed => passed,
        }
    }

    /// Inputs whose elements lie too far apart for one binding, which a copy of them would fit.
    fn scattered(&self, request: &Request<'_, Operand>) -> Vec<InputAs> {
        let most = self.device.info().max_buffer_range;
        let is_scattered = |input: &Operand| {
            let bytes = input.shape.iter().product::<u64>() * input.dtype.size();
            input.storage_len > most && bytes <= most
        };
        let inputs = request.inputs.iter().zip(0..);
        inputs
            .filter(|(input, _)| request.op != "as_type" && is_scattered(input))
            .map(|(input, index)| InputAs::new(index, input.dtype))
            .collect()
    }

    /// Asks a kernel for a request of which some inputs are prepared, and once more with those prepared that it asks for.
    fn ask_with(
        &self,
        (pack, kernel): (usize, &KernelEntry),
        request: &Request<'_, Operand>,
        mut prepare: Vec<InputAs>,
    ) -> Passed {
        let asked = prepared(request, &prepare)?;
        let wanted = match self.reply(kernel, &asked)? {
            Answered::Plan(plan, why) => {
                return self.compile((pack, kernel), &asked, (&plan, why), prepare);
            }
            Answered::InputsAs(_) if request.op == "as_type" => {
                return Err(Pass::Declined(
                    "it asks for inputs in another form, which is what as_type itself makes"
                        .to_owned(),
                ));
            }
            Answered::InputsAs(wanted) => wanted,
        };
        prepare.retain(|own| wanted.iter().all(|other| other.index != own.index));
        prepare.extend(&wanted);
        let asked = prepared(request, &prepare)?;
        match self.reply(kernel, &asked)? {
            Answered::Plan(plan, why) => {
                self.compile((pack, kernel), &asked, (&plan, why), prepare)
            }
            Answered::InputsAs(again) => Err(Pass::Failed(Error::new(
                Kind::Pack,
                format!(
                    "it asks for inputs in another form twice: {}, then {}",
                    forms(&wanted),
                    forms(&again)
                ),
            ))),
        }
    }

    fn compile(
        &self,
        (pack, kernel): (usize, &KernelEntry),
        request: &Request<'_, Operand>,
        (plan, why): (&abi::Plan, String),
        prepare: Vec<InputAs>,
    ) -> Passed {
        let inputs: Vec<u64> = request.inputs.iter().map(|o| o.storage_len).collect();
        let outputs: Vec<u64> = request
            .outputs
            .iter()
            .map(|(dtype, shape)| dtype.size() * shape.iter().product::<u64>())
            .collect();
        let sizes = Sizes {
            inputs: &inputs,
            outputs: &outputs,
        };
        let files = Files::new(&self.table.packs[pack], &self.table.packs);
        let name = format!("{}/{}", self.table.packs[pack].id, kernel.id);
        let made = plan::compile(
            plan,
            (files, kernel.needs),
            sizes,
            (request.to_string().into(), &name, Site::of(request)),
            self.device,
            self.shaders,
            self.pipelines,
        );
        made.map(|(compiled, params)| Ready {
            compiled,
            params,
            prepare,
            why,
        })
        .map_err(Pass::Failed)
    }

    fn reply(
        &self,
        kernel: &KernelEntry,
        request: &Request<'_, Operand>,
    ) -> std::result::Result<Answered, Pass> {
        let info = self.device.info();
        let reply = with_abi(request, &info, |request| kernel.plan(request));
        // A pack may have written any bytes.
        let message = String::from_utf8_lossy(reply.message.as_bytes());
        match reply.outcome {
            _ if reply.spare != [0; 2] => Err(Pass::Failed(Error::new(Kind::Pack, plan::NEWER))),
            abi::Outcome::PLAN => {
                plan::check_text(&reply.plan).map_err(Pass::Failed)?;
                Ok(Answered::Plan(reply.plan, message.into()))
            }
            abi::Outcome::INPUTS_AS if reply.inputs_as.is_empty() => Err(Pass::Failed(Error::new(
                Kind::Pack,
                "it asks for inputs in another form and names none",
            ))),
            abi::Outcome::INPUTS_AS => Ok(Answered::InputsAs(reply.inputs_as.to_vec())),
            abi::Outcome::DECLINE => Err(Pass::Declined(tidy(&message))),
            abi::Outcome::ERROR => {
                let blame = match reply.fault {
                    abi::Fault::HOST => "the pack says the request is wrong",
                    abi::Fault::PANIC => "the pack panicked in plan",
                    _ => "the pack failed",
                };
                Err(Pass::Failed(Error::new(
                    Kind::Pack,
                    format!("{blame}: {}", tidy(&message)),
                )))
            }
            other => Err(Pass::Failed(Error::new(
                Kind::Pack,
                format!("the pack answered with outcome {}", other.0),
            ))),
        }
    }
}

impl Pass {
    /// Whether the kernel is for other requests, rather than broken.
    fn is_decline(&self) -> bool {
        match self {
            Pass::Declined(_) => true,
            Pass::Failed(error) => error.kind() == Kind::Unsupported,
        }
    }
}

/// The forms of inputs in words.
fn forms(inputs: &[InputAs]) -> String {
    let forms = inputs
        .iter()
        .map(|form| format!("input {} as {}", form.index, form.dtype));
    forms.collect::<Vec<_>>().join(", ")
}

/// The request once the inputs named are contiguous and of the types named.
fn prepared<'a>(
    request: &'a Request<'_, Operand>,
    prepare: &[InputAs],
) -> std::result::Result<Request<'a, Operand>, Pass> {
    let mut operands = request.inputs.to_vec();
    for InputAs {
        index,
        dtype,
        spare,
    } in prepare
    {
        let input = operands
            .get_mut(*index as usize)
            .filter(|_| dtype.is_known() && *spare == [0; 2]);
        let Some(input) = input else {
            let what = format!("it asks for input {index} as {dtype}, which does not exist");
            return Err(Pass::Failed(Error::new(Kind::Pack, what)));
        };
        *input = Operand::contiguous(*dtype, &input.shape);
    }
    Ok(request.over(operands))
}
