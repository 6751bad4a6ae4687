//! Answers of `plan`: to requests that keep the contract, to odd ones and to hostile ones, again and from many threads.

use super::{hostile, options::Options, report::Report, shaders::asked};
use crate::sweep;
use nx_vulkan_abi::{DType, DTypeSet, Fault, Features, Outcome, Reply};
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{Op, Request, Result, ops, values::Rng};
use nx_vulkan_registry::{
    KernelEntry, Table,
    request::{Operand, with_abi},
};
use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

/// Requests of each kind for one kernel.
const PROPER: usize = 24;
const ODD: usize = 40;
const WILD: usize = 200;
const THREADS: usize = 8;
/// A call of `plan` that takes longer holds up whoever asks first.
const SLOW: Duration = Duration::from_millis(50);
/// Kernels after which the device is opened anew: it keeps every pipeline, and thousands of them take gigabytes.
const TURN: usize = 8;

pub(super) fn check(options: &Options, report: &mut Report) -> Result<()> {
    (options.progress)("loading");
    let (mut runtime, pack) = options.open()?;
    let table = runtime.table();
    options.tell_unasked(&table.packs[pack].kernels, report);
    let kernels = table.packs[pack].kernels.len();
    drop(table);
    let mut slowest = Duration::ZERO;
    for kernel in 0..kernels {
        if kernel % TURN == TURN - 1 {
            drop(runtime);
            (runtime, _) = options.open()?;
        }
        let table = runtime.table();
        (options.progress)(&table.packs[pack].kernels[kernel].id);
        let mut asking = Asking::new(&runtime, &table, (pack, kernel), report);
        asking.all(options)?;
        slowest = slowest.max(asking.slowest);
    }
    report.count(
        "microseconds of the slowest plan",
        slowest.as_micros() as u64,
    );
    Ok(())
}

struct Asking<'a> {
    runtime: &'a Runtime,
    table: &'a Table,
    place: (usize, usize),
    kernel: &'a KernelEntry,
    op: Option<&'static Op>,
    report: &'a mut Report,
    slowest: Duration,
    /// Valid plans for proper requests, and the reasons of declines, each with how often it was given.
    planned: u64,
    declined: BTreeMap<String, u64>,
}

impl<'a> Asking<'a> {
    fn new(
        runtime: &'a Runtime,
        table: &'a Table,
        place: (usize, usize),
        report: &'a mut Report,
    ) -> Asking<'a> {
        let kernel = &table.packs[place.0].kernels[place.1];
        Asking {
            runtime,
            table,
            place,
            kernel,
            op: ops().find(|op| op.name == kernel.op),
            report,
            slowest: Duration::ZERO,
            planned: 0,
            declined: BTreeMap::new(),
        }
    }

    fn all(&mut self, options: &Options) -> Result<()> {
        let (kernel, seed) = (self.kernel, options.seed);
        let mut rng = Rng(kernel
            .id
            .bytes()
            .fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
        let mut asked = Vec::new();
        let has_needs = self.runtime.device_info().features.has(kernel.needs);
        if let Some(op) = self.op.filter(|_| has_needs) {
            let mut proper = self.proper(op, &mut rng)?;
            proper.extend(options.named(kernel));
            for request in proper {
                self.ask(&request, true);
                asked.push(request);
            }
            for _ in 0..ODD {
                let types = self.types(op, &mut rng);
                if let Some(request) = types.and_then(|(i, o)| hostile::odd(op, &i, o, &mut rng)) {
                    let keeps = request.check().is_ok();
                    self.ask(&request, keeps);
                    asked.push(request);
                }
            }
        }
        if self.op.is_none() && has_needs {
            // Nothing is known about its contract: whatever it plans, a host would run.
            let mut plain = hostile::plains(kernel, ODD, &mut rng);
            plain.extend(options.named(kernel));
            for request in plain {
                let outcome = self.plan(&request).outcome;
                self.ask(&request, outcome != Outcome::ERROR);
                asked.push(request);
            }
        }
        self.tell_idle();
        for _ in 0..WILD {
            let request = hostile::wild(&kernel.op, &mut rng);
            self.ask(&request, false);
            asked.push(request);
        }
        self.threads(&asked);
        Ok(())
    }

    /// A kernel without any plan was not looked at, whatever else is said.
    fn tell_idle(&mut self) {
        let (kernel, has) = (self.kernel, self.runtime.device_info().features);
        let lacks = Features(kernel.needs.0 & !has.0);
        if lacks != Features::NONE {
            let names = lacks.names().join(", ");
            let what = format!(
                "it was not asked, since the device lacks {names}; `nxv pack compile` compiles its shaders all the same"
            );
            return self.report.warning(&kernel.id, what);
        }
        if self.planned > 0 {
            return;
        }
        let most = self.declined.iter().max_by_key(|(_, count)| **count);
        let why = most.map_or(String::new(), |(why, _)| format!(", mostly for: {why}"));
        let what = format!(
            "it planned none of the requests{why}; nothing of it was looked at: name one that it runs with --request"
        );
        self.report.warning(&kernel.id, what);
    }

    /// Requests of the sweep with types that the kernel lists.
    fn proper(&self, op: &'static Op, rng: &mut Rng) -> Result<Vec<Request<'static, Operand>>> {
        let (inputs, outputs) = (self.kernel.inputs, self.kernel.outputs);
        let wanted = |types: &[DType], output: DType| {
            types.iter().all(|dtype| inputs.has(*dtype)) && outputs.has(output)
        };
        let laid = sweep::laid(self.runtime, op, rng.bits(), PROPER, &wanted)?.into_iter();
        Ok(laid
            .filter_map(|request| asked(self.kernel, request))
            .collect())
    }

    /// Types that kernel and op take, at random.
    fn types(&self, op: &Op, rng: &mut Rng) -> Option<(Vec<DType>, DType)> {
        let of = |set: DTypeSet, rng: &mut Rng| {
            let all: Vec<DType> = DType::all().filter(|dtype| set.has(*dtype)).collect();
            let index = (!all.is_empty()).then(|| rng.below(all.len() as u64))?;
            all.get(index as usize).copied()
        };
        let taken = |index| DTypeSet(self.kernel.inputs.0 & op.takes_at(index).0);
        let inputs = (0..op.arity()).map(|index| of(taken(index), rng));
        let inputs = inputs.collect::<Option<Vec<DType>>>()?;
        let output = of(self.kernel.outputs, rng)?;
        Some((inputs, output))
    }

    fn plan(&self, request: &Request<'_, Operand>) -> Reply {
        let device = self.runtime.device_info();
        with_abi(request, &device, |request| self.kernel.plan(request))
    }

    /// Asks twice. What a host may ask must get a decline or a valid plan; anything else must at least not panic.
    fn ask(&mut self, request: &Request<'_, Operand>, host_may_ask: bool) {
        let timed = || {
            let start = Instant::now();
            (self.plan(request), start.elapsed())
        };
        let ((reply, first), (again, second)) = (timed(), timed());
        // Somebody else may have had the processor in one of them.
        let took = first.min(second);
        self.slowest = self.slowest.max(took);
        self.report.count("requests", 1);
        let at = self.at(request);
        if took > SLOW {
            let what = format!(
                "plan took {} ms; it is called while somebody waits",
                took.as_millis()
            );
            self.report.warning(&at, what);
        }
        if !same(&reply, &again) {
            return self
                .report
                .error(at, "the same request got another answer the second time");
        }
        match (reply.outcome, reply.fault) {
            (_, Fault::PANIC) => {
                return self
                    .report
                    .error(at, format!("plan panicked: {}", reply.message));
            }
            (Outcome::ERROR, Fault::PACK) => {
                return self.report.error(
                    at,
                    format!("the pack calls itself broken: {}", reply.message),
                );
            }
            (Outcome::DECLINE, _) if reply.message.is_empty() => {
                return self.report.error(at, "it declines without a reason");
            }
            (Outcome::PLAN | Outcome::DECLINE | Outcome::INPUTS_AS | Outcome::ERROR, _) => {}
            (Outcome(other), _) => {
                return self.report.error(
                    at,
                    format!("it answers with outcome {other}, which does not exist"),
                );
            }
        }
        if !host_may_ask {
            return;
        }
        match self.runtime.validate(self.table, self.place, request) {
            Ok(None) => {
                // A plan for no elements runs nothing, so that nothing is known of its shaders.
                let has_elements = request.outputs.iter().any(|(_, shape)| !shape.contains(&0));
                self.planned += u64::from(has_elements);
                self.report.count("valid plans", 1);
            }
            Ok(Some(why)) => {
                *self.declined.entry(why).or_default() += 1;
                self.report.count("declined", 1);
            }
            Err(error) => self.report.error(at, error.to_string()),
        }
    }

    /// Everything again from many threads at once.
    fn threads(&mut self, requests: &[Request<'_, Operand>]) {
        let this = &*self;
        let first: Vec<Reply> = requests.iter().map(|request| this.plan(request)).collect();
        let differs = std::thread::scope(|scope| {
            let work = || {
                let answers = requests.iter().zip(&first);
                answers
                    .map(|(r, f)| same(f, &this.plan(r)))
                    .position(|same| !same)
            };
            let threads: Vec<_> = (0..THREADS).map(|_| scope.spawn(work)).collect();
            threads.into_iter().find_map(|t| t.join().ok().flatten())
        });
        if let Some(index) = differs {
            let at = self.at(&requests[index]);
            self.report
                .error(at, "another thread got another answer to the same request");
        }
    }

    /// The kernel, then the request.
    fn at(&self, request: &Request<'_, Operand>) -> String {
        let needs_layout = |i: &&Operand| {
            !nx_vulkan_abi::layout::is_contiguous(&i.shape, &i.strides) || i.offset != 0
        };
        let odd = request.inputs.iter().filter(needs_layout);
        let layouts: Vec<String> = odd
            .map(|i| format!("{:?}+{}", i.strides, i.offset))
            .collect();
        let layouts = if layouts.is_empty() {
            String::new()
        } else {
            format!(" strides {}", layouts.join(" "))
        };
        format!("{} {request}{layouts}", self.kernel.id)
    }
}

fn same(a: &Reply, b: &Reply) -> bool {
    (a.outcome, a.fault) == (b.outcome, b.fault)
        && a.message == b.message
        && a.inputs_as == b.inputs_as
        && a.plan == b.plan
}
