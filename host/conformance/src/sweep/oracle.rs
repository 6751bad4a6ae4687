//! What the host kernel answers to a case, with what the tolerance needs to know beside it.

mod replaced;
mod weights;

use super::{
    cases::Case,
    condition, finish,
    judge::Expected,
    numbers::{largest, magnitudes},
};
use kernels::{Out, View};
use nx_vulkan_abi::{
    DType,
    epilogue::{ATTRIBUTE, FACTORS},
};
use nx_vulkan_host::Tensor;
use nx_vulkan_ops::{
    Request, Result,
    element::float,
    epilogue, kernels,
    layout::Layout,
    request::Spec,
    tolerance::{Growth, Tolerance},
    values::Domain,
};

use replaced::{opposite_overflows, signs_of_finite_factors, without_denormals};

/// The host kernel's answer.
#[derive(Debug)]
pub(super) struct Answer {
    dtype: DType,
    bytes: Vec<u8>,
    others: Vec<Vec<u8>>,
    magnitudes: Option<Vec<f64>>,
    terms: u64,
    sensitivities: Option<Vec<f64>>,
    slack: Option<Vec<f64>>,
}

impl Answer {
    pub(super) fn expected(&self) -> Expected<'_> {
        Expected {
            dtype: self.dtype,
            bytes: &self.bytes,
            others: &self.others,
            magnitudes: self.magnitudes.as_deref(),
            terms: self.terms,
            sensitivities: self.sensitivities.as_deref(),
            slack: self.slack.as_deref(),
        }
    }
}

/// Runs the case on the host, with an answer for each result. `bases` are the uploaded bytes, `views` the operands as
/// views of them.
///
/// # Errors
/// Those of the host kernel.
pub(super) fn answers(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
    tolerance: &Tolerance,
) -> Result<Vec<Answer>> {
    if epilogue::has(&case.attrs) {
        return finished(case, bases, views).map(|answer| vec![answer]);
    }
    if case.op.bound.growth == Growth::Weights {
        return weights::answer(case, bases, views).map(|answer| vec![answer]);
    }
    if matches!(
        case.op.bound.growth,
        Growth::Steps | Growth::Condition | Growth::Spectrum
    ) {
        by_largest(case, bases, views)
    } else if case.outputs.len() > 1 {
        several(case, bases, views, tolerance)
    } else {
        answer(case, bases, views, tolerance).map(|answer| vec![answer])
    }
}

/// Answers of an op with several results, each by its own elements.
fn several(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
    tolerance: &Tolerance,
) -> Result<Vec<Answer>> {
    let own: Vec<DType> = views.iter().map(Tensor::dtype).collect();
    let all = |bases: &[Vec<u8>]| run_all(case, bases, views, &own, &case.outputs);
    let flushed = match tolerance.flushes {
        true => without_denormals(case, bases, views),
        false => None,
    };
    let flushed = flushed.map(|bases| all(&bases)).transpose()?;
    let answer = |(index, bytes): (usize, Vec<u8>)| Answer {
        dtype: case.outputs[index].0,
        bytes,
        others: flushed.iter().map(|all| all[index].clone()).collect(),
        magnitudes: None,
        terms: 1,
        sensitivities: None,
        slack: None,
    };
    Ok(all(bases)?.into_iter().enumerate().map(answer).collect())
}

/// Answers whose errors are those of the largest number in each.
fn by_largest(case: &Case, bases: &[Vec<u8>], views: &[Tensor]) -> Result<Vec<Answer>> {
    let own: Vec<DType> = views.iter().map(Tensor::dtype).collect();
    let all = |bases: &[Vec<u8>]| run_all(case, bases, views, &own, &case.outputs);
    let flushed = without_denormals(case, bases, views);
    let flushed = flushed.map(|bases| all(&bases)).transpose()?;
    // Steps add to the state that they start from, which may be larger than what is left of it.
    let started = match case.op.bound.growth {
        Growth::Steps | Growth::Condition => bases.iter().zip(&own).take(2),
        _ => bases.iter().zip(&own).take(0),
    };
    let started = started.map(|(base, dtype)| largest(dtype.part(), base));
    let started = started.fold(0.0, f64::max);
    let sensitivities = match case.op.bound.growth {
        Growth::Condition => condition::sensitivities(case, &operands(bases, views, &own)),
        _ => Vec::new(),
    };
    let answer = |(index, bytes): (usize, Vec<u8>)| {
        let dtype = case.outputs[index].0;
        let largest = largest(dtype.part(), &bytes).max(started);
        Answer {
            dtype,
            magnitudes: Some(vec![largest; bytes.len() / dtype.size() as usize]),
            others: flushed.iter().map(|all| all[index].clone()).collect(),
            terms: terms(case),
            sensitivities: sensitivities.get(index).cloned(),
            slack: None,
            bytes,
        }
    };
    Ok(all(bases)?.into_iter().enumerate().map(answer).collect())
}

fn answer(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
    tolerance: &Tolerance,
) -> Result<Answer> {
    let dtype = case.outputs[0].0;
    let own: Vec<DType> = views.iter().map(Tensor::dtype).collect();
    let bytes = run(case, bases, views, &own, dtype)?;
    let mut others = Vec::new();
    if tolerance.flushes
        && let Some(bases) = without_denormals(case, bases, views)
    {
        others.push(run(case, &bases, views, &own, dtype)?);
    }
    if tolerance.growth == Growth::Factors
        && let Some(bases) = signs_of_finite_factors(bases, views)
    {
        let mut other = run(case, &bases, views, &own, dtype)?;
        let size = dtype.size() as usize;
        for (other, own) in other.chunks_exact_mut(size).zip(bytes.chunks_exact(size)) {
            if float(dtype, other).is_none_or(f64::is_finite) {
                other.copy_from_slice(own);
            }
        }
        others.push(other);
    }
    if tolerance.growth == Growth::Parts
        && let Some(other) = opposite_overflows(dtype, &bytes, bases, views)
    {
        others.push(other);
    }
    let magnitudes = match tolerance.growth {
        Growth::Terms | Growth::Compensated => {
            let is_index = |index: usize| case.op.domain(index) == Domain::Index;
            let each = bases.iter().zip(views).enumerate();
            let each = each.map(|(index, (base, view))| match is_index(index) {
                true => (view.dtype(), base.clone()),
                false => (DType::F64, magnitudes(view.dtype(), base)),
            });
            let (types, bases): (Vec<DType>, Vec<Vec<u8>>) = each.unzip();
            let bytes = run(case, &bases, views, &types, DType::F64)?;
            Some(
                bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|chunk| f64::from_le_bytes(*chunk))
                    .collect(),
            )
        }
        Growth::Parts => Some(
            magnitudes(dtype, &bytes)
                .as_chunks()
                .0
                .iter()
                .map(|chunk| f64::from_le_bytes(*chunk))
                .collect(),
        ),
        Growth::None
        | Growth::Factors
        | Growth::Steps
        | Growth::Condition
        | Growth::Spectrum
        | Growth::Weights => None,
    };
    Ok(Answer {
        dtype,
        bytes,
        others,
        magnitudes,
        terms: terms(case),
        sensitivities: None,
        slack: None,
    })
}

/// The answer to a product with an epilogue.
fn finished(case: &Case, bases: &[Vec<u8>], views: &[Tensor]) -> Result<Answer> {
    let specs: Vec<Spec> = views
        .iter()
        .map(|x| (x.dtype(), x.shape().to_vec()))
        .collect();
    let request = Request::new(case.op.name, specs, &case.outputs, &case.attrs);
    // The product alone, of the magnitudes of its operands.
    let product = |bases: &[Vec<u8>], shape: &[u64]| {
        let attrs = case.attrs.iter().filter(|attr| attr.name != ATTRIBUTE);
        let case = Case {
            inputs: case.inputs[..FACTORS].to_vec(),
            attrs: attrs.cloned().collect(),
            ..case.clone()
        };
        let (types, result) = ([DType::F64; FACTORS], [(DType::F64, shape.to_vec())]);
        run_all(&case, bases, &views[..FACTORS], &types, &result).map(|mut all| all.remove(0))
    };
    let sums = |spec: &Spec, bytes: &[u8]| {
        let elements = bytes.len() / spec.0.size() as usize;
        if !spec.0.is_float() {
            return Ok(vec![0.0; elements]);
        }
        let factors = bases.iter().zip(views).take(FACTORS);
        let wide = factors.map(|(base, view)| magnitudes(view.dtype(), base));
        let wide = product(&wide.collect::<Vec<_>>(), &spec.1)?;
        let lost = case.op.allows(&[spec.0; FACTORS], spec.0, &case.attrs).lost;
        let epsilon = spec.0.register().epsilon();
        let growth = epsilon * f64::from(lost).exp2() * (2.0 + (terms(case) as f64).sqrt());
        let magnitude = wide
            .as_chunks()
            .0
            .iter()
            .map(|chunk| f64::from_le_bytes(*chunk));
        let errors = magnitude.map(|magnitude| growth * magnitude);
        Ok(errors
            .map(|error| if error.is_finite() { error } else { 0.0 })
            .collect())
    };
    let own: Vec<DType> = views.iter().map(Tensor::dtype).collect();
    let spread = finish::spread(&request, &operands(bases, views, &own), sums)?;
    let dtype = case.outputs[0].0;
    let mut others = spread.results;
    if let Some(bases) = without_denormals(case, bases, views) {
        others.push(run(case, &bases, views, &own, dtype)?);
    }
    Ok(Answer {
        dtype,
        bytes: run(case, bases, views, &own, dtype)?,
        others,
        magnitudes: None,
        terms: terms(case),
        sensitivities: None,
        slack: Some(spread.slack),
    })
}

fn run(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
    types: &[DType],
    result: DType,
) -> Result<Vec<u8>> {
    let output = (result, case.outputs[0].1.clone());
    run_all(case, bases, views, types, &[output]).map(|mut all| all.remove(0))
}

fn run_all(
    case: &Case,
    bases: &[Vec<u8>],
    views: &[Tensor],
    types: &[DType],
    outputs: &[Spec],
) -> Result<Vec<Vec<u8>>> {
    let inputs = operands(bases, views, types);
    let size = |(dtype, shape): &Spec| (shape.iter().product::<u64>() * dtype.size()) as usize;
    let mut results: Vec<Vec<u8>> = outputs.iter().map(|output| vec![0; size(output)]).collect();
    let mut outs: Vec<Out<'_>> = outputs
        .iter()
        .zip(&mut results)
        .map(|((dtype, shape), bytes)| Out {
            dtype: *dtype,
            shape,
            bytes,
        })
        .collect();
    kernels::run(case.op.name, &inputs, &mut outs, &case.attrs)?;
    Ok(results)
}

/// The operands as views of `bases`, whose elements are of `types`.
fn operands<'a>(bases: &'a [Vec<u8>], views: &'a [Tensor], types: &[DType]) -> Vec<View<'a>> {
    let each = views.iter().zip(bases).zip(types);
    let view = |((tensor, bytes), dtype): ((&'a Tensor, &'a Vec<u8>), &DType)| View {
        dtype: *dtype,
        shape: tensor.shape(),
        strides: tensor.strides(),
        offset: tensor.offset(),
        bytes,
    };
    each.map(view).collect()
}

/// Elements that make one result. Where they repeat, the roundings of their sum go in one direction, and no root of them
/// is enough: the square stands for n itself.
fn terms(case: &Case) -> u64 {
    let inputs: Vec<&[u64]> = case.inputs.iter().map(|x| x.shape.as_slice()).collect();
    let count = case.op.terms(&inputs, &case.outputs[0].1, &case.attrs);
    match (case.layout, case.op.bound.growth) {
        (Layout::Broadcast, Growth::Terms) => count.saturating_mul(count),
        _ => count,
    }
}
