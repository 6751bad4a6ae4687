//! Requests to the pack, of batches of matrices.

use crate::matrix::{C, Matrix};
use nx_vulkan_abi::DType;
use nx_vulkan_conformance::session::Session;
use nx_vulkan_host::{Runtime, Tensor};
use nx_vulkan_ops::{Attr, Request, Spec};
use std::sync::Arc;

pub(crate) fn runtime() -> Arc<Runtime> {
    let session = Session::of_test("linalg").expect("cargo has built the pack");
    session.runtime().expect("the pack loads")
}

pub(crate) fn bytes_of(all: &[&Matrix], dtype: DType) -> Vec<u8> {
    let parts = all
        .iter()
        .flat_map(|x| x.cells.iter().flat_map(|x| [x.0, x.1]));
    match dtype {
        DType::C64 => parts.flat_map(|x| (x as f32).to_le_bytes()).collect(),
        _ => parts.flat_map(f64::to_le_bytes).collect(),
    }
}

pub(crate) fn cells_of(bytes: &[u8], dtype: DType) -> Vec<C> {
    let parts: Vec<f64> = match dtype {
        DType::C64 => {
            let parts = bytes.as_chunks().0.iter();
            parts.map(|x| f32::from_le_bytes(*x).into()).collect()
        }
        _ => {
            let parts = bytes.as_chunks().0.iter();
            parts.map(|x| f64::from_le_bytes(*x)).collect()
        }
    };
    parts.chunks(2).map(|x| C(x[0], x[1])).collect()
}

/// Operands are batches; so are results, each with the matrices of a batch one after another.
pub(crate) fn run(
    runtime: &Runtime,
    op: &'static str,
    dtype: DType,
    inputs: &[&[&Matrix]],
    shapes: &[[usize; 2]],
    attrs: &[Attr],
) -> Vec<Vec<Matrix>> {
    let batch = inputs[0].len();
    let dims = |rows: usize, columns: usize| vec![batch as u64, rows as u64, columns as u64];
    let tensors: Vec<Tensor> = inputs
        .iter()
        .map(|all| {
            let shape = dims(all[0].rows, all[0].columns);
            let bytes = bytes_of(all, dtype);
            runtime.upload(dtype, &shape, &bytes).unwrap()
        })
        .collect();
    let operands: Vec<&Tensor> = tensors.iter().collect();
    let specs = shapes.iter().map(|[rows, columns]| match columns {
        0 => (dtype, vec![batch as u64, *rows as u64]),
        _ => (dtype, dims(*rows, *columns)),
    });
    let outputs: Vec<Spec> = specs.collect();
    let request = Request::new(op, &operands, &outputs, attrs);
    let ran = runtime.run_reported(&request).unwrap();
    assert!(
        ran.served_by.to_string().starts_with("linalg/"),
        "{op} {dtype} {}",
        ran.served_by
    );
    let matrices = |(x, [rows, columns]): (&Tensor, &[usize; 2])| {
        let cells = cells_of(&runtime.download(x, None).unwrap(), dtype);
        let columns = (*columns).max(1);
        let each = cells.chunks(rows * columns).map(|cells| Matrix {
            rows: *rows,
            columns,
            cells: cells.to_vec(),
        });
        each.collect::<Vec<Matrix>>()
    };
    ran.outputs.iter().zip(shapes).map(matrices).collect()
}
