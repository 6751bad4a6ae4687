//! GLSL of elementwise ops, for shaders that Elixir writes.

use crate::reply::{self, Failure};
use nx_vulkan_pack_kit::rows::{self, Compute, Row};
use rustler::{Env, NifMap, Term};

/// A row of the elementwise pack.
#[derive(NifMap)]
#[rustler(encode)]
struct RowMap {
    op: String,
    glsl: String,
    /// How each operand enters it.
    compute: Vec<&'static str>,
}

impl From<&Row> for RowMap {
    fn from(row: &Row) -> RowMap {
        let compute = (0..row.takes.len()).map(|index| match row.compute(index) {
            Compute::Result => "result",
            Compute::Own => "own",
            Compute::Exact => "exact",
            Compute::Compared => "compared",
        });
        RowMap {
            op: row.op.clone(),
            glsl: row.glsl.clone(),
            compute: compute.collect(),
        }
    }
}

/// `{:ok, rows}`.
#[rustler::nif]
fn elementwise_rows(env: Env<'_>) -> Term<'_> {
    let rows = rows::file().map(|file| file.map.iter().map(RowMap::from).collect::<Vec<_>>());
    reply::encode(env, rows.map_err(Failure::bad_input))
}
