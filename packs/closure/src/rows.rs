//! Plans of `fused_rows`: some invocations hold a row between them, reduce it as often as the expression says, and make the
//! results of what they hold.

use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceKind, Expression, Plan, Refusal, Request, TensorDesc,
    expression::{Call, Term},
    glsl::{define, operand},
    plan::MAX_BINDINGS,
};
use nx_vulkan_pack_kit::{
    expression::{Code, stored},
    grid,
    operand::within_reach,
    steps::{Step, bytes_of, distinct, number},
};

/// Bindings that are left to the plan's parameters, what the host watches, and what it is told.
const SPARE: usize = 3;
/// Elements of operands that an invocation has registers for.
const HELD: u64 = 96;
/// Elements of a row that are worth an invocation, where there are many rows and where there are few.
const SHARES: [u64; 2] = [8, 2];
/// Invocations that keep a compute unit busy.
const BUSY: u64 = 512;
/// Invocations of a workgroup at least.
const WORKGROUP: u64 = 128;
/// Axes before the last one, where they do not follow from each other in memory.
const MOST_AXES: usize = 5;

/// A reduction of the expression.
struct Reduction {
    dtype: DType,
    /// Statement that takes another value, with what rounding took from it where that `has_rest`.
    take: &'static str,
    has_rest: bool,
    start: &'static str,
    /// Statements that make its term of an element, and the term.
    code: Code,
    term: String,
}

/// Plans a request.
pub(crate) fn plan(request: &Request<'_>) -> Result<Plan, Refusal> {
    let expression = Expression::of(request)?;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    if !expression
        .gives()
        .eq(outputs.iter().map(|output| output.dtype))
        || inputs.is_empty()
    {
        return Err(Refusal::BadRequest(
            "its results are not those of the expression".to_owned(),
        ));
    }
    let bound = inputs.len() + outputs.len();
    if bound > MAX_BINDINGS - SPARE {
        return Err(Refusal::decline(format!(
            "{bound} operands and results are more than a dispatch binds"
        )));
    }
    within_reach(request)?;
    let shape = shape(request)?;
    let (length, lead) = shape
        .split_last()
        .ok_or_else(|| Refusal::BadRequest("operands without axes have no rows".to_owned()))?;
    let rows: u64 = lead.iter().product();
    if rows == 0 {
        return Ok(Plan::default());
    }
    if *length == 0 {
        return Err(Refusal::decline("rows without elements"));
    }
    let axes = axes(request, lead)?;
    let lanes = lanes(*length, rows, request)?;
    let held = length.div_ceil(lanes);
    if held * inputs.len() as u64 > HELD {
        return Err(Refusal::decline(format!(
            "{} operands of {length} elements are more than {lanes} invocations hold",
            inputs.len()
        )));
    }
    emit(request, &expression, &axes, (rows, *length, lanes, held))
}

/// What the operands broadcast to.
fn shape(request: &Request<'_>) -> Result<Vec<u64>, Refusal> {
    let inputs = request.inputs.iter();
    let rank = inputs.clone().map(|input| input.rank()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for input in inputs {
        for (to, &extent) in shape[rank - input.rank()..].iter_mut().zip(&*input.shape) {
            match (*to, extent) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *to = b,
                _ => {
                    return Err(Refusal::BadRequest(
                        "its operands do not broadcast to one shape".to_owned(),
                    ));
                }
            }
        }
    }
    Ok(shape)
}

/// The extents of the axes before the last one, joined where that is one for all operands, and each operand's strides along them.
fn axes(request: &Request<'_>, lead: &[u64]) -> Result<Vec<(u64, Vec<i64>)>, Refusal> {
    let mut axes: Vec<(u64, Vec<i64>)> = Vec::new();
    for (axis, &extent) in lead.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let stride = |input: &TensorDesc<'_>| {
            let own = (axis + input.rank()).checked_sub(lead.len() + 1);
            own.filter(|own| input.shape[*own] != 1)
                .map_or(0, |own| input.strides[own])
        };
        let strides: Vec<i64> = request.inputs.iter().map(stride).collect();
        let follows = |before: &[i64]| {
            before
                .iter()
                .zip(&strides)
                .all(|(before, own)| *before == own * extent as i64)
        };
        match axes.last_mut() {
            Some((joined, before)) if follows(before) => {
                *joined *= extent;
                *before = strides;
            }
            _ => axes.push((extent, strides)),
        }
    }
    if axes.is_empty() {
        axes.push((1, vec![0; request.inputs.len()]));
    }
    match axes.len() {
        0..=MOST_AXES => Ok(axes),
        many => Err(Refusal::decline(format!(
            "rows along {many} axes that do not follow from each other"
        ))),
    }
}

/// Invocations that share a row.
fn lanes(length: u64, rows: u64, request: &Request<'_>) -> Result<u64, Refusal> {
    let device = request.device;
    let most = u64::from(grid::threads(device, 1024));
    if device.kind == DeviceKind::CPU {
        return Ok(length.div_ceil(8).next_power_of_two().min(most));
    }
    let units = u64::from(device.compute_units.max(4));
    let [many, few] = SHARES.map(|share| length.div_ceil(share).next_power_of_two());
    let lanes = if rows * many >= units * BUSY {
        many
    } else {
        few
    };
    let least = u64::from(device.subgroup_size.max(1)).min(length.next_power_of_two());
    Ok(lanes.max(least).min(most))
}

fn emit(
    request: &Request<'_>,
    expression: &Expression,
    axes: &[(u64, Vec<i64>)],
    (rows, length, lanes, held): (u64, u64, u64, u64),
) -> Result<Plan, Refusal> {
    let device = request.device;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    let most = u64::from(grid::threads(device, 1024));
    let threads = lanes.max(WORKGROUP.min(most));
    let mut operands: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    let mut reductions: Vec<Reduction> = Vec::new();
    // What is reduced is another operand from there on.
    let places = expression
        .calls
        .iter()
        .enumerate()
        .filter(|(_, call)| call.reduces());
    for (place, call) in places {
        let part = part(expression, &call.terms, inputs.len());
        let code = Code::of(&part, &operands, device)?;
        let term = match call.terms[..] {
            [Term::Operand(index)] => format!("i{index}"),
            _ => code.results.first().cloned().unwrap_or_default(),
        };
        reductions.push(Reduction::of(call, code, term)?);
        operands.push(expression.calls[place].dtype);
    }
    let results: Vec<Term> = expression
        .results
        .iter()
        .map(|&call| Term::Made(call))
        .collect();
    let last = part(expression, &results, inputs.len());
    let code = Code::of(&last, &operands, device)?;

    let mut defines = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        defines.extend(operand(&format!("I{k}"), input.dtype));
    }
    for (k, output) in outputs.iter().enumerate() {
        let name = format!("R{k}");
        let is_row = output.shape.last() == Some(&1) && length > 1;
        defines.extend(operand(&name, output.dtype));
        defines.push(define(format!("{name}_MADE"), code.results[k].as_str()));
        defines.push(number(&format!("{name}_IS_ROW"), u64::from(is_row)));
    }
    let is_wide = reductions
        .iter()
        .any(|reduction| reduction.dtype == DType::F64);
    for (k, reduction) in reductions.iter().enumerate() {
        let name = format!("M{k}");
        defines.extend(operand(&name, reduction.dtype));
        defines.extend(reduction.code.defines());
        defines.extend([
            define(format!("NAMES_BEFORE_{k}"), names(inputs.len(), k)),
            define(format!("{name}_TAKE(a, a_rest, b, b_rest)"), reduction.take),
            define(
                format!("{name}_WHOLE(a, rest)"),
                if reduction.has_rest {
                    "whole(a, rest)"
                } else {
                    "a"
                },
            ),
            define(
                format!("{name}_HAS_REST"),
                if reduction.has_rest { "true" } else { "false" },
            ),
            define(format!("{name}_START"), reduction.start),
            define(
                format!("{name}_CODE"),
                format!("{}return {};", reduction.code.body, reduction.term),
            ),
            define(
                format!("{name}_STORED(x)"),
                stored(&format!("nxv_to_{}(x)", reduction.dtype), reduction.dtype),
            ),
        ]);
    }
    defines.extend(code.defines());
    let mut defines = distinct(defines);
    let has_subgroups =
        !is_wide && device.kind != DeviceKind::CPU && grid::has_full_subgroups(device, threads);
    let subgroup = if has_subgroups {
        device.subgroup_size
    } else {
        0
    };
    defines.extend([
        each("EACH_OPERAND(f)", inputs.len()),
        each("EACH_REDUCTION(f)", reductions.len()),
        each("EACH_RESULT(f)", outputs.len()),
        define("CODE", code.body.as_str()),
        define("NAMES_OF_ALL", names(inputs.len(), reductions.len())),
        define("SHARED_VALUE", if is_wide { "double" } else { "float" }),
        number("INPUTS", inputs.len() as u64),
        number("REDUCTIONS", reductions.len() as u64),
        number("AXES", axes.len() as u64),
        number("LANES", lanes),
        number("HELD", held),
        number("LENGTH", length),
        number("SUBGROUP", subgroup),
        number("WORKGROUP", threads),
    ]);
    let mut words = vec![rows as u32];
    words.extend(axes.iter().map(|axis| axis.0 as u32));
    for (k, input) in inputs.iter().enumerate() {
        let is_one = input.shape.last().is_none_or(|last| *last == 1);
        let column = input
            .strides
            .last()
            .filter(|_| !is_one)
            .copied()
            .unwrap_or(0);
        words.extend([input.offset as u32, column as u32]);
        words.extend(axes.iter().map(|axis| axis.1[k] as u32));
    }
    let given = (0..inputs.len() as u32).map(BufArg::input);
    let made = (0..outputs.len() as u32).map(BufArg::output);
    let step = Step {
        file: "rows.comp",
        defines,
        args: given.chain(made).collect(),
        push: bytes_of(&words),
        groups: grid::spread(rows.div_ceil(threads / lanes), device)?,
        subgroup_size: subgroup,
        ..Step::default()
    };
    let mut plan = Plan::default();
    step.add_within(&mut plan, device.push_bytes);
    Ok(plan)
}

impl Reduction {
    fn of(call: &Call, code: Code, term: String) -> Result<Reduction, Refusal> {
        // Infinities by their bits.
        let has_rest = call.op == "sum" && call.dtype == DType::F32;
        let (take, start) = match call.op.as_str() {
            "sum" if has_rest => ("add(a, a_rest, b, b_rest)", "0"),
            "sum" => ("a += b", "0"),
            "reduce_max" => ("a = greater(a, b)", "uintBitsToFloat(0xff800000u)"),
            "reduce_min" => ("a = less(a, b)", "uintBitsToFloat(0x7f800000u)"),
            other => return Err(Refusal::BadRequest(format!("{other} reduces no rows"))),
        };
        Ok(Reduction {
            dtype: call.dtype,
            take,
            has_rest,
            start,
            code,
            term,
        })
    }
}

/// The calls that `terms` need, of operands and of reductions, which are further operands.
fn part(expression: &Expression, terms: &[Term], inputs: usize) -> Expression {
    let mut needed = vec![false; expression.calls.len()];
    let mut next: Vec<usize> = terms.iter().filter_map(made).collect();
    while let Some(call) = next.pop() {
        let own = &expression.calls[call];
        if !std::mem::replace(&mut needed[call], true) && !own.reduces() {
            next.extend(own.terms.iter().filter_map(made));
        }
    }
    let mut renamed: Vec<Term> = Vec::new();
    let (mut calls, mut reductions) = (Vec::new(), 0);
    for (call, needed) in expression.calls.iter().zip(needed) {
        if call.reduces() {
            renamed.push(Term::Operand(inputs + reductions));
            reductions += 1;
            continue;
        }
        renamed.push(Term::Made(calls.len()));
        if needed {
            let terms = call.terms.iter().map(|term| match *term {
                Term::Made(made) => renamed[made],
                other => other,
            });
            calls.push(Call {
                terms: terms.collect(),
                ..call.clone()
            });
        }
    }
    // A result is a call, be it one that gives what was reduced.
    let mut results = Vec::new();
    for made in terms.iter().filter_map(made) {
        results.push(match renamed[made] {
            Term::Made(call) => call,
            reduced => {
                calls.push(Call {
                    op: "as_type".to_owned(),
                    terms: vec![reduced],
                    dtype: expression.calls[made].dtype,
                });
                calls.len() - 1
            }
        });
    }
    Expression { calls, results }
}

fn made(term: &Term) -> Option<usize> {
    match *term {
        Term::Made(made) => Some(made),
        Term::Operand(_) | Term::Number(..) => None,
    }
}

/// Names of operands for the first reductions, which come after the inputs.
fn names(inputs: usize, reductions: usize) -> String {
    let name = |k: usize| format!("M{k}_VALUE i{} = reduced.m{k};", inputs + k);
    let all: Vec<String> = (0..reductions).map(name).collect();
    all.join(" ")
}

/// `f(0) f(1)`, for macros that stand for one of several.
fn each(name: &str, count: usize) -> Define {
    let all: Vec<String> = (0..count).map(|k| format!("f({k})")).collect();
    define(name, all.join(" "))
}
