//! Operands that repeat an element more often than memory holds, and shapes of very many axes.

use super::DType;
use nx_vulkan_ops::kernels::{Out, View, run};
use nx_vulkan_ops::{attrs::Attr, error::Kind, infer::infer};

const F32: DType = DType::F32;

/// `op` of operands of these types and shapes that repeat one element.
fn of_repeated(op: &str, inputs: &[(DType, &[u64])], attrs: &[Attr]) -> nx_vulkan_ops::Result<()> {
    let op = nx_vulkan_ops::find(op).unwrap();
    let specs: Vec<_> = inputs
        .iter()
        .map(|(dtype, shape)| (*dtype, shape.to_vec()))
        .collect();
    let request = infer(op, &specs, None, attrs)?;
    let zeros: Vec<Vec<i64>> = inputs
        .iter()
        .map(|(_, shape)| vec![0; shape.len()])
        .collect();
    let views: Vec<View> = inputs
        .iter()
        .zip(&zeros)
        .map(|(&(dtype, shape), strides)| View {
            dtype,
            shape,
            strides,
            offset: 0,
            bytes: &[0; 8],
        })
        .collect();
    let sizes = request
        .outputs
        .iter()
        .map(|(dtype, shape)| shape.iter().product::<u64>() * dtype.size());
    let mut results: Vec<Vec<u8>> = sizes.map(|size| vec![0; size as usize]).collect();
    let outputs = request.outputs.iter().zip(&mut results);
    let mut outputs: Vec<Out> = outputs
        .map(|((dtype, shape), bytes)| Out {
            dtype: *dtype,
            shape,
            bytes,
        })
        .collect();
    run(op.name, &views, &mut outputs, &request.attrs)
}

/// No memory would hold what a kernel makes of an element that is repeated so often.
#[test]
fn what_is_repeated_too_often_to_be_laid_out_is_refused() {
    const MANY: u64 = 1 << 57;
    let half = [1 << 28, 1 << 28];
    let inner = [Attr::ints("contract_a", [0]), Attr::ints("contract_b", [0])];
    for (op, shape, attrs) in [
        ("argmax", &[MANY][..], &[][..]),
        ("Nx.Block.TopK", &[MANY], &[]),
        ("Nx.Block.LinAlg.Determinant", &half, &[]),
        ("dot", &[MANY], &inner),
        ("conv", &[1, 1, MANY], &[]),
    ] {
        let inputs = vec![(F32, shape); nx_vulkan_ops::find(op).unwrap().arity()];
        let error = of_repeated(op, &inputs, attrs).expect_err(op);
        assert_eq!(error.kind(), Kind::OutOfMemory, "{op}: {error}");
        assert!(error.to_string().contains("it may take"), "{op}: {error}");
    }
    of_repeated("argmax", &[(F32, &[1 << 20])], &[]).unwrap();
}

/// What is cut off is not converted.
#[test]
fn padding_takes_no_more_than_its_result() {
    const MANY: u64 = 1 << 57;
    let cut = [
        Attr::ints("low", [4 - MANY as i64]),
        Attr::ints("high", [0]),
        Attr::ints("interior", [0]),
    ];
    of_repeated("pad", &[(DType::S32, &[MANY]), (F32, &[])], &cut).unwrap();
}

/// Each spatial axis may take some of the stack.
#[test]
fn convolutions_have_any_number_of_axes() {
    let shape = [&[1, 1][..], &[2], &[1; 3000], &[2]].concat();
    of_repeated("conv", &[(F32, &shape), (F32, &shape)], &[]).unwrap();
}
