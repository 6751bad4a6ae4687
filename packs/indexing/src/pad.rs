//! Plans of `pad`: one dispatch, which writes every element of the result once.

use crate::{
    emit::{Words, in_form},
    walk::{LIMIT, Side},
};
use nx_vulkan_abi::{
    BufArg, Plan, Refusal, Request,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    grid,
    operand::{raw_type, supports},
    steps::{Step, number},
};

const WORKGROUP: u32 = 256;
const WIDEST: u64 = 16;

/// An axis of the result.
#[derive(Debug, Clone, Copy)]
struct Axis {
    /// Elements of the result.
    extent: u64,
    /// Elements of the operand, and the step between them.
    own: u64,
    stride: i64,
    low: i64,
    /// From one element of the operand to the next in the result.
    apart: u64,
}

pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let (x, value, result) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    let device = request.device;
    let mut axes = axes(request)?;
    if value.rank() > 0 {
        return Err(Refusal::BadRequest(format!(
            "pad: a value of {:?}",
            value.shape
        )));
    }
    in_form(request, &[0, 1], &[], false)?;
    let mut plan = Plan::default();
    if result.elements() == 0 {
        return Ok(plan);
    }
    // Nothing is read of an operand without elements.
    let (source, index) = if x.elements() == 0 {
        (value, 1)
    } else {
        (x, 0)
    };
    let mut from = Side::of(source, BufArg::input(index), Vec::new(), device)?;
    let own = Side::of(value, BufArg::input(1), Vec::new(), device)?;
    let base = result.dtype.size();
    let mut size = base;
    while size < WIDEST && widens(&axes, from.at) {
        widen(&mut axes, &mut from);
        size *= 2;
    }
    let (moved, like) = raw_type(size);
    supports("pad", like, device)?;
    let (narrow, narrow_like) = raw_type(base);
    supports("pad", narrow_like, device)?;
    let count: u64 = axes.iter().map(|axis| axis.extent).product();
    let spans = axes.iter().map(|axis| axis.own.saturating_mul(axis.apart));
    let lows = axes.iter().map(|axis| axis.low.unsigned_abs());
    if spans
        .chain(lows)
        .chain([count, from.arg.len / size])
        .any(|n| n >= LIMIT)
    {
        return Err(Refusal::decline(
            "a tensor has too many elements for 32-bit indices",
        ));
    }
    let workgroup = grid::threads(device, WORKGROUP);
    let mut defines = glsl::needs(like);
    if narrow != moved {
        defines.extend(glsl::needs(narrow_like));
    }
    defines.extend([
        define("MOVED", moved),
        define("VALUE", narrow),
        define("REPEATED(x)", repeated(base)),
        define("PART(words)", part(size)),
        number("WORKGROUP", workgroup),
        number("WIDTH", WIDEST / size),
        number("RANK", axes.len() as u64),
    ]);
    let output = Side::of(result, BufArg::output(0), Vec::new(), device)?;
    let threads = count.div_ceil(WIDEST / size);
    let step = Step {
        file: "pad.comp",
        defines,
        args: vec![from.arg, output.arg, own.arg],
        groups: grid::spread(threads.div_ceil(u64::from(workgroup)), device)?,
        ..Step::default()
    };
    let mut words = Words::default();
    for word in [count as i64, from.at, own.at] {
        words.push(word);
    }
    for axis in axes.iter().rev() {
        words.extent(axis.extent);
        words.push(axis.low);
        words.push(
            axis.own
                .checked_sub(1)
                .map_or(0, |steps| steps * axis.apart + 1) as i64,
        );
        words.extent(axis.apart);
        words.push(axis.stride);
    }
    words.add_to(step, &mut plan, device);
    Ok(plan)
}

/// The axes of the result, as few as possible.
fn axes(request: &Request<'_>) -> Result<Vec<Axis>, Refusal> {
    let (x, result) = (&request.inputs[0], &request.outputs[0]);
    let [high, interior, low] = ["high", "interior", "low"].map(|name| request.ints(name));
    let bad = || {
        let (from, to) = (&x.shape, &result.shape);
        Refusal::BadRequest(format!(
            "pad: {from:?} to {to:?} by {low:?}, {high:?} and {interior:?}"
        ))
    };
    let listed = [high, interior, low]
        .iter()
        .all(|list| list.len() == x.rank());
    if !listed || result.rank() != x.rank() || interior.iter().any(|n| *n < 0) {
        return Err(bad());
    }
    let mut axes: Vec<Axis> = Vec::new();
    for axis in (0..x.rank()).rev() {
        let (extent, own, apart) = (
            result.shape[axis],
            x.shape[axis],
            interior[axis].saturating_add(1),
        );
        let inner = i128::from(own) + i128::from(interior[axis]) * (i128::from(own) - 1).max(0);
        if i128::from(low[axis]) + inner + i128::from(high[axis]) != i128::from(extent) {
            return Err(bad());
        }
        let next = Axis {
            extent,
            own,
            stride: x.strides[axis],
            low: low[axis],
            apart: apart as u64,
        };
        match axes.last_mut() {
            Some(last) if merges(&next, last) => {
                last.extent *= next.extent;
                last.low = next.low.saturating_mul(last.own as i64);
                last.own *= next.own;
            }
            _ => axes.push(next),
        }
    }
    axes.reverse();
    if axes.is_empty() {
        axes.push(Axis {
            extent: 1,
            own: 1,
            stride: 1,
            low: 0,
            apart: 1,
        });
    }
    Ok(axes)
}

/// Whether the elements of the inner axis, none of which are padding, follow one another along the outer one.
fn merges(outer: &Axis, inner: &Axis) -> bool {
    let whole = inner.low == 0 && inner.extent == inner.own && inner.apart == 1;
    whole && outer.apart == 1 && outer.stride == inner.stride.saturating_mul(inner.own as i64)
}

fn widens(axes: &[Axis], at: i64) -> bool {
    let Some((last, outer)) = axes.split_last() else {
        return false;
    };
    let even = [
        last.extent,
        last.own,
        last.low.unsigned_abs(),
        at.unsigned_abs(),
    ];
    last.stride == 1
        && last.apart == 1
        && even.iter().all(|n| n.is_multiple_of(2))
        && outer.iter().all(|axis| axis.stride % 2 == 0)
}

fn widen(axes: &mut [Axis], from: &mut Side) {
    if let Some((last, outer)) = axes.split_last_mut() {
        last.extent /= 2;
        last.own /= 2;
        last.low /= 2;
        outer.iter_mut().for_each(|axis| axis.stride /= 2);
    }
    from.at /= 2;
}

/// An element of `size` bytes as often as it fits 16 bytes.
fn repeated(size: u64) -> &'static str {
    match size {
        1 => "uvec4(uint(x) * 0x01010101u)",
        2 => "uvec4(uint(x) * 0x00010001u)",
        4 => "uvec4(x)",
        8 => "(x).xyxy",
        _ => "x",
    }
}

/// The first `size` bytes of 16.
fn part(size: u64) -> &'static str {
    match size {
        1 => "uint8_t((words).x)",
        2 => "uint16_t((words).x)",
        4 => "(words).x",
        8 => "(words).xy",
        _ => "words",
    }
}
