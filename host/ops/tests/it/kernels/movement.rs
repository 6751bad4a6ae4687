//! Movement and indexing: results by definition, and what is refused.

use super::{DType, Tensor, tensor, try_run};
use nx_vulkan_ops::kernels::{Desc, check};
use nx_vulkan_ops::{
    attrs::Attr,
    error::{Error, Kind},
};

const S32: DType = DType::S32;
const U8: DType = DType::U8;
const F32: DType = DType::F32;

/// An operand of s32: its shape and its elements.
type Operand<'a> = (&'a [u64], Vec<i32>);

pub(super) fn result(
    op: &str,
    inputs: &[Operand<'_>],
    shape: &[u64],
    attrs: &[Attr],
) -> Result<Vec<i32>, Error> {
    let inputs: Vec<Tensor> = inputs
        .iter()
        .map(|input| tensor(input.0, &input.1))
        .collect();
    try_run(op, &inputs.iter().collect::<Vec<_>>(), shape, attrs)
}

pub(super) fn ints(name: &str, list: &[i64]) -> Attr {
    Attr::ints(name, list)
}

#[test]
fn parts_are_those_at_the_indices() {
    let t = (&[2, 3, 2][..], (0..12).collect::<Vec<i32>>());
    let axes = [ints("axes", &[0, 2])];
    let index = (&[2, 2][..], vec![1, 0, 0, 1]);
    // Element [i, j] is t[index[i][0], j, index[i][1]].
    assert_eq!(
        result("gather", &[t.clone(), index], &[2, 3], &axes).unwrap(),
        [6, 8, 10, 1, 3, 5]
    );
    let axis = [ints("axis", &[1])];
    let taken = result(
        "Nx.Block.Take",
        &[t.clone(), (&[2], vec![2, 0])],
        &[2, 2, 2],
        &axis,
    );
    assert_eq!(taken.unwrap(), [4, 5, 0, 1, 10, 11, 6, 7]);
    let along = (&[2, 1, 2][..], vec![2, 0, 1, 1]);
    let along = result("Nx.Block.TakeAlongAxis", &[t, along], &[2, 1, 2], &axis);
    assert_eq!(along.unwrap(), [4, 1, 8, 9]);
}

#[test]
fn an_index_that_is_not_there_is_bad_input() {
    let t = (&[3][..], vec![5, 6, 7]);
    for index in [-1, 3, i32::MAX] {
        let index = (&[1, 1][..], vec![index]);
        let axes = [ints("axes", &[0])];
        let of = |op: &str, more: Option<Operand<'static>>| {
            let inputs: Vec<Operand<'_>> =
                [t.clone(), index.clone()].into_iter().chain(more).collect();
            let shape: &[u64] = if op == "gather" { &[1] } else { &[3] };
            result(op, &inputs, shape, &axes).unwrap_err()
        };
        let update = || Some((&[1][..], vec![1]));
        for error in [
            of("gather", None),
            of("indexed_add", update()),
            of("indexed_put", update()),
        ] {
            assert_eq!(error.kind(), Kind::BadInput);
            assert!(
                error.to_string().ends_with("an index is out of bounds"),
                "{error}"
            );
        }
    }
}

#[test]
fn tensors_are_joined_sliced_and_padded() {
    let (a, b) = ((&[2, 1][..], vec![1, 2]), (&[2, 2][..], vec![3, 4, 5, 6]));
    let joined = result(
        "concatenate",
        &[a.clone(), b.clone()],
        &[2, 3],
        &[ints("axis", &[1])],
    );
    assert_eq!(joined.unwrap(), [1, 3, 4, 2, 5, 6]);
    let stacked = result(
        "stack",
        &[b.clone(), b.clone()],
        &[2, 2, 2],
        &[ints("axis", &[1])],
    );
    assert_eq!(stacked.unwrap(), [3, 4, 3, 4, 5, 6, 5, 6]);
    let t = (&[6][..], (0..6).collect::<Vec<i32>>());
    for (start, first) in [(-4, 0), (1, 1), (9, 3)] {
        let attrs = [
            ints("axes", &[0]),
            ints("lengths", &[3]),
            ints("strides", &[2]),
        ];
        let part = result(
            "dynamic_slice",
            &[t.clone(), (&[], vec![start])],
            &[2],
            &attrs,
        );
        assert_eq!(part.unwrap(), [first, first + 2]);
        let attrs = [ints("axes", &[0]), ints("starts", &[0])];
        let slice = (&[3][..], vec![-1, -2, -3]);
        let put = result(
            "put_slice",
            &[t.clone(), slice, (&[], vec![start])],
            &[6],
            &attrs,
        )
        .unwrap();
        let expected = (0..6).map(|i| {
            if (first..first + 3).contains(&i) {
                first - 1 - i
            } else {
                i
            }
        });
        assert_eq!(put, expected.collect::<Vec<i32>>());
    }
    let attrs = [
        ints("high", &[-1]),
        ints("interior", &[1]),
        ints("low", &[2]),
    ];
    let padded = result(
        "pad",
        &[(&[3], vec![1, 2, 3]), (&[], vec![9])],
        &[6],
        &attrs,
    );
    assert_eq!(padded.unwrap(), [9, 9, 1, 9, 2, 9]);
}

#[test]
fn updates_come_in_their_order() {
    let t = (&[3, 2][..], vec![10, 20, 30, 40, 50, 60]);
    let index = (&[3, 1][..], vec![2, 0, 2]);
    let updates = (&[3, 2][..], vec![1, 2, 3, 4, 5, 6]);
    let of = |op: &str| {
        let inputs = [t.clone(), index.clone(), updates.clone()];
        result(op, &inputs, &[3, 2], &[ints("axes", &[0])]).unwrap()
    };
    assert_eq!(of("indexed_add"), [13, 24, 30, 40, 56, 68]);
    assert_eq!(of("indexed_put"), [3, 4, 30, 40, 5, 6]);
}

#[test]
fn parts_without_an_index_are_the_whole_tensor() {
    let t = (&[2][..], vec![7, 8]);
    let none = (&[3, 0][..], Vec::new());
    let got = result("gather", &[t, none], &[3, 2], &[ints("axes", &[])]).unwrap();
    assert_eq!(got, [7, 8, 7, 8, 7, 8]);
}

#[test]
fn broken_requests_are_refused() {
    type Side = (DType, &'static [u64]);
    let refused = |op: &str, inputs: &[Side], output: Side, attrs: &[Attr], reason: &str| {
        let desc = |side: &Side| Desc {
            dtype: side.0,
            shape: side.1,
        };
        let inputs: Vec<Desc<'_>> = inputs.iter().map(desc).collect();
        let error = check(op, &inputs, &[desc(&output)], attrs)
            .expect_err(op)
            .to_string();
        assert!(
            error.starts_with(op) && error.contains(reason),
            "{reason:?} is not in: {error}"
        );
    };
    let (axes, axis) = (
        |list: &[i64]| [ints("axes", list)],
        |list: &[i64]| [ints("axis", list)],
    );
    let gather = |index: Side, out: Side, list: &[i64], reason: &str| {
        refused("gather", &[(F32, &[4, 5]), index], out, &axes(list), reason);
    };
    gather(
        (F32, &[3, 1]),
        (F32, &[3, 5]),
        &[0],
        "indices must be integers",
    );
    gather(
        (S32, &[3, 2]),
        (F32, &[3, 5]),
        &[0],
        "an index for each of the axes",
    );
    gather((S32, &[3, 1]), (F32, &[3, 4]), &[0], "the shape [3, 5]");
    gather((S32, &[3, 2]), (F32, &[3]), &[1, 0], "must ascend");
    gather((S32, &[3, 1]), (F32, &[3, 5]), &[2], "names axis 2");
    gather((S32, &[3, 1]), (S32, &[3, 5]), &[0], "the operand's type");
    let take = [(F32, &[4, 5][..]), (S32, &[3][..])];
    refused(
        "Nx.Block.Take",
        &take,
        (F32, &[3, 5]),
        &axis(&[]),
        "one axis",
    );
    refused(
        "Nx.Block.TakeAlongAxis",
        &take,
        (F32, &[3]),
        &axis(&[0]),
        "must have the shape of",
    );
    refused(
        "concatenate",
        &[],
        (F32, &[3]),
        &axis(&[0]),
        "at least 1 operands",
    );
    let pair = [(F32, &[2, 3][..]), (F32, &[2, 4][..])];
    refused(
        "concatenate",
        &pair,
        (F32, &[4, 3]),
        &axis(&[0]),
        "does not fit next to",
    );
    refused(
        "concatenate",
        &pair,
        (F32, &[2, 3]),
        &axis(&[1]),
        "the shape [2, 7]",
    );
    refused(
        "stack",
        &pair[..1],
        (F32, &[1, 2, 3]),
        &axis(&[3]),
        "names axis 3",
    );
    let slice = [(U8, &[4, 5][..]), (S32, &[][..])];
    let of = |lengths: &[i64], strides: &[i64]| {
        [
            ints("axes", &[1]),
            ints("lengths", lengths),
            ints("strides", strides),
        ]
    };
    refused(
        "dynamic_slice",
        &slice,
        (U8, &[4, 6]),
        &of(&[6], &[1]),
        "no 6 elements along axis 1",
    );
    refused(
        "dynamic_slice",
        &slice,
        (U8, &[4, 2]),
        &of(&[2], &[0]),
        "strides must be positive",
    );
    refused(
        "dynamic_slice",
        &slice[..1],
        (U8, &[4, 2]),
        &of(&[2], &[1]),
        "at least 2 operands",
    );
    refused(
        "dynamic_slice",
        &[slice[0], (S32, &[1])],
        (U8, &[4, 2]),
        &of(&[2], &[1]),
        "must be a scalar",
    );
    let put = [ints("axes", &[]), ints("starts", &[0, 4])];
    refused(
        "put_slice",
        &[(U8, &[4, 5]), (U8, &[1, 2])],
        (U8, &[4, 5]),
        &put,
        "is not inside of",
    );
    refused(
        "put_slice",
        &[(U8, &[4, 5]), (U8, &[2])],
        (U8, &[4, 5]),
        &put,
        "as many axes",
    );
    let by = |low: &[i64], interior: &[i64]| {
        [
            ints("high", &[0]),
            ints("interior", interior),
            ints("low", low),
        ]
    };
    refused(
        "pad",
        &[(U8, &[4]), (U8, &[])],
        (U8, &[0]),
        &by(&[-5], &[0]),
        "too few elements",
    );
    refused(
        "pad",
        &[(U8, &[4]), (U8, &[])],
        (U8, &[4]),
        &by(&[0], &[-1]),
        "must not be negative",
    );
    refused(
        "pad",
        &[(U8, &[4]), (U8, &[1])],
        (U8, &[4]),
        &by(&[0], &[0]),
        "the value must be a scalar",
    );
    let update = |index: Side, updates: Side, reason: &str| {
        for op in ["indexed_add", "indexed_put"] {
            refused(
                op,
                &[(U8, &[4, 5]), index, updates],
                (U8, &[4, 5]),
                &axes(&[0]),
                reason,
            );
        }
    };
    update((F32, &[3, 1]), (U8, &[3, 5]), "indices must be integers");
    update((S32, &[3]), (U8, &[3, 5]), "indices must have two axes");
    update(
        (S32, &[3, 1]),
        (U8, &[2, 5]),
        "the updates must have the shape [3, 5]",
    );
    update((S32, &[3, 2]), (U8, &[3, 5]), "one for each of the axes");
}
