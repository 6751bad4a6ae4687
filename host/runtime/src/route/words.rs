//! What is said of answers: what was planned, and why nobody runs a request.

use super::{Answer, ask::Ready};
use crate::{Error, Kind, Request, failures::Standing};
use nx_vulkan_abi::expression::ATTRIBUTE;
use nx_vulkan_ops::{attrs, find};
use nx_vulkan_registry::{clean, hex, request::Operand};
use sha2::{Digest, Sha256};
use std::borrow::Cow;

/// One kernel that was considered.
#[derive(Debug, Clone, serde::Serialize)]
pub struct Considered {
    /// `pack/kernel`, or `host`.
    pub kernel: String,
    /// `picked`, `declined`, `skipped`, `invalid`, or `not asked` for those after the picked one.
    pub outcome: &'static str,
    /// Why, or what the kernel does about the request.
    pub reason: String,
    /// The line of the registry that placed or skipped it, `registry.toml:27`; nothing where none did.
    pub line: Option<String>,
    /// Its measured time in microseconds, where such times decide between it and another one.
    pub measured_us: Option<f64>,
}

impl Considered {
    /// Why one behind this one, which is picked, is not asked.
    pub(super) fn over(&self, measured_us: Option<f64>) -> String {
        match (measured_us, self.measured_us) {
            (Some(own), Some(least)) if own >= least => {
                format!("measured {own:.1} us, {} {least:.1} us", self.kernel)
            }
            _ => "an earlier kernel was picked".to_owned(),
        }
    }
}

/// What a pack, a registry file or a compiler said, fit for a terminal: a few lines of text.
pub(super) fn tidy(text: &str) -> String {
    const LINES: usize = 8;
    const LENGTH: usize = 1000;
    let spaces = |line: &str| line.replace('\t', "    ");
    let lines = text
        .lines()
        .take(LINES)
        .map(|line| clean(&spaces(line), LENGTH));
    lines.collect::<Vec<_>>().join("\n")
}

/// What a request is timed as: its op, with the expression where that says what is computed.
pub(crate) fn timed_as<'a, I: Clone>(request: &'a Request<'_, I>) -> Cow<'a, str> {
    let several = find(&request.op).filter(|op| op.contract.several);
    match several.and_then(|_| attrs::text(&request.attrs, ATTRIBUTE)) {
        Some(text) => format!("{} {}", request.op, hex(&Sha256::digest(text)[..6])).into(),
        None => (&*request.op).into(),
    }
}

/// Why a kernel is not asked that failed so often.
pub(super) fn not_asked(times: u32, standing: Standing) -> String {
    let until = match standing {
        Standing::Rests(_) => "for a while",
        Standing::Asked | Standing::GivenUp => "until something is reloaded",
    };
    format!("it failed {times} times and is not asked {until}")
}

/// What a plan that was made ready consists of.
pub(super) fn summary(ready: &Ready) -> String {
    let Ready {
        compiled,
        prepare,
        why,
        ..
    } = ready;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = plural(compiled.steps.len(), "dispatch").replace("dispatchs", "dispatches");
    if !compiled.scratch.is_empty() {
        text += &format!(
            ", {} bytes of scratch",
            compiled.scratch.iter().sum::<u64>()
        );
    }
    for derivation in &compiled.derived.all {
        text += &format!(", input {} kept as it is packed", derivation.input);
    }
    for as_type in prepare {
        text += &format!(
            ", input {} made contiguous as {}",
            as_type.index, as_type.dtype
        );
    }
    if !why.is_empty() {
        text += &format!(": {why}");
    }
    text
}

/// The error of a request that nobody runs.
pub(super) fn nobody(request: &Request<'_, Operand>, answer: &Answer) -> Error {
    let asked: Vec<_> = answer
        .considered
        .iter()
        .map(|c| format!("{} {}: {}", c.kernel, c.outcome, c.reason))
        .collect();
    let asked = if asked.is_empty() {
        "no kernel of that op is loaded".to_owned()
    } else {
        asked.join("; ")
    };
    let (kind, remedy) = if answer.host_forbidden {
        (
            Kind::FallbackForbidden,
            "; use another type, add a pack, or set fallback = \"host\" in registry.toml",
        )
    } else {
        (Kind::Unsupported, "")
    };
    Error::new(kind, format!("nobody runs {request} ({asked}){remedy}"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Attr, DType};

    /// Two expressions on operands of the same types and sizes shared their times.
    #[test]
    fn expressions_are_timed_apart() {
        let timed = |op: &'static str, text: &str| {
            let attrs = vec![Attr::text(ATTRIBUTE, text)];
            let request = Request::<usize>::new(op, vec![0], vec![(DType::F32, vec![2])], attrs);
            timed_as(&request).into_owned()
        };
        let [sine, root] = ["sin(i0):f32", "sqrt(i0):f32"].map(|text| timed("fused", text));
        assert!(sine.starts_with("fused ") && sine != root, "{sine}");
        assert_eq!(timed("negate", "sin(i0):f32"), "negate");
    }

    #[test]
    fn what_others_say_is_some_lines_of_text() {
        assert_eq!(tidy("a\u{1b}[31m\nb\tc"), "a\u{fffd}[31m\nb    c");
        assert_eq!(tidy(&"x".repeat(5000)).chars().count(), 1001);
        assert_eq!(tidy(&"x\n".repeat(50)).lines().count(), 8);
    }
}
