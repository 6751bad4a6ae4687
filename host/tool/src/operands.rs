//! Elements of operands that benchmarks read. How fast a device computes depends on them: on the bits that change from one
//! to the next, and so on the power it draws.

use nx_vulkan_abi::dtype::Class;
use nx_vulkan_ops::{
    Attr, Op, Spec,
    element::push_float,
    values::{self, Domain, Rng},
};

/// Elements after which they repeat: more than caches hold.
const DIFFERENT: u64 = 1 << 24;

/// The bytes of each operand of a request of `op`, which only a pack may know.
pub(crate) fn bytes(op: Option<&Op>, inputs: &[Spec], attrs: &[Attr]) -> Vec<Vec<u8>> {
    let shapes: Vec<&[u64]> = inputs.iter().map(|spec| &*spec.1).collect();
    let operand = |(index, spec): (usize, &Spec)| {
        let mut rng = Rng(1 + index as u64);
        match op.map(|op| (op, op.domain(index))) {
            Some((op, Domain::Index)) => {
                let count = spec.1.iter().product::<u64>() as usize;
                values::indices(spec.0, op.indices(&shapes, attrs), count, &mut rng)
            }
            Some((op, _)) if op.contract.tiled => {
                fill(spec, |dtype, bytes| signed(dtype, &mut rng, bytes))
            }
            _ => fill(spec, |dtype, bytes| positive(dtype, &mut rng, bytes)),
        }
    };
    inputs.iter().enumerate().map(operand).collect()
}

/// Parts of numbers, until the operand is full.
fn fill(
    (dtype, shape): &Spec,
    mut push: impl FnMut(nx_vulkan_host::DType, &mut Vec<u8>),
) -> Vec<u8> {
    let part = dtype.part();
    let parts = dtype.size() / part.size();
    let count = shape.iter().product::<u64>() * parts;
    let len = (count * part.size()) as usize;
    let mut block = Vec::with_capacity(len);
    for _ in 0..count.min(DIFFERENT) {
        push(part, &mut block);
    }
    while block.len() < len {
        let more = block.len().min(len - block.len());
        block.extend_from_within(..more);
    }
    block
}

/// From -1 to 1, or any integer.
fn signed(dtype: nx_vulkan_host::DType, rng: &mut Rng, bytes: &mut Vec<u8>) {
    if dtype.is_float() {
        push_float(dtype, rng.between(-1.0, 1.0), bytes);
    } else if dtype.row().is_some_and(|row| row.bits < 8) {
        // Elements of fewer bits than a byte are a byte, and their own bits alone say what they are.
        let (low, high) = if dtype.is_signed() { (-2, 1) } else { (0, 3) };
        bytes.extend(values::indices(dtype, (low, high), 1, rng));
    } else {
        bytes.extend_from_slice(&rng.bits().to_le_bytes()[..dtype.size() as usize]);
    }
}

/// From 0 to 1; integers whose bytes are 0 or 1, which flags are as well.
fn positive(dtype: nx_vulkan_host::DType, rng: &mut Rng, bytes: &mut Vec<u8>) {
    match dtype.class() {
        Some(Class::Float | Class::Complex) => push_float(dtype, rng.between(0.0, 1.0), bytes),
        Some(Class::Unsigned | Class::Signed) | None => {
            let bits = rng.bits() & 0x0101_0101_0101_0101;
            bytes.extend_from_slice(&bits.to_le_bytes()[..dtype.size() as usize]);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_host::DType;
    use nx_vulkan_ops::{element::float, find};
    use std::collections::HashSet;

    fn of(op: &str, dtype: DType, shape: &[u64]) -> Vec<u8> {
        let input = (dtype, shape.to_vec());
        let op = find(op).unwrap();
        bytes(Some(op), &vec![input; op.arity()], &[]).swap_remove(0)
    }

    #[test]
    fn operands_of_products_differ_and_have_both_signs() {
        let all = of("dot", DType::F32, &[256, 256]);
        assert_eq!(all.len(), 4 << 16);
        let words: HashSet<&[u8]> = all.chunks(4).collect();
        assert!(words.len() > 60_000, "{}", words.len());
        let values = all.chunks(4).map(|x| float(DType::F32, x).unwrap());
        let (low, sum) = values.fold((0f64, 0f64), |(low, sum), x| (low.min(x), sum + x));
        assert!(low < -0.99 && sum.abs() < 1000.0, "{low} {sum}");
        let halves = of("dot", DType::F16, &[64, 64]);
        let halves = halves.chunks(2).map(|x| float(DType::F16, x).unwrap());
        assert!(halves.clone().any(|x| x < -0.5) && halves.clone().any(|x| x.abs() < 0.1));
        let bytes: HashSet<u8> = of("dot", DType::S8, &[64, 64]).into_iter().collect();
        assert_eq!(bytes.len(), 256);
        let nibbles = of("dot", DType::S4, &[64]).into_iter().map(|x| x as i8);
        assert!(nibbles.into_iter().all(|x| (-8..8).contains(&x)));
    }

    #[test]
    fn other_operands_are_in_range_and_of_the_right_size() {
        let values = of("log", DType::F32, &[1000]);
        let mut values = values.chunks(4).map(|x| float(DType::F32, x).unwrap());
        assert!(values.all(|x| (0.0..=1.0).contains(&x)));
        assert_eq!(of("add", DType::C128, &[3, 5]).len(), 15 * 16);
        assert!(of("add", DType::U8, &[64]).iter().all(|x| *x < 2));
        assert_eq!(of("add", DType::F32, &[0]).len(), 0);
    }

    #[test]
    fn what_is_larger_repeats() {
        let mut count = 0u64;
        let bytes = fill(&(DType::U8, vec![DIFFERENT + 3]), |_, bytes| {
            bytes.push(count as u8);
            count += 1;
        });
        assert_eq!(count, DIFFERENT);
        assert_eq!(bytes.len() as u64, DIFFERENT + 3);
        assert_eq!(bytes[DIFFERENT as usize..], [0, 1, 2]);
    }
}
