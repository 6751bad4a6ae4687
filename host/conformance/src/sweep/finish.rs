//! How far a product with an epilogue may be from the host's: what becomes of the errors of its sums and of its calls, found by
//! running the ops that follow once more for each, with what it errs in moved by as much as it may err.

use kernels::{Out, View};
use nx_vulkan_abi::{DType, layout::contiguous_strides};
use nx_vulkan_ops::{
    Error, Program, Request, Result, Spec, Step, Value,
    element::{float, push_float},
    find, kernels, split,
};

/// A value of a program, in row-major order.
#[derive(Debug, Clone)]
struct Made {
    spec: Spec,
    bytes: Vec<u8>,
}

/// Which value is moved, by what for each element, and how.
type Moved<'a> = (Value, &'a [f64], Move);

/// How a value is moved by its error.
#[derive(Debug, Clone, Copy)]
enum Move {
    /// So many times.
    By(f64),
    /// Towards 0, and not beyond: functions may be steep there.
    ToZero,
}

/// Results of a request when what errs is moved.
#[derive(Debug)]
pub(super) struct Spread {
    /// All of them, the first one as the host has it.
    pub(super) results: Vec<Vec<u8>>,
    /// For each element the sum over what errs of how far it moves the result.
    pub(super) slack: Vec<f64>,
}

/// The spread of a request that has an epilogue; `inputs` are its operands, `sums` how far each sum may be off, in the type of
/// the sums.
///
/// # Errors
/// Those of the host's kernels.
pub(super) fn spread(
    request: &Request<'_, Spec>,
    inputs: &[View<'_>],
    sums: impl Fn(&Spec, &[u8]) -> Result<Vec<f64>>,
) -> Result<Spread> {
    let program = split::split(request)?.ok_or_else(|| gone("no epilogue"))?;
    let own = evaluate(&program, inputs, None)?;
    let last = |made: &[Made]| made.last().map(|made| made.bytes.clone());
    let first = last(&own).ok_or_else(|| gone("no result"))?;
    let dtype = request.outputs[0].0;
    let elements = first.len() / dtype.size() as usize;
    let mut spread = Spread {
        results: vec![first],
        slack: vec![0.0; elements],
    };
    for (index, (step, made)) in program.steps().iter().zip(&own).enumerate() {
        let errors = match index {
            0 => sums(&made.spec, &made.bytes)?,
            _ => errors(step.op(), made),
        };
        if errors.iter().all(|error| *error == 0.0) {
            continue;
        }
        let value = (program.inputs() + index) as Value;
        let mut most = vec![0.0f64; elements];
        let moves = [1.0, -1.0, 0.5, -0.5].map(Move::By);
        for by in moves.into_iter().chain([Move::ToZero]) {
            let all = evaluate(&program, inputs, Some((value, &errors, by)))?;
            let moved = last(&all).ok_or_else(|| gone("no result"))?;
            let distances = distances(dtype, &spread.results[0], &moved);
            most.iter_mut()
                .zip(distances)
                .for_each(|(most, distance)| *most = most.max(distance));
            spread.results.push(moved);
        }
        spread
            .slack
            .iter_mut()
            .zip(most)
            .for_each(|(slack, most)| *slack += most);
    }
    Ok(spread)
}

fn gone(what: &str) -> Error {
    Error::bad_input(format!("a product with an epilogue has {what}"))
}

/// How far a call may be off: what its op may, and one rounding, since a driver may do two calls in one.
fn errors(op: &str, made: &Made) -> Vec<f64> {
    let dtype = made.spec.0;
    let size = dtype.size() as usize;
    let bound = find(op).filter(|op| dtype.is_float() && !matches!(op.name, "fill" | "as_type"));
    let Some(op) = bound else {
        return vec![0.0; made.bytes.len() / size];
    };
    let ulp = match dtype == DType::F64 {
        true => op.bound.ulp.1,
        false => op.bound.ulp.0,
    };
    let epsilon = dtype.register().epsilon();
    let values = made
        .bytes
        .chunks_exact(size)
        .map(|bytes| float(dtype, bytes));
    values
        .map(|value| value.unwrap_or(0.0).abs() * epsilon * ulp.max(1) as f64)
        .map(|error| if error.is_finite() { error } else { 0.0 })
        .collect()
}

fn distances(dtype: DType, own: &[u8], moved: &[u8]) -> Vec<f64> {
    let size = dtype.size() as usize;
    let pairs = own.chunks_exact(size).zip(moved.chunks_exact(size));
    let distance = |(own, moved): (&[u8], &[u8])| match (float(dtype, own), float(dtype, moved)) {
        (Some(own), Some(moved)) => (own - moved).abs(),
        _ => 0.0,
    };
    let distances = pairs.map(distance);
    distances
        .map(|distance| if distance.is_finite() { distance } else { 0.0 })
        .collect()
}

/// What the steps of a program make.
fn evaluate(
    program: &Program<'_>,
    inputs: &[View<'_>],
    moved: Option<Moved<'_>>,
) -> Result<Vec<Made>> {
    let mut all: Vec<Made> = Vec::new();
    for step in program.steps() {
        let Step::Request(step) = step else {
            return Err(gone("a view"));
        };
        let strides: Vec<Vec<i64>> = all
            .iter()
            .map(|made| contiguous_strides(&made.spec.1))
            .collect();
        let view = |value: &Value| match (*value as usize).checked_sub(inputs.len()) {
            None => inputs[*value as usize],
            Some(index) => View {
                dtype: all[index].spec.0,
                shape: &all[index].spec.1,
                strides: &strides[index],
                offset: 0,
                bytes: &all[index].bytes,
            },
        };
        let operands: Vec<View<'_>> = step.inputs.iter().map(view).collect();
        let spec = step.outputs[0].clone();
        let elements: u64 = spec.1.iter().product();
        let mut bytes = vec![0; (elements * spec.0.size()) as usize];
        let mut outs = [Out {
            dtype: spec.0,
            shape: &spec.1,
            bytes: &mut bytes,
        }];
        kernels::run(&step.op, &operands, &mut outs, &step.attrs)?;
        let mut made = Made { spec, bytes };
        let number = (inputs.len() + all.len()) as Value;
        if let Some((_, errors, by)) = moved.filter(|(value, ..)| *value == number) {
            shift(&mut made, errors, by);
        }
        all.push(made);
    }
    Ok(all)
}

fn shift(made: &mut Made, errors: &[f64], by: Move) {
    let moved = |value: f64, error: f64| match by {
        Move::By(times) => value + error * times,
        Move::ToZero => value - error.min(value.abs()).copysign(value),
    };
    let dtype = made.spec.0;
    let mut bytes = Vec::with_capacity(made.bytes.len());
    let elements = made.bytes.chunks_exact(dtype.size() as usize);
    for (element, error) in elements.zip(errors) {
        match float(dtype, element) {
            Some(value) if value.is_finite() => push_float(dtype, moved(value, *error), &mut bytes),
            _ => bytes.extend_from_slice(element),
        }
    }
    made.bytes = bytes;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_that_may_be_zero_is_moved_there() {
        let of = |values: [f32; 3]| Made {
            spec: (DType::F32, vec![3]),
            bytes: values.iter().flat_map(|x| x.to_ne_bytes()).collect(),
        };
        for (by, expected) in [
            (Move::ToZero, [0.0, -3.0, 0.0]),
            (Move::By(-0.5), [0.0, -4.5, -1.0]),
        ] {
            let mut made = of([1.0, -4.0, -0.0]);
            shift(&mut made, &[2.0, 1.0, 2.0], by);
            assert_eq!(made.bytes, of(expected).bytes, "{by:?}");
        }
    }
}
