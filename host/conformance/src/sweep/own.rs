//! Cases of a caller's own: shapes at which the kernels of one pack differ, and which the sweep does not have.

use super::{
    cases::{self, Case},
    layout::Operand,
    report::Report,
    trial::Sweep,
};
use crate::session::Session;
use nx_vulkan_host::Runtime;
use nx_vulkan_ops::{
    Attr, Error, Result, find,
    layout::Layout,
    op::Types,
    problems::Problem,
    values::{Rng, Values},
};

/// A request to be run and compared as those of the sweep are.
#[derive(Debug, Clone)]
pub struct Own {
    /// Name of the op.
    pub op: &'static str,
    /// Types of the operands, and that of the result where Nx would infer another.
    pub types: Types,
    /// Shape of each operand, and how it lies in memory; a scalar's element stands for all.
    pub operands: Vec<(Vec<u64>, Layout)>,
    /// Attributes, without those that have a default.
    pub attrs: Vec<Attr>,
    /// What the elements are.
    pub values: Values,
}

/// On a CPU device one of so many cases is run: there a shader takes a second to compile, and most cases have their own.
const SHARE: usize = 3;
/// Fewer cases than these are all run.
const FEW: usize = 24;
/// And about so many of a longer list.
const MOST: usize = 96;

/// Runs all of them, or on a CPU device a sample, with the kernel of that name (`pack/kernel`) of the pack whose own test
/// this process is, or in the pack's own order.
///
/// # Panics
/// Where one of them fails, is declined, or runs on the host although the device has what it needs.
pub fn check(pack: &str, kernel: Option<&str>, all: impl IntoIterator<Item = Own>) {
    let session = Session::of_test(pack).expect("cargo has built the pack beside its test");
    let runtime = session
        .runtime()
        .expect("the pack loads on this machine's device");
    let report = own(&runtime, kernel, all).expect("every case keeps its op's contract");
    assert!(
        report.holds() && report.declined.is_empty(),
        "{report}declined: {:?}",
        report.declined
    );
}

fn own(
    runtime: &Runtime,
    kernel: Option<&str>,
    all: impl IntoIterator<Item = Own>,
) -> Result<Report> {
    let mut sweep = Sweep::new(runtime);
    let all: Vec<Own> = all.into_iter().collect();
    let share = match runtime.device().summary().kind {
        "cpu" if all.len() >= FEW => SHARE.max(all.len() / MOST),
        _ => 1,
    };
    for (own, seed) in all.into_iter().zip(1..) {
        if Rng(seed).below(share as u64) != 0 {
            continue;
        }
        sweep.case(&own.case(seed)?, kernel);
    }
    Ok(sweep.report)
}

impl Own {
    fn case(self, seed: u64) -> Result<Case> {
        let op =
            find(self.op).ok_or_else(|| Error::bad_input(format!("no op is named {}", self.op)))?;
        let (shapes, layouts): (_, Vec<Layout>) = self.operands.into_iter().unzip();
        let problem = Problem {
            inputs: shapes,
            output: Vec::new(),
            attrs: self.attrs,
        };
        let (inputs, request) = cases::request(op, &self.types, &problem)?;
        let mut rng = Rng(seed);
        let operands = inputs.iter().zip(&layouts);
        let operands = operands.map(|((dtype, shape), layout)| {
            rng.bits();
            match layout {
                Layout::Scalar => Operand::of_one(*dtype, shape),
                _ => Operand::new(*dtype, shape, *layout, Some(&mut rng)),
            }
        });
        Ok(Case {
            op,
            inputs: operands.collect(),
            outputs: request.outputs.to_vec(),
            attrs: request.attrs.to_vec(),
            layout: layouts.first().copied().unwrap_or(Layout::Contiguous),
            values: self.values,
            seed,
        })
    }
}
