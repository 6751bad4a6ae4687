//! The order in which kernels are asked for a request, with a reason for each that is not.

use super::{
    NUMERICS,
    config::{Fallback, Rule, Use},
    table::{KernelEntry, Table},
};
use crate::DType;
use nx_vulkan_abi::{DTypeSet, DeviceInfo, Features};

/// One kernel that could run a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Candidate {
    /// Which kernel.
    pub kernel: CandidateKernel,
    /// Whether it is asked.
    pub outcome: CandidateOutcome,
}

/// A kernel by its place.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CandidateKernel {
    /// Index in [`Table::packs`], index in [`super::LoadedPack::kernels`].
    Pack(usize, usize),
    /// The CPU kernel.
    Host,
}

/// Whether a kernel is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// It is asked, in the order of the list.
    Considered,
    /// It is not, for this reason.
    Skipped(String),
}

/// The parts of a request that selection looks at.
#[derive(Clone, Copy)]
pub struct Asked<'a> {
    /// Name of the op.
    pub op: &'a str,
    /// Type and shape of each input.
    pub inputs: &'a [(DType, &'a [u64])],
    /// Type and shape of each output.
    pub outputs: &'a [(DType, &'a [u64])],
    /// The device it would run on.
    pub device: &'a DeviceInfo<'a>,
    /// How long the kernel at (index of its pack, index in the pack) takes for such a request, in microseconds,
    /// where that was measured.
    pub measured: &'a dyn Fn(usize, usize) -> Option<f64>,
}

impl Table {
    /// Every kernel of the op and the host's, in the order in which they are asked: by the registry's rule for
    /// the op, then rank, pack priority, pack id and kernel id. The host comes last unless a rule puts it earlier.
    pub fn candidates(&self, asked: &Asked<'_>) -> Vec<Candidate> {
        let op = asked.op;
        let rule = self.config.rules.iter().find(|rule| rule.applies(asked));
        let kernels = self.by_op.get(op).map_or(&[][..], Vec::as_slice);
        let mut list: Vec<(usize, Candidate)> = kernels
            .iter()
            .map(|&(pack, kernel)| {
                let place = rule.map_or(Some(0), |rule| self.place(rule, pack, kernel));
                let skip = self.skip(pack, kernel, asked).or_else(|| {
                    let line = self.line(rule.filter(|_| place.is_none())?.at.start);
                    Some(format!("{line}: the rule for `{op}` does not use it"))
                });
                let kernel = CandidateKernel::Pack(pack, kernel);
                (
                    place.unwrap_or(usize::MAX - 1),
                    Candidate {
                        kernel,
                        outcome: skip.into(),
                    },
                )
            })
            .collect();
        let place =
            rule.and_then(|rule| rule.uses.iter().position(|(entry, _)| *entry == Use::Host));
        let forbidden = (self.fallback == Fallback::Error && place.is_none()).then(|| {
            format!(
                "{}: fallback = \"error\"",
                self.line_or_default(self.config.fallback_at)
            )
        });
        let host = Candidate {
            kernel: CandidateKernel::Host,
            outcome: forbidden.into(),
        };
        list.push((place.unwrap_or(usize::MAX), host));
        // Stable: within one place the order of the index holds.
        list.sort_by_key(|(place, _)| *place);
        list.into_iter().map(|(_, candidate)| candidate).collect()
    }

    /// Position of the first entry of the rule's `use` that covers the kernel.
    fn place(&self, rule: &Rule, pack: usize, kernel: usize) -> Option<usize> {
        let pack = &self.packs[pack];
        let kernel = &pack.kernels[kernel];
        let own = |entry: &Use| match entry {
            Use::Kernel(id, name) => *id == pack.id && *name == kernel.id,
            Use::Pack(id) => *id == pack.id,
            Use::Host | Use::AnyPack => false,
        };
        // A kernel named after `*` is still asked where it is named.
        let named = rule.uses.iter().position(|(entry, _)| own(entry));
        named.or_else(|| {
            rule.uses
                .iter()
                .position(|(entry, _)| *entry == Use::AnyPack)
        })
    }

    fn skip(&self, pack: usize, kernel: usize, asked: &Asked<'_>) -> Option<String> {
        let pack = &self.packs[pack];
        let kernel = &pack.kernels[kernel];
        let denial = self.config.denials.iter().find(|denial| {
            denial.pack == pack.id
                && denial
                    .op
                    .as_ref()
                    .is_none_or(|pattern| glob(pattern, asked.op))
                && denial
                    .version
                    .as_ref()
                    .is_none_or(|range| range.matches(&pack.version))
        });
        if let Some(denial) = denial {
            return Some(format!(
                "{}: denied: {}",
                self.line(denial.at.start),
                denial.reason
            ));
        }
        types_missing("input", kernel.inputs, asked.inputs)
            .or_else(|| types_missing("output", kernel.outputs, asked.outputs))
            .or_else(|| features_missing(kernel.needs, asked.device.features))
            .or_else(|| self.too_loose(kernel))
    }

    fn too_loose(&self, kernel: &KernelEntry) -> Option<String> {
        let name = |n| NUMERICS.iter().find(|row| row.1 == n).map(|row| row.0);
        let Some(own) = name(kernel.numerics) else {
            return Some(format!(
                "this host does not know its numerics, {}",
                kernel.numerics.0
            ));
        };
        let weakest = self.config.numerics;
        (kernel.numerics > weakest).then(|| {
            let line = self.line_or_default(self.config.numerics_at);
            format!(
                "{line}: numerics = \"{}\", it is {own}",
                name(weakest).unwrap_or_default()
            )
        })
    }

    fn line(&self, at: usize) -> String {
        self.config.source.line(at)
    }

    fn line_or_default(&self, at: Option<usize>) -> String {
        at.map_or_else(|| "default".to_owned(), |at| self.line(at))
    }
}

impl From<Option<String>> for CandidateOutcome {
    fn from(reason: Option<String>) -> CandidateOutcome {
        reason.map_or(CandidateOutcome::Considered, CandidateOutcome::Skipped)
    }
}

impl Rule {
    /// Whether the name matches and, where types are given, one of them occurs in the request.
    fn applies(&self, asked: &Asked<'_>) -> bool {
        let mut types = asked.inputs.iter().chain(asked.outputs).map(|o| o.0);
        glob(&self.name, asked.op)
            && self
                .dtypes
                .is_none_or(|set| types.any(|dtype| set.has(dtype)))
    }
}

fn types_missing(side: &str, set: DTypeSet, asked: &[(DType, &[u64])]) -> Option<String> {
    let (missing, _) = asked.iter().find(|&&(dtype, _)| !set.has(dtype))?;
    let known: Vec<&str> = DType::all()
        .filter(|&d| set.has(d))
        .map(DType::name)
        .collect();
    Some(format!(
        "{side} {missing} is not one of {}",
        known.join(", ")
    ))
}

fn features_missing(needs: Features, device: Features) -> Option<String> {
    if device.has(needs) {
        return None;
    }
    let missing = Features(needs.0 & !device.0);
    let known = missing.names();
    let names = if known.is_empty() {
        "a feature this host does not know".to_owned()
    } else {
        known.join(", ")
    };
    Some(format!("the device lacks {names}"))
}

/// Whether `name` is `pattern`, in which `*` stands for any text.
pub(super) fn glob(pattern: &str, name: &str) -> bool {
    let Some((start, rest)) = pattern.split_once('*') else {
        return pattern == name;
    };
    let Some(name) = name.strip_prefix(start) else {
        return false;
    };
    (0..=name.len())
        .filter(|&at| name.is_char_boundary(at))
        .any(|at| glob(rest, &name[at..]))
}

#[cfg(test)]
mod tests;
