//! Attention: how far means by the weights of a softmax may be from the host's, by what roundings of scores and weights make of
//! them.

use super::{
    super::{cases::Case, numbers::number},
    Answer, finished, operands, run, without_denormals,
};
use kernels::{Out, View};
use nx_vulkan_abi::{DType, epilogue::FACTORS};
use nx_vulkan_host::Tensor;
use nx_vulkan_ops::{
    Error, Request, Result, Spec, Step,
    attention::{self, sums},
    element::{float, push_float},
    epilogue, find, kernels,
    layout::Layout,
};

/// The operand whose rows are weighted.
const V: usize = 2;
/// Errors of a weight beside those of its score and of the sums, in ε of what is computed in: of `exp`, of the sum's reciprocal,
/// of a product.
const ROUNDINGS: f64 = 8.0;

/// The host's answer to attention, whose axes are put in their order here.
///
/// # Errors
/// Those of the host's kernels.
pub(super) fn answer(case: &Case, bases: &[Vec<u8>], views: &[Tensor]) -> Result<Answer> {
    let (dtype, shape) = &case.outputs[0];
    let order = attention::order(&case.attrs, shape.len()).map_err(Error::bad_input)?;
    let Some(order) = order else {
        return in_turn(case, bases, views);
    };
    let mut natural = vec![0; shape.len()];
    for (&axis, &extent) in order.iter().zip(shape) {
        natural[axis] = extent;
    }
    let attrs = case.attrs.iter();
    let attrs = attrs.filter(|attr| attr.name != attention::ORDER);
    let plain = Case {
        outputs: vec![(*dtype, natural.clone())],
        attrs: attrs.cloned().collect(),
        ..case.clone()
    };
    let answer = in_turn(&plain, bases, views)?;
    let places = places(&natural, &order);
    let size = dtype.size() as usize;
    let bytes = |bytes: &[u8]| {
        let elements = places.iter().map(|&place| &bytes[place * size..][..size]);
        elements.flatten().copied().collect::<Vec<u8>>()
    };
    let slack = |slack: Vec<f64>| places.iter().map(|&place| slack[place]).collect();
    Ok(Answer {
        bytes: bytes(&answer.bytes),
        others: answer.others.iter().map(|other| bytes(other)).collect(),
        slack: answer.slack.map(slack),
        ..answer
    })
}

/// Where the elements of a tensor with its axes in that order are, in row-major order, in the tensor of that shape.
fn places(shape: &[u64], order: &[usize]) -> Vec<usize> {
    let steps = nx_vulkan_abi::layout::contiguous_strides(shape);
    order.iter().fold(vec![0], |places, &axis| {
        let along = (0..shape[axis] as usize).map(|i| i * steps[axis] as usize);
        let along: Vec<usize> = along.collect();
        let of = |place: usize| {
            along
                .iter()
                .map(move |step| place + step)
                .collect::<Vec<_>>()
        };
        places.into_iter().flat_map(of).collect()
    })
}

fn in_turn(case: &Case, bases: &[Vec<u8>], views: &[Tensor]) -> Result<Answer> {
    let own: Vec<DType> = views.iter().map(Tensor::dtype).collect();
    let (dtype, shape) = &case.outputs[0];
    let bytes = run(case, bases, views, &own, *dtype)?;
    let (wide, scores, errors) = scores(case, bases, views)?;
    let view = operands(bases, views, &own)[V];
    let [.., keys, columns] = *view.shape else {
        return Err(Error::bad_input("v has no keys"));
    };
    let batches: u64 = view.shape[..view.shape.len() - 2].iter().product();
    let rows = shape.iter().product::<u64>() / (batches * columns).max(1);
    let means = Means {
        dtype: *dtype,
        scores: &numbers(wide, &scores),
        errors: &errors,
        v: &elements(view)?,
        means: &numbers(*dtype, &bytes),
        extents: [rows, keys, columns].map(|extent| extent as usize),
        // Where keys repeat, so do their roundings.
        terms: match case.layout {
            Layout::Broadcast => (keys * keys) as f64,
            _ => keys as f64,
        },
    };
    let slack = means.slack();
    let mut others = Vec::new();
    let changed = [
        without_denormals(case, bases, views),
        undecided(bases, views),
    ];
    for bases in changed.iter().flatten() {
        others.push(run(case, bases, views, &own, *dtype)?);
    }
    Ok(Answer {
        dtype: *dtype,
        bytes,
        others,
        magnitudes: None,
        terms: 1,
        sensitivities: None,
        slack: Some(slack),
    })
}

/// The scores, their type, and how far each may be off.
fn scores(case: &Case, bases: &[Vec<u8>], views: &[Tensor]) -> Result<(DType, Vec<u8>, Vec<f64>)> {
    let specs = views.iter().map(|x| (x.dtype(), x.shape().to_vec()));
    let specs: Vec<Spec> = specs.collect();
    let request = Request::new(case.op.name, specs, &case.outputs, &case.attrs);
    let program = attention::program(&request, sums(case.outputs[0].0))?;
    let (Some(Step::Request(first)), Some(dot)) = (program.steps().first(), find("dot")) else {
        return Err(Error::bad_input("attention begins with a product"));
    };
    let of: Vec<usize> = first.inputs.iter().map(|&value| value as usize).collect();
    let product = Case {
        op: dot,
        inputs: of.iter().map(|&index| case.inputs[index].clone()).collect(),
        outputs: first.outputs.to_vec(),
        attrs: first.attrs.to_vec(),
        ..case.clone()
    };
    let bases: Vec<Vec<u8>> = of.iter().map(|&index| bases[index].clone()).collect();
    let views: Vec<Tensor> = of.iter().map(|&index| views[index].clone()).collect();
    let wide = first.outputs[0].0;
    let answer = match epilogue::has(&first.attrs) {
        true => finished(&product, &bases, &views)?,
        false => super::answer(
            &product,
            &bases,
            &views,
            &dot.tolerance(&[wide; FACTORS], wide),
        )?,
    };
    let growth = wide.epsilon() * (2.0 + (answer.terms as f64).sqrt());
    let errors = answer.slack.unwrap_or_else(|| {
        let magnitudes = answer.magnitudes.into_iter().flatten();
        magnitudes.map(|magnitude| growth * magnitude).collect()
    });
    Ok((wide, answer.bytes, errors))
}

/// The operands with NaN in place of infinities of v: times a weight that is 0 for one and not quite for another.
fn undecided(bases: &[Vec<u8>], views: &[Tensor]) -> Option<Vec<Vec<u8>>> {
    let dtype = views[V].dtype();
    let mut changed = false;
    let mut bytes = Vec::with_capacity(bases[V].len());
    for element in bases[V].chunks_exact(dtype.size() as usize) {
        match float(dtype, element) {
            Some(value) if value.is_infinite() => {
                changed = true;
                push_float(dtype, f64::NAN, &mut bytes);
            }
            _ => bytes.extend_from_slice(element),
        }
    }
    let mut bases = bases.to_vec();
    bases[V] = bytes;
    changed.then_some(bases)
}

fn numbers(dtype: DType, bytes: &[u8]) -> Vec<f64> {
    let elements = bytes.chunks_exact(dtype.size() as usize);
    elements.map(|element| number(dtype, element)).collect()
}

/// Means, and what they were made of.
#[derive(Debug)]
pub(super) struct Means<'a> {
    /// The type of the operands, to which scores and weights may be rounded.
    pub(super) dtype: DType,
    /// Of each row and key.
    pub(super) scores: &'a [f64],
    /// How far each score may be off before that.
    pub(super) errors: &'a [f64],
    /// The operand v, in row-major order: of each batch, key and column.
    pub(super) v: &'a [f64],
    /// The host's results.
    pub(super) means: &'a [f64],
    /// Rows of a batch, keys, columns.
    pub(super) extents: [usize; 3],
    /// Keys whose roundings may go in different directions.
    pub(super) terms: f64,
}

impl Means<'_> {
    /// For each mean how far it may be off. Where weights w are off by up to e of themselves, a mean m of v is by
    /// Σ w e |v| + |m| Σ w e, to first order.
    pub(super) fn slack(&self) -> Vec<f64> {
        let [rows, keys, columns] = self.extents;
        let mut slack = vec![0.0; self.means.len()];
        if slack.is_empty() || keys == 0 {
            return slack;
        }
        let scores = self.scores.chunks_exact(keys);
        let each = scores.zip(self.errors.chunks_exact(keys)).enumerate();
        for ((row, (scores, errors)), slack) in each.zip(slack.chunks_exact_mut(columns)) {
            let weights = self.weights(scores, errors);
            let total: f64 = weights.iter().map(|(weight, error)| weight * error).sum();
            let v = &self.v[row / rows * keys * columns..][..keys * columns];
            for (column, slack) in slack.iter_mut().enumerate() {
                let v = v[column..].iter().step_by(columns).map(|v| v.abs());
                let mean = self.means[row * columns + column].abs();
                *slack = match total < 0.5 {
                    true => {
                        let moved = weights.iter().zip(v);
                        let moved: f64 = moved.map(|((w, error), v)| w * error * v).sum();
                        (moved + mean * total) / (1.0 - total)
                    }
                    // Whatever the weights are, it stays among the elements of v.
                    false => mean + v.fold(0.0, f64::max),
                };
                if !slack.is_finite() {
                    *slack = 0.0;
                }
            }
        }
        slack
    }

    /// The weights of a row, and how far each may be off, as a part of it. All are NaN where the host's are.
    fn weights(&self, scores: &[f64], errors: &[f64]) -> Vec<(f64, f64)> {
        let wide = sums(self.dtype).epsilon();
        let own = self.dtype.epsilon();
        let lowest = self.dtype.row().map_or(0, |row| row.lowest_exponent);
        let smallest = f64::from(lowest).exp2();
        let most = scores.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let total: f64 = scores.iter().map(|score| (score - most).exp()).sum();
        let weight = |(score, error): (&f64, &f64)| {
            let below = score - most;
            let weight = below.exp() / total;
            if weight == 0.0 {
                return (0.0, 0.0);
            }
            let rounded = own + wide * (ROUNDINGS + 2.0 * below.abs() + self.terms.sqrt());
            // Denormals may count as zero.
            let lost = f64::from(u8::from(weight < 2.0 * smallest));
            (
                weight,
                (error + own * score.abs()).exp_m1() + rounded + lost,
            )
        };
        scores.iter().zip(errors).map(weight).collect()
    }
}

/// The elements of a view in row-major order.
///
/// # Errors
/// Those of the host's kernels.
pub(super) fn elements(view: View<'_>) -> Result<Vec<f64>> {
    let mut bytes = vec![0; 8 * view.shape.iter().product::<u64>() as usize];
    let out = Out {
        dtype: DType::F64,
        shape: view.shape,
        bytes: &mut bytes,
    };
    kernels::run("as_type", &[view], &mut [out], &[])?;
    let chunks = bytes.as_chunks().0.iter();
    Ok(chunks.map(|chunk| f64::from_le_bytes(*chunk)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_ops::values::Rng;

    /// The mean of v by the softmax of scores.
    fn mean(scores: &[f64], v: &[f64]) -> f64 {
        let weights: Vec<f64> = scores.iter().map(|score| score.exp()).collect();
        let sum: f64 = weights.iter().zip(v).map(|(weight, v)| weight * v).sum();
        sum / weights.iter().sum::<f64>()
    }

    fn slack_of(dtype: DType, scores: &[f64], error: f64, v: &[f64]) -> f64 {
        let errors = vec![error; scores.len()];
        let means = Means {
            dtype,
            scores,
            errors: &errors,
            v,
            means: &[mean(scores, v)],
            extents: [1, scores.len(), 1],
            terms: scores.len() as f64,
        };
        means.slack()[0]
    }

    fn slack(scores: &[f64], error: f64, v: &[f64]) -> f64 {
        slack_of(DType::F64, scores, error, v)
    }

    #[test]
    fn a_key_that_is_left_out_is_found_though_scores_may_be_rounded() {
        let mut rng = Rng(3);
        for (dtype, keys) in [(DType::BF16, 60), (DType::F16, 300)] {
            let mut found = 0;
            for _ in 0..100 {
                let mut row = |most: f64| -> Vec<f64> {
                    (0..keys).map(|_| rng.between(-most, most)).collect()
                };
                let (scores, v) = (row(1.0), row(1.0));
                let apart = mean(&scores, &v) - mean(&scores[1..], &v[1..]);
                found += u32::from(apart.abs() > slack_of(dtype, &scores, 1e-6, &v));
            }
            assert!(found > 30, "{dtype} {found}");
        }
    }

    #[test]
    fn means_move_as_far_as_is_allowed_and_not_much_less() {
        let (scores, v) = ([0.5, -1.0, 2.0, 1.0], [1.0, -0.5, 0.25, -1.0]);
        let own = mean(&scores, &v);
        for error in [1e-6, 1e-3, 0.05] {
            let allowed = slack(&scores, error, &v);
            let mut most = 0.0f64;
            for signs in 0..16 {
                let moved = |(index, score): (usize, &f64)| match signs >> index & 1 {
                    0 => score + error,
                    _ => score - error,
                };
                let moved: Vec<f64> = scores.iter().enumerate().map(moved).collect();
                most = most.max((mean(&moved, &v) - own).abs());
            }
            assert!(most <= allowed && allowed < 2.0 * most, "{most} {allowed}");
        }
    }

    #[test]
    fn what_is_lost_altogether_stays_among_the_elements() {
        assert_eq!(slack(&[1.0, 1.0], 5.0, &[1.0, -3.0]), 4.0);
        assert_eq!(slack(&[f64::NEG_INFINITY; 2], 0.0, &[1.0, 2.0]), 0.0);
        assert_eq!(slack(&[f64::INFINITY, 0.0], 0.0, &[1.0, 2.0]), 0.0);
        let one = slack(&[0.0, f64::NEG_INFINITY], 1e-3, &[2.0, f64::INFINITY]);
        assert_eq!(one, 0.0);
    }
}
