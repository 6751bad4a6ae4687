//! What Nx has beyond elementwise ops, reductions and products.

use super::{F32, Workload};
use nx_vulkan_host::{Attr, DType};
use nx_vulkan_ops::Spec;

pub(super) fn all() -> Vec<Workload> {
    let mut all = indexing();
    all.extend(transforms());
    all
}

/// A workload that memory limits, by the bytes that it has to read and write.
fn moves(name: &str, op: &'static str, inputs: Vec<Spec>, bytes: u64) -> Workload {
    Workload::new(name.to_owned(), op, inputs).bytes(bytes)
}

fn indexing() -> Vec<Workload> {
    let (n, few) = (1 << 22, 1 << 20);
    let rows = 16_384;
    vec![
        moves(
            "gather 2^20 of 2^22",
            "gather",
            vec![(F32, vec![n]), (DType::S32, vec![few, 1])],
            12 * few,
        )
        .attrs(vec![Attr::ints("axes", [0])]),
        moves(
            "take 16384 rows of [65536,1024] f32",
            "Nx.Block.Take",
            vec![(F32, vec![65_536, 1024]), (DType::S32, vec![rows])],
            8 * 1024 * rows,
        )
        .attrs(vec![Attr::ints("axis", [0])]),
    ]
}

fn transforms() -> Vec<Workload> {
    let of = |name: &str, shape: [u64; 2]| {
        let bytes = 16 * shape.iter().product::<u64>();
        let attrs = vec![
            Attr::ints("axis", [1]),
            Attr::float("eps", 0.0),
            Attr::ints("length", [shape[1] as i64]),
        ];
        Workload::new(name.to_owned(), "fft", vec![(DType::C64, shape.to_vec())])
            .attrs(attrs)
            .bytes(bytes)
    };
    vec![
        of("fft 4096x1024 c64", [4096, 1024]),
        of("fft 64x2^16 c64", [64, 1 << 16]),
        of("fft 64x65537 c64", [64, 65_537]),
    ]
}
