//! Which inputs of a program each of its values is made of.

use crate::{DType, Program, Step, Tensor, Value, View};

/// By value the inputs that it is made of, as bits.
pub(super) struct Sources {
    inputs: usize,
    words: usize,
    bits: Vec<u64>,
}

impl Sources {
    pub(super) fn of(program: &Program<'_>, tensors: &[&Tensor]) -> Sources {
        let inputs = program.inputs();
        let words = inputs.div_ceil(64);
        let mut dtypes: Vec<DType> = tensors.iter().map(|tensor| tensor.dtype()).collect();
        let mut bits = Vec::new();
        for input in 0..inputs {
            let at = bits.len();
            bits.resize(at + words, 0u64);
            bits[at + input / 64] |= 1 << (input % 64);
        }
        let union = |bits: &[u64], values: &mut dyn Iterator<Item = Value>| {
            let mut all = vec![0u64; words];
            for value in values {
                let from = value as usize * words;
                for (all, bits) in all.iter_mut().zip(&bits[from..from + words]) {
                    *all |= bits;
                }
            }
            all
        };
        for step in program.steps() {
            let apart = match step {
                Step::Request(request) => {
                    let of: Vec<DType> = request
                        .inputs
                        .iter()
                        .map(|&value| dtypes[value as usize])
                        .collect();
                    dtypes.extend(request.outputs.iter().map(|output| output.0));
                    nx_vulkan_ops::made(&request.op, &of, &request.attrs)
                }
                Step::View(_, View::Bitcast(dtype)) => {
                    dtypes.push(*dtype);
                    None
                }
                Step::View(value, _) => {
                    dtypes.push(dtypes[*value as usize]);
                    None
                }
            };
            match apart {
                Some(results) => {
                    for made in results {
                        let read = step.inputs().iter().zip(&made.of);
                        let mut read = read
                            .filter(|(_, is_read)| **is_read)
                            .map(|(value, _)| *value);
                        bits.extend(union(&bits, &mut read));
                    }
                }
                None => {
                    let all = union(&bits, &mut step.inputs().iter().copied());
                    (0..step.made()).for_each(|_| bits.extend_from_slice(&all));
                }
            }
        }
        Sources {
            inputs,
            words,
            bits,
        }
    }

    pub(super) fn inputs_of(&self, value: u32) -> Vec<usize> {
        let bits = &self.bits[value as usize * self.words..][..self.words];
        (0..self.inputs)
            .filter(|input| bits[input / 64] >> (input % 64) & 1 == 1)
            .collect()
    }
}
