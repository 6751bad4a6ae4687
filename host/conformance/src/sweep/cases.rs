//! What the sweep runs: every op on every type in every layout, sampled where the combinations are too many.

use super::{extent::Extent, layout::Operand};
use nx_vulkan_abi::{DType, DTypeSet, dtype::Class};
use nx_vulkan_ops::{
    Attr, Request, Result, Spec,
    infer::infer,
    layout::{LAYOUTS, Layout},
    op::{Op, Types},
    problems::Problem,
    values::{self, Domain, Rng, Values},
};

/// Layouts that a rare type has one of.
const STRIDED: [Layout; 5] = [
    Layout::Transposed,
    Layout::Broadcast,
    Layout::Sliced,
    Layout::Reversed,
    Layout::Deep,
];

/// Half of the mixed requests are contiguous.
const MIXED_LAYOUTS: [Layout; 6] = [
    Layout::Contiguous,
    Layout::Contiguous,
    Layout::Contiguous,
    Layout::Transposed,
    Layout::Broadcast,
    Layout::Sliced,
];

/// Types that few programs compute with: each is tried contiguously, and in some of the other layouts.
const RARE: DTypeSet = DTypeSet::of(&[
    DType::U2,
    DType::U4,
    DType::S2,
    DType::S4,
    DType::F8,
    DType::F8_E4M3FN,
    DType::C128,
]);

/// How many of the problems of a layout are tried.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Variety {
    One,
    Few,
    All,
}

/// One request with the layout of its operands.
#[derive(Debug, Clone)]
pub(super) struct Case {
    pub(super) op: &'static Op,
    pub(super) inputs: Vec<Operand>,
    /// At least one.
    pub(super) outputs: Vec<Spec>,
    pub(super) attrs: Vec<Attr>,
    pub(super) layout: Layout,
    pub(super) values: Values,
    pub(super) seed: u64,
}

impl Case {
    /// The bytes of each operand's base.
    pub(super) fn elements(&self) -> Vec<Vec<u8>> {
        let mut rng = Rng(self.seed);
        let shapes: Vec<&[u64]> = self.inputs.iter().map(|input| &*input.shape).collect();
        let bounds = self.op.indices(&shapes, &self.attrs);
        let each = self.inputs.iter().enumerate();
        each.map(|(i, input)| match self.op.domain(i) {
            Domain::Index => values::indices(input.dtype, bounds, input.stored(), &mut rng),
            domain => values::elements(domain, input.dtype, self.values, input.stored(), &mut rng),
        })
        .collect()
    }
}

/// The cases of `op`. The same seed gives the same cases.
///
/// # Errors
/// Bad input when the tables here break the op's contract.
pub(super) fn cases(op: &'static Op, seed: u64, extent: Extent) -> Result<Vec<Case>> {
    let quick = extent == Extent::Quick;
    let mut rng = Rng(op
        .name
        .bytes()
        .fold(seed, |hash, byte| hash.wrapping_mul(31) ^ u64::from(byte)));
    let mut all = Vec::new();
    let same = match extent {
        Extent::Sample => one_of_each_kind(op, &mut rng),
        Extent::Full | Extent::Quick => op.alone(),
    };
    let large = rng.below(same.len() as u64) as usize;
    let varied = rng.below(same.len() as u64) as usize;
    for (index, types) in same.iter().enumerate() {
        // f32 and one other type see every shape; the others those that need few different shaders.
        let is_varied =
            index == varied || op.arity() > 0 && op.stands_for(types) == Some(DType::F32);
        let is_rare = extent == Extent::Sample && !is_varied
            || op.stands_for(types).is_some_and(|dtype| RARE.has(dtype));
        let variety = match (quick, is_varied) {
            (true, _) => Variety::One,
            (_, true) => Variety::All,
            _ if is_rare => Variety::One,
            _ => Variety::Few,
        };
        let strided = rng.pick(&STRIDED);
        for layout in LAYOUTS {
            let skip = match layout {
                Layout::Large => index != large && !op.contract.tiled || quick,
                Layout::Contiguous | Layout::Empty | Layout::Scalar => false,
                Layout::Transposed
                | Layout::Broadcast
                | Layout::Sliced
                | Layout::Reversed
                | Layout::Deep => op.arity() == 0 || is_rare && !is_varied && layout != strided,
            };
            // Seconds each where a CPU has to run what is made for a GPU.
            let variety = match (extent, layout, variety) {
                (Extent::Sample, Layout::Large, Variety::All) => Variety::Few,
                _ => variety,
            };
            if !skip {
                in_layout(op, types, layout, variety, &mut rng, &mut all)?;
            }
        }
    }
    if !quick {
        for types in mixed_types(op, extent, &mut rng) {
            let layout = rng.pick(&MIXED_LAYOUTS);
            in_layout(op, &types, layout, Variety::One, &mut rng, &mut all)?;
        }
    }
    Ok(all)
}

/// The op's problems of whole tiles, at most `most` for each of their types, chosen by `seed`.
///
/// # Errors
/// As [`cases`].
pub(super) fn tiles(op: &'static Op, seed: u64, most: usize) -> Result<Vec<Case>> {
    let (all_types, problems) = op.tiles();
    let mut rng = Rng(seed);
    let mut cases = Vec::new();
    for types in &all_types {
        let mut problems: Vec<&Problem> = problems.iter().collect();
        shuffle(&mut problems, &mut rng);
        for problem in problems.into_iter().take(most) {
            let (inputs, request) = request(op, types, problem)?;
            let operand =
                |(dtype, shape): &Spec| Operand::new(*dtype, shape, Layout::Contiguous, None);
            cases.push(Case {
                op,
                inputs: inputs.iter().map(operand).collect(),
                outputs: request.outputs.to_vec(),
                attrs: request.attrs.to_vec(),
                layout: Layout::Contiguous,
                values: rng.pick(&[Values::Finite, Values::Finite, Values::Special]),
                seed: rng.bits(),
            });
        }
    }
    Ok(cases)
}

/// The types of an op, with one in place of those of a kind: their shaders differ in few instructions.
fn one_of_each_kind(op: &Op, rng: &mut Rng) -> Vec<Types> {
    let mut all = op.alone();
    shuffle(&mut all, rng);
    let mut seen = Vec::new();
    all.retain(|types| {
        let kind = op.stands_for(types).map(kind);
        let is_new = !seen.contains(&kind);
        seen.push(kind);
        is_new
    });
    all
}

/// Integers by how they are stored, floats by their size, complex numbers.
fn kind(dtype: DType) -> Option<(Class, u32)> {
    let row = dtype.row()?;
    Some(match (row.class, row.bits) {
        (Class::Unsigned | Class::Signed, ..8) => (Class::Signed, 4),
        (Class::Unsigned | Class::Signed, 8..=16) => (Class::Signed, 16),
        (Class::Unsigned | Class::Signed, bits) => (Class::Signed, bits),
        (Class::Float, bits) => (Class::Float, bits),
        (Class::Complex, _) => (Class::Complex, 0),
    })
}

fn shuffle<T>(all: &mut [T], rng: &mut Rng) {
    (1..all.len()).for_each(|i| all.swap(i, rng.below(i as u64 + 1) as usize));
}

/// Operands of different types as Nx merges them, and results of other types than it infers.
fn mixed_types(op: &Op, extent: Extent, rng: &mut Rng) -> Vec<Types> {
    let (mut all, mut count) = op.mixed();
    if extent == Extent::Sample {
        count = count.div_ceil(4);
    }
    if count < all.len() {
        shuffle(&mut all, rng);
    }
    all.truncate(count);
    all
}

/// The cases of one combination of types in one layout.
fn in_layout(
    op: &'static Op,
    types: &Types,
    layout: Layout,
    variety: Variety,
    rng: &mut Rng,
    to: &mut Vec<Case>,
) -> Result<()> {
    let dtype = types.output.or(op.stands_for(types));
    let dtype = dtype.unwrap_or(DType::F32);
    let mut problems = op.problems(layout, dtype, variety == Variety::All, rng);
    let most = match (variety, layout) {
        (Variety::One, _) => 1,
        (Variety::Few, Layout::Contiguous) => 4,
        (Variety::Few, _) => 2,
        (Variety::All, _) => problems.len(),
    };
    shuffle(&mut problems, rng);
    problems.truncate(most);
    let both = [Values::Finite, Values::Special];
    for problem in problems {
        let (inputs, request) = request(op, types, &problem)?;
        // Which part of a complex result is NaN or infinite when a part of an operand is depends on the formula.
        let is_complex = inputs.iter().any(|input| input.0.is_complex());
        let values: &[Values] = match layout {
            _ if is_complex && op.bound.parts != (0, 0) => &both[..1],
            Layout::Contiguous if op.arity() > 0 => &both,
            Layout::Empty | Layout::Large => &both[..1],
            Layout::Contiguous
            | Layout::Transposed
            | Layout::Broadcast
            | Layout::Sliced
            | Layout::Reversed
            | Layout::Scalar
            | Layout::Deep => &both[rng.below(2) as usize..][..1],
        };
        for &values in values {
            let seed = rng.bits();
            let mut layouts = Rng(seed);
            let varies = variety == Variety::All;
            let operand = |(index, (dtype, shape)): (usize, &Spec)| {
                // A second operand in another layout than the first: both paths of a kernel in one request.
                let other = varies && index > 0 && layouts.below(2) == 0;
                let layout = if other { Layout::Contiguous } else { layout };
                Operand::new(*dtype, shape, layout, varies.then_some(&mut layouts))
            };
            to.push(Case {
                op,
                inputs: inputs.iter().enumerate().map(operand).collect(),
                outputs: request.outputs.to_vec(),
                attrs: request.attrs.to_vec(),
                layout,
                values,
                seed,
            });
        }
    }
    Ok(())
}

/// Operands and request of a problem with these types.
pub(super) fn request(
    op: &'static Op,
    types: &Types,
    problem: &Problem,
) -> Result<(Vec<Spec>, Request<'static, Spec>)> {
    // Where there may be more operands than types, they have the last one.
    let last = types.inputs.last().into_iter().cycle();
    let inputs = types.inputs.iter().chain(last).copied();
    let inputs: Vec<Spec> = inputs.zip(problem.inputs.iter().cloned()).collect();
    // Results that do not follow are named, as are those that have more axes than the operands.
    let named = !op.contract.infers || !problem.output.is_empty() && op.contract.results.len() > 1;
    let dtype = types.output.or(types.inputs.first().copied());
    let given = dtype
        .filter(|_| named)
        .map(|dtype| (dtype, problem.output.clone()));
    let mut request = infer(op, &inputs, given, &problem.attrs)?;
    if let Some(dtype) = types.output {
        request.outputs.to_mut()[0].0 = dtype;
    }
    Ok((inputs, request))
}

#[cfg(test)]
mod tests;
