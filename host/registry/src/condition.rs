//! Shape conditions of rules, such as `a.dim[-1] % 16 == 0`, and what they say about a request.

use super::{
    asked::Asked,
    expression::{self, Expression, Mistake},
};
use nx_vulkan_abi::{DType, RSlice, Request, TensorDesc};

/// One comparison of two whole numbers.
#[derive(Debug, Clone)]
pub(super) struct Condition(Expression);

impl Condition {
    pub(super) fn parse(text: &str) -> Result<Condition, Mistake> {
        expression::condition(text).map(Condition)
    }

    /// Why the request does not fulfil the condition, if so.
    pub(super) fn unmet(&self, asked: &Asked<'_>) -> Option<String> {
        let (inputs, outputs) = (descs(asked.inputs), descs(asked.outputs));
        let request = Request {
            op: asked.op.into(),
            inputs: inputs[..].into(),
            outputs: outputs[..].into(),
            attrs: RSlice::EMPTY,
            device: asked.device,
            spare: [0; 4],
        };
        match self.0.evaluate(&request) {
            Ok(0) => {
                let facts = self.0.facts(&request);
                Some(format!("`{}` is false: {facts}", self.0.text))
            }
            Ok(_) => None,
            Err(why) => Some(why),
        }
    }
}

impl PartialEq for Condition {
    fn eq(&self, other: &Condition) -> bool {
        self.0.text == other.0.text
    }
}

/// Types and shapes; conditions can name nothing else of a tensor.
fn descs<'a>(list: &[(DType, &'a [u64])]) -> Vec<TensorDesc<'a>> {
    let desc = |(dtype, shape): &(DType, &'a [u64])| TensorDesc {
        dtype: *dtype,
        spare: 0,
        shape: (*shape).into(),
        strides: RSlice::EMPTY,
        offset: 0,
        storage_len: 0,
        reserved: [0; 2],
    };
    list.iter().map(desc).collect()
}

#[cfg(test)]
mod tests;
