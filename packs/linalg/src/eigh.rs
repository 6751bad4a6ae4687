//! Eigenvalues and eigenvectors of symmetric and Hermitian matrices.

use crate::{
    Shape,
    emit::Emit,
    jacobi::{self, SWEEPS, TILE, UNSIGNED},
    tridiagonal::{self, Results},
};
use nx_vulkan_abi::{BufArg, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::steps::number;

/// Rows of a matrix that one workgroup has in shared memory; on a CPU dispatches cost more than what others could do meanwhile.
const WHOLE: u32 = 32;
const WHOLE_ON_CPU: u32 = 64;

pub(crate) fn plan(op: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let shape = Shape::square(op, request)?;
    let mut emit = Emit::in_sums(op, request)?;
    let size = shape.rows.next_multiple_of(8);
    let bytes =
        emit.size() * u64::from(size * (size + 1) + TILE + 3 * size / 2) + u64::from(4 * size + 64);
    let whole = match request.device.kind {
        DeviceKind::CPU => WHOLE_ON_CPU,
        _ => WHOLE,
    };
    if size <= whole && bytes <= u64::from(request.device.shared_bytes) {
        small(&mut emit, shape, size)?;
    } else {
        let results = Results {
            values: emit.result(0)?,
            vectors: emit.result(1)?,
            as_rows: false,
        };
        tridiagonal::solve(&mut emit, shape, BufArg::input(0), results)?;
    }
    emit.finish()
}

fn small(emit: &mut Emit<'_>, shape: Shape, size: u32) -> Result<(), Refusal> {
    let v = emit.scratch(shape.elements())?;
    let args = vec![BufArg::input(0), v, emit.result(0)?, emit.result(1)?];
    let defines = vec![
        number("SIZE", size),
        number("TILE", emit.threads(TILE)),
        number("SWEEPS", SWEEPS),
        number("UNSIGNED", UNSIGNED),
        jacobi::key(emit),
    ];
    let least = jacobi::negligible(emit).to_bits();
    let push = [shape.rows, shape.batch as u32, least];
    emit.step("eigh.comp", defines, args, &push, shape.batch)
}
