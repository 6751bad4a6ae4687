//! Matrices of sizes at which this pack's ways differ, on a real device. What any pack is asked, `nxv check` asks.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::sweep::{Own, check};
use nx_vulkan_ops::{
    Attr,
    layout::Layout::{self, Contiguous, Sliced},
    op::Types,
    values::Values,
};

fn own(op: &'static str, dtype: DType, shapes: &[&[u64]], layout: Layout, attrs: &[Attr]) -> Own {
    Own {
        op,
        types: Types {
            inputs: vec![dtype; shapes.len()],
            output: None,
        },
        operands: shapes
            .iter()
            .map(|shape| (shape.to_vec(), layout))
            .collect(),
        attrs: attrs.to_vec(),
        values: Values::Finite,
    }
}

const BLOCKS: [u64; 7] = [31, 32, 33, 63, 64, 65, 161];

#[test]
fn squares_around_blocks() {
    let mut all = Vec::new();
    for (n, dtype) in BLOCKS
        .iter()
        .flat_map(|n| [(*n, DType::F32), (*n, DType::F64)])
    {
        for op in [
            "Nx.Block.LinAlg.Cholesky",
            "Nx.Block.LinAlg.LU",
            "Nx.Block.LinAlg.Eigh",
        ] {
            all.push(own(op, dtype, &[&[2, n, n]], Sliced, &[]));
        }
    }
    check("linalg", None, all);
}

/// On a CPU an invocation has a row of each 64.
#[test]
fn rows_that_one_invocation_eliminates() {
    let sizes = [300, 340, 430, 500];
    let all = sizes.map(|n| {
        own(
            "Nx.Block.LinAlg.LU",
            DType::F64,
            &[&[n, n]],
            Contiguous,
            &[],
        )
    });
    check("linalg", None, all.to_vec());
}

#[test]
fn systems_around_blocks() {
    let mut all = Vec::new();
    for (n, dtype) in BLOCKS
        .iter()
        .flat_map(|n| [(*n, DType::F32), (*n, DType::F64)])
    {
        // What solves a random triangle of more rows is beyond f32.
        if n > 65 && dtype == DType::F32 {
            continue;
        }
        for (left, lower) in [(0, 0), (0, 1), (1, 0), (1, 1)] {
            for way in ["none", "transpose"] {
                let b: [u64; 3] = if left == 1 { [2, n, 35] } else { [2, 35, n] };
                let attrs = [
                    Attr::ints("left_side", [left]),
                    Attr::ints("lower", [lower]),
                    Attr::text("transform_a", way),
                ];
                all.push(own(
                    "triangular_solve",
                    dtype,
                    &[&[2, n, n], &b],
                    Contiguous,
                    &attrs,
                ));
            }
        }
        if n < 64 {
            let op = "Nx.Block.LinAlg.Solve";
            all.push(own(
                op,
                DType::F64,
                &[&[2, n, n], &[2, n, 3]],
                Contiguous,
                &[],
            ));
            all.push(own(op, DType::F64, &[&[n, n], &[n]], Contiguous, &[]));
        }
    }
    check("linalg", None, all);
}

#[test]
fn rectangles_around_blocks() {
    let mut all = Vec::new();
    for (m, n) in [
        (33, 32),
        (32, 33),
        (64, 65),
        (170, 161),
        (1, 40),
        (40, 1),
        (200, 3),
    ] {
        for dtype in [DType::F32, DType::F64] {
            for mode in ["reduced", "complete"] {
                let attrs = [Attr::text("mode", mode)];
                all.push(own(
                    "Nx.Block.LinAlg.QR",
                    dtype,
                    &[&[2, m, n]],
                    Contiguous,
                    &attrs,
                ));
            }
            for full in [0, 1] {
                let attrs = [Attr::ints("full_matrices?", [full])];
                all.push(own(
                    "Nx.Block.LinAlg.SVD",
                    dtype,
                    &[&[m, n]],
                    Contiguous,
                    &attrs,
                ));
            }
        }
    }
    check("linalg", None, all);
}

#[test]
fn tall_matrices_in_blocks_of_rows() {
    let mut all = Vec::new();
    // Blocks of one and of two levels, whole ones and with rows missing.
    for (batch, m, n) in [(2, 2048, 4), (2, 2051, 7), (1, 16_500, 64)] {
        for dtype in [DType::F32, DType::F64] {
            let attrs = [Attr::text("mode", "reduced")];
            let op = "Nx.Block.LinAlg.QR";
            all.push(own(op, dtype, &[&[batch, m, n]], Contiguous, &attrs));
            if n > 7 {
                break;
            }
            for shape in [[batch, m, n], [batch, n, m]] {
                let attrs = [Attr::ints("full_matrices?", [0])];
                let op = "Nx.Block.LinAlg.SVD";
                all.push(own(op, dtype, &[&shape], Contiguous, &attrs));
            }
        }
    }
    check("linalg", None, all);
}
