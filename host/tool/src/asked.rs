//! A request as one text: `dot f16[64,32] f16[32,8] contract_a=1 contract_b=0 -> f32[64,8]`.

use crate::spec;
use nx_vulkan_conformance::vet::Named;
use nx_vulkan_host::Result;
use nx_vulkan_ops::{Error, Request, Spec, find};
use std::str::FromStr;

/// What `--request` takes, for the help of verbs.
pub(crate) const FORM: &str = "[OP] TYPE[SHAPE]... [NAME=VALUE]... [-> TYPE[SHAPE]...]";

/// A request, which may leave out its op where only one is in question.
#[derive(Debug, Clone)]
pub(crate) struct Asked(pub(crate) Named);

impl FromStr for Asked {
    type Err = String;

    fn from_str(text: &str) -> std::result::Result<Asked, String> {
        let mut named = Named {
            text: text.trim().to_owned(),
            ..Named::default()
        };
        let mut is_result = false;
        for word in words(text) {
            match word {
                "->" if !is_result => is_result = true,
                _ if is_result => named.results.push(spec::spec(word)?),
                // A text attribute may hold a bracket, and a shape no sign of equality.
                _ if word.contains('=') => named.attrs.push(spec::attr(word)?),
                _ if word.contains('[') => named.operands.push(spec::spec(word)?),
                _ if named.op.is_none() && named.operands.is_empty() => {
                    named.op = Some(word.to_owned());
                }
                _ => return Err(format!("expected {FORM}, got: {word}")),
            }
        }
        if is_result && named.results.is_empty() {
            return Err("expected a type and a shape after ->".to_owned());
        }
        if let Some(op) = named.op.as_ref().filter(|_| !is_result) {
            spec::op(op).map_err(|unknown| {
                format!("{unknown}; one that only a pack knows needs its results after ->")
            })?;
        }
        Ok(Asked(named))
    }
}

/// Words of a text; a space inside of brackets parts none.
fn words(text: &str) -> Vec<&str> {
    let mut depth = 0u32;
    let parts = text.split(|c: char| {
        match c {
            '[' => depth += 1,
            ']' => depth = depth.saturating_sub(1),
            _ => {}
        }
        depth == 0 && c.is_whitespace()
    });
    parts.filter(|word| !word.is_empty()).collect()
}

impl Asked {
    /// The request for its own op, else for `op`.
    ///
    /// # Errors
    /// Bad input when neither names one, or the operands do not fit it.
    pub(crate) fn request(&self, op: Option<&str>) -> Result<Request<'static, Spec>> {
        let Asked(named) = self;
        let op = named.op.as_deref().or(op).ok_or_else(|| {
            let text = &named.text;
            Error::bad_input(format!("the request `{text}` names no op: {FORM}"))
        })?;
        named.request(op)
    }

    /// The same, where one of several ops may be meant: that which all are.
    ///
    /// # Errors
    /// As [`Asked::request`]; bad input when the op is none of them.
    pub(crate) fn request_among(&self, ops: &[&str]) -> Result<Request<'static, Spec>> {
        let Asked(named) = self;
        if let Some(op) = &named.op
            && !ops.contains(&op.as_str())
        {
            let why = format!("the pack has no kernel for {op}: `{}`", named.text);
            return Err(Error::bad_input(why));
        }
        match ops {
            [only] => self.request(Some(only)),
            _ => self.request(None),
        }
    }
}

/// Arithmetic operations of a product or a convolution, an addition and a multiplication for each term; `None` for other
/// ops, which memory bounds.
pub(crate) fn operations(request: &Request<'_, Spec>) -> Option<f64> {
    let op = find(&request.op).filter(|op| op.contract.tiled)?;
    let shapes: Vec<&[u64]> = request.inputs.iter().map(|spec| &*spec.1).collect();
    let output = &request.outputs.first()?.1;
    let elements = |shape: &[u64]| shape.iter().map(|n| *n as f64).product::<f64>();
    Some(2.0 * op.terms(&shapes, output, &request.attrs) as f64 * elements(output))
}

/// Bytes of operands and results, each counted once.
pub(crate) fn traffic(request: &Request<'_, Spec>) -> f64 {
    let all = request.inputs.iter().chain(request.outputs.iter());
    let bytes =
        |spec: &Spec| spec.1.iter().map(|n| *n as f64).product::<f64>() * spec.0.size() as f64;
    all.map(bytes).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_host::DType;

    #[test]
    fn a_request_is_read_with_or_without_its_op() {
        let asked: Asked = "dot f16[64, 32] f16[32,8] contract_a=1 contract_b=0 -> f32[64,8]"
            .parse()
            .unwrap();
        let request = asked.request(None).unwrap();
        assert_eq!(request.outputs[0], (DType::F32, vec![64, 8]));
        assert_eq!(operations(&request), Some(2.0 * 64.0 * 32.0 * 8.0));
        assert_eq!(
            traffic(&request),
            (2 * 64 * 32 + 2 * 32 * 8 + 4 * 64 * 8) as f64
        );
        let asked: Asked = "f32[8] f32[8]".parse().unwrap();
        assert!(
            asked
                .request(None)
                .unwrap_err()
                .to_string()
                .contains("names no op")
        );
        let request = asked.request(Some("add")).unwrap();
        assert_eq!((&*request.op, operations(&request)), ("add", None));
        assert!(asked.request_among(&["dot", "add"]).is_err());
        assert_eq!(
            asked.request_among(&["dot"]).unwrap().outputs[0].1,
            Vec::<u64>::new()
        );
        let other: Asked = "add f32[8] f32[8]".parse().unwrap();
        let error = other.request_among(&["dot"]).unwrap_err().to_string();
        assert!(error.contains("no kernel for add"), "{error}");
    }

    #[test]
    fn mistakes_are_named() {
        for (text, told) in [
            ("dto f32[2]", "did you mean `dot`?"),
            ("dot f32[2] x", "expected [OP]"),
            ("dot f32[2] ->", "after ->"),
            ("My.Scale f32[2]", "needs its results after ->"),
            ("add f32[2 f32[2]", "expected a type"),
            ("add fp32[2]", "did you mean `f32`?"),
        ] {
            let error = text.parse::<Asked>().unwrap_err();
            assert!(error.contains(told), "{text}: {error}");
        }
        for (text, told) in [
            ("dot f32[2,3] f32[3,2] contract_a=9", "contract_a"),
            ("dot f32[2,3] f32[3,2] contract_a=-1", "contract_a"),
            ("sum f32[2,3] axes=1 axes=0", "axes is given twice"),
            ("add f32[2] f32[2] -> f32[2] f32[3]", "than were named"),
        ] {
            let asked: Asked = text.parse().unwrap();
            let error = asked.request(None).unwrap_err().to_string();
            assert!(error.contains(told), "{text}: {error}");
        }
    }

    #[test]
    fn an_op_that_only_a_pack_knows_has_the_results_that_are_named() {
        let asked: Asked = "My.Scale f32[4] factor=2.0 -> f32[4] s32[]"
            .parse()
            .unwrap();
        let request = asked.request(None).unwrap();
        assert_eq!(&*request.op, "My.Scale");
        assert_eq!(request.outputs.len(), 2);
        assert_eq!(operations(&request), None);
    }
}
