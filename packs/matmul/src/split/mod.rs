//! Products of f32 on matrix units for bf16: operands are packed as sums of bf16, and a kernel without shared memory multiplies
//! these part by part. A subgroup that may have computed something less exactly than the plain kernel computes all that it
//! owns once more, from the operands themselves.

mod cost;

use crate::{
    cores::{self, Packed, Side},
    operand::Operand,
    problem::{Problem, check_range},
    steps::{Steps, converted, number, pack as pack_of},
    table::Table,
};
use cost::Shape;
use nx_vulkan_abi::{BufArg, DType, Define, DeviceInfo, Plan, Refusal, glsl};
use nx_vulkan_pack_kit::{
    epilogue::Run,
    grid,
    steps::{Step, bytes_of, derive, read, scratch},
};

/// Rows that a subgroup owns.
const OWNED: u32 = 32;
/// Elements along k that one fragment has.
const DEPTH: u32 = 16;

/// How exact a product is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Exact {
    /// As in f32.
    Full,
    /// Elements have at most two parts.
    High,
    /// The same, and what the units cut off adds up along k.
    Relaxed,
}

/// Plans products with a result of f32 that are large enough.
pub(crate) fn plan(
    problem: &Problem,
    device: &DeviceInfo<'_>,
    table: &Table,
    exact: Exact,
) -> Result<Plan, Refusal> {
    let parts = Parts::of(problem, exact)?;
    cores::supports(problem, [DType::BF16, DType::F32], DEPTH, device)?;
    let (shape, why) = Shape::of(problem, parts, device, table)?;
    let is_partial = shape.is_partial(problem);
    let stored = if is_partial {
        DType::F32
    } else {
        problem.result()
    };
    let pack_of_c = 16 / stored.size() as u32;
    let is_wide = stored.size() > 1 && problem.n.is_multiple_of(pack_of_c);
    cores::expect_stage(is_wide, device)?;
    nx_vulkan_abi::explain(why);

    let mut steps = Steps::of(problem, device)?;
    let packed = [Side::A, Side::B].map(|side| parts.packed(problem, side));
    let a = pack(&mut steps, problem, Side::A, parts, exact)?;
    let b = pack(&mut steps, problem, Side::B, parts, exact)?;
    let result = match is_partial {
        false => BufArg::output(0),
        true => {
            let bytes = shape.partial_bytes(problem);
            check_range("the partial results", bytes, device)?;
            scratch(&mut steps.plan, bytes)
        }
    };
    let jobs = shape.jobs(problem);
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("the product has more than 2^32 blocks"))?;
    let mut defines = glsl::operand("T", stored);
    defines.extend(glsl::needs(DType::BF16));
    defines.extend([
        number("ELEMENT_IS_BF16", 1u32),
        number("PARTS_A", parts.of[0]),
        number("PARTS_B", parts.of[1]),
        number("WARP_M", OWNED),
        number("ORDERS", parts.orders),
        number("ROUNDS", exact != Exact::Relaxed),
        number("BAND", 8u32),
        number("C_WIDE", is_wide),
        number("C_WORDS", stored.size() == 4),
        number("C_PAIRS", cores::in_pairs(problem, stored)),
    ]);
    defines.extend(original("A", &problem.a, problem.dtype));
    defines.extend(original("B", &problem.b, problem.dtype));
    let [blocks_m, blocks_n] = shape.blocks(problem);
    let mut push = vec![
        problem.m,
        problem.n,
        problem.batches,
        packed[0].batch_step(problem),
        packed[1].batch_step(problem),
        problem.k,
        shape.chunk,
        blocks_m,
        blocks_n,
        bits,
    ];
    push.extend(problem.a.words());
    push.extend(problem.b.words());
    let mut args = vec![read(a), read(b), result, problem.a.arg, problem.b.arg];
    if let Some(finish) = problem.finish.as_ref().filter(|_| !is_partial) {
        let run = Run::Columns(if is_wide { pack_of_c } else { 1 });
        cores::add_finish(finish, run, OWNED, (&mut defines, &mut args, &mut push))?;
    }
    let step = Step {
        file: "split.comp",
        defines,
        args,
        push: bytes_of(&push),
        subgroup_size: cores::subgroup(device),
        groups: grid::spread(jobs, device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    if is_partial {
        steps.sum_splits(problem, shape.splits, result)?;
    }
    Ok(steps.plan)
}

/// How an element is made up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// How many bf16 there are of an element of A, and of B.
    of: [u32; 2],
    /// Products of parts p and q are left out where p + q is not less.
    orders: u32,
    exact: Exact,
}

impl Parts {
    fn of(problem: &Problem, exact: Exact) -> Result<Parts, Refusal> {
        let orders = if exact == Exact::Full { 3 } else { 2 };
        // As many as hold each value of the type.
        let parts = |operand: &Operand| match operand.dtype {
            DType::BF16 => Some(1),
            DType::F16 => Some(2),
            DType::F32 => Some(3),
            _ => None,
        };
        match (problem.dtype, [&problem.a, &problem.b].map(parts)) {
            (DType::F32, [Some(a), Some(b)]) if a.max(b) == 3 => Ok(Parts {
                of: [a.min(orders), b.min(orders)],
                orders,
                exact,
            }),
            (result, _) => Err(Refusal::decline(format!(
                "{} and {} for {result} are not split",
                problem.a.dtype, problem.b.dtype
            ))),
        }
    }

    /// How many there are of an element on that side.
    fn on(self, side: Side) -> u32 {
        self.of[side as usize]
    }

    /// An operand as subgroups load it.
    fn packed(self, problem: &Problem, side: Side) -> Packed {
        Packed::new(problem, side, depth(problem), self.on(side), OWNED)
    }

    /// Products of parts that make up one of elements.
    fn products(self) -> u32 {
        let [a, b] = self.of;
        (0..a).map(|p| b.min(self.orders - p)).sum()
    }
}

/// Fragments that the contracted axis has, an even number.
fn depth(problem: &Problem) -> u32 {
    problem.k.div_ceil(2 * DEPTH) * 2
}

/// Packs an operand into fragments.
fn pack(
    steps: &mut Steps<'_>,
    problem: &Problem,
    side: Side,
    parts: Parts,
    exact: Exact,
) -> Result<BufArg, Refusal> {
    let packed = parts.packed(problem, side);
    let Packed { tiles, depth, .. } = packed;
    let (operand, rows, blocks) = side.of(problem, tiles);
    check_range("a packed operand", packed.bytes, steps.device)?;
    let to = scratch(&mut steps.plan, packed.bytes);
    let along_k = operand.is_along_k();
    // What a lane has along k, or a pair of rows.
    let wide = operand.is_wide(if along_k { 4 } else { 2 });
    let storage = glsl::of(operand.dtype).map_or("float", |glsl| glsl.storage);
    let vector = |count| glsl::vector(storage, count).unwrap_or(storage);
    let mut defines = glsl::operand("S", operand.dtype);
    defines.extend([
        glsl::define("TWO", vector(2)),
        glsl::define("FOUR", vector(4)),
        number("SIDE_A", side == Side::A),
        number("ALONG_K", along_k),
        number("WIDE", wide),
        number("PARTS", parts.on(side)),
        number("MARK_SPREAD", exact == Exact::Full),
    ]);
    let jobs = packed.batches * u64::from(blocks) * u64::from(depth.div_ceil(8));
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("a packed operand has more than 2^32 blocks"))?;
    let mut push = vec![rows, problem.k];
    push.extend(operand.words());
    push.extend([depth, tiles, blocks, bits]);
    let step = Step {
        file: "split_pack.comp",
        defines,
        args: vec![operand.arg, to],
        push: bytes_of(&push),
        subgroup_size: cores::subgroup(steps.device),
        groups: grid::spread(jobs, steps.device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    derive(&mut steps.plan, to, operand.arg);
    Ok(to)
}

/// How the product reads an operand once more.
fn original(name: &str, operand: &Operand, result: DType) -> Vec<Define> {
    let mut defines = converted(name, operand.dtype, result);
    defines.extend([
        glsl::define(format!("{name}_PACK"), pack_of(operand.dtype, 4)),
        number(&format!("{name}_ALONG_K"), operand.is_along_k()),
        number(&format!("{name}_WIDE"), operand.is_wide(4)),
    ]);
    defines
}
