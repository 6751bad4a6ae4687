//! Leapfrog steps of nine families of distributions, for Hamiltonian Monte Carlo.

use super::shared::{ELEMENTWISE, some};
use crate::{
    kernels::{
        kernel::Kernel,
        leapfrog::{self, Family},
    },
    layout::Layout,
    op::{Contract, Gives, Op},
    problems::Problem,
    tolerance::{Bound, Growth},
    values::Domain::{InverseMass, Scalar, State},
};
use nx_vulkan_abi::{DType, DTypeSet};

/// Steps of an op that is not told how many.
const STEPS: u64 = 32;

const WIDE: DTypeSet = DTypeSet::of(&[DType::F32, DType::F64]);

const LEAPFROG: Contract = Contract {
    title: "Leapfrog steps",
    operands: &["q", "p", "inv_mass", "scalars"],
    results: &["q_chain", "p_chain", "grad_chain", "logp_chain"],
    infer: |_, inputs, _| match inputs[0].1[..] {
        [chains, extent] => Ok((inputs[0].0, vec![chains, STEPS, extent])),
        ref other => Err(format!("q must have shape {{chains, d}}, got: {other:?}")),
    },
    all: |_, first, _| {
        let logp = (first.0, first.1.iter().take(2).copied().collect());
        vec![first.clone(), first.clone(), first, logp]
    },
    check: |op, inputs, outputs, _| leapfrog::check(op.name, inputs, outputs),
    operand_shapes: |op, shape| {
        let parameters = Family::of(op.name).map_or(0, |family| family.parameters.len() as u64);
        vec![
            shape.to_vec(),
            shape.to_vec(),
            shape.to_vec(),
            vec![1 + parameters],
        ]
    },
    problems: |op, layout, _, rng| {
        let (all, count) = match layout {
            Layout::Contiguous => (CHAINS, CHAINS.len()),
            Layout::Empty => (EMPTY, 1),
            Layout::Scalar => (SCALAR, 1),
            Layout::Large => (LARGE, LARGE.len()),
            Layout::Transposed
            | Layout::Broadcast
            | Layout::Sliced
            | Layout::Reversed
            | Layout::Deep => (&CHAINS[1..], 2),
        };
        let problem = |[chains, steps, extent]: [u64; 3]| Problem {
            inputs: op.operand_shapes(&[chains, extent]),
            output: vec![chains, steps, extent],
            attrs: Vec::new(),
        };
        some(all, count, rng).into_iter().map(problem).collect()
    },
    terms: |_, output, _| output[1],
    // The results have 32 steps of each chain.
    square: |power| vec![1 << (power / 2).saturating_sub(5), 1 << power.div_ceil(2)],
    ..ELEMENTWISE
};

/// Chains, steps and coordinates. No chains are the only empty problem that keeps the contract.
const CHAINS: &[[u64; 3]] = &[[1, 1, 1], [1, 32, 3], [3, 5, 17], [2, 7, 257], [5, 3, 64]];
const EMPTY: &[[u64; 3]] = &[[0, 3, 5]];
const SCALAR: &[[u64; 3]] = &[[1, 4, 1]];
const LARGE: &[[u64; 3]] = &[[40, 24, 1000], [2, 3, 70_001]];

const fn row(name: &'static str, doc: &'static str) -> Op {
    Op {
        name,
        doc,
        contract: &LEAPFROG,
        takes: &[WIDE, WIDE, WIDE, WIDE],
        gives: Gives::Operand,
        bound: Bound::reduces(Growth::Steps),
        domains: &[State, State, InverseMass, Scalar],
        partial: None,
        lane: None,
        kernel: Kernel::Whole(leapfrog::run),
    }
}

pub(super) const OPS: &[Op] = &[
    row("leapfrog_normal", "scalars ε, μ, σ"),
    row("leapfrog_exponential", "scalars ε, λ"),
    row("leapfrog_studentt", "scalars ε, μ, σ, ν"),
    row("leapfrog_cauchy", "scalars ε, loc, scale"),
    row("leapfrog_halfnormal", "scalars ε, σ"),
    row("leapfrog_weibull", "scalars ε, k, λ"),
    row("leapfrog_beta", "scalars ε, α, β"),
    row("leapfrog_gamma", "scalars ε, α, β (rate)"),
    row("leapfrog_lognormal", "scalars ε, μ, σ"),
];
