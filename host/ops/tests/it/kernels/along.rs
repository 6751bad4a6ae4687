//! Elements along an axis by their indices, beside the definition, for every layout of both operands.

use super::{Random, Tensor, places::both, places::layouts};
use nx_vulkan_abi::{DType, layout::contiguous_strides};
use nx_vulkan_ops::{
    attrs::Attr,
    kernels::{Out, run_fast},
};

const OP: &str = "Nx.Block.TakeAlongAxis";
const TYPES: [DType; 5] = [DType::U8, DType::BF16, DType::F32, DType::F64, DType::C128];

/// The shape of a tensor, the axis, and how many elements are taken along it.
const CASES: [(&[u64], usize, u64); 10] = [
    (&[7], 0, 9),
    (&[1], 0, 1),
    // Longer than a block of indices, and more than a core's share.
    (&[3, 1500], 1, 2100),
    (&[60, 1100], 0, 70),
    (&[5, 4], 0, 3),
    (&[2, 3, 4], 1, 5),
    (&[2, 3, 1], 0, 2),
    (&[4, 0], 0, 3),
    (&[0, 4], 1, 3),
    (&[3, 5], 1, 0),
];

/// Where the element of that number lies in a tensor's buffer.
fn place(x: &Tensor, number: usize, shape: &[u64], instead: Option<(usize, i64)>) -> usize {
    let at = |(axis, step): (usize, &i64)| match instead {
        Some((own, index)) if own == axis => index * step,
        _ => (number as u64 / contiguous_strides(shape)[axis] as u64 % shape[axis]) as i64 * step,
    };
    (x.offset as i64 + x.strides.iter().enumerate().map(at).sum::<i64>()) as usize
}

/// Numbers of 32 bits below a bound, in each layout.
fn indices(shape: &[u64], below: u64, random: &mut Random) -> Vec<Tensor> {
    let mut all = layouts(DType::S32, shape, false, random);
    for cell in all.iter_mut().flat_map(|x| x.bytes.as_chunks_mut().0) {
        *cell = (random.below(below.max(1)) as i32).to_ne_bytes();
    }
    all
}

#[test]
fn elements_along_an_axis_are_those_of_their_indices() {
    let mut random = Random(31);
    for (shape, axis, count) in CASES {
        let mut taken = shape.to_vec();
        taken[axis] = count;
        let attrs = [Attr::ints("axis", [axis as i64])];
        for dtype in TYPES {
            let size = dtype.size() as usize;
            let numbers = indices(&taken, shape[axis], &mut random);
            let tensors = layouts(dtype, shape, false, &mut random);
            for (x, at) in tensors
                .iter()
                .zip(numbers.iter().cycle().skip(dtype.size() as usize))
            {
                let [exact, fast] = both(OP, &[x, at], &[(dtype, &taken)], &attrs);
                assert!(exact == fast, "{dtype}{shape:?}");
                for (number, got) in fast[0].chunks(size).enumerate() {
                    let index = at.bytes.as_chunks().0[place(at, number, &taken, None)];
                    let instead = Some((axis, i64::from(i32::from_ne_bytes(index))));
                    let from = place(x, number, &taken, instead) * size;
                    assert_eq!(got, &x.bytes[from..][..size], "{dtype}{shape:?} {number}");
                }
            }
        }
    }
}

#[test]
fn an_index_along_an_axis_that_is_not_there_is_bad_input() {
    let mut random = Random(32);
    for (index, last) in [(-1, 0), (1500, 2999), (i32::MIN, 1024), (i32::MAX, 1500)] {
        let x = &layouts(DType::F32, &[2, 1500], false, &mut random)[0];
        let mut at = indices(&[2, 1500], 1500, &mut random).swap_remove(0);
        let place = place(&at, last, &[2, 1500], None);
        at.bytes.as_chunks_mut().0[place] = index.to_ne_bytes();
        let mut bytes = vec![0; 12_000];
        let mut outs = [Out {
            dtype: DType::F32,
            shape: &[2, 1500],
            bytes: &mut bytes,
        }];
        let attrs = [Attr::ints("axis", [1])];
        let error = run_fast(OP, &[x.view(), at.view()], &mut outs, &attrs).unwrap_err();
        assert!(
            error.to_string().ends_with("an index is out of bounds"),
            "{error}"
        );
    }
}
