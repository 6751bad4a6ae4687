//! Leapfrog steps: the contract of the `leapfrog_` ops, and plain loops that keep it. The densities are in `density`.

mod density;
mod real;
#[cfg(test)]
mod tests;

pub use density::{FAMILIES, Family};

use nx_vulkan_abi::dtype::{DType, DTypeSet};

use super::element::Register;
use super::operand::Operand;
use crate::{
    attrs::Attr,
    view::{Desc, Out, Outcome, View},
};
use density::Density;
use real::Real;

const FLOATS: DTypeSet = DTypeSet::of(&[DType::F32, DType::F64]);

/// Checks types and shapes of an op that has its number of operands and results.
pub(crate) fn check(op: &str, inputs: &[Desc], outputs: &[Desc]) -> Outcome {
    let family = Family::of(op).ok_or("there is no such family")?;
    let ([q, _, _, scalars], [q_chain, _, _, _]) = (inputs, outputs) else {
        return Err("expected 4 operands and 4 results".to_owned());
    };
    let all = || inputs.iter().chain(outputs);
    if all().any(|desc| desc.dtype != q.dtype) || !FLOATS.has(q.dtype) {
        return Err("all operands and results must be f32, or all f64".to_owned());
    }
    let &[chains, extent] = q.shape else {
        return Err(format!(
            "q must have shape {{chains, d}}, got {:?}",
            q.shape
        ));
    };
    let &[_, steps, _] = q_chain.shape else {
        return Err(format!(
            "q_chain must have shape {{chains, K, d}}, got {:?}",
            q_chain.shape
        ));
    };
    if scalars.shape != [1 + family.parameters.len() as u64] {
        return Err(format!(
            "the scalars must be epsilon, {}: shape [{}], got {:?}",
            family.parameters.join(", "),
            1 + family.parameters.len(),
            scalars.shape
        ));
    }
    let (state, chain, logp) = ([chains, extent], [chains, steps, extent], [chains, steps]);
    let expected: [(&str, &Desc, &[u64]); 6] = [
        ("p", &inputs[1], &state),
        ("inv_mass", &inputs[2], &state),
        ("q_chain", &outputs[0], &chain),
        ("p_chain", &outputs[1], &chain),
        ("grad_chain", &outputs[2], &chain),
        ("logp_chain", &outputs[3], &logp),
    ];
    for (name, desc, shape) in expected {
        if desc.shape != shape {
            return Err(format!(
                "{name} must have shape {shape:?}, got {:?}",
                desc.shape
            ));
        }
    }
    if steps == 0 || extent == 0 {
        return Err("K and d must be at least 1".to_owned());
    }
    Ok(())
}

/// Takes the steps. The request has passed [`check`], and no result is empty.
pub(crate) fn run(op: &str, inputs: &[View], outputs: &mut [Out], _attrs: &[Attr]) -> Outcome {
    let family = Family::of(op).ok_or("there is no such family")?;
    match inputs.first().map(|q| q.dtype) {
        Some(DType::F32) => chains::<f32>(family, inputs, outputs),
        Some(DType::F64) => chains::<f64>(family, inputs, outputs),
        _ => Err("no kernel".to_owned()),
    }
}

fn chains<T: Real + Register>(family: &Family, inputs: &[View], outputs: &mut [Out]) -> Outcome {
    let [q, p, inv_mass, scalars] = inputs else {
        return Err("expected 4 operands".to_owned());
    };
    let [q, p, inv_mass, scalars] = [q, p, inv_mass, scalars].map(read::<T>);
    let &[chains, steps, extent] = outputs[0].shape else {
        return Err("expected a chain".to_owned());
    };
    let (chains, steps, extent) = (chains as usize, steps as usize, extent as usize);
    let density = Density::new(family, &scalars[1..]);
    let mut rows = vec![vec![T::default(); chains * steps * extent]; 3];
    let mut logp = vec![Sum::default(); chains * steps];
    for chain in 0..chains {
        for i in 0..extent {
            let own = chain * extent + i;
            let state = State {
                q: q[own],
                p: p[own],
                drift: scalars[0] * inv_mass[own],
            };
            let points = state.walk(&density, scalars[0], steps);
            for (step, point) in points.enumerate() {
                let row = chain * steps + step;
                for (rows, value) in rows.iter_mut().zip([point.q, point.p, point.gradient]) {
                    rows[row * extent + i] = value;
                }
                logp[row].add(point.logp.wide());
            }
        }
    }
    let logp: Vec<T> = logp.iter().map(|sum| T::of(sum.total())).collect();
    for (out, values) in outputs.iter_mut().zip(rows.iter().chain([&logp])) {
        T::store(values, out.dtype, out.bytes);
    }
    Ok(())
}

fn read<T: Real + Register>(view: &View) -> Vec<T> {
    let operand = Operand::new(view, view.shape, view.strides.to_vec());
    let mut values = vec![T::default(); operand.count() as usize];
    operand.gather(0, 0, &mut values);
    values
}

/// A sum that carries the rounding errors of its additions along (Knuth 4.2.2).
#[derive(Debug, Clone, Copy, Default)]
struct Sum {
    value: f64,
    error: f64,
}

impl Sum {
    fn add(&mut self, term: f64) {
        let value = self.value + term;
        let part = value - self.value;
        self.error += (self.value - (value - part)) + (term - part);
        self.value = value;
    }

    fn total(&self) -> f64 {
        if self.value.is_finite() {
            self.value + self.error
        } else {
            self.value
        }
    }
}

/// One coordinate.
struct State<T> {
    q: T,
    p: T,
    /// Epsilon times the inverse mass.
    drift: T,
}

/// One coordinate after a step, with its term of the log density.
struct Point<T> {
    q: T,
    p: T,
    gradient: T,
    logp: T,
}

impl<T: Real> State<T> {
    /// The points after each of `steps` steps. The gradient after one step is that before the next.
    fn walk(
        mut self,
        density: &Density<T>,
        epsilon: T,
        steps: usize,
    ) -> impl Iterator<Item = Point<T>> {
        let half_step = T::of(0.5) * epsilon;
        let mut gradient = density.at(self.q).gradient;
        (0..steps).map(move |_| {
            self.p = self.p + half_step * gradient;
            self.q = self.q + self.drift * self.p;
            let value = density.at(self.q);
            gradient = value.gradient;
            self.p = self.p + half_step * gradient;
            Point {
                q: self.q,
                p: self.p,
                gradient,
                logp: value.logp,
            }
        })
    }
}
