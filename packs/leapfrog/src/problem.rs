//! What a request asks for: how many chains of how many steps and coordinates, and where its operands are.

use crate::table::Family;
use nx_vulkan_abi::{BufArg, DType, InputAs, Refusal, Request, TensorDesc};
use nx_vulkan_pack_kit::{operand as kit, span::Span};

/// Positions and invocations are counted in 32 bits, with room for one more step of every loop.
const MAX_ELEMENTS: u64 = 1 << 31;
/// Names of the operands and of the results, for messages.
const OPERANDS: [&str; 4] = ["q", "p", "inv_mass", "scalars"];
const RESULTS: [&str; 4] = ["q_chain", "p_chain", "grad_chain", "logp_chain"];

/// One request.
#[derive(Debug)]
pub(crate) struct Problem {
    pub(crate) dtype: DType,
    pub(crate) chains: u64,
    pub(crate) steps: u64,
    /// Coordinates of a chain.
    pub(crate) extent: u64,
    /// The operands in the op's order.
    pub(crate) operands: Vec<Operand>,
}

/// The part of a buffer that holds an operand.
#[derive(Debug)]
pub(crate) struct Operand {
    pub(crate) arg: BufArg,
    /// The first element, counted from the start of the part.
    pub(crate) at: i64,
    pub(crate) strides: Vec<i64>,
}

impl Problem {
    /// What `request` asks of `family`.
    ///
    /// # Errors
    /// A bad request where it breaks the op's contract; a decline where the device lacks the type or a tensor is too
    /// large for it; the wish for a contiguous operand where that would fit.
    pub(crate) fn new(family: &Family, request: &Request<'_>) -> Result<Problem, Refusal> {
        let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
        let ([q, _, _, _], [q_chain, _, _, _]) = (inputs, outputs) else {
            return Err(bad(
                family,
                format!(
                    "expected 4 operands and 4 results, got: {} and {}",
                    inputs.len(),
                    outputs.len()
                ),
            ));
        };
        let dtype = q.dtype;
        let (&[chains, extent], &[_, steps, _]) = (q.shape.as_slice(), q_chain.shape.as_slice())
        else {
            return Err(bad(
                family,
                format!(
                    "expected q of shape {{chains, d}} and q_chain of shape {{chains, K, d}}, got: {:?} and {:?}",
                    q.shape, q_chain.shape
                ),
            ));
        };
        let (state, chain) = (vec![chains, extent], vec![chains, steps, extent]);
        let scalars = vec![1 + family.parameters.len() as u64];
        let expected = [&state, &state, &state, &scalars];
        check(family, dtype, inputs, &OPERANDS, &expected)?;
        let logp = vec![chains, steps];
        check(
            family,
            dtype,
            outputs,
            &RESULTS,
            &[&chain, &chain, &chain, &logp],
        )?;
        if extent == 0 || steps == 0 {
            return Err(bad(family, format!("there are no steps in {chain:?}")));
        }
        supported(family, dtype, chain, request)?;
        let operands = inputs
            .iter()
            .zip(0..)
            .map(|(desc, index)| operand(family, desc, index, request))
            .collect::<Result<Vec<Option<Operand>>, _>>()?;
        let scattered = operands.iter().zip(0..).filter(|(part, _)| part.is_none());
        let wishes: Vec<InputAs> = scattered
            .map(|(_, index)| InputAs::new(index, dtype))
            .collect();
        if !wishes.is_empty() {
            return Err(Refusal::InputsAs(wishes));
        }
        Ok(Problem {
            dtype,
            chains,
            steps,
            extent,
            operands: operands.into_iter().flatten().collect(),
        })
    }
}

fn check(
    family: &Family,
    dtype: DType,
    tensors: &[TensorDesc<'_>],
    names: &[&str],
    shapes: &[&Vec<u64>],
) -> Result<(), Refusal> {
    for ((tensor, name), shape) in tensors.iter().zip(names).zip(shapes) {
        if tensor.dtype != dtype || tensor.shape.as_slice() != shape.as_slice() {
            return Err(bad(
                family,
                format!(
                    "expected {name} to be {dtype}{shape:?}, got: {}{:?}",
                    tensor.dtype, tensor.shape
                ),
            ));
        }
    }
    Ok(())
}

/// Whether the device computes in `dtype` and can bind and count a result of that shape.
fn supported(
    family: &Family,
    dtype: DType,
    shape: Vec<u64>,
    request: &Request<'_>,
) -> Result<(), Refusal> {
    kit::supports(&family.op, dtype, request.device)?;
    let elements = shape
        .iter()
        .try_fold(1u64, |all, extent| all.checked_mul(*extent))
        .filter(|elements| *elements < MAX_ELEMENTS);
    let limit = request.device.max_buffer_range;
    match elements {
        None => Err(Refusal::decline(format!(
            "{} to {shape:?} has 2^31 or more elements in a result; ask for fewer chains at once",
            family.op
        ))),
        Some(elements) if elements * dtype.size() > limit => Err(Refusal::decline(format!(
            "{} to {dtype}{shape:?} has results of more than this device's buffer range of {limit} bytes; ask for \
             fewer chains at once",
            family.op
        ))),
        Some(_) => Ok(()),
    }
}

/// The part of input `index` that its elements lie in; nothing where only a contiguous copy would fit.
fn operand(
    family: &Family,
    desc: &TensorDesc<'_>,
    index: u32,
    request: &Request<'_>,
) -> Result<Option<Operand>, Refusal> {
    let (size, limit) = (desc.dtype.size(), request.device.max_buffer_range);
    let strides = desc.strides.to_vec();
    if desc.storage_len <= limit || desc.elements() == 0 {
        return Ok(Some(Operand {
            arg: BufArg::input(index),
            at: desc.offset as i64,
            strides,
        }));
    }
    let axes = desc.shape.iter().copied().zip(strides.iter().copied());
    match Span::of(desc.offset as i64, axes).bytes(size) {
        Some(range) if range.end - range.start <= limit => Ok(Some(Operand {
            arg: BufArg::input(index).range(range.start, range.end - range.start),
            at: desc.offset as i64 - (range.start / size) as i64,
            strides,
        })),
        _ if !desc.is_contiguous() => Ok(None),
        _ => Err(Refusal::decline(format!(
            "{} of {:?} exceeds this device's buffer range of {limit} bytes",
            family.op, desc.shape
        ))),
    }
}

fn bad(family: &Family, reason: String) -> Refusal {
    Refusal::BadRequest(format!("{}: {reason}", family.op))
}
