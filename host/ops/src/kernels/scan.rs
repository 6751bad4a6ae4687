//! Scans of one axis, in the order of their elements: integers wrap, floats of up to 32 bits are carried in f64.

use super::element::{Complex, Register, by_register};
use super::number::{Number, Ring};
use super::operand::{BLOCK, Operand};
use super::parallel;
use crate::attrs::{Attr, ints};
use crate::view::{Out, Outcome, View};
use nx_vulkan_abi::dtype::Class;

pub(crate) fn sum(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    match outputs[0].dtype.class() {
        Some(Class::Complex) => scan(inputs, outputs, attrs, Complex::<f64>::add),
        Some(Class::Float) => scan(inputs, outputs, attrs, f64::add),
        Some(Class::Unsigned | Class::Signed) => scan(inputs, outputs, attrs, i64::add),
        None => Err(format!("it is not computed in {}", outputs[0].dtype)),
    }
}

pub(crate) fn product(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    match outputs[0].dtype.class() {
        Some(Class::Complex) => scan(inputs, outputs, attrs, Complex::<f64>::multiply),
        Some(Class::Float) => scan(inputs, outputs, attrs, f64::multiply),
        Some(Class::Unsigned | Class::Signed) => scan(inputs, outputs, attrs, i64::multiply),
        None => Err(format!("it is not computed in {}", outputs[0].dtype)),
    }
}

pub(crate) fn max(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    by_register!(outputs[0].dtype, R => scan(inputs, outputs, attrs, R::larger))
}

pub(crate) fn min(_: &str, inputs: &[View], outputs: &mut [Out], attrs: &[Attr]) -> Outcome {
    by_register!(outputs[0].dtype, R => scan(inputs, outputs, attrs, R::smaller))
}

/// Lines along the axis that lie beside each other are scanned together, a block of them at a time.
fn scan<R: Register>(
    inputs: &[View],
    outputs: &mut [Out],
    attrs: &[Attr],
    combine: impl Fn(R, R) -> R + Sync,
) -> Outcome {
    let ([x], [out], [axis]) = (inputs, outputs, ints(attrs, "axis")) else {
        return Err("expected one operand, result and axis".to_owned());
    };
    let (dtype, size, axis) = (out.dtype, out.dtype.size() as usize, *axis as usize);
    let reverse = ints(attrs, "reverse") == [1];
    let extent = x.shape[axis] as usize;
    let beside = x.shape[axis + 1..].iter().product::<u64>() as usize;
    let operand = Operand::new(x, x.shape, x.strides.to_vec());
    let place = |step: usize| if reverse { extent - 1 - step } else { step };
    parallel::for_each_chunk(out.bytes, extent * beside * size, &|outer, bytes| {
        let first = outer * extent * beside;
        if beside == 1 {
            let mut line = vec![R::default(); extent];
            for (block, start) in line.chunks_mut(BLOCK).zip((first..).step_by(BLOCK)) {
                operand.gather(0, start as u64, block);
            }
            for step in 1..extent {
                line[place(step)] = combine(line[place(step - 1)], line[place(step)]);
            }
            R::store(&line, dtype, bytes);
            return Ok(());
        }
        let (mut states, mut items) = ([R::default(); BLOCK], [R::default(); BLOCK]);
        for left in (0..beside).step_by(BLOCK) {
            let width = BLOCK.min(beside - left);
            for step in 0..extent {
                let at = place(step) * beside + left;
                let items = &mut items[..width];
                operand.gather(0, (first + at) as u64, items);
                for (state, item) in states.iter_mut().zip(items) {
                    *state = if step == 0 {
                        *item
                    } else {
                        combine(*state, *item)
                    };
                }
                R::store(
                    &states[..width],
                    dtype,
                    &mut bytes[at * size..][..width * size],
                );
            }
        }
        Ok(())
    })
}
