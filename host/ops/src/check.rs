//! The contract of each op, checked before anybody plans or runs it. Types nobody computes with are not refused here.

use crate::attrs::Attr;
use crate::contracts::find;
use crate::epilogue;
use crate::error::{Error, Kind, Result};
use crate::fits::{fits, refusal};
use crate::request::{Request, Typed};
use crate::view::Desc;

/// Checks number, types and shapes of operands and results, and the attributes, against `docs/ops.md`.
/// Fails with [`Kind::BadInput`] when they break the contract, with [`Kind::Unsupported`] for an unknown op.
///
/// Types outside of the real ones pass where their family cannot be judged: whoever is asked to run the op
/// says whether it does.
pub fn check(op: &str, inputs: &[Desc], outputs: &[Desc], attrs: &[Attr]) -> Result<()> {
    let Some(op) = find(op) else {
        return Err(Error::new(
            Kind::Unsupported,
            format!("there is no op named {op}"),
        ));
    };
    let verdict = fits(op, inputs, outputs, attrs).and_then(|()| match epilogue::takes(op) {
        true => epilogue::check(op, inputs, &outputs[0], attrs),
        false => Ok(()),
    });
    verdict.map_err(|reason| refusal(op.name, inputs, outputs, &reason))
}

impl<I: Typed + Clone> Request<'_, I> {
    /// Checks the op's contract. Ops that the host does not know are left to the packs that name them.
    ///
    /// # Errors
    /// Bad input, with what the contract asks for.
    pub fn check(&self) -> Result<()> {
        let (inputs, outputs) = self.shapes();
        let descs = |list: Vec<_>| -> Vec<Desc<'_>> {
            let desc = |(dtype, shape)| Desc { dtype, shape };
            list.into_iter().map(desc).collect()
        };
        match check(&self.op, &descs(inputs), &descs(outputs), &self.attrs) {
            Err(error) if error.kind() == Kind::Unsupported => Ok(()),
            result => result,
        }
    }
}
