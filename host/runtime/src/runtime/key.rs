//! Cache keys: everything that a plan depends on, as bytes.

use crate::{AttrValue, Request, tensor::Laid};
use std::cell::RefCell;

/// Everything that a plan depends on, as bytes.
pub(super) fn with_key<T>(request: &Request<'_, &impl Laid>, f: impl FnOnce(&[u8]) -> T) -> T {
    thread_local! { static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) } }
    let mut key = KEY.take();
    key.clear();
    let number = |key: &mut Vec<u8>, n: u64| key.extend_from_slice(&n.to_ne_bytes());
    key.extend_from_slice(request.op.as_bytes());
    for tensor in request.inputs.iter() {
        key.extend_from_slice(&[0xff, tensor.dtype().0 as u8]);
        number(&mut key, tensor.shape().len() as u64);
        tensor.shape().iter().for_each(|&n| number(&mut key, n));
        tensor
            .strides()
            .iter()
            .for_each(|&n| number(&mut key, n as u64));
        number(&mut key, tensor.part().first);
        number(&mut key, tensor.part().len);
    }
    for (dtype, shape) in request.outputs.iter() {
        key.extend_from_slice(&[0xfe, dtype.0 as u8]);
        number(&mut key, shape.len() as u64);
        shape.iter().for_each(|&n| number(&mut key, n));
    }
    for attr in request.attrs.iter() {
        key.push(0xfd);
        number(&mut key, attr.name.len() as u64);
        key.extend_from_slice(attr.name.as_bytes());
        match &attr.value {
            AttrValue::Ints(ints) => {
                key.push(1);
                number(&mut key, ints.len() as u64);
                ints.iter().for_each(|&n| number(&mut key, n as u64));
            }
            AttrValue::Floats(floats) => {
                key.push(2);
                number(&mut key, floats.len() as u64);
                floats.iter().for_each(|n| number(&mut key, n.to_bits()));
            }
            AttrValue::Text(text) => {
                key.push(3);
                number(&mut key, text.len() as u64);
                key.extend_from_slice(text.as_bytes());
            }
        }
    }
    let result = f(&key);
    KEY.set(key);
    result
}
