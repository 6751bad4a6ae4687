//! Integers where they lie, beside arithmetic in 128 bits.

use super::places::{both, layouts};
use super::{Random, Sample, tensor};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::{Out, run, run_fast};

const OPS: [&str; 8] = [
    "add",
    "subtract",
    "multiply",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
];

/// The result in 128 bits, of which the type keeps the last ones.
fn wanted(op: &str, x: i128, y: i128) -> i128 {
    match op {
        "add" => x + y,
        "subtract" => x - y,
        "multiply" => x.wrapping_mul(y),
        "bitwise_and" => x & y,
        "bitwise_or" => x | y,
        "bitwise_xor" => x ^ y,
        "left_shift" => x.checked_shl(y.min(200) as u32).unwrap_or(0),
        _ => x >> y.min(127),
    }
}

macro_rules! checks {
    ($($name:ident: $t:ty;)*) => { $(
        #[test]
        fn $name() {
            let mut random = Random(23);
            let ends = [0, 1, 2, 3, 31, 32, 33, 63, 64, 65, <$t>::MAX - 1, <$t>::MAX, <$t>::MIN, <$t>::MIN + 1];
            let mut pairs: Vec<($t, $t)> = ends.iter().flat_map(|x| ends.map(|y| (*x, y))).collect();
            pairs.extend((0..5000).map(|_| (random.next() as $t, (random.next() >> random.below(63)) as $t)));
            for op in OPS {
                let is_shift = op.ends_with("shift");
                let defined = |y: $t| !is_shift || i128::from(y) >= 0;
                let pairs = pairs.iter().filter(|(_, y)| defined(*y));
                let [x, y]: [Vec<$t>; 2] = pairs.copied().unzip::<_, _, Vec<_>, Vec<_>>().into();
                let dtype = <$t as Sample>::DTYPE;
                let shape = [x.len() as u64];
                let outs = [(dtype, &shape[..])];
                let of = |y: &$t, x: &$t| wanted(op, (*x).into(), (*y).into()) as $t;
                let want = |all: &mut dyn Iterator<Item = $t>| -> Vec<u8> {
                    all.flat_map(|z| z.to_ne_bytes()).collect()
                };
                let inputs = [tensor(&shape, &x), tensor(&shape, &y)];
                let [exact, fast] = both(op, &[&inputs[0], &inputs[1]], &outs, &[]);
                let all = want(&mut x.iter().zip(&y).map(|(x, y)| of(y, x)));
                assert!(exact[0] == all && fast[0] == all, "{op} of {dtype}");
                // One number of another type.
                for amount in [0u8, 1, 7, 8, 15, 31, 32, 63, 64, 127] {
                    let one = tensor(&[], &[amount]);
                    let [exact, fast] = both(op, &[&inputs[0], &one], &outs, &[]);
                    let all = want(&mut x.iter().map(|x| of(&(amount as $t), x)));
                    assert!(exact[0] == all && fast[0] == all, "{op} of {dtype} and {amount}");
                }
            }
        }
    )* };
}
checks! {
    integers_of_one_byte: i8;
    integers_of_one_byte_without_sign: u8;
    integers_of_two_bytes: i16;
    integers_of_two_bytes_without_sign: u16;
    integers_of_four_bytes: i32;
    integers_of_four_bytes_without_sign: u32;
    integers_of_eight_bytes: i64;
    integers_of_eight_bytes_without_sign: u64;
}

#[test]
fn however_they_lie() {
    let mut random = Random(29);
    for dtype in [DType::S32, DType::U32, DType::S64, DType::U64] {
        for x in layouts(dtype, &[7, 301], true, &mut random) {
            for y in layouts(dtype, &[7, 301], true, &mut random) {
                for op in ["add", "bitwise_xor"] {
                    let [exact, fast] = both(op, &[&x, &y], &[(dtype, &[7, 301])], &[]);
                    assert!(
                        exact == fast,
                        "{op} of {dtype}, {:?}, {:?}",
                        x.strides,
                        y.strides
                    );
                }
            }
        }
    }
}

#[test]
fn a_negative_amount_is_refused_among_many() {
    let shape = [3000];
    let mut amounts = vec![1i64; 3000];
    amounts[2500] = -1;
    let (x, y) = (tensor(&shape, &vec![7i64; 3000]), tensor(&shape, &amounts));
    let scalar = tensor(&[], &[-1i8]);
    for amounts in [&y, &scalar] {
        for kernel in [run, run_fast] {
            let mut bytes = vec![0; 24_000];
            let mut out = [Out {
                dtype: DType::S64,
                shape: &shape,
                bytes: &mut bytes,
            }];
            let error = kernel("right_shift", &[x.view(), amounts.view()], &mut out, &[]);
            let text = error.unwrap_err().to_string();
            assert!(text.contains("a negative shift amount"), "{text}");
        }
    }
}
