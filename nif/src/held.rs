//! What references hold: tensors, and results of ops that may wait until somebody needs them.

use crate::{reply::Failure, tensor::TensorRef};
use nx_vulkan_host::{Lazy, Tensor};
use smallvec::SmallVec;
use std::sync::Arc;

/// References that are held without memory of their own.
pub(crate) const INLINE: usize = 4;

/// A tensor, or the result of an op that may wait until somebody needs it.
#[derive(Clone)]
pub(crate) enum Held {
    Made(Arc<Tensor>),
    Lazy(Arc<Lazy>),
}

impl Held {
    /// The tensor, where it is there.
    pub(crate) fn made(&self) -> Option<Arc<Tensor>> {
        match self {
            Held::Made(tensor) => Some(tensor.clone()),
            Held::Lazy(lazy) => lazy.made(),
        }
    }
}

/// The tensors of references on one device, once their ops have run; none at all where that would wait and may not.
pub(crate) fn settled(
    references: &[&TensorRef],
    may_wait: bool,
) -> Result<SmallVec<[Arc<Tensor>; INLINE]>, Failure> {
    let mut tensors = SmallVec::new();
    let mut pending: SmallVec<[(usize, Arc<Lazy>); 2]> = SmallVec::new();
    for (place, reference) in references.iter().enumerate() {
        match reference.held()? {
            Held::Made(tensor) => tensors.push(tensor),
            Held::Lazy(lazy) => match lazy.made() {
                Some(tensor) => tensors.push(tensor),
                None => pending.push((place, lazy)),
            },
        }
    }
    let Some(first) = pending
        .first()
        .and_then(|(place, _)| references.get(*place))
    else {
        return Ok(tensors);
    };
    let lazies: SmallVec<[Arc<Lazy>; 2]> = pending.iter().map(|(_, lazy)| lazy.clone()).collect();
    match may_wait {
        true => first.runtime.settle(&lazies)?,
        false if !first.runtime.try_settle(&lazies)? => return Ok(SmallVec::new()),
        false => {}
    }
    for (place, lazy) in pending {
        let tensor = lazy.made().ok_or(Failure::Deallocated)?;
        tensors.insert(place, tensor);
    }
    Ok(tensors)
}
