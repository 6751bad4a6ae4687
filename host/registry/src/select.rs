//! The order in which kernels are asked for a request, with a reason for each that is not.

use super::{
    asked::{Asked, CandidateKernel, features_missing},
    config::{Fallback, Order},
    kernel::KernelEntry,
    rules::{Rule, Use},
    schema::CLASSES,
    table::Table,
};
use nx_vulkan_abi::{DType, DTypeSet};
use std::cmp::{Ordering, Reverse};

/// One kernel that could run a request.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// Which kernel.
    pub kernel: CandidateKernel,
    /// Whether it is asked.
    pub outcome: CandidateOutcome,
    /// Where the registry says so: `registry.toml:27`; `None` where it says nothing about the kernel.
    pub line: Option<String>,
    /// Its measured time in microseconds, where that puts it before or behind another one.
    pub measured: Option<f64>,
}

/// Whether a kernel is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CandidateOutcome {
    /// It is asked, in the order of the list.
    Considered,
    /// It is not, for this reason.
    Skipped(String),
}

/// A rule that names the op of a request.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
pub struct RuleVerdict {
    /// Where it stands: `registry.toml:27`.
    pub line: String,
    /// Why it does not decide about the request; `None` for the one that does.
    pub unfit: Option<String>,
}

impl Table {
    /// Every kernel of the op and the host's, in the order in which they are asked: by what `defaults.order` lists,
    /// in that order, then by names. The host comes last unless a rule or a measured time puts it earlier.
    pub fn candidates(&self, asked: &Asked<'_>) -> Vec<Candidate> {
        let rule = self.rule(asked);
        let kernels = self.by_op.get(asked.op).map_or(&[][..], Vec::as_slice);
        let mut list: Vec<(Standing<'_>, Candidate)> = kernels
            .iter()
            .map(|&(pack, kernel)| self.kernel_candidate(rule, pack, kernel, asked))
            .collect();
        // A time says something beside another one: after a rebuild a pack has none, and the host would win for that.
        let compared = list.iter().any(|(kernel, _)| kernel.measured.is_finite());
        list.push(self.host_candidate(rule, asked, compared));
        let order = &self.config.order;
        list.sort_by(|(a, _), (b, _)| a.compare(b, order));
        let counts = |own: &Standing<'_>| {
            let mut others = list.iter().map(|(other, _)| own.differs(other, order));
            others.any(|criterion| criterion == Some(&Order::Measured))
        };
        let counted: Vec<bool> = list.iter().map(|(own, _)| counts(own)).collect();
        let all = list.into_iter().zip(counted);
        all.map(|((own, candidate), counts)| Candidate {
            measured: Some(own.measured).filter(|time| counts && time.is_finite()),
            ..candidate
        })
        .collect()
    }

    /// The rules that name the op, up to the one that decides about the request.
    pub fn rules(&self, asked: &Asked<'_>) -> Vec<RuleVerdict> {
        let mut verdicts = Vec::new();
        for rule in self.config.rules.iter().filter(|rule| rule.names(asked.op)) {
            let unfit = rule.unfit(asked);
            let decides = unfit.is_none();
            let line = self.line(rule.at.start);
            verdicts.push(RuleVerdict { line, unfit });
            if decides {
                break;
            }
        }
        verdicts
    }

    fn rule(&self, asked: &Asked<'_>) -> Option<&Rule> {
        let mut rules = self.config.rules.iter();
        rules.find(|rule| rule.names(asked.op) && rule.unfit(asked).is_none())
    }

    fn kernel_candidate(
        &self,
        rule: Option<&Rule>,
        pack: usize,
        kernel: usize,
        asked: &Asked<'_>,
    ) -> (Standing<'_>, Candidate) {
        let place = rule.map(|rule| self.place(rule, pack, kernel));
        let used = place.flatten();
        let skip = self.skip(pack, kernel, asked).or_else(|| {
            let line = self.line(rule.filter(|_| used.is_none())?.at.start);
            let why = format!("the rule for `{}` does not use it", asked.op);
            Some(Skip::by(line, why))
        });
        let asked_for = skip.is_none();
        let (owner, entry) = (&self.packs[pack], &self.packs[pack].kernels[kernel]);
        let kernel = CandidateKernel::Pack(pack, kernel);
        let standing = Standing {
            rule: match place {
                None => 0,
                Some(place) => place.map_or(usize::MAX - 1, |(index, _)| index),
            },
            measured: asked.time(kernel, asked_for),
            rank: Reverse(i64::from(entry.rank)),
            priority: Reverse(owner.priority),
            name: Some((&owner.id, &entry.id)),
        };
        let (outcome, line) = match skip {
            Some(skip) => (CandidateOutcome::Skipped(skip.reason), skip.line),
            None => {
                let line = used.map(|(_, at)| self.line(at));
                (CandidateOutcome::Considered, line)
            }
        };
        (
            standing,
            Candidate {
                kernel,
                outcome,
                line,
                measured: None,
            },
        )
    }

    fn host_candidate(
        &self,
        rule: Option<&Rule>,
        asked: &Asked<'_>,
        compared: bool,
    ) -> (Standing<'_>, Candidate) {
        let uses = rule.map_or(&[][..], |rule| rule.uses.as_slice());
        let place = uses.iter().position(|(entry, _)| *entry == Use::Host);
        // A rule that does not name the host leaves it for the case that all others decline.
        let last = rule.is_some() && place.is_none();
        let forbidden = place.is_none() && self.fallback == Fallback::Error;
        let standing = Standing {
            rule: place.unwrap_or(if last { usize::MAX } else { 0 }),
            measured: asked.time(CandidateKernel::Host, compared && !last && !forbidden),
            rank: Reverse(i64::MIN),
            priority: Reverse(i64::MIN),
            name: None,
        };
        let (outcome, line) = match place {
            Some(index) => (
                CandidateOutcome::Considered,
                Some(self.line(uses[index].1.start)),
            ),
            None if forbidden => {
                let line = self.line_or_default(self.config.fallback_at);
                let skip = Skip::by(line, "fallback = \"error\"".to_owned());
                (CandidateOutcome::Skipped(skip.reason), skip.line)
            }
            None => (CandidateOutcome::Considered, None),
        };
        let kernel = CandidateKernel::Host;
        (
            standing,
            Candidate {
                kernel,
                outcome,
                line,
                measured: None,
            },
        )
    }

    /// Position and place in the file of the first entry of the rule's `use` that covers the kernel.
    fn place(&self, rule: &Rule, pack: usize, kernel: usize) -> Option<(usize, usize)> {
        let pack = &self.packs[pack];
        let kernel = &pack.kernels[kernel];
        let own = |entry: &Use| match entry {
            Use::Kernel(id, name) => *id == pack.id && *name == kernel.id,
            Use::Pack(id) => *id == pack.id,
            Use::Host | Use::AnyPack => false,
        };
        // A kernel named after `*` is still asked where it is named.
        let named = rule.uses.iter().position(|(entry, _)| own(entry));
        let any = || {
            rule.uses
                .iter()
                .position(|(entry, _)| *entry == Use::AnyPack)
        };
        let index = named.or_else(any)?;
        Some((index, rule.uses[index].1.start))
    }

    fn skip(&self, pack: usize, kernel: usize, asked: &Asked<'_>) -> Option<Skip> {
        let pack = &self.packs[pack];
        let kernel = &pack.kernels[kernel];
        let mut denials = self
            .config
            .denials
            .iter()
            .filter(|denial| denial.pack == pack.id);
        if let Some(denial) = denials.find(|denial| denial.applies(&pack.version, asked)) {
            let why = format!("denied: {}", denial.reason);
            return Some(Skip::by(self.line(denial.at.start), why));
        }
        types_missing("input", kernel.inputs, asked.inputs)
            .or_else(|| types_missing("output", kernel.outputs, asked.outputs))
            .or_else(|| features_missing(kernel.needs, asked.device.features))
            .map(Skip::by_itself)
            .or_else(|| self.too_loose(kernel))
    }

    fn too_loose(&self, kernel: &KernelEntry) -> Option<Skip> {
        let name = |n| CLASSES.iter().find(|row| row.1 == n).map(|row| row.0);
        let Some(own) = name(kernel.numerics) else {
            let why = format!(
                "this host does not know its numerics, {}",
                kernel.numerics.0
            );
            return Some(Skip::by_itself(why));
        };
        let weakest = self.config.numerics;
        (kernel.numerics > weakest).then(|| {
            let line = self.line_or_default(self.config.numerics_at);
            let weakest = name(weakest).unwrap_or_default();
            Skip::by(line, format!("numerics = \"{weakest}\", it is {own}"))
        })
    }

    fn line(&self, at: usize) -> String {
        self.config.source.line(at)
    }

    fn line_or_default(&self, at: Option<usize>) -> String {
        at.map_or_else(|| "default".to_owned(), |at| self.line(at))
    }
}

/// Why a kernel is not asked, and the line of the registry that says so.
struct Skip {
    reason: String,
    line: Option<String>,
}

impl Skip {
    fn by(line: String, why: String) -> Skip {
        Skip {
            reason: format!("{line}: {why}"),
            line: Some(line),
        }
    }

    fn by_itself(reason: String) -> Skip {
        Skip { reason, line: None }
    }
}

/// What a kernel is ordered by. Lower comes first.
struct Standing<'a> {
    rule: usize,
    measured: f64,
    rank: Reverse<i64>,
    priority: Reverse<i64>,
    /// Pack and kernel; none is the host, which comes after all that equal it.
    name: Option<(&'a str, &'a str)>,
}

impl Standing<'_> {
    fn compare(&self, other: &Self, order: &[Order]) -> Ordering {
        let criterion = self.differs(other, order).unwrap_or(&Order::Name);
        self.by(other, criterion)
    }

    /// The criterion that says which of the two comes first; nothing where the names do.
    fn differs<'o>(&self, other: &Self, order: &'o [Order]) -> Option<&'o Order> {
        let mut order = order.iter();
        order.find(|criterion| self.by(other, criterion).is_ne())
    }

    fn by(&self, other: &Self, criterion: &Order) -> Ordering {
        match criterion {
            Order::Rule => self.rule.cmp(&other.rule),
            Order::Measured => self.measured.total_cmp(&other.measured),
            Order::Rank => self.rank.cmp(&other.rank),
            Order::Priority => self.priority.cmp(&other.priority),
            Order::Name => match (self.name, other.name) {
                (Some(own), Some(other)) => own.cmp(&other),
                (own, other) => other.is_some().cmp(&own.is_some()),
            },
        }
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

#[cfg(test)]
pub(super) mod tests;
