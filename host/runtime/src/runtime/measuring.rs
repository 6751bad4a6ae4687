//! Times taken on the way: on a driver that runs on the CPU, the first request of a size is run by the pack that would
//! serve it and by the host, so that the faster of the two serves all that follow.

use super::{Runtime, forced::HOST};
use crate::{
    Kind, Request, Result, Tensor,
    measured::Shaped,
    route::{Answer, Picked, timed_as},
    tensor::operands,
};
use nx_vulkan_ops::{find, values::Domain};
use nx_vulkan_registry::Table;
use std::{
    cell::Cell,
    time::{Duration, Instant},
};

/// Runs of a kernel that are timed, unless the first took longer than [`LONG`].
const RUNS: u32 = 5;
const LONG: Duration = Duration::from_millis(100);
/// What no compiling takes: such a first run counts, as matrices on a CPU's driver may take minutes.
const ENOUGH: Duration = Duration::from_secs(5);

thread_local! {
    /// Whether this thread measures: what its runs need on their way, such as a copy of an operand, is not measured too.
    static MEASURES: Cell<bool> = const { Cell::new(false) };
}

/// Says that this thread measures, as long as it is there.
struct Measures;

impl Measures {
    fn begin() -> Measures {
        MEASURES.set(true);
        Measures
    }
}

impl Drop for Measures {
    fn drop(&mut self) {
        MEASURES.set(false);
    }
}

impl Runtime {
    /// Measures what decides who serves the request, unless that is known or not worth it.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`], [`Kind::OutOfMemory`]; what else keeps a kernel from running keeps its time from being known.
    pub(super) fn measure(&self, request: &Request<'_, &Tensor>, table: &Table) -> Result<()> {
        let is_edited = table.packs.iter().any(|pack| pack.timed_as().is_none());
        if !table.measures(self.device.info().kind)
            || is_edited
            || !is_worth(request)
            || MEASURES.get()
        {
            return Ok(());
        }
        // One at a time: two that measure would slow each other.
        let measuring = self.measuring.lock();
        let _this_thread = Measures::begin();
        self.measure_now(*measuring, request, table)
    }

    fn measure_now(
        &self,
        measures: bool,
        request: &Request<'_, &Tensor>,
        table: &Table,
    ) -> Result<()> {
        let asked = request.over(operands(request));
        let shapes = asked.shapes();
        let shapes: (&[Shaped<'_>], &[Shaped<'_>]) = (&shapes.0, &shapes.1);
        let op = &*timed_as(request);
        let now = |id: &str| {
            let pack = table.packs.iter().find(|pack| pack.id == id);
            pack.map(|pack| &*pack.sha256)
        };
        // Another file of a pack has no time, and would serve by its rank whatever the host's is.
        let is_current = || self.measured.read().is_current(op, shapes, HOST, now);
        if !measures || is_current() {
            return Ok(());
        }
        let answer = self.planner(table).ask(&asked)?;
        // What serves while another kernel rests says nothing of that one.
        let served = served_by(&answer, table).filter(|_| answer.until.is_none());
        let Some((name, sha256)) = served else {
            return Ok(());
        };
        let mut times = Vec::new();
        for kernel in [(&name[..], sha256), (HOST, "")] {
            match self.time(kernel.0, request) {
                Ok(us) => times.push((kernel, us)),
                Err(error) if error.kind() == Kind::DeviceLost => return Err(error),
                Err(error) if error.kind() == Kind::OutOfMemory && kernel.0 != HOST => {
                    return Err(error);
                }
                // Elements that it has no result for say nothing about others, and a host that has no room serves nobody.
                Err(_) => return Ok(()),
            }
        }
        let mut measured = self.measured.write();
        measured.forget_others(op, shapes, now);
        for (kernel, us) in times {
            measured.record(op, shapes.0, shapes.1, kernel, Some(us));
        }
        // A folder that cannot be written costs the next start some time, nothing else.
        drop(measured.write());
        Ok(())
    }

    /// Microseconds of the fastest run after a first one, which compiles.
    fn time(&self, kernel: &str, request: &Request<'_, &Tensor>) -> Result<f64> {
        let planned = self.plan_with(kernel, request)?;
        let run = || {
            self.sync()?;
            let start = Instant::now();
            self.run_planned(&planned, &request.inputs)?;
            self.sync()?;
            Ok(start.elapsed())
        };
        let first: Duration = run()?;
        let runs = match first {
            first if first > ENOUGH => 0,
            first if first > LONG => 1,
            _ => RUNS,
        };
        let counts = kernel == HOST || runs == 0;
        let mut best = if counts { first } else { Duration::MAX };
        for _ in 0..runs {
            best = best.min(run()?);
        }
        Ok(best.as_secs_f64() * 1e6)
    }
}

/// Chains stay where they are: they multiply what the two round differently. Few elements are worth it too: on two cores a pack
/// takes 50 us for them, waited for, and the host 3.
fn is_worth(request: &Request<'_, &Tensor>) -> bool {
    let is_chain = find(&request.op).is_none_or(|op| op.domains.contains(&Domain::State));
    let empty = |shape: &[u64]| shape.contains(&0);
    !is_chain && !request.outputs.iter().any(|(_, shape)| empty(shape))
}

fn served_by<'a>(answer: &Answer, table: &'a Table) -> Option<(String, &'a str)> {
    let Some(Picked::Device { name, .. }) = &answer.picked else {
        return None;
    };
    let (id, _) = name.split_once('/')?;
    let pack = table.packs.iter().find(|pack| pack.id == id)?;
    Some((name.clone(), &pack.sha256))
}
