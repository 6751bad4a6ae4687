//! What the shaders of a convolution on matrix units are told: their `Params`, and how they store results.

use super::{Packing, Source};
use crate::problem::Problem;
use nx_vulkan_abi::{DType, Define, glsl::define};
use nx_vulkan_pack_kit::{axes::divisor, epilogue::Run, steps::number};

/// How many results are stored at once: of filters or of positions, whichever are neighbours.
pub(super) fn run(problem: &Problem, splits: u64, filters: u64) -> Run {
    let along_filters = problem.filters_inner();
    let most = if is_narrow(problem, splits) { 8 } else { 4 };
    let most = if along_filters {
        filters.min(most)
    } else {
        most
    };
    let width = [8, 4, 2, 1]
        .into_iter()
        .find(|width| *width <= most && problem.runs(*width, along_filters));
    let width = width.unwrap_or(1) as u32;
    match along_filters {
        true => Run::Rows(width),
        false => Run::Columns(width),
    }
}

/// Whether results have 16 bits.
fn is_narrow(problem: &Problem, splits: u64) -> bool {
    !problem.is_partial(splits) && problem.result() != DType::F32
}

/// How results are stored, so many at once.
pub(super) fn store(problem: &Problem, splits: u64, run: Run) -> Vec<Define> {
    let narrow = is_narrow(problem, splits);
    let (Run::Rows(width) | Run::Columns(width)) = run;
    let stored = match (narrow, width) {
        (false, 4) => "vec4",
        (false, 2) => "vec2",
        (false, _) => "float",
        (true, 8) => "uvec4",
        (true, 4) => "uvec2",
        (true, 2) => "uint",
        (true, _) => "uint16_t",
    };
    vec![
        define("RESULT", stored),
        number("WIDTH", width),
        number("WIDE_RESULT", !narrow),
        number("BF16_RESULT", problem.result() == DType::BF16),
        number("ALONG_FILTERS", u64::from(problem.filters_inner())),
    ]
}

/// The `Params` of `matrix.glsl`.
pub(super) fn words(
    problem: &Problem,
    packing: &Packing,
    tiles_m: u64,
    blocks: [u64; 2],
    chunk: u64,
    jobs: u64,
) -> Vec<u32> {
    let batches = problem.batches();
    let taps = problem.depth / problem.channels;
    let batch_pieces = packing.blocks * packing.block_pieces;
    // Places in x, where it is not packed.
    let [group_pieces, batch_pieces] = match packing.source {
        Source::Packed => [batches * batch_pieces, batch_pieces],
        Source::Staged(_) => problem.x_steps(),
        Source::InPlace => problem.x_steps().map(|step| step / packing.piece),
    };
    let mut words: Vec<u32> = Vec::new();
    let add = |words: &mut Vec<u32>, counts: &[u64]| words.extend(counts.iter().map(|n| *n as u32));
    add(
        &mut words,
        &[
            packing.x_pieces,
            group_pieces,
            batch_pieces,
            packing.block_pieces,
        ],
    );
    for extent in [batches, packing.blocks] {
        add(&mut words, &[extent]);
        words.extend(divisor(extent));
    }
    add(&mut words, &[problem.channels]);
    for extent in [taps, packing.steps] {
        add(&mut words, &[extent]);
        words.extend(divisor(extent));
    }
    add(
        &mut words,
        &[
            problem.filters,
            problem.columns,
            problem.groups,
            tiles_m,
            blocks[0],
            blocks[1],
            chunk,
            jobs,
            problem.results,
        ],
    );
    words.extend(problem.places());
    words.push(match packing.source {
        Source::Packed | Source::Staged(_) => 0,
        Source::InPlace => (problem.first() / packing.piece) as u32,
    });
    let mut steps = packing.block / packing.piece;
    let mut axes = Vec::new();
    for (axis, packed) in problem.spatial.iter().zip(&packing.axes).rev() {
        let mut words = Vec::new();
        for extent in [axis.positions, axis.taps, packed.packed] {
            add(&mut words, &[extent]);
            words.extend(divisor(extent));
        }
        words.extend([
            packed.stride as u32,
            axis.low as u32,
            axis.extent as u32,
            axis.holes as u32,
        ]);
        words.extend(divisor(axis.holes as u64));
        words.extend(axis.steps.map(|step| step as u32));
        let in_place = (axis.steps[0] * axis.stride) as u64;
        let position = match packing.source {
            Source::Packed => packed.steps[0] / packed.phases * steps,
            Source::Staged(_) => in_place,
            Source::InPlace => in_place / packing.piece,
        };
        add(&mut words, &[position, packed.steps[1] * steps]);
        steps *= packed.packed;
        axes.push(words);
    }
    words.extend(axes.into_iter().rev().flatten());
    if problem.spatial.is_empty() {
        words.extend([0; 20]);
    }
    words
}
