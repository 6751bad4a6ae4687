//! The indexing kernel pack: ops that move elements from where they are to where they belong, some by indices that only
//! the device knows. It never touches a device.
//!
//! A request becomes walks (axes with a place in each buffer), and a walk becomes a dispatch of one shader, `move.comp`,
//! whose elements are as wide as the places are aligned.

mod chunks;
mod deal;
mod emit;
mod few;
mod gather;
mod join;
mod lists;
mod pad;
mod scatter;
mod slice;
mod sort;
#[cfg(test)]
mod tests;
mod walk;

use deal::Update;
use gather::Form;
use nx_vulkan_abi::{DTypeSet, Description, Numerics, Plan, Refusal, Request, Row, Source, pack};

pack! { id: "indexing", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

const SOURCES: &[Source] = &[
    Source::glsl("indices.glsl", include_str!("../shaders/indices.glsl")),
    Source::glsl("move.comp", include_str!("../shaders/move.comp")),
    Source::glsl("join.comp", include_str!("../shaders/join.comp")),
    Source::glsl("pad.comp", include_str!("../shaders/pad.comp")),
    Source::glsl("rows.comp", include_str!("../shaders/rows.comp")),
    Source::glsl("zeros.comp", include_str!("../shaders/zeros.comp")),
    Source::glsl("tensor_of.glsl", include_str!("../shaders/tensor_of.glsl")),
    Source::glsl("few.comp", include_str!("../shaders/few.comp")),
    Source::glsl("lists.glsl", include_str!("../shaders/lists.glsl")),
    Source::glsl("lists.comp", include_str!("../shaders/lists.comp")),
    Source::glsl("deal.glsl", include_str!("../shaders/deal.glsl")),
    Source::glsl("deal.comp", include_str!("../shaders/deal.comp")),
    Source::glsl("take.comp", include_str!("../shaders/take.comp")),
    Source::glsl("bitonic.glsl", include_str!("../shaders/bitonic.glsl")),
    Source::glsl("chunks.comp", include_str!("../shaders/chunks.comp")),
    Source::glsl("places.comp", include_str!("../shaders/places.comp")),
    Source::glsl("sort.glsl", include_str!("../shaders/sort.glsl")),
    Source::glsl("digits.comp", include_str!("../shaders/digits.comp")),
    Source::glsl("scan.comp", include_str!("../shaders/scan.comp")),
    Source::glsl("order.comp", include_str!("../shaders/order.comp")),
    Source::glsl("sum.comp", include_str!("../shaders/sum.comp")),
];

/// An op of the pack.
struct Kernel {
    id: &'static str,
    op: &'static str,
    types: DTypeSet,
    /// The fewest operands, and the most.
    operands: (usize, usize),
    plan: fn(&Request<'_>) -> Result<Plan, Refusal>,
}

const fn row(
    (id, op): (&'static str, &'static str),
    operands: (usize, usize),
    plan: fn(&Request<'_>) -> Result<Plan, Refusal>,
) -> Kernel {
    Kernel {
        id,
        op,
        types: DTypeSet::ALL,
        operands,
        plan,
    }
}

/// As many operands as there are.
const MANY: usize = usize::MAX;

const KERNELS: &[Kernel] = &[
    row(("gather", "gather"), (2, 2), |request| {
        gather::plan(Form::Gather, request)
    }),
    row(("take", "Nx.Block.Take"), (2, 2), |request| {
        gather::plan(Form::Take, request)
    }),
    row(
        ("take_along_axis", "Nx.Block.TakeAlongAxis"),
        (2, 2),
        |request| gather::plan(Form::Along, request),
    ),
    row(("concatenate", "concatenate"), (1, MANY), |request| {
        join::plan(false, request)
    }),
    row(("stack", "stack"), (1, MANY), |request| {
        join::plan(true, request)
    }),
    row(("dynamic_slice", "dynamic_slice"), (1, MANY), slice::read),
    row(("put_slice", "put_slice"), (2, MANY), slice::put),
    row(("pad", "pad"), (2, 2), pad::plan),
    row(("indexed_put", "indexed_put"), (3, 3), scatter::put),
    row(("indexed_put_few", "indexed_put"), (3, 3), |request| {
        scatter::few(Update::Put, request)
    }),
    row(("indexed_put_dealt", "indexed_put"), (3, 3), |request| {
        scatter::dealt(Update::Put, request)
    }),
    Kernel {
        types: DTypeSet::NUMBER,
        ..row(("indexed_add", "indexed_add"), (3, 3), scatter::add)
    },
    Kernel {
        types: DTypeSet::NUMBER,
        ..row(("indexed_add_few", "indexed_add"), (3, 3), |request| {
            scatter::few(Update::Add, request)
        })
    },
    Kernel {
        types: DTypeSet::NUMBER,
        ..row(("indexed_add_dealt", "indexed_add"), (3, 3), |request| {
            scatter::dealt(Update::Add, request)
        })
    },
];

fn describe() -> Result<Description, String> {
    let kernels = KERNELS.iter().map(|kernel| Row {
        id: kernel.id.to_owned(),
        op: kernel.op.to_owned(),
        inputs: kernel.types,
        outputs: kernel.types,
        numerics: if kernel.types == DTypeSet::ALL {
            Numerics::EXACT
        } else {
            Numerics::IEEE
        },
        ..Row::default()
    });
    Ok(Description {
        sources: SOURCES.to_vec(),
        kernels: kernels.collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = KERNELS.get(row as usize);
    let kernel = kernel.ok_or_else(|| Refusal::Internal(format!("no row {row}")))?;
    let (least, most) = kernel.operands;
    let (inputs, outputs) = (request.inputs.len(), request.outputs.len());
    if !(least..=most).contains(&inputs) || outputs != 1 {
        return Err(Refusal::BadRequest(format!(
            "{} takes {least} to {most} operands and gives 1 result, got: {inputs} and {outputs}",
            kernel.op
        )));
    }
    (kernel.plan)(request)
}
