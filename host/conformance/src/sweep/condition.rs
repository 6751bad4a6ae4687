//! How far results move when operands do: what the condition of a matrix makes of roundings.

#[cfg(test)]
mod tests;

use super::{cases::Case, numbers::number};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{
    Result, Spec,
    kernels::{self, Out, View},
    values::Rng,
};

/// Times that operands are moved.
const MOVES: usize = 4;

/// For each result how far each element moves when every number of the operands does by ε of itself, up or down, in units of
/// ε, which is that of the type that is computed in: the most of some choices of directions, computed in f64. Operands without
/// a result say nothing.
pub(super) fn sensitivities(case: &Case, inputs: &[View<'_>]) -> Vec<Vec<f64>> {
    let types = case.outputs.iter().map(|output| output.0);
    let floats = types.filter(|dtype| dtype.part().is_float());
    let epsilon = floats.map(|dtype| dtype.register().epsilon());
    let epsilon = epsilon.fold(0.0, f64::max);
    let numbers: Vec<Vec<f64>> = inputs.iter().map(numbers).collect();
    let elements = |output: &Spec| vec![0.0; output.1.iter().product::<u64>() as usize];
    let mut most: Vec<Vec<f64>> = case.outputs.iter().map(elements).collect();
    let Ok(own) = results(case, inputs, &numbers) else {
        return most;
    };
    let mut rng = Rng(!case.seed);
    for _ in 0..MOVES {
        let choice = rng.bits();
        let mut moved = numbers.clone();
        for number in moved.iter_mut().flatten() {
            // Those of one magnitude move alike: of equal candidates the first is the pivot.
            let mut own = Rng(choice ^ number.abs().to_bits());
            *number *= 1.0 + own.pick(&[epsilon, -epsilon]);
        }
        let Ok(moved) = results(case, inputs, &moved) else {
            continue;
        };
        // Another pivot is another result: how far that is says nothing about roundings.
        let mut integers = case.outputs.iter().zip(own.iter().zip(&moved));
        if integers.any(|(output, (own, moved))| output.0.is_integer() && own != moved) {
            continue;
        }
        for (most, (own, moved)) in most.iter_mut().zip(own.iter().zip(&moved)) {
            let parts = own.len().checked_div(most.len()).unwrap_or(1);
            let pairs = own.chunks_exact(parts).zip(moved.chunks_exact(parts));
            for (most, (own, moved)) in most.iter_mut().zip(pairs) {
                let apart = own.iter().zip(moved).map(|(own, moved)| own - moved);
                let apart = apart.fold(0.0, f64::hypot) / epsilon;
                *most = most.max(if apart.is_finite() { apart } else { 0.0 });
            }
        }
    }
    most
}

/// The parts of all elements that a view looks into.
fn numbers(view: &View<'_>) -> Vec<f64> {
    let part = view.dtype.part();
    let parts = view.bytes.chunks_exact(part.size() as usize);
    parts.map(|element| number(part, element)).collect()
}

/// Parts of the results for operands of these numbers, all in f64.
fn results(case: &Case, inputs: &[View<'_>], numbers: &[Vec<f64>]) -> Result<Vec<Vec<f64>>> {
    let bytes = |numbers: &Vec<f64>| numbers.iter().flat_map(|x| x.to_le_bytes()).collect();
    let bytes: Vec<Vec<u8>> = numbers.iter().map(bytes).collect();
    let views = inputs.iter().zip(&bytes).map(|(view, bytes)| View {
        dtype: wide(view.dtype),
        bytes,
        ..*view
    });
    let views: Vec<View<'_>> = views.collect();
    let size = |(dtype, shape): &Spec| shape.iter().product::<u64>() * wide(*dtype).size();
    let zeros = |output| vec![0; size(output) as usize];
    let mut results: Vec<Vec<u8>> = case.outputs.iter().map(zeros).collect();
    let outputs = case.outputs.iter().zip(&mut results);
    let outs = outputs.map(|((dtype, shape), bytes)| Out {
        dtype: wide(*dtype),
        shape,
        bytes,
    });
    let mut outs: Vec<Out<'_>> = outs.collect();
    kernels::run(case.op.name, &views, &mut outs, &case.attrs)?;
    let parts = |bytes: &Vec<u8>| {
        let parts = bytes.as_chunks().0.iter();
        parts.map(|part| f64::from_le_bytes(*part)).collect()
    };
    Ok(results.iter().map(parts).collect())
}

fn wide(dtype: DType) -> DType {
    match dtype.is_complex() {
        true => DType::C128,
        false => DType::F64,
    }
}
