//! Arithmetic of bytes, complex numbers and integers where they lie.

use super::places::{both, is_close, layouts};
use super::{Random, tensor};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::{Out, run, run_fast};

#[test]
fn bytes_and_complex_numbers_are_added_and_multiplied_where_they_lie() {
    let mut random = Random(17);
    for dtype in [DType::U8, DType::S8, DType::C64] {
        for x in layouts(dtype, &[7, 301], true, &mut random) {
            for y in layouts(dtype, &[7, 301], true, &mut random) {
                for op in ["add", "subtract", "multiply"] {
                    let results = both(op, &[&x, &y], &[(dtype, &[7, 301])], &[]);
                    let agree = is_close(dtype, &results.map(|all| all.concat()), 0.0);
                    assert!(agree, "{op} of {dtype}, {:?}, {:?}", x.strides, y.strides);
                }
            }
        }
    }
}

#[test]
fn quotients_of_integers_are_exact() {
    let mut random = Random(18);
    let ends = [
        i32::MIN,
        i32::MIN + 1,
        -2,
        -1,
        1,
        2,
        3,
        i32::MAX - 1,
        i32::MAX,
    ];
    let mut pairs: Vec<(i32, i32)> = ends.iter().flat_map(|x| ends.map(|y| (*x, y))).collect();
    pairs.extend((0..5000).map(|_| {
        let y = (random.next() >> (32 + random.below(31))) as i32;
        (random.next() as i32, y | 1)
    }));
    let [x, y]: [Vec<i32>; 2] = pairs.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>().into();
    let shape = [x.len() as u64];
    let inputs = [tensor(&shape, &x), tensor(&shape, &y)];
    let [exact, fast] = both(
        "quotient",
        &[&inputs[0], &inputs[1]],
        &[(DType::S32, &shape)],
        &[],
    );
    let want: Vec<u8> = pairs
        .iter()
        .flat_map(|(x, y)| x.wrapping_div(*y).to_ne_bytes())
        .collect();
    assert!(exact[0] == want && fast[0] == want);
    let all: Vec<(u8, u8)> = (0..=255)
        .flat_map(|x| (1..=255).map(move |y| (x, y)))
        .collect();
    let [x, y]: [Vec<u8>; 2] = all.iter().copied().unzip::<_, _, Vec<_>, Vec<_>>().into();
    let shape = [x.len() as u64];
    let inputs = [tensor(&shape, &x), tensor(&shape, &y)];
    let [exact, fast] = both(
        "quotient",
        &[&inputs[0], &inputs[1]],
        &[(DType::U8, &shape)],
        &[],
    );
    assert!(exact == fast && exact[0].iter().zip(&all).all(|(got, (x, y))| *got == x / y));
}

#[test]
fn a_divisor_of_zero_is_refused_among_many() {
    let shape = [3000];
    let mut divisors = vec![1i32; 3000];
    divisors[2500] = 0;
    let (x, y) = (tensor(&shape, &vec![7i32; 3000]), tensor(&shape, &divisors));
    for kernel in [run, run_fast] {
        let mut bytes = vec![0; 12_000];
        let mut out = [Out {
            dtype: DType::S32,
            shape: &shape,
            bytes: &mut bytes,
        }];
        let refused = kernel("quotient", &[x.view(), y.view()], &mut out, &[]);
        assert!(
            refused
                .unwrap_err()
                .to_string()
                .contains("division by zero")
        );
    }
}
