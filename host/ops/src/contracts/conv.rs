//! `conv`: convolution over any number of spatial axes.

mod problems;

use super::{
    shared::{ELEMENTWISE, EPILOGUE, NUMBER, PRECISION, default, fit_epilogue, floating},
    window::{PADDING, STRIDES, attribute, listed},
};
use crate::{
    attrs::{Attr, ints},
    kernels::{
        conv::{self, Axes},
        kernel::Kernel,
    },
    op::{Contract, Gives, Op, Types},
    request::Spec,
    tolerance::{Bound, Growth},
    values::Domain::{Factor, Term},
    view::Desc,
};
use nx_vulkan_abi::DType;
use problems::MIXED;

const CONV: Contract = Contract {
    title: "Convolution",
    operands: &["x", "kernel"],
    attributes: &[
        attribute(
            "batch_group_size",
            "parts of the batch, each for its own part of the filters; 1 by default",
        ),
        EPILOGUE,
        attribute(
            "feature_group_size",
            "parts of the channels, each for its own part of the filters; 1 by default",
        ),
        attribute(
            "input_dilation",
            "steps between the elements of x along each spatial axis, with 0 between them; 1 by default",
        ),
        attribute(
            "input_permutation",
            "the axes of x in the order batch, channels, spatial axes; `[0, 1, …]` by default",
        ),
        attribute(
            "kernel_dilation",
            "steps between the elements of the kernel along each spatial axis; 1 by default",
        ),
        attribute(
            "kernel_permutation",
            "the axes of the kernel in the order filters, channels, spatial axes; `[0, 1, …]` by default",
        ),
        attribute(
            "output_permutation",
            "the axes of the result in the order batch, filters, spatial axes; `[0, 1, …]` by default",
        ),
        PADDING,
        PRECISION,
        STRIDES,
    ],
    variadic: true,
    complete: |inputs, _, attrs| {
        let rank = inputs[0].1.len();
        let spatial = rank.saturating_sub(2);
        let one_each = ["input_dilation", "kernel_dilation", "strides"];
        let ordered = [
            "input_permutation",
            "kernel_permutation",
            "output_permutation",
        ];
        for name in ["batch_group_size", "feature_group_size"] {
            default(attrs, Attr::ints(name, [1]));
        }
        for name in one_each {
            default(attrs, Attr::ints(name, vec![1; spatial]));
        }
        for name in ordered {
            default(attrs, Attr::ints(name, Vec::from_iter(0..rank as i64)));
        }
        default(attrs, Attr::ints("padding", vec![0; 2 * spatial]));
    },
    infer: |_, inputs, attrs| {
        let types = inputs.iter().map(|input| input.0);
        let merged = types.reduce(DType::merge).unwrap_or(DType::F32);
        let dtype = if merged.is_complex() {
            merged
        } else {
            floating(merged)
        };
        Ok((dtype, shape(&inputs[0], &inputs[1], attrs)?))
    },
    check: |_, inputs, outputs, attrs| {
        let spec = |desc: &Desc<'_>| (desc.dtype, desc.shape.to_vec());
        match shape(&spec(&inputs[0]), &spec(&inputs[1]), attrs)? {
            shape if shape == outputs[0].shape => Ok(()),
            shape => Err(format!("the result has the shape {shape:?}")),
        }
    },
    operand_shapes: |_, shape| {
        let channels = shape.get(1).copied().unwrap_or(1);
        let one_each = vec![1; shape.len().saturating_sub(2)];
        vec![shape.to_vec(), [vec![channels; 2], one_each].concat()]
    },
    problems: |_, layout, _, rng| problems::of(layout, rng),
    fit: fit_epilogue,
    alone: |op, dtype| Types {
        inputs: vec![dtype; op.arity()],
        output: Some(floating(dtype)),
    },
    mixed: |_| {
        let types = |(inputs, output): &(&[DType], DType)| Types {
            inputs: inputs.to_vec(),
            output: Some(*output),
        };
        (MIXED.iter().map(types).collect(), MIXED.len())
    },
    tiled: true,
    terms: |inputs, _, attrs| {
        let filters = ints(attrs, "kernel_permutation")
            .first()
            .map_or(0, |&axis| axis as usize);
        let axes = inputs[1]
            .iter()
            .enumerate()
            .filter(|(axis, _)| *axis != filters);
        axes.map(|(_, &extent)| extent).product()
    },
    square: |power| {
        vec![
            1,
            8,
            1 << (power / 2).saturating_sub(1),
            1 << (power / 2).saturating_sub(2),
        ]
    },
    ..ELEMENTWISE
};

/// The shape of the result, once the attributes fit.
fn shape(x: &Spec, kernel: &Spec, attrs: &[Attr]) -> Result<Vec<u64>, String> {
    let rank = x.1.len();
    if rank < 2 || kernel.1.len() != rank {
        return Err(
            "x and kernel must have the same number of axes, batch and channels first".to_owned(),
        );
    }
    for name in [
        "input_permutation",
        "kernel_permutation",
        "output_permutation",
    ] {
        let axes = ints(attrs, name);
        if axes.len() != rank || !(0..rank as i64).all(|axis| axes.contains(&axis)) {
            return Err(format!(
                "attribute {name} must name each of {rank} axes once, got {axes:?}"
            ));
        }
    }
    listed(
        rank - 2,
        attrs,
        &["strides", "input_dilation", "kernel_dilation"],
    )?;
    let group = |name: &str| match ints(attrs, name) {
        [size] if *size > 0 => Ok(*size as u64),
        other => Err(format!(
            "attribute {name} must be a positive number, got {other:?}"
        )),
    };
    let (features, batches) = (group("feature_group_size")?, group("batch_group_size")?);
    let axes = Axes::new(&x.1, &kernel.1, attrs);
    if axes.is_endless() {
        return Err("x has too many elements once it is dilated".to_owned());
    }
    if features > 1 && batches > 1 {
        return Err("either feature_group_size or batch_group_size must be 1".to_owned());
    }
    if Some(axes.channels) != axes.own_channels.checked_mul(features) {
        return Err(format!(
            "x must have {features} times the {} channels of the kernel, got {}",
            axes.own_channels, axes.channels
        ));
    }
    if !axes.filters.is_multiple_of(features.max(batches)) || !axes.batch.is_multiple_of(batches) {
        return Err(format!(
            "{} filters and a batch of {} do not divide into {} groups",
            axes.filters,
            axes.batch,
            features.max(batches)
        ));
    }
    Ok(axes.output(ints(attrs, "output_permutation")))
}

pub(super) const OPS: &[Op] = &[Op {
    name: "conv",
    doc: "sums of products of the kernel with the part of x at each position. Operands convert to the result's type \
          first; f16 and bf16 accumulate in f32, f32 in f32 or wider. Padding and what lies between the elements of a \
          dilated x are zeros that multiply as numbers do; a dilated kernel has nothing between its elements. An x without \
          elements gives zeros",
    contract: &CONV,
    takes: &[NUMBER, NUMBER],
    gives: Gives::Float,
    bound: Bound::reduces(Growth::Terms),
    // Products of two 64-bit integers would leave f32 on the way to sums that do not.
    domains: &[Term, Factor],
    partial: None,
    lane: None,
    kernel: Kernel::Convolution(conv::run),
}];
