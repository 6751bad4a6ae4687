//! Operands of several types where they lie, with the bits of what others are compared with.

use super::casts::TYPES;
use super::places::{both, layouts};
use super::typed::RELATIONS;
use super::{Random, Tensor};
use nx_vulkan_abi::DType;

/// One that lies in order, one that does not, and a single element for all.
fn tensors(dtype: DType, shape: &[u64], random: &mut Random) -> [Tensor; 3] {
    let all = layouts(dtype, shape, true, random);
    let mut one = all[0].clone();
    one.strides.iter_mut().for_each(|stride| *stride = 0);
    [all[0].clone(), all[1].clone(), one]
}

fn same(op: &str, operands: &[&Tensor], to: DType, shape: &[u64]) {
    let [exact, fast] = both(op, operands, &[(to, shape)], &[]);
    let types: Vec<DType> = operands.iter().map(|x| x.dtype).collect();
    let strides: Vec<_> = operands.iter().map(|x| &x.strides).collect();
    assert!(exact == fast, "{op} of {types:?} to {to}, {strides:?}");
}

#[test]
fn pairs_of_types_have_the_same_bits_however_they_lie() {
    let mut random = Random(57);
    let shape = [3, 347];
    for (a, b) in TYPES.iter().flat_map(|a| TYPES.map(|b| (*a, b))) {
        let merged = a.merge(b);
        for x in tensors(a, &shape, &mut random) {
            for y in tensors(b, &shape, &mut random) {
                for op in ["add", "subtract", "multiply", "max", "min"] {
                    same(op, &[&x, &y], merged, &shape);
                }
                for float in [merged.merge(DType::F16), merged.merge(DType::F32)] {
                    same("divide", &[&x, &y], float, &shape);
                }
                for op in RELATIONS {
                    same(op, &[&x, &y], DType::U8, &shape);
                }
                same("clip", &[&x, &y, &x], merged, &shape);
                same("clip", &[&x, &y, &y], merged, &shape);
                let pred = &tensors(DType::U8, &shape, &mut random)[0];
                same("select", &[pred, &x, &y], merged, &shape);
                if merged.is_integer() {
                    for op in ["bitwise_and", "bitwise_or", "bitwise_xor"] {
                        same(op, &[&x, &y], merged, &shape);
                    }
                }
            }
        }
    }
}

/// Results of another type than what their operands merge to, which requests may ask for.
#[test]
fn results_of_any_type_have_the_same_bits() {
    let mut random = Random(58);
    let shape = [2, 301];
    for (a, to) in TYPES.iter().flat_map(|a| TYPES.map(|to| (*a, to))) {
        let b = TYPES[random.below(12) as usize];
        let [x, ..] = tensors(a, &shape, &mut random);
        let [y, ..] = tensors(b, &shape, &mut random);
        for op in ["add", "multiply", "max"] {
            if a.merge(b).is_float() <= to.is_float() {
                same(op, &[&x, &y], to, &shape);
            }
        }
        if to.is_float() {
            same("sqrt", &[&x], to, &shape);
        }
    }
}
