//! What the rules of a registry file name, against the packs that are loaded.

use super::{
    codes::Code,
    config::{Config, Mode},
    diagnostic::{Diagnostic, Severity, did_you_mean},
    loaded::LoadedPack,
    reader::{Finding, MOST, Reader},
    rules::{Rule, Use, glob},
};
use std::ops::Range;

/// What is known to exist.
#[derive(Debug, Clone, Copy)]
pub(super) struct Known<'a> {
    pub(super) packs: &'a [LoadedPack],
    /// Whether every pack file that was found is among them.
    pub(super) complete: bool,
}

/// Rules and denials that name what is not there, and rules that no request reaches. In mode dev a pack may still
/// come, so what names it is no error yet. Where no packs are known, only the host's ops are.
pub(super) fn check(config: &Config, known: Option<Known<'_>>) -> Vec<Diagnostic> {
    let mut reader = Reader::new(&config.source);
    let nothing = Known {
        packs: &[],
        complete: false,
    };
    let mode = known.map_or(Mode::Dev, |_| config.mode);
    let missing = match mode {
        Mode::Locked => Severity::Error,
        Mode::Dev => Severity::Warning,
    };
    for rule in &config.rules {
        let mut settled = known.is_some_and(|known| known.complete);
        for (entry, span) in &rule.uses {
            if let Some((code, why)) = known.and_then(|known| known.unknown_use(entry)) {
                settled = false;
                reader.add((span.clone(), code, missing, why));
            }
        }
        let known = known.unwrap_or(nothing);
        if let Some(found) = known.unknown_op(&rule.name, &rule.name_at, settled, mode) {
            reader.add(found);
        }
    }
    let listed = config.packs.keys().map(String::as_str);
    for denial in &config.denials {
        let ids = known.unwrap_or(nothing).packs.iter();
        let ids = ids.map(|pack| pack.id.as_str()).chain(listed.clone());
        let there = ids.clone().any(|id| id == denial.pack);
        if known.is_some() && !there {
            let hint = did_you_mean(&denial.pack, ids);
            let why = format!(
                "no pack `{}` is loaded, so this denies nothing{hint}",
                denial.pack
            );
            reader.warning(Code::DeniesNothing, denial.at.clone(), why);
        }
        if let Some((op, span)) = &denial.op {
            let settled = there && known.is_some_and(|known| known.complete);
            let known = known.unwrap_or(nothing);
            if let Some(found) = known.unknown_op(op, span, settled, mode) {
                reader.add(found);
            }
        }
    }
    for (earlier, later) in unreached(&config.rules).take(MOST) {
        let line = config.source.line(earlier.at.start);
        let why = format!("the rule is never reached, {line} takes its requests");
        reader.warning(Code::Unreached, later.at.clone(), why);
    }
    match reader.finish() {
        Ok(found) | Err(found) => found,
    }
}

impl Known<'_> {
    fn unknown_use(&self, entry: &Use) -> Option<(Code, String)> {
        let (Use::Kernel(id, _) | Use::Pack(id)) = entry else {
            return None;
        };
        let Some(pack) = self.packs.iter().find(|pack| pack.id == *id) else {
            let hint = did_you_mean(id, self.packs.iter().map(|pack| pack.id.as_str()));
            return Some((Code::Pack, format!("no pack `{id}` is loaded{hint}")));
        };
        let Use::Kernel(_, kernel) = entry else {
            return None;
        };
        let ids = pack.kernels.iter().map(|k| k.id.as_str());
        if ids.clone().any(|id| id == kernel) {
            return None;
        }
        let hint = did_you_mean(kernel, ids);
        Some((
            Code::Kernel,
            format!("pack `{id}` has no kernel `{kernel}`{hint}"),
        ))
    }

    /// A name that no op has. It is an error in mode locked, and in mode dev where nothing is missing that could
    /// bring the op (`settled`) and the name is close to one that exists.
    fn unknown_op(
        &self,
        pattern: &str,
        at: &Range<usize>,
        settled: bool,
        mode: Mode,
    ) -> Option<Finding> {
        let kernels = self.packs.iter().flat_map(|pack| &pack.kernels);
        let names = kernels
            .map(|kernel| kernel.op.as_str())
            .chain(nx_vulkan_ops::ops().map(|op| op.name));
        if names.clone().any(|name| glob(pattern, name)) {
            return None;
        }
        let hint = did_you_mean(pattern, names);
        let severity = match mode {
            Mode::Dev if hint.is_empty() || !settled => Severity::Warning,
            Mode::Dev | Mode::Locked => Severity::Error,
        };
        let what = if pattern.contains('*') {
            "no op matches"
        } else {
            "there is no op"
        };
        let message = format!("{what} `{pattern}`, in the host or in a loaded pack{hint}");
        Some((at.clone(), Code::Op, severity, message))
    }
}

/// Pairs of rules of which the first takes every request of the second.
fn unreached(rules: &[Rule]) -> impl Iterator<Item = (&Rule, &Rule)> {
    rules.iter().enumerate().filter_map(|(index, later)| {
        let earlier = rules[..index]
            .iter()
            .find(|earlier| earlier.covers(later))?;
        Some((earlier, later))
    })
}
