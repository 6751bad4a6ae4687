//! Requests as programs of what they stand for: products with what follows them, fused ops, one after the other, attention, and
//! convolutions that are products of matrices.

use crate::{
    Attr, Program, Request, Result, Spec, Step, Value, View,
    attention::{self, ATTENTION},
    attrs::ints,
    contracts::broadcast,
    epilogue,
    error::Error,
    expression::{self, FUSED, ROWS, element},
    find,
    fusion::{self, Input},
    infer::fill,
    precision,
    view::Desc,
};
use nx_vulkan_abi::{
    DType,
    epilogue::{FACTORS, Types},
    expression::Term,
};
use std::ops::Range;

/// The program that a request stands for; `None` where it is one op.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub fn split(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    match &*request.op {
        FUSED => one_by_one(request).map(Some),
        ROWS => rows(request).map(Some),
        ATTENTION => attention(request).map(Some),
        _ => epilogue::split(request),
    }
}

/// Attention with scores and weights of its own type.
fn attention(request: &Request<'_, Spec>) -> Result<Program<'static>> {
    let dtype = request.outputs.first().map(|output| output.0);
    attention::program(request, dtype.unwrap_or(DType::F32))
}

/// The product that a convolution is where its kernel has one element for each channel and its positions are those of x, or each
/// second, third or so of them: of x with the kernel where channels are the last axis, of the kernel with x where they are the one
/// behind the batch. Its epilogue goes along where each further operand has, of the axes that become one, all or none. `None` for all
/// else.
///
/// # Errors
/// Bad input when the request breaks the contract.
pub fn product(request: &Request<'_, Spec>) -> Result<Option<Program<'static>>> {
    if request.op != "conv" {
        return Ok(None);
    }
    request.check()?;
    let &[filters, channels, ..] = ints(&request.attrs, "kernel_permutation") else {
        return Ok(None);
    };
    let [filters, channels] = [filters, channels].map(|axis| axis as usize);
    let (x, kernel, out) = (&request.inputs[0], &request.inputs[1], &request.outputs[0]);
    let has_epilogue = epilogue::has(&request.attrs);
    let matrix = [filters.min(channels), filters.max(channels)].map(|axis| kernel.1[axis]);
    let Some((order, merged, strides)) = matrices(request) else {
        return Ok(None);
    };
    if elements(&kernel.1) != elements(&matrix) {
        return Ok(None);
    }
    // Factors of other types are multiplied in that of the sums.
    let multiplied = if !has_epilogue {
        out.0
    } else if x.0 == kernel.0 && x.0.is_float() {
        x.0
    } else {
        let types: Vec<DType> = request.inputs.iter().map(|input| input.0).collect();
        let Some(types) = Types::of(&types, out.0, true) else {
            return Ok(None);
        };
        types.sum
    };
    let further = request.inputs[2..].iter();
    let further = further.map(|(_, shape)| merge(shape, &out.1, &merged));
    let Some(further) = further.collect::<Option<Vec<Vec<u64>>>>() else {
        return Ok(None);
    };

    let mut steps: Vec<Step<'static>> = Vec::new();
    let mut push = |step: Step<'static>| {
        steps.push(step);
        (request.inputs.len() + steps.len() - 1) as Value
    };
    let whole = |shape: &[u64]| -> Vec<u64> {
        let extents = merged.iter().map(|axes| elements(&shape[axes.clone()]));
        extents.collect()
    };
    let sums = whole(&out.1);
    let met: Vec<u64> =
        x.1.iter()
            .zip(&strides)
            .map(|(extent, stride)| extent.div_ceil(*stride))
            .collect();
    let shapes = [vec![whole(&met), matrix.to_vec()], further].concat();
    let mut inputs = Vec::new();
    for ((shape, (dtype, _)), value) in shapes.into_iter().zip(&*request.inputs).zip(0..) {
        let value = if value == 0 && met != x.1 {
            let slice = View::Slice(vec![0; met.len()], met.clone(), strides.clone());
            push(Step::View(value, slice))
        } else {
            value
        };
        let viewed = push(Step::View(value, View::Reshape(shape.clone())));
        let is_factor = inputs.len() < FACTORS;
        inputs.push(if is_factor && *dtype != multiplied {
            push(Request::new("as_type", vec![viewed], vec![(multiplied, shape)], &[]).into())
        } else {
            viewed
        });
    }
    let mut contract = [1, i64::from(filters < channels)];
    let mut batch: &[i64] = &[];
    if order == Order::ChannelsFirst {
        inputs.swap(0, 1);
        contract = [contract[1], 0];
        if merged.len() > 2 {
            let all = [&x.1[..1], &matrix[..]].concat();
            inputs[0] = push(Step::View(inputs[0], View::Broadcast(all, vec![1, 2])));
            contract = contract.map(|axis| axis + 1);
            batch = &[0];
        }
    }
    let kept = [precision::ATTRIBUTE, nx_vulkan_abi::epilogue::ATTRIBUTE];
    let attrs = request
        .attrs
        .iter()
        .filter(|attr| kept.contains(&&*attr.name));
    let contract = [
        Attr::ints("batch_a", batch),
        Attr::ints("batch_b", batch),
        Attr::ints("contract_a", [contract[0]]),
        Attr::ints("contract_b", [contract[1]]),
    ];
    let mut attrs: Vec<Attr> = contract.into_iter().chain(attrs.cloned()).collect();
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    let dot = push(Request::new("dot", inputs, vec![(out.0, sums)], attrs).into());
    let result = push(Step::View(dot, View::Reshape(out.1.clone())));
    Program::new(request.inputs.len(), steps, [result]).map(Some)
}

/// Where the channels of x and the filters of the result are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Order {
    ChannelsFirst,
    ChannelsLast,
}

/// The order of a convolution that goes from the channels at a position to its filters alone, which axes of x and of the result
/// become one: rows and columns, behind the batch where that is more than one; and the steps along x's axes from one position to the
/// next. `None` for others.
fn matrices(request: &Request<'_, Spec>) -> Option<(Order, Vec<Range<usize>>, Vec<u64>)> {
    let (x, out) = (&request.inputs[0].1, &request.outputs[0].1);
    let rank = x.len();
    let ones = ["input_dilation", "batch_group_size", "feature_group_size"];
    let is_one = |name: &str| ints(&request.attrs, name).iter().all(|is| *is == 1);
    if rank <= 2 || !ones.into_iter().all(is_one) || elements(x) == 0 || elements(out) == 0 {
        return None;
    }
    let spatial = |name: &str| ints(&request.attrs, name).iter().copied();
    let mut strides = vec![1; rank];
    let inputs = spatial("input_permutation").zip(spatial("output_permutation"));
    let ends = spatial("strides").zip(spatial("padding").step_by(2));
    for ((from, to), (stride, low)) in inputs.skip(2).zip(ends) {
        let stride = u64::try_from(stride).ok().filter(|stride| *stride > 0)?;
        strides[from as usize] = stride;
        if low != 0 || x[from as usize].div_ceil(stride) != out[to as usize] {
            return None;
        }
    }
    let first = Vec::from_iter(0..rank as i64);
    let last = [&[0, rank as i64 - 1], &first[1..rank - 1]].concat();
    let is_ordered = |axes: &[i64]| {
        let mut orders = ["input_permutation", "output_permutation"].into_iter();
        orders.all(|name| ints(&request.attrs, name) == axes)
    };
    if is_ordered(&last) {
        let merged = vec![0..rank - 1, rank - 1..rank];
        return Some((Order::ChannelsLast, merged, strides));
    }
    let (order, merged) = match (x[0], elements(&out[2..])) {
        // A single position is as if it came first.
        (_, 1) => (Order::ChannelsLast, vec![0..1, 1..rank]),
        (1, _) => (Order::ChannelsFirst, vec![0..2, 2..rank]),
        _ => (Order::ChannelsFirst, vec![0..1, 1..2, 2..rank]),
    };
    is_ordered(&first).then_some((order, merged, strides))
}

/// A shape that broadcasts to `all`, with these axes as one each; `None` where it has a part of those that become one.
fn merge(shape: &[u64], all: &[u64], axes: &[Range<usize>]) -> Option<Vec<u64>> {
    let missing = all.len().checked_sub(shape.len())?;
    let shape = [vec![1; missing], shape.to_vec()].concat();
    let merged = axes.iter().map(|axes| {
        let (own, whole) = (&shape[axes.clone()], &all[axes.clone()]);
        let has_none = own.iter().all(|extent| *extent == 1);
        (has_none || own == whole).then(|| elements(own))
    });
    merged.collect()
}

fn elements(shape: &[u64]) -> u64 {
    shape.iter().product()
}

/// The only op in a fused one that may have no result, as a request of its own: `quotient(s32[3], s32[]) -> s32[3]`.
pub fn partial(request: &Request<'_, Spec>) -> Option<String> {
    let program = match &*request.op {
        FUSED => one_by_one(request).ok()?,
        _ => return None,
    };
    let mut specs = request.inputs.to_vec();
    let mut found = Vec::new();
    for step in program.steps() {
        let Step::Request(step) = step else { continue };
        let operands = step
            .inputs
            .iter()
            .map(|&value| specs[value as usize].clone());
        let own = step.over(operands.collect::<Vec<Spec>>());
        if find(&own.op)?.partial(&own.types().0).is_some() {
            found.push(own.to_string());
        }
        specs.extend(step.outputs.iter().cloned());
    }
    found.pop().filter(|_| found.is_empty())
}

/// What a request of rows stands for: fused ops and reductions.
pub(crate) fn rows(request: &Request<'_, Spec>) -> Result<Program<'static>> {
    let shape = broadcast(&request.inputs).map_err(Error::bad_input)?;
    let mut reduced = shape.clone();
    if let Some(last) = reduced.last_mut() {
        *last = 1;
    }
    let descs = request.inputs.iter().map(|(dtype, shape)| Desc {
        dtype: *dtype,
        shape,
    });
    let descs: Vec<Desc<'_>> = descs.collect();
    let results: Vec<DType> = request.outputs.iter().map(|output| output.0).collect();
    let read = expression::read_rows(&request.attrs, &descs, &results, &shape);
    let (_, per_row) = read.map_err(Error::bad_input)?;
    let shapes = per_row.iter().map(|is| if *is { &reduced } else { &shape });
    let inputs = request.inputs.iter().cloned();
    let inputs: Vec<Input> = inputs
        .map(|spec| Input {
            spec,
            element: None,
        })
        .collect();
    fusion::fuse(in_turn(request, shapes.collect())?, &inputs)
}

fn one_by_one(request: &Request<'_, Spec>) -> Result<Program<'static>> {
    let shape = &request.outputs[0].1;
    let expression = expression::of(&request.attrs).map_err(Error::bad_input)?;
    in_turn(request, vec![shape; expression.calls.len()])
}

/// The calls of a request's expression as requests, of these shapes.
fn in_turn(request: &Request<'_, Spec>, shapes: Vec<&Vec<u64>>) -> Result<Program<'static>> {
    request.check()?;
    let expression = expression::of(&request.attrs).map_err(Error::bad_input)?;
    let mut steps: Vec<Step<'static>> = Vec::new();
    let mut push = |request: Request<'static, Value>, inputs: usize| {
        steps.push(request.into());
        (inputs + steps.len() - 1) as Value
    };
    let mut made: Vec<Value> = Vec::new();
    for (call, shape) in expression.calls.iter().zip(shapes) {
        let mut values = Vec::new();
        for term in &call.terms {
            values.push(match *term {
                Term::Operand(index) => index as Value,
                Term::Made(index) => made[index],
                Term::Number(number, dtype) => {
                    let mut bits = element(number, dtype);
                    bits.resize(8, 0);
                    let bits = bits.try_into().map(i64::from_le_bytes).unwrap_or(0);
                    push(fill(bits, dtype)?, request.inputs.len())
                }
            });
        }
        let spec = vec![(call.dtype, shape.clone())];
        // Rows lie along the last axis.
        let along = shape.len().saturating_sub(1) as i64;
        let attrs = call.reduces().then(|| Attr::ints("axes", [along]));
        let call = Request::new(call.op.clone(), values, spec, Vec::from_iter(attrs));
        made.push(push(call, request.inputs.len()));
    }
    let results: Vec<Value> = expression.results.iter().map(|&call| made[call]).collect();
    Program::new(request.inputs.len(), steps, results)
}
