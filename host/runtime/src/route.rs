//! Who runs a request: asks the kernels of the table in order, and keeps why each was passed over.

mod ask;
mod found;
mod split;
mod words;

use crate::{
    Error, Kind, Request, Result,
    failures::{PATIENCE, Standing},
    memory::Buffer,
    plan::Compiled,
    tensor::{Tensor, operands},
};
pub(crate) use ask::Planner;
use ask::{Pass, Ready};
pub(crate) use found::Route;
use nx_vulkan_abi::InputAs;
use nx_vulkan_ops::{Program, kernels, request::Shapes};
use nx_vulkan_registry::{
    Asked, CandidateKernel, CandidateOutcome, OnError, RuleVerdict, request::Operand,
};
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, AtomicU64},
    },
    time::Instant,
};
pub use words::Considered;
pub(crate) use words::timed_as;
use words::{nobody, not_asked, summary, tidy};

const PICKED: &str = "picked";
const NOT_ASKED: &str = "not asked";
/// Who serves a request that is run as several.
const SPLIT: &str = "split";

/// What came of asking for a [`Request`].
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) picked: Option<Picked>,
    pub(crate) considered: Vec<Considered>,
    host_forbidden: bool,
    /// When a kernel that was passed over is asked again, if one is.
    pub(crate) until: Option<Instant>,
}

/// The kernel that runs a request.
#[derive(Debug)]
pub(crate) enum Picked {
    Device {
        compiled: Compiled,
        params: Vec<u8>,
        prepare: Vec<InputAs>,
        name: String,
    },
    Split(Program<'static>),
    Host,
}

impl Answer {
    /// Says that another kernel may be picked from then on.
    fn renew(&mut self, at: Instant) {
        self.until = Some(self.until.map_or(at, |until| until.min(at)));
    }
}

impl Planner<'_> {
    /// The route for a request, and until when it is that, if not for good. `write` puts a plan's params on the device.
    pub(crate) fn find(
        &self,
        request: &Request<'_, &Tensor>,
        write: &dyn Fn(&[u8]) -> Result<Arc<Buffer>>,
    ) -> Result<(Route, Option<Instant>)> {
        let request = request.over(operands(request));
        let answer = self.ask(&request)?;
        let (op, count) = (request.op.to_string(), AtomicU64::new(0));
        let until = answer.until;
        let route = match answer.picked {
            Some(Picked::Device {
                mut compiled,
                params,
                prepare,
                name,
            }) => {
                if !params.is_empty() {
                    compiled.params = Some(write(&params)?);
                }
                Route::Device {
                    op,
                    compiled,
                    prepare,
                    served_by: name.into(),
                    count,
                }
            }
            Some(Picked::Split(program)) => Route::Split {
                op,
                program,
                served_by: SPLIT.into(),
                waited: AtomicU32::new(0),
                count,
            },
            Some(Picked::Host) => Route::Host {
                // A kernel that was not asked might have run it.
                is_fallback: answer.considered.iter().all(|c| c.outcome != NOT_ASKED),
                op,
                served_by: "host".into(),
                micros: AtomicU32::new(u32::MAX),
                count,
            },
            None => return Err(nobody(&request, &answer)),
        };
        Ok((route, until))
    }

    /// The route that one kernel of the table gives a request, whatever the rules say about it. Each run is as the first one:
    /// nothing that it makes of operands is kept.
    ///
    /// # Errors
    /// [`Kind::Unsupported`] when the kernel declines, and what makes its plan invalid.
    pub(crate) fn find_with(
        &self,
        (pack, kernel): (usize, usize),
        request: &Request<'_, Operand>,
        write: &dyn Fn(&[u8]) -> Result<Arc<Buffer>>,
    ) -> Result<Route> {
        request.check()?;
        let entry = &self.table.packs[pack].kernels[kernel];
        let name = self.name(CandidateKernel::Pack(pack, kernel));
        let (inputs, outputs) = request.types();
        entry
            .takes(&inputs, &outputs, self.device.info().features)
            .map_err(|why| Error::new(Kind::Unsupported, format!("{name}: {why}")))?;
        match self.ask_kernel(pack, entry, request) {
            Ok(Ready {
                mut compiled,
                params,
                prepare,
                ..
            }) => {
                if !params.is_empty() {
                    compiled.params = Some(write(&params)?);
                }
                Ok(Route::Device {
                    op: request.op.to_string(),
                    compiled: compiled.keeping_nothing(),
                    prepare,
                    served_by: name.into(),
                    count: AtomicU64::new(0),
                })
            }
            Err(Pass::Declined(why)) => Err(Error::new(
                Kind::Unsupported,
                format!("{name} declines: {why}"),
            )),
            Err(Pass::Failed(error)) => Err(error.context(&name)),
        }
    }

    /// Why a kernel of the table declines a request, or nothing where it plans it.
    ///
    /// # Errors
    /// What makes its answer invalid.
    pub(crate) fn validate(
        &self,
        (pack, kernel): (usize, usize),
        request: &Request<'_, Operand>,
    ) -> Result<Option<String>> {
        match self.ask_kernel(pack, &self.table.packs[pack].kernels[kernel], request) {
            Ok(_) => Ok(None),
            Err(Pass::Declined(why)) => Ok(Some(why)),
            Err(Pass::Failed(error)) if error.kind() == Kind::Unsupported => {
                Ok(Some(error.to_string()))
            }
            Err(Pass::Failed(error)) => Err(error),
        }
    }

    /// The registry's rules for the op of a request.
    pub(crate) fn rules(&self, request: &Request<'_, Operand>) -> Vec<RuleVerdict> {
        self.with_asked(request, &request.shapes(), |asked| self.table.rules(asked))
    }

    fn with_asked<T>(
        &self,
        request: &Request<'_, Operand>,
        shapes: &Shapes<'_>,
        f: impl FnOnce(&Asked<'_>) -> T,
    ) -> T {
        f(&Asked {
            op: &request.op,
            inputs: &shapes.0,
            outputs: &shapes.1,
            device: &self.device.info(),
            measured: &|kernel| {
                let sha256 = match kernel {
                    CandidateKernel::Pack(pack, _) => self.table.packs[pack].timed_as()?,
                    CandidateKernel::Host => "",
                };
                let name = self.name(kernel);
                self.measured
                    .read()
                    .time(&timed_as(request), &shapes.0, &shapes.1, (&name, sha256))
            },
        })
    }

    /// Asks the kernels in order until one answers with a valid plan.
    pub(crate) fn ask(&self, request: &Request<'_, Operand>) -> Result<Answer> {
        request.check()?;
        let shapes = request.shapes();
        let (inputs, outputs) = request.types();
        let mut answer = Answer {
            picked: None,
            considered: Vec::new(),
            host_forbidden: false,
            until: None,
        };
        for candidate in self.with_asked(request, &shapes, |asked| self.table.candidates(asked)) {
            let name = self.name(candidate.kernel);
            let picked = answer.considered.iter().find(|c| c.outcome == PICKED);
            let behind = picked.map(|picked| picked.over(candidate.measured));
            let (outcome, mut reason) = match (&candidate.outcome, candidate.kernel) {
                _ if behind.is_some() => (NOT_ASKED, behind.unwrap_or_default()),
                (CandidateOutcome::Skipped(why), kernel) => {
                    answer.host_forbidden |= matches!(kernel, CandidateKernel::Host);
                    ("skipped", why.clone())
                }
                (CandidateOutcome::Considered, CandidateKernel::Host) => {
                    match kernels::supports(&request.op, &inputs, &outputs) {
                        Ok(()) => {
                            answer.picked = Some(Picked::Host);
                            (PICKED, "runs on the CPU".to_owned())
                        }
                        Err(why) => ("declined", why),
                    }
                }
                _ if self.without.iter().any(|other| **other == *name) => (
                    "skipped",
                    "there is no room for its scratch buffers".to_owned(),
                ),
                (CandidateOutcome::Considered, CandidateKernel::Pack(pack, kernel))
                    if self.standing(pack, kernel) != Standing::Asked =>
                {
                    let standing = self.standing(pack, kernel);
                    if let Standing::Rests(until) = standing {
                        answer.renew(until);
                    }
                    let why = not_asked(self.table.quarantine_after(), standing);
                    ("skipped", why)
                }
                (CandidateOutcome::Considered, CandidateKernel::Pack(pack, kernel)) => {
                    match self.ask_kernel(pack, &self.table.packs[pack].kernels[kernel], request) {
                        Ok(ready) => {
                            let what = summary(&ready);
                            let Ready {
                                compiled,
                                params,
                                prepare,
                                ..
                            } = ready;
                            answer.picked = Some(Picked::Device {
                                compiled,
                                params,
                                prepare,
                                name: name.clone(),
                            });
                            (PICKED, what)
                        }
                        Err(Pass::Declined(why)) => ("declined", why),
                        Err(Pass::Failed(error)) => match error.kind() {
                            Kind::DeviceLost | Kind::OutOfMemory => return Err(error),
                            Kind::Unsupported => ("declined", error.to_string()),
                            _ => {
                                log::error!("{name}: {}", tidy(&error.to_string()));
                                let pack = &self.table.packs[pack];
                                self.failures.add(pack, &pack.kernels[kernel], &error);
                                if error.is_passing() {
                                    answer.renew(Instant::now() + PATIENCE);
                                }
                                if self.table.on_error() == OnError::Error {
                                    return Err(error.context(name));
                                }
                                ("invalid", error.to_string())
                            }
                        },
                    }
                }
            };
            if let (PICKED, Some(time)) = (outcome, candidate.measured) {
                reason += &format!("; measured {time:.1} us");
            }
            answer.considered.push(Considered {
                kernel: name,
                outcome,
                reason: tidy(&reason),
                line: candidate.line,
                measured_us: candidate.measured,
            });
        }
        self.split_instead(request, &mut answer)?;
        Ok(answer)
    }

    /// Whether the kernel failed so often that it is not asked.
    fn standing(&self, pack: usize, kernel: usize) -> Standing {
        let pack = &self.table.packs[pack];
        let limit = self.table.quarantine_after();
        self.failures.standing(pack, &pack.kernels[kernel], limit)
    }

    /// `pack/kernel`, or `host`.
    fn name(&self, kernel: CandidateKernel) -> String {
        match kernel {
            CandidateKernel::Pack(pack, kernel) => {
                let pack = &self.table.packs[pack];
                format!("{}/{}", pack.id, pack.kernels[kernel].id)
            }
            CandidateKernel::Host => "host".to_owned(),
        }
    }
}
