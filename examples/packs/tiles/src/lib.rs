//! Products of matrices on cooperative matrices: `docs/tensor-cores.md` goes through this pack.

#[cfg(test)]
mod tests;

use nx_vulkan_abi::{
    BufArg, DType, DTypeSet, Define, Description, DeviceInfo, Features, InputAs, MatrixScope, Plan,
    Refusal, Request, Row, Source, glsl::define, pack,
};
use nx_vulkan_pack_kit::{
    operand::within_reach,
    steps::{Step, bytes_of, number},
};

pack! { id: "tiles", version: env!("CARGO_PKG_VERSION"), describe: describe, plan: plan }

/// A kernel: its operands' type, its results' type, and how it is run.
struct Kernel {
    id: &'static str,
    operand: DType,
    result: DType,
    way: Way,
}

#[derive(Clone, Copy, PartialEq)]
enum Way {
    /// Fragments of subgroups, staged through shared memory by hand: `VK_KHR_cooperative_matrix`.
    Staged,
    /// Matrices of a workgroup, which the driver stages: `VK_NV_cooperative_matrix2`.
    Workgroup,
}

const KERNELS: &[Kernel] = &[
    kernel("staged_f16", DType::F16, DType::F16, Way::Staged),
    kernel("staged_f16_f32", DType::F16, DType::F32, Way::Staged),
    kernel("staged_bf16", DType::BF16, DType::BF16, Way::Staged),
    kernel("workgroup_f16", DType::F16, DType::F16, Way::Workgroup),
    kernel("workgroup_f16_f32", DType::F16, DType::F32, Way::Workgroup),
];

const fn kernel(id: &'static str, operand: DType, result: DType, way: Way) -> Kernel {
    Kernel {
        id,
        operand,
        result,
        way,
    }
}

/// Tiles of `staged.comp`: m, n and k of a workgroup, m and n of a subgroup. Four subgroups of 32.
const TILE: [u64; 3] = [128, 128, 32];
const OF_SUBGROUP: u64 = 64;
const SUBGROUP: u32 = 32;
/// Elements between two rows in shared memory, so that they begin in other banks.
const SKEW: u64 = 8;

/// Tiles of `workgroup.comp`, and its invocations.
const WIDE: [u64; 3] = [128, 128, 32];
const INVOCATIONS: u32 = 256;

impl Kernel {
    /// What the device must have, so that the host does not ask elsewhere.
    fn needs(&self) -> Features {
        let base = Features::COOPMAT
            .with(Features::MEMORY_MODEL)
            .with(Features::STORAGE16);
        let typed = match self.operand {
            DType::BF16 => base.with(Features::BF16).with(Features::COOPMAT_BF16),
            _ => base.with(Features::FP16).with(Features::INT16),
        };
        match self.way {
            Way::Staged => typed.with(Features::SUBGROUP_SIZE_CONTROL),
            Way::Workgroup => typed.with(Features::COOPMAT2),
        }
    }
}

fn describe() -> Result<Description, String> {
    let row = |kernel: &Kernel| Row {
        id: kernel.id.to_owned(),
        op: "dot".to_owned(),
        inputs: DTypeSet::of(&[kernel.operand]),
        outputs: DTypeSet::of(&[kernel.result]),
        needs: kernel.needs(),
        rank: 120,
        ..Row::default()
    };
    Ok(Description {
        sources: vec![
            Source::glsl("staged.comp", include_str!("../shaders/staged.comp")),
            Source::glsl("workgroup.comp", include_str!("../shaders/workgroup.comp")),
        ],
        kernels: KERNELS.iter().map(row).collect(),
    })
}

fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let kernel = KERNELS
        .get(row as usize)
        .ok_or_else(|| Refusal::Internal(format!("there is no kernel {row}")))?;
    let [m, n, k] = extents(request)?;
    within_reach(request)?;
    if m == 0 || n == 0 || k == 0 {
        return Err(Refusal::decline("a matrix without elements"));
    }
    match kernel.way {
        Way::Staged => staged(kernel, request, [m, n, k]),
        Way::Workgroup => workgroup(kernel, request, [m, n, k]),
    }
}

/// m, n and k of a product of two matrices.
fn extents(request: &Request<'_>) -> Result<[u64; 3], Refusal> {
    let [a, b] = request.inputs.as_slice() else {
        return Err(Refusal::BadRequest("dot has two operands".to_owned()));
    };
    let is_plain = a.rank() == 2
        && b.rank() == 2
        && request.ints("batch_a").is_empty()
        && (request.ints("contract_a"), request.ints("contract_b")) == (&[1], &[0]);
    if !is_plain {
        return Err(Refusal::decline("not a plain product of two matrices"));
    }
    if a.shape[1] != b.shape[0] {
        return Err(Refusal::BadRequest("the extents differ".to_owned()));
    }
    Ok([a.shape[0], b.shape[1], a.shape[1]])
}

/// The driver says which products it has; nothing else is asked of it.
fn staged(kernel: &Kernel, request: &Request<'_>, sizes: [u64; 3]) -> Result<Plan, Refusal> {
    let device = request.device;
    if !device.multiplies([kernel.operand, kernel.operand, DType::F32], [16; 3]) {
        return Err(Refusal::decline(
            "the driver lists no product of 16 x 16 x 16 for these types",
        ));
    }
    if !(device.min_subgroup_size..=device.max_subgroup_size).contains(&SUBGROUP) {
        return Err(Refusal::decline("it has no subgroups of 32"));
    }
    let [bm, bn, bk] = TILE;
    let shared = 2 * 2 * (bm * (bk + SKEW) + bk * (bn + SKEW));
    if shared > device.shared_bytes.into() {
        return Err(Refusal::decline(format!(
            "its tiles take {shared} bytes of shared memory"
        )));
    }
    if sizes.iter().zip(TILE).any(|(size, tile)| size % tile != 0) {
        return Err(Refusal::decline("extents are no multiples of its tiles"));
    }
    // Rows are read 16 bytes at a time.
    in_order(request, kernel.operand, 8)?;
    let mut defines = types(kernel);
    let numbers = [
        ("BM", bm),
        ("BN", bn),
        ("BK", bk),
        ("WM", OF_SUBGROUP),
        ("WN", OF_SUBGROUP),
        ("SKEW", SKEW),
    ];
    defines.extend(numbers.map(|(name, value)| number(name, value)));
    let groups = [sizes[1] / bn, sizes[0] / bm];
    dispatch("staged.comp", defines, request, sizes, groups, SUBGROUP)
}

fn workgroup(kernel: &Kernel, request: &Request<'_>, sizes: [u64; 3]) -> Result<Plan, Refusal> {
    if !has_workgroup_matrices(kernel, request.device) {
        return Err(Refusal::decline(
            "the driver lists no product of a workgroup for these types and 256 invocations",
        ));
    }
    in_order(request, kernel.operand, 8)?;
    let mut defines = types(kernel);
    let [bm, bn, bk] = WIDE;
    let numbers = [
        ("BM", bm),
        ("BN", bn),
        ("BK", bk),
        ("INVOCATIONS", INVOCATIONS.into()),
    ];
    defines.extend(numbers.map(|(name, value)| number(name, value)));
    let groups = [sizes[1].div_ceil(bn), sizes[0].div_ceil(bm)];
    dispatch("workgroup.comp", defines, request, sizes, groups, 0)
}

fn has_workgroup_matrices(kernel: &Kernel, device: &DeviceInfo<'_>) -> bool {
    device.flexible_matrices().any(|own| {
        [own.a, own.b, own.c, own.result]
            == [kernel.operand, kernel.operand, DType::F32, DType::F32]
            && own.scope == MatrixScope::WORKGROUP
            && own.invocations == INVOCATIONS
            && own
                .extents
                .iter()
                .zip(WIDE)
                .all(|(step, tile)| tile % u64::from(*step) == 0)
    })
}

/// Asks for operands whose rows follow each other, from a multiple of `align` elements on.
fn in_order(request: &Request<'_>, dtype: DType, align: u64) -> Result<(), Refusal> {
    let inputs = request.inputs.iter().zip(0..);
    let wanted = inputs.filter(|(input, _)| !input.is_contiguous() || input.offset % align != 0);
    let wanted: Vec<InputAs> = wanted
        .map(|(_, index)| InputAs::new(index, dtype))
        .collect();
    match wanted.is_empty() {
        true => Ok(()),
        false => Err(Refusal::InputsAs(wanted)),
    }
}

fn types(kernel: &Kernel) -> Vec<Define> {
    let name = |dtype| match dtype {
        DType::BF16 => "bfloat16_t",
        DType::F16 => "float16_t",
        _ => "float",
    };
    vec![
        define("ELEMENT", name(kernel.operand)),
        define("RESULT", name(kernel.result)),
        number("BFLOAT16", u64::from(kernel.operand == DType::BF16)),
    ]
}

fn dispatch(
    file: &'static str,
    defines: Vec<Define>,
    request: &Request<'_>,
    [m, n, k]: [u64; 3],
    [across, down]: [u64; 2],
    subgroup_size: u32,
) -> Result<Plan, Refusal> {
    let most = request.device.max_groups;
    if across > most[0].into() || down > most[1].into() {
        return Err(Refusal::decline("more workgroups than the device takes"));
    }
    let offsets = [request.inputs[0].offset, request.inputs[1].offset];
    let push = [m, n, k, offsets[0], offsets[1]].map(|word| word as u32);
    let mut plan = Plan::default();
    let step = Step {
        file,
        defines,
        args: vec![BufArg::input(0), BufArg::input(1), BufArg::output(0)],
        push: bytes_of(&push),
        subgroup_size,
        groups: [across as u32, down as u32, 1],
        ..Step::default()
    };
    step.add_to(&mut plan);
    Ok(plan)
}
