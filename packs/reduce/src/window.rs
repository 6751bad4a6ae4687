//! Windows: what of a pass over the operand one dispatch covers, so that no buffer argument exceeds the device's limit.

use crate::{
    pass::Pass,
    problem::{Axis, elements},
};
use nx_vulkan_pack_kit::span::Span;
use std::ops::Range;

/// Windows of one pass. A plan has at most 64 steps.
const MOST: u64 = 48;

/// What one dispatch covers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Window {
    /// Indices of the outer space.
    pub(crate) outer: Range<u64>,
    pub(crate) parts: Range<u64>,
    /// Bytes of the operand, and of the result where the pass gives results.
    pub(crate) operand: Range<u64>,
    pub(crate) result: Range<u64>,
}

/// Sizes of what a pass walks over and where its results go.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Bytes {
    pub(crate) operand: u64,
    pub(crate) operand_total: u64,
    pub(crate) result: u64,
    pub(crate) limit: u64,
}

/// The windows of `pass`, or `None` where the layout allows none. May split the reduction further.
pub(crate) fn windows(pass: &mut Pass, bytes: Bytes) -> Option<Vec<Window>> {
    let whole = pass.outer.first().map_or(1, |axis| axis.extent);
    along_outer(pass, bytes, whole).or_else(|| {
        let halves =
            std::iter::successors(Some(whole.div_ceil(2)), |n| (*n > 1).then(|| n.div_ceil(2)));
        halves
            .take_while(|step| whole.div_ceil(*step) <= MOST)
            .find_map(|step| along_outer(pass, bytes, step))
            .or_else(|| along_parts(pass, bytes))
    })
}

/// Windows of `step` indices of the outermost axis each.
fn along_outer(pass: &Pass, bytes: Bytes, step: u64) -> Option<Vec<Window>> {
    let whole = pass.outer.first().map_or(1, |axis| axis.extent);
    let inner = elements(&pass.outer) / whole;
    (0..whole)
        .step_by(step as usize)
        .map(|first| {
            let outer = first..(first + step).min(whole);
            let mut window = Window {
                outer: outer.start * inner..outer.end * inner,
                parts: 0..pass.parts(),
                operand: span(
                    pass,
                    &outer,
                    &(0..pass.extent()),
                    |a| a.operand,
                    bytes.operand,
                    pass.offset,
                )?,
                result: span(pass, &outer, &(0..1), |a| a.result, bytes.result, 0)?,
            };
            window.operand.end = window.operand.end.min(bytes.operand_total);
            let fits = |range: &Range<u64>| range.end - range.start <= bytes.limit;
            (fits(&window.operand) && (pass.is_partial() || fits(&window.result))).then_some(window)
        })
        .collect()
}

/// Windows of some parts of the reduction each, with parts small enough for that.
fn along_parts(pass: &mut Pass, bytes: Bytes) -> Option<Vec<Window>> {
    let [_] = pass.reduced[..] else { return None };
    let outer = 0..pass.outer.first().map_or(1, |axis| axis.extent);
    let range = |pass: &Pass, parts: &Range<u64>| {
        let last = (parts.end * pass.part_extent).min(pass.extent());
        let mut range = span(
            pass,
            &outer,
            &(parts.start * pass.part_extent..last),
            |a| a.operand,
            bytes.operand,
            pass.offset,
        )?;
        range.end = range.end.min(bytes.operand_total);
        (range.end - range.start <= bytes.limit).then_some(range)
    };
    let fits = |pass: &Pass| (0..pass.parts()).all(|part| range(pass, &(part..part + 1)).is_some());
    while pass.parts() < 2 || !fits(pass) {
        // Rows stay aligned to vectors.
        let half = (pass.part_extent / 2).max(1).next_multiple_of(pass.width);
        if half >= pass.part_extent || pass.extent().div_ceil(half) > MOST * 64 {
            return None;
        }
        pass.part_extent = half;
    }
    let mut windows: Vec<Window> = Vec::new();
    for part in 0..pass.parts() {
        if let Some(last) = windows.last_mut()
            && let Some(operand) = range(pass, &(last.parts.start..part + 1))
        {
            last.parts.end = part + 1;
            last.operand = operand;
        } else {
            windows.push(Window {
                outer: 0..elements(&pass.outer),
                parts: part..part + 1,
                operand: range(pass, &(part..part + 1))?,
                result: 0..0,
            });
        }
    }
    (windows.len() as u64 <= MOST).then_some(windows)
}

/// Bytes between the first and the last element, for part of the outermost axis and of the reduced one.
fn span(
    pass: &Pass,
    outer: &Range<u64>,
    reduced: &Range<u64>,
    stride: fn(&Axis) -> i64,
    size: u64,
    offset: i64,
) -> Option<Range<u64>> {
    let (mut first, mut axes) = (offset, Vec::new());
    let mut add = |axis: &Axis, range: &Range<u64>| {
        first += range.start as i64 * stride(axis);
        axes.push((range.end - range.start, stride(axis)));
    };
    for (k, axis) in pass.outer.iter().enumerate() {
        let all = 0..axis.extent;
        add(axis, if k == 0 { outer } else { &all });
    }
    add(&pass.column, &(0..pass.column.extent));
    match &pass.reduced[..] {
        [axis] => add(axis, reduced),
        all => all.iter().for_each(|axis| add(axis, &(0..axis.extent))),
    }
    Span::of(first, axes).bytes(size)
}
