//! Chain shaders whose log density is that of the state before each step. Those that eXMC 0.3 writes are such: a sampler
//! that takes them at their word draws from something far too wide. They are told by what they answer, and put right.

use crate::{Chain, Refusal, run};
use nx_vulkan_abi::DType;
use nx_vulkan_host::{Module, Runtime};
use std::{
    iter::successors,
    ops::Range,
    sync::{
        OnceLock,
        atomic::{AtomicU32, Ordering},
    },
};

/// Each step that is tried is so much longer than the one before it; the first is the caller's.
const GROWTH: f64 = 8.0;
/// Steps that are tried.
const TRIES: usize = 9;
/// Log densities that are so many roundings apart differ for certain.
const CLEAR: f64 = 64.0;
/// Calls that tell nothing, after which no more are asked.
const PATIENCE: u32 = 16;

/// Whether a module, as a chain shader, gives the log density of the state before each step.
#[derive(Debug, Default)]
struct Lag {
    known: OnceLock<bool>,
    undecided: AtomicU32,
}

/// As [`run`], for a module of unknown making: its log densities are those of its positions in any case.
///
/// # Errors
/// As [`run`].
pub fn run_foreign<T>(
    runtime: &Runtime,
    module: &Module,
    chain: &Chain<'_>,
    take: impl FnOnce([&[u8]; 4]) -> T,
) -> Result<T, Refusal> {
    let counts = chain.counts()?;
    if !lags(runtime, module, chain)? {
        return run(runtime, module, chain, take);
    }
    let Some(k) = chain.k.checked_add(1) else {
        return Err(Refusal::BadInput);
    };
    let mut push = chain.push.to_vec();
    push[..4].copy_from_slice(&k.to_le_bytes());
    let longer = Chain {
        push: &push,
        k,
        ..*chain
    };
    let [q, p, grad, logp] = run(runtime, module, &longer, |parts| parts.map(<[u8]>::to_vec))?;
    let size = chain.dtype.size() as usize;
    let (d, rows) = (counts.d as usize * size, chain.k as usize);
    let first = |bytes, row| part(bytes, rows + 1, row, 0..rows);
    let rows = [
        first(&q, d),
        first(&p, d),
        first(&grad, d),
        part(&logp, rows + 1, size, 1..rows + 1),
    ];
    Ok(take([&rows[0], &rows[1], &rows[2], &rows[3]]))
}

/// Whether the module's log densities are those of the positions before each step. Known once a step has moved one
/// clearly: then it is that of the start or that of the end, and a step of size 0 tells what those are. Where no step
/// does, it makes no difference for this call, and the next one is asked.
fn lags(runtime: &Runtime, module: &Module, chain: &Chain<'_>) -> Result<bool, Refusal> {
    let Some(Lag { known, undecided }) = module.note() else {
        return Ok(false);
    };
    if let Some(known) = known.get() {
        return Ok(*known);
    }
    let before = one_step(runtime, module, chain, 0.0)?.1;
    if !before.iter().any(|value| value.is_finite()) {
        return Ok(false);
    }
    for factor in successors(Some(1.0), |factor| Some(factor * GROWTH)).take(TRIES) {
        let (q, tried) = one_step(runtime, module, chain, factor)?;
        if !tried.iter().any(|value| value.is_finite()) {
            break;
        }
        let after = one_step(runtime, module, &Chain { q: &q, ..*chain }, 0.0)?.1;
        let Some(lags) = verdict([&before, &tried, &after], rounding(chain.dtype)) else {
            continue;
        };
        return Ok(*known.get_or_init(|| {
            if lags {
                log::warn!(
                    "{} gives the log density of the state before each step; its rows are put right",
                    module.name()
                );
            }
            lags
        }));
    }
    if undecided.fetch_add(1, Ordering::Relaxed) >= PATIENCE {
        return Ok(*known.get_or_init(|| false));
    }
    Ok(false)
}

/// Positions and log densities of all chains after one step of `factor` times the caller's size.
fn one_step(
    runtime: &Runtime,
    module: &Module,
    chain: &Chain<'_>,
    factor: f64,
) -> Result<(Vec<u8>, Vec<f64>), Refusal> {
    let mut push = chain.push.to_vec();
    push[..4].copy_from_slice(&1u32.to_le_bytes());
    let size = chain.dtype.size() as usize;
    let step = &mut push[16..16 + size];
    let wanted = if factor == 0.0 {
        0.0
    } else {
        read(step, chain.dtype) * factor
    };
    match size {
        4 => step.copy_from_slice(&(wanted as f32).to_le_bytes()),
        _ => step.copy_from_slice(&wanted.to_le_bytes()),
    }
    let one = Chain {
        push: &push,
        k: 1,
        ..*chain
    };
    run(runtime, module, &one, |[q, _, _, logp]| {
        let values = logp.chunks_exact(size);
        let values = values.map(|value| read(value, chain.dtype)).collect();
        (q.to_vec(), values)
    })
}

/// Whether `tried`, the log densities that came with a step, are those `before` it; `None` where they may be either's.
fn verdict([before, tried, after]: [&[f64]; 3], rounding: f64) -> Option<bool> {
    let mut verdict = None;
    for ((&before, &tried), &after) in before.iter().zip(tried).zip(after) {
        let gap = (after - before).abs();
        let clear = CLEAR * rounding * before.abs().max(after.abs());
        if !gap.is_finite() || gap <= clear {
            continue;
        }
        let lags = (tried - before).abs() <= gap / 4.0;
        let is_current = (tried - after).abs() <= gap / 4.0;
        if lags == is_current || verdict.is_some_and(|other| other != lags) {
            return None;
        }
        verdict = Some(lags);
    }
    verdict
}

fn rounding(dtype: DType) -> f64 {
    match dtype.size() {
        4 => f32::EPSILON.into(),
        _ => f64::EPSILON,
    }
}

/// The rows `wanted` of each chain, whose rows follow each other.
fn part(bytes: &[u8], rows: usize, row: usize, wanted: Range<usize>) -> Vec<u8> {
    let chains = bytes.chunks_exact(rows * row);
    chains
        .flat_map(|chain| &chain[wanted.start * row..wanted.end * row])
        .copied()
        .collect()
}

fn read(bytes: &[u8], dtype: DType) -> f64 {
    match dtype.size() {
        4 => f32::from_le_bytes(bytes.try_into().expect("an element")).into(),
        _ => f64::from_le_bytes(bytes.try_into().expect("an element")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(before: &[f64], tried: &[f64], after: &[f64]) -> Option<bool> {
        verdict([before, tried, after], f64::EPSILON)
    }

    #[test]
    fn only_a_clear_difference_tells() {
        assert_eq!(told(&[-1.0], &[-1.0], &[-2.0]), Some(true));
        assert_eq!(told(&[-1.0], &[-2.0], &[-2.0]), Some(false));
        assert_eq!(told(&[-1.0], &[-1.5], &[-2.0]), None);
        assert_eq!(told(&[-1.0], &[-3.0], &[-2.0]), None);
        assert_eq!(told(&[-1.0], &[-1.0], &[-1.0]), None);
        assert_eq!(told(&[0.0], &[0.0], &[0.0]), None);
        assert_eq!(told(&[-1.0], &[-1.0], &[-1.0 - f64::EPSILON]), None);
        assert_eq!(told(&[-1e9], &[-1e9], &[-1e9 - 1e-7]), None);
        for lost in [f64::NAN, f64::NEG_INFINITY] {
            assert_eq!(told(&[lost], &[lost], &[-1.0]), None);
            assert_eq!(told(&[-1.0], &[-1.0], &[lost]), None);
            assert_eq!(told(&[-1.0], &[lost], &[-2.0]), None);
        }
    }

    #[test]
    fn one_chain_speaks_for_all_unless_another_contradicts() {
        assert_eq!(told(&[-1.0; 2], &[-1.0; 2], &[-1.0, -2.0]), Some(true));
        assert_eq!(told(&[-1.0; 2], &[-1.0, -2.0], &[-1.0, -2.0]), Some(false));
        assert_eq!(told(&[-1.0; 2], &[-1.0, -2.0], &[-2.0; 2]), None);
    }
}
