//! Chain shaders whose log density is that of the state before each step. Those that eXMC 0.3 writes are such: a sampler
//! that takes them at their word draws from something far too wide. They are told by what they answer, and put right.

use super::{
    Runtime,
    chain::{Chain, Counts, Layout, Refusal},
};
use crate::module::Module;
use nx_vulkan_registry::log;
use std::ops::Range;

/// Step sizes that are tried, as multiples of the caller's.
const TRIED: [f64; 4] = [1.0, 0.5, -1.0, 0.25];

/// The outputs of a chain.
type Rows = [Vec<u8>; 4];

impl Runtime {
    /// As [`Runtime::chain`], for a module of unknown making: its log densities are those of its positions in any case.
    ///
    /// # Errors
    /// As [`Runtime::chain`].
    pub fn foreign_chain<T>(
        &self,
        module: &Module,
        chain: &Chain<'_>,
        take: impl FnOnce([&[u8]; 4]) -> T,
    ) -> Result<T, Refusal> {
        let counts = chain.counts()?;
        if !self.lags(module, chain, counts)? {
            return self.chain(module, chain, take);
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
        let [q, p, grad, logp] = self.chain(module, &longer, |parts| parts.map(<[u8]>::to_vec))?;
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

    /// Whether the module's log densities are those of the positions before each step: that of the first row is then
    /// the same whatever the step was. Known once a first row has shown it.
    fn lags(&self, module: &Module, chain: &Chain<'_>, counts: Counts) -> Result<bool, Refusal> {
        if let Some(known) = module.lags.get() {
            return Ok(*known);
        }
        let mut tried: Vec<Rows> = Vec::with_capacity(TRIED.len());
        for factor in TRIED {
            tried.push(self.first_step(module, chain, counts, factor)?);
        }
        let [first, others @ ..] = &tried[..] else {
            return Ok(false);
        };
        let finite = tried
            .iter()
            .all(|rows| rows.iter().all(|bytes| is_finite(bytes, chain)));
        let moved = others.iter().all(|rows| rows[0] != first[0]);
        let same = others.iter().all(|rows| rows[3] == first[3]);
        // A start that tells nothing leaves it to the next one.
        if finite && moved {
            let known = module.lags.get_or_init(|| {
                if same {
                    log::warning(&format!(
                        "{} gives the log density of the state before each step; its rows are put right",
                        module.name()
                    ));
                }
                same
            });
            return Ok(*known);
        }
        Ok(false)
    }

    /// The first chain's first step.
    fn first_step(
        &self,
        module: &Module,
        chain: &Chain<'_>,
        counts: Counts,
        factor: f64,
    ) -> Result<Rows, Refusal> {
        let mut push = chain.push.to_vec();
        push[..4].copy_from_slice(&1u32.to_le_bytes());
        if matches!(chain.layout, Layout::Batch) {
            push[12..16].copy_from_slice(&1u32.to_le_bytes());
        }
        let size = chain.dtype.size() as usize;
        let step = &mut push[16..16 + size];
        let wanted = read(step, chain) * factor;
        match size {
            4 => step.copy_from_slice(&(wanted as f32).to_le_bytes()),
            _ => step.copy_from_slice(&wanted.to_le_bytes()),
        }
        let d = counts.d as usize * size;
        let one = Chain {
            q: &chain.q[..d],
            p: &chain.p[..d],
            extras: &chain.extras[..chain.extras.len() / counts.chains as usize],
            push: &push,
            k: 1,
            ..*chain
        };
        self.chain(module, &one, |parts| parts.map(<[u8]>::to_vec))
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

fn read(bytes: &[u8], chain: &Chain<'_>) -> f64 {
    match chain.dtype.size() {
        4 => f32::from_le_bytes(bytes.try_into().expect("an element")).into(),
        _ => f64::from_le_bytes(bytes.try_into().expect("an element")),
    }
}

fn is_finite(bytes: &[u8], chain: &Chain<'_>) -> bool {
    let mut elements = bytes.chunks_exact(chain.dtype.size() as usize);
    elements.all(|element| read(element, chain).is_finite())
}
