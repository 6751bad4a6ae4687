//! The CPU kernels: fallback for what no pack runs, and the oracle every pack is tested against.
//!
//! `docs/ops.md` says what each op means. Floats of up to 32 bits are computed wider and rounded once. Nothing
//! here knows devices, packs or tensors: operands are views of bytes in host memory.

pub(crate) mod attention;
pub(crate) mod binary;
mod calls;
mod cells;
pub(crate) mod closure;
pub(crate) mod complex;
pub(crate) mod conv;
mod conv_in_place;
mod conv_last;
pub(crate) mod convert;
pub(crate) mod create;
mod crew;
mod direct;
pub(crate) mod dot;
pub(crate) mod element;
mod elementwise;
mod epilogue;
mod expression;
mod fold;
pub(crate) mod fourier;
pub(crate) mod fused;
pub(crate) mod fused_rows;
pub(crate) mod gather;
pub(crate) mod join;
pub(crate) mod kernel;
pub(crate) mod lanes;
pub(crate) mod leapfrog;
pub(crate) mod linalg;
mod math;
mod movement;
mod number;
mod operand;
pub(crate) mod pad;
mod parallel;
mod patches;
mod product;
pub(crate) mod reduce;
mod room;
pub(crate) mod scan;
pub(crate) mod scatter;
pub(crate) mod slice;
mod small;
pub(crate) mod sort;
pub(crate) mod unary;
mod vector;
mod widened;
pub(crate) mod window;
pub(crate) mod window_scatter;

pub use crate::{
    check::check,
    view::{Desc, Out, View},
};
pub use crew::with_cores;
pub use leapfrog::{FAMILIES, Family};

/// Stands for the sources of these kernels: what was measured with others says nothing of them.
pub const SOURCES: &str = env!("NX_VULKAN_KERNELS");

use nx_vulkan_abi::dtype::{DType, DTypeSet};

use crate::attrs::Attr;
use crate::contracts::find;
use crate::error::{Error, Kind, Result};
use crate::fits::refusal;
use crate::program::Program;
use crate::request::{Request, Spec};
use crate::view::count;
use kernel::Sums;

/// Whether the host runs `op` on these element types; otherwise the reason, as a sentence.
pub fn supports(op: &str, inputs: &[DType], outputs: &[DType]) -> std::result::Result<(), String> {
    let info = find(op).ok_or_else(|| format!("the host has no op named {op}"))?;
    let copies = (info.contract.copies)(inputs, outputs);
    let computed = |dtype: &DType, takes: DTypeSet| match copies {
        true => dtype.is_known(),
        false => takes.has(*dtype) && DTypeSet::NUMBER.has(*dtype),
    };
    let operands = inputs.iter().zip((0..).map(|index| info.takes_at(index)));
    let unfit = operands
        .chain(outputs.iter().map(|dtype| (dtype, info.computes())))
        .find(|(dtype, takes)| !computed(dtype, *takes));
    match unfit {
        Some((dtype, _)) => Err(format!("the host does not run {op} on {dtype}")),
        None => Ok(()),
    }
}

/// The element of the result of an elementwise op on operands whose elements are each all the same: `elements` has one of
/// each. `None` for other ops, types that the host does not compute with, and results without elements. Fails as [`run`].
pub fn run_on_constants(
    request: &Request<'_, Spec>,
    elements: &[&[u8]],
) -> Option<Result<Vec<u8>>> {
    let op = find(&request.op).filter(|op| op.kernel.is_elementwise())?;
    let (inputs, outputs) = request.types();
    let [(dtype, shape)] = &*request.outputs else {
        return None;
    };
    if elements.len() != inputs.len()
        || inputs.is_empty()
        || shape.contains(&0)
        || supports(op.name, &inputs, &outputs).is_err()
    {
        return None;
    }
    if let Err(error) = request.check() {
        return Some(Err(error));
    }
    let views = inputs.iter().zip(elements).map(|(dtype, bytes)| View {
        dtype: *dtype,
        shape: &[],
        strides: &[],
        offset: 0,
        bytes,
    });
    let views: Vec<View> = views.collect();
    let mut bytes = vec![0; dtype.size() as usize];
    let mut out = [Out {
        dtype: *dtype,
        shape: &[],
        bytes: &mut bytes,
    }];
    let done = run(op.name, &views, &mut out, &request.attrs);
    Some(done.map(|()| bytes))
}

/// Runs `op`. Fails when [`check`] refuses the request, when [`supports`] does, when a view reaches outside of its
/// bytes or a result has not the bytes its shape needs, and for what `docs/ops.md` calls an error on the host.
pub fn run(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Result<()> {
    compute(op, inputs, outputs, attrs, Sums::Wide)
}

/// As [`run`], but only as exact as a device has to be, and faster: products of floats are summed in their own precision,
/// f32 at least, and what f32 numbers become is computed where they lie.
pub fn run_fast(op: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Result<()> {
    compute(op, inputs, outputs, attrs, Sums::Own)
}

/// Runs a program of requests as exactly as [`run`] does: one kernel after another, on whole tensors in memory.
///
/// # Errors
/// Those of [`run`]; bad input where there are views among its steps, where `inputs` and `outputs` are not as many and as large as
/// the program's, and where a result is an input.
pub fn run_program(program: &Program<'_>, inputs: &[View], outputs: &mut [Out]) -> Result<()> {
    let own = (program.inputs(), program.results().len());
    let given = (inputs.len(), outputs.len());
    if given != own {
        return Err(Error::bad_input(format!(
            "the program has {} operands and {} results, and was given {} and {}",
            own.0, own.1, given.0, given.1
        )));
    }
    epilogue::run_program(program, inputs, outputs, Sums::Wide)
}

/// Whether [`run`] writes every byte of the results of `op` itself, so that they need not be zeros before.
pub fn writes_all(op: &str) -> bool {
    find(op).is_some_and(|op| op.kernel.writes_all())
}

fn compute(
    op: &str,
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
    sums: Sums,
) -> Result<()> {
    let given: Vec<Desc> = inputs
        .iter()
        .map(|v| Desc {
            dtype: v.dtype,
            shape: v.shape,
        })
        .collect();
    let asked: Vec<Desc> = outputs
        .iter()
        .map(|o| Desc {
            dtype: o.dtype,
            shape: o.shape,
        })
        .collect();
    check(op, &given, &asked, attrs)?;
    let types = |descs: &[Desc]| descs.iter().map(|d| d.dtype).collect::<Vec<_>>();
    supports(op, &types(&given), &types(&asked)).map_err(|e| Error::new(Kind::Unsupported, e))?;
    let refuse = |reason: String| refusal(op, &given, &asked, &reason);
    for (view, desc) in inputs.iter().zip(&given) {
        operand::validate(view).map_err(|reason| refuse(format!("{desc}: {reason}")))?;
    }
    for out in outputs.iter() {
        let needed = count(out.shape).and_then(|n| n.checked_mul(out.dtype.size()));
        if needed != Some(out.bytes.len() as u64) {
            return Err(refuse(format!("the result has {} bytes", out.bytes.len())));
        }
    }
    if outputs.iter().all(|out| out.bytes.is_empty()) {
        return Ok(());
    }
    let found = find(op).ok_or_else(|| refuse("no kernel".to_owned()))?;
    room::expect(found.kernel, inputs)
        .map_err(|reason| refuse(reason).of_kind(Kind::OutOfMemory))?;
    if crate::epilogue::takes(found) && crate::epilogue::has(attrs) {
        return epilogue::run(op, inputs, &mut outputs[0], attrs, sums);
    }
    let done = found
        .kernel
        .run(found.lane, op, inputs, outputs, attrs, sums);
    done.map_err(|reason| {
        let partial = found.partial_of(&types(&given), attrs);
        let undefined = partial.filter(|partial| partial.reason == reason);
        let error = refuse(reason);
        undefined.map_or(error.clone(), |partial| error.of_kind(partial.kind))
    })
}
