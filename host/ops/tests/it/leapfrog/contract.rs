//! What is refused.

use nx_vulkan_abi::dtype::DType;
use nx_vulkan_ops::kernels::{Desc, check};

type Shapes = [&'static [u64]; 4];
const STATES: Shapes = [&[2, 3], &[2, 3], &[2, 3], &[3]];
const RESULTS: Shapes = [&[2, 5, 3], &[2, 5, 3], &[2, 5, 3], &[2, 5]];

#[test]
fn broken_requests_are_refused_with_op_types_and_shapes() {
    let refusal = |inputs: &[(DType, &[u64])], outputs: &[(DType, &[u64])]| {
        let desc = |&(dtype, shape): &(DType, &'_ [u64])| (dtype, shape.to_vec());
        let (inputs, outputs): (Vec<_>, Vec<_>) = (
            inputs.iter().map(desc).collect(),
            outputs.iter().map(desc).collect(),
        );
        let of = |all: &[(DType, Vec<u64>)]| -> Vec<Desc<'static>> {
            let leak = |(dtype, shape): &(DType, Vec<u64>)| Desc {
                dtype: *dtype,
                shape: shape.clone().leak(),
            };
            all.iter().map(leak).collect()
        };
        check("leapfrog_normal", &of(&inputs), &of(&outputs), &[])
            .map_err(|error| error.to_string())
    };
    let f64s = |shapes: Shapes| shapes.map(|shape| (DType::F64, shape));
    assert_eq!(refusal(&f64s(STATES), &f64s(RESULTS)), Ok(()));
    let none: Shapes = [&[0, 3], &[0, 3], &[0, 3], &[3]];
    let to_none: Shapes = [&[0, 5, 3], &[0, 5, 3], &[0, 5, 3], &[0, 5]];
    assert_eq!(refusal(&f64s(none), &f64s(to_none)), Ok(()));

    let input = |index: usize, with: (DType, &'static [u64])| {
        let mut inputs = f64s(STATES);
        inputs[index] = with;
        (inputs, f64s(RESULTS))
    };
    let output = |index: usize, with: (DType, &'static [u64])| {
        let mut outputs = f64s(RESULTS);
        outputs[index] = with;
        (f64s(STATES), outputs)
    };
    const F64: DType = DType::F64;
    let cases = [
        (input(0, (F64, &[6])), "q must have shape {chains, d}"),
        (input(1, (F64, &[3, 2])), "p must have shape [2, 3]"),
        (input(2, (F64, &[1, 3])), "inv_mass must have shape [2, 3]"),
        (
            input(3, (F64, &[2])),
            "epsilon, mu, sigma: shape [3], got [2]",
        ),
        (input(1, (DType::F32, &[2, 3])), "all f64"),
        (input(1, (DType::S32, &[2, 3])), "only f32 and f64"),
        (
            output(0, (F64, &[2, 3])),
            "q_chain must have shape {chains, K, d}",
        ),
        (
            output(0, (F64, &[2, 4, 3])),
            "p_chain must have shape [2, 4, 3]",
        ),
        (output(2, (F64, &[2, 5, 1])), "grad_chain must have shape"),
        (
            output(3, (F64, &[2, 5, 3])),
            "logp_chain must have shape [2, 5]",
        ),
        (output(3, (DType::F32, &[2, 5])), "all f64"),
    ];
    for ((inputs, outputs), reason) in cases {
        let message = refusal(&inputs, &outputs).unwrap_err();
        assert!(
            message.starts_with("leapfrog_normal of (") && message.contains(reason),
            "{reason:?} is not in: {message}"
        );
    }
    for dtype in [DType::F16, DType::BF16, DType::S32, DType::C64] {
        let all = |shapes: Shapes| shapes.map(|shape| (dtype, shape));
        let message = refusal(&all(STATES), &all(RESULTS)).unwrap_err();
        assert!(
            message.contains("f32") && message.contains(dtype.name()),
            "{message}"
        );
    }
    let zero: Shapes = [&[2, 0, 3], &[2, 0, 3], &[2, 0, 3], &[2, 0]];
    assert!(
        refusal(&f64s(STATES), &f64s(zero))
            .unwrap_err()
            .contains("at least 1")
    );
    let flat: Shapes = [&[2, 0], &[2, 0], &[2, 0], &[3]];
    let to_flat: Shapes = [&[2, 5, 0], &[2, 5, 0], &[2, 5, 0], &[2, 5]];
    assert!(
        refusal(&f64s(flat), &f64s(to_flat))
            .unwrap_err()
            .contains("at least 1")
    );
    assert!(
        refusal(&f64s(STATES)[..3], &f64s(RESULTS))
            .unwrap_err()
            .contains("4 operands, got 3")
    );
    assert!(
        refusal(&f64s(STATES), &f64s(RESULTS)[..1])
            .unwrap_err()
            .contains("4 results, got 1")
    );
}
