//! The linear algebra kernel pack: factors of matrices and systems of equations, from first to last on the device. It never
//! touches a device itself.
//!
//! A small matrix is one workgroup's. A larger one goes in blocks of columns: a workgroup factors a block, many bring what
//! is right of it and below up to date, and the steps repeat.

mod cholesky;
mod eigh;
mod emit;
mod jacobi;
mod lu;
mod qr;
mod svd;
mod tall;
#[cfg(test)]
mod tests;
mod triangular;
mod tridiagonal;

use nx_vulkan_abi::{DTypeSet, Description, Plan, Refusal, Request, Row, Source, pack};

pack! { id: "linalg", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

macro_rules! sources {
    ($($file:literal),* $(,)?) => {
        &[$(Source::glsl($file, include_str!(concat!("../shaders/", $file)))),*]
    };
}

const SOURCES: &[Source] = sources![
    "matrix.glsl",
    "copy.comp",
    "transpose.comp",
    "store.comp",
    "substitute.comp",
    "update.comp",
    "cholesky.comp",
    "panel.comp",
    "pivot.comp",
    "factors.comp",
    "determinant.comp",
    "turn.comp",
    "totals.glsl",
    "powers.glsl",
    "reflect.comp",
    "apply.comp",
    "rotation.glsl",
    "rounds.glsl",
    "sums.glsl",
    "lists.glsl",
    "largest.comp",
    "scaled.comp",
    "reflector.glsl",
    "tridiagonal.comp",
    "rest.comp",
    "triangles.comp",
    "leaf.comp",
    "poles.comp",
    "roots.comp",
    "weights.comp",
    "mixture.comp",
    "product.comp",
    "restore.comp",
    "eigh.comp",
    "begin.comp",
    "columns.comp",
    "lengths.comp",
    "order.comp",
    "arrange.comp",
];

/// A kernel: its id, its op, how many operands and results that has, and what plans it.
struct Kernel {
    id: &'static str,
    op: &'static str,
    inputs: usize,
    outputs: usize,
    /// The types of its operands and results.
    types: DTypeSet,
    plan: fn(&str, &Request<'_>) -> Result<Plan, Refusal>,
}

const KERNELS: &[Kernel] = &[
    Kernel {
        id: "triangular_solve",
        op: "triangular_solve",
        inputs: 2,
        outputs: 1,
        types: DTypeSet::NUMBER,
        plan: triangular::plan,
    },
    Kernel {
        id: "cholesky",
        op: "Nx.Block.LinAlg.Cholesky",
        inputs: 1,
        outputs: 1,
        types: DTypeSet::NUMBER,
        plan: cholesky::plan,
    },
    Kernel {
        id: "lu",
        op: "Nx.Block.LinAlg.LU",
        inputs: 1,
        outputs: 3,
        types: DTypeSet::NUMBER,
        plan: lu::factors,
    },
    Kernel {
        id: "solve",
        op: "Nx.Block.LinAlg.Solve",
        inputs: 2,
        outputs: 1,
        types: DTypeSet::NUMBER,
        plan: lu::solve,
    },
    Kernel {
        id: "determinant",
        op: "Nx.Block.LinAlg.Determinant",
        inputs: 1,
        outputs: 1,
        types: DTypeSet::NUMBER,
        plan: lu::determinant,
    },
    Kernel {
        id: "qr",
        op: "Nx.Block.LinAlg.QR",
        inputs: 1,
        outputs: 2,
        types: DTypeSet::NUMBER,
        plan: qr::plan,
    },
    Kernel {
        id: "eigh",
        op: "Nx.Block.LinAlg.Eigh",
        inputs: 1,
        outputs: 2,
        types: DTypeSet::NUMBER,
        plan: eigh::plan,
    },
    Kernel {
        id: "svd",
        op: "Nx.Block.LinAlg.SVD",
        inputs: 1,
        outputs: 3,
        types: DTypeSet::REAL,
        plan: svd::plan,
    },
];

fn describe() -> Result<Description, String> {
    let kernels = KERNELS.iter().map(|kernel| Row {
        id: kernel.id.to_owned(),
        op: kernel.op.to_owned(),
        inputs: kernel.types,
        outputs: kernel.types,
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = nx_vulkan_pack_kit::table::row(KERNELS, row)?;
    let (inputs, outputs) = (request.inputs.len(), request.outputs.len());
    if (inputs, outputs) != (kernel.inputs, kernel.outputs) {
        return Err(Refusal::BadRequest(format!(
            "{} takes {} operands and gives {} results, got: {inputs} and {outputs}",
            kernel.op, kernel.inputs, kernel.outputs
        )));
    }
    if request.inputs[0].shape.len() < 2 {
        return Err(Refusal::BadRequest(format!("{} takes matrices", kernel.op)));
    }
    if request.outputs.iter().all(|out| out.elements() == 0) {
        return Ok(Plan::default());
    }
    if request.inputs.iter().any(|input| input.elements() == 0) {
        return Err(Refusal::decline("matrices without elements"));
    }
    (kernel.plan)(kernel.op, request)
}

/// A batch of matrices.
#[derive(Debug, Clone, Copy)]
struct Shape {
    batch: u64,
    rows: u32,
    columns: u32,
}

impl Shape {
    /// That of an operand's last two axes.
    fn of(request: &Request<'_>, input: usize) -> Result<Shape, Refusal> {
        match request.inputs[input].shape.as_slice() {
            [batch @ .., rows, columns] => Ok(Shape {
                batch: batch.iter().product(),
                rows: *rows as u32,
                columns: *columns as u32,
            }),
            _ => Err(Refusal::BadRequest("expected a matrix".to_owned())),
        }
    }

    /// That of an operand that has to be square.
    fn square(op: &str, request: &Request<'_>) -> Result<Shape, Refusal> {
        let shape = Shape::of(request, 0)?;
        match shape.rows == shape.columns {
            true => Ok(shape),
            false => Err(Refusal::BadRequest(format!("{op} takes square matrices"))),
        }
    }

    fn elements(self) -> u64 {
        self.batch * u64::from(self.rows) * u64::from(self.columns)
    }
}
