//! Requests that a pack must survive: those that a host may ask, however odd, and those that none would.

use nx_vulkan_abi::{DType, DTypeSet, layout};
use nx_vulkan_ops::{Attr, AttrValue, Op, Request, Spec, infer::infer, values::Rng};
use nx_vulkan_registry::{KernelEntry, request::Operand};

/// Extents that go wrong when multiplied, divided or stored in 32 bits.
const EXTENTS: [u64; 14] = [
    0,
    1,
    2,
    3,
    4,
    7,
    17,
    64,
    1000,
    65_537,
    1 << 24,
    1 << 31,
    (1 << 32) + 1,
    1 << 40,
];
/// Most elements of a tensor here; the host refuses shapes whose bytes do not fit 64 bits.
const MOST: u64 = 1 << 52;
const NAMES: [&str; 10] = [
    "axes",
    "axis",
    "tie_break",
    "bits",
    "batch_a",
    "batch_b",
    "contract_a",
    "contract_b",
    "window",
    "",
];

/// A request that keeps the op's contract, with shapes and strides as only a hostile caller has them; `None` where the
/// shapes do not fit the op.
pub(super) fn odd(
    op: &Op,
    types: &[DType],
    output: DType,
    rng: &mut Rng,
) -> Option<Request<'static, Operand>> {
    let shape = shape(rng);
    let inputs: Vec<_> = types.iter().map(|&dtype| (dtype, shape.clone())).collect();
    let request = infer(op, &inputs, Some((output, shape.clone())), &[]).ok()?;
    let natural = infer(op, &inputs, None, &[]).ok();
    let mut outputs = natural.map_or_else(
        || request.outputs.to_vec(),
        |natural| natural.outputs.into_owned(),
    );
    for (index, (dtype, shape)) in outputs.iter_mut().enumerate() {
        let elements = shape.iter().try_fold(1u64, |n, &e| n.checked_mul(e));
        elements.filter(|elements| *elements <= MOST)?;
        if index == 0 || op.contract.results.len() > 1 {
            *dtype = output;
        }
    }
    let inputs = inputs.into_iter();
    let inputs: Vec<Operand> = inputs
        .map(|(dtype, shape)| view(dtype, shape, rng))
        .collect();
    Some(Request::new(op.name, inputs, outputs, request.attrs))
}

/// Requests for a kernel whose op the host does not know, with types that it lists.
pub(super) fn plains(
    kernel: &KernelEntry,
    most: usize,
    rng: &mut Rng,
) -> Vec<Request<'static, Operand>> {
    let plain = |_| plain(&kernel.op, kernel.inputs, kernel.outputs, rng);
    (0..most).filter_map(plain).collect()
}

/// A few contiguous operands of one shape and a result like them; `None` where no type is both taken and given.
fn plain(
    op: &str,
    inputs: DTypeSet,
    outputs: DTypeSet,
    rng: &mut Rng,
) -> Option<Request<'static, Operand>> {
    let both = |dtype: &DType| inputs.has(*dtype) && outputs.has(*dtype);
    let types: Vec<DType> = DType::all().filter(both).collect();
    if types.is_empty() {
        return None;
    }
    let dtype = types[rng.below(types.len() as u64) as usize];
    let shapes: [&[u64]; 5] = [&[], &[5], &[64], &[3, 7], &[1000, 3]];
    let shape = rng.pick(&shapes);
    let arity = 1 + rng.below(3) as usize;
    let inputs = vec![Operand::contiguous(dtype, shape); arity];
    let outputs = vec![(dtype, shape.to_vec())];
    Some(Request::new(op.to_owned(), inputs, outputs, &[]))
}

/// Anything at all: wrong arity, types, ranks, layouts and attributes.
pub(super) fn wild(op: &str, rng: &mut Rng) -> Request<'static, Operand> {
    let dtype = |rng: &mut Rng| match rng.below(20) {
        0 => DType(200 + rng.below(2) as u32),
        _ => {
            let all: Vec<DType> = DType::all().collect();
            all[rng.below(all.len() as u64) as usize]
        }
    };
    let inputs = (0..rng.below(5)).map(|_| {
        let (dtype, shape) = (dtype(rng), shape(rng));
        let mut operand = view(dtype, shape, rng);
        match rng.below(6) {
            0 => operand.storage_len = rng.below(8),
            1 => operand.offset = rng.bits() >> 4,
            2 => operand
                .strides
                .iter_mut()
                .for_each(|s| *s = rng.bits() as i64 >> 3),
            _ => {}
        }
        operand
    });
    let inputs: Vec<Operand> = inputs.collect();
    let outputs: Vec<Spec> = (0..rng.below(3))
        .map(|_| (dtype(rng), shape(rng)))
        .collect();
    let mut attrs: Vec<Attr> = (0..rng.below(4)).map(|_| attr(rng)).collect();
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    Request::new(op.to_owned(), inputs, outputs, attrs)
}

/// Up to eight extents whose product a host would still accept.
fn shape(rng: &mut Rng) -> Vec<u64> {
    let rank = rng.below(9);
    let mut elements = 1u64;
    let extent = |_| {
        let extent = EXTENTS[rng.below(EXTENTS.len() as u64) as usize];
        let fits = elements
            .checked_mul(extent.max(1))
            .filter(|all| *all <= MOST);
        match fits {
            Some(all) => {
                elements = all;
                extent
            }
            None => 1,
        }
    };
    (0..rank).map(extent).collect()
}

/// A view whose elements all lie in its buffer: steps, repeated and reversed axes, an offset.
fn view(dtype: DType, shape: Vec<u64>, rng: &mut Rng) -> Operand {
    let mut operand = Operand::contiguous(dtype, &shape);
    let mut strides = layout::contiguous_strides(&shape);
    let (mut low, mut high) = (0i64, 0i64);
    for (stride, &extent) in strides.iter_mut().zip(&shape) {
        *stride = match rng.below(6) {
            0 => 0,
            1 => stride.saturating_neg(),
            2 => stride.saturating_mul(3),
            _ => *stride,
        };
        let reach = stride.saturating_mul(extent.saturating_sub(1) as i64);
        low = low.saturating_add(reach.min(0));
        high = high.saturating_add(reach.max(0));
    }
    let first = rng.below(4) * rng.below(100);
    operand.offset = low.unsigned_abs() + first;
    let end = operand
        .offset
        .saturating_add(high as u64)
        .saturating_add(1 + rng.below(3));
    operand.storage_len = match shape.contains(&0) {
        true => operand.offset * dtype.size(),
        false => end.saturating_mul(dtype.size()),
    };
    operand.strides = strides;
    operand
}

fn attr(rng: &mut Rng) -> Attr {
    let name = NAMES[rng.below(NAMES.len() as u64) as usize].to_owned();
    let count = rng.below(12);
    let small = |rng: &mut Rng| match rng.below(4) {
        0 => rng.bits() as i64,
        _ => rng.below(10) as i64 - 2,
    };
    let value = match rng.below(4) {
        0 => AttrValue::Floats((0..count).map(|_| f64::from_bits(rng.bits())).collect()),
        1 => AttrValue::Text("low\u{0}\u{1b}[31m".repeat(count as usize)),
        _ => AttrValue::Ints((0..count).map(|_| small(rng)).collect()),
    };
    Attr { name, value }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_ops::ops;

    #[test]
    fn odd_requests_keep_their_ops_contract_and_their_buffers() {
        let mut rng = Rng(1);
        let mut seen = 0;
        for op in ops() {
            for _ in 0..50 {
                let types = vec![DType::F32; op.arity()];
                let Some(request) = odd(op, &types, DType::F32, &mut rng) else {
                    continue;
                };
                for input in request.inputs.iter() {
                    if input.shape.contains(&0) {
                        continue;
                    }
                    let at = |low: bool| {
                        let reach = |(n, s): (&u64, &i64)| {
                            let reach = i128::from(*s) * (i128::from(*n) - 1);
                            if (reach < 0) == low { reach } else { 0 }
                        };
                        let steps = input.shape.iter().zip(&input.strides).map(reach);
                        i128::from(input.offset) + steps.sum::<i128>()
                    };
                    let stored = i128::from(input.storage_len / input.dtype.size());
                    assert!(at(true) >= 0 && at(false) < stored, "{} {input:?}", op.name);
                }
                seen += 1;
            }
        }
        assert!(seen > 1000, "{seen}");
    }

    #[test]
    fn the_seed_decides() {
        let shown = |seed| format!("{:?}", wild("add", &mut Rng(seed)));
        assert_eq!(shown(7), shown(7));
        assert_ne!(shown(7), shown(8));
    }
}
