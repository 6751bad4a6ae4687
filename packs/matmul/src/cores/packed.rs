//! Operands that are packed into fragments.

use super::{COLUMNS, FRAGMENT, ROWS, Way};
use crate::{
    operand::Operand,
    problem::{Problem, check_range},
    steps::{Steps, number},
};
use nx_vulkan_abi::{BufArg, DType, Refusal, glsl};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, derive, scratch},
};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Side {
    A,
    B,
}

impl Side {
    /// The operand, its rows, and the workgroups that pack a step along k of `tiles` of it.
    pub(crate) fn of(self, problem: &Problem, tiles: u32) -> (&Operand, u32, u32) {
        match self {
            Side::A => (&problem.a, problem.m, tiles.div_ceil(4)),
            Side::B => (&problem.b, problem.n, tiles),
        }
    }
}

/// What a packed operand has.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Packed {
    /// 1 where all batches are the same.
    pub(crate) batches: u64,
    /// Tiles of 16 rows of A, or blocks of 64 columns of B, of one batch.
    pub(crate) tiles: u32,
    /// Fragments along k, an even number.
    pub(crate) depth: u32,
    pub(crate) bytes: u64,
}

impl Packed {
    /// An operand as subgroups load it that own so many `rows` of A, with so many `parts` of each element.
    pub(crate) fn new(problem: &Problem, side: Side, depth: u32, parts: u32, rows: u32) -> Packed {
        let (operand, tiles, loaded, fragments) = match side {
            Side::A => {
                let tiles = problem.m.div_ceil(ROWS);
                (&problem.a, tiles, tiles.next_multiple_of(rows / ROWS), 1)
            }
            Side::B => {
                let tiles = problem.n.div_ceil(COLUMNS);
                (&problem.b, tiles, tiles, 4)
            }
        };
        let batches = operand.batches();
        // The last subgroup loads as many rows as it owns, all of them one step further than it multiplies.
        let all = (batches - 1) * u64::from(tiles) + u64::from(loaded);
        let step = u64::from(parts) * fragments * FRAGMENT;
        Packed {
            batches,
            tiles,
            depth,
            bytes: all
                .saturating_mul(u64::from(depth) * step)
                .saturating_add(step),
        }
    }

    /// Tiles or blocks from one batch to the next.
    pub(crate) fn batch_step(&self, problem: &Problem) -> u32 {
        if self.batches == u64::from(problem.batches) {
            self.tiles
        } else {
            0
        }
    }
}

/// Packs an operand into fragments.
pub(super) fn pack(
    steps: &mut Steps<'_>,
    problem: &Problem,
    side: Side,
    way: Way,
    packed: Packed,
) -> Result<BufArg, Refusal> {
    let Packed { tiles, depth, .. } = packed;
    let (operand, rows, blocks) = side.of(problem, tiles);
    check_range("a packed operand", packed.bytes, steps.device)?;
    let to = scratch(&mut steps.plan, packed.bytes);

    let along_k = operand.is_along_k();
    // What a lane has along k, or a pair of rows.
    let wide = operand.is_wide(if along_k { way.depth() / 4 } else { 2 });
    let glsl = glsl::of(operand.dtype);
    let storage = glsl.map_or("float", |glsl| glsl.storage);
    let raw = operand.dtype == way.element;
    let (two, four) = match (raw, way.element.size()) {
        (true, 1) => ("uint16_t", "uvec2"),
        (true, _) => ("uint", "uvec2"),
        (false, _) => (
            glsl::vector(storage, 2).unwrap_or(storage),
            glsl::vector(storage, 4).unwrap_or(storage),
        ),
    };
    let mut defines = glsl::operand("S", operand.dtype);
    defines.extend(glsl::operand("D", way.element));
    defines.extend(glsl::needs(DType::F16));
    defines.extend([
        glsl::define("TWO", two),
        glsl::define("FOUR", four),
        number("SIDE_A", side == Side::A),
        number("ALONG_K", along_k),
        number("WIDE", wide),
        number("RAW", raw),
        number("BYTES", way.element.size() == 1),
    ]);
    let jobs = packed.batches * u64::from(blocks) * u64::from(depth.div_ceil(8));
    let bits = u32::try_from(jobs)
        .map_err(|_| Refusal::decline("a packed operand has more than 2^32 blocks"))?;
    let mut push = vec![rows, problem.k];
    push.extend(operand.words());
    push.extend([depth, tiles, blocks, bits]);
    let step = Step {
        file: "cores_pack.comp",
        defines,
        args: vec![operand.arg, to],
        push: bytes_of(&push),
        groups: grid::spread(jobs, steps.device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    derive(&mut steps.plan, to, operand.arg);
    Ok(to)
}
