//! Plans of `fused_rows`: some invocations hold a row between them, reduce it as often as the expression says, and make the
//! results of what they hold.

use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceKind, Expression, Plan, Refusal, Request, TensorDesc,
    expression::{Call, Term},
    glsl::{self, define, operand},
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
const SHARES: [u64; 2] = [16, 2];
/// Elements that are loaded at a time, and their bytes.
const MOST_ABREAST: u64 = 4;
const MOST_BYTES: u64 = 16;
/// Invocations that keep a compute unit busy.
const BUSY: u64 = 512;
/// Invocations of a workgroup at least.
const WORKGROUP: u64 = 128;
/// Axes before the last one, where they do not follow from each other in memory.
const MOST_AXES: usize = 5;

/// How the invocations of a workgroup share rows.
struct Share {
    rows: u64,
    length: u64,
    /// Invocations that hold one.
    lanes: u64,
    /// Elements that an invocation holds next to each other, and how many times.
    width: u64,
    times: u64,
}

/// How an operand is read along a row.
#[derive(Clone, Copy, PartialEq)]
enum Reading {
    /// One element for all of it.
    One,
    Neighbours,
    Apart,
}

/// A reduction of the expression.
struct Reduction {
    dtype: DType,
    /// The number of its operand among those of the parts after it.
    operand: usize,
    /// The call that it is of, where that is needed again, and the number of that operand.
    kept: Option<(usize, usize)>,
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
    let width = width(request, &axes, *length);
    let lanes = lanes(*length, rows, width, request);
    let share = Share {
        rows,
        length: *length,
        lanes,
        width,
        times: length.div_ceil(lanes * width),
    };
    if share.times * width * inputs.len() as u64 > HELD {
        return Err(Refusal::decline(format!(
            "{} operands of {length} elements are more than {lanes} invocations hold",
            inputs.len()
        )));
    }
    emit(request, &expression, &axes, &share)
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

/// How an operand is read, and whether vectors of `width` elements begin where they may.
fn reading(request: &Request<'_>, k: usize, axes: &[(u64, Vec<i64>)], width: u64) -> Reading {
    let input = &request.inputs[k];
    let step = match (input.shape.last(), input.strides.last()) {
        (Some(extent), Some(stride)) if *extent != 1 => *stride,
        _ => 0,
    };
    let is_whole = |n: i64| n % width as i64 == 0;
    let vector = glsl::types(input.dtype).and_then(|types| glsl::vector(types.0, width));
    match step {
        0 => Reading::One,
        1 if width == 1 => Reading::Neighbours,
        1 if vector.is_some()
            && is_whole(input.offset as i64)
            && axes.iter().all(|axis| is_whole(axis.1[k])) =>
        {
            Reading::Neighbours
        }
        _ => Reading::Apart,
    }
}

/// Elements that are loaded and stored at a time.
fn width(request: &Request<'_>, axes: &[(u64, Vec<i64>)], length: u64) -> u64 {
    let all = || request.inputs.iter().chain(request.outputs);
    let largest = all().map(|tensor| tensor.dtype.size()).max().unwrap_or(1);
    let fits = |width: &u64| {
        let is_there = |tensor: &TensorDesc<'_>| {
            glsl::types(tensor.dtype)
                .and_then(|types| glsl::vector(types.0, *width))
                .is_some()
        };
        let mut readings = (0..request.inputs.len()).map(|k| reading(request, k, axes, *width));
        length.is_multiple_of(*width)
            && *width * largest <= MOST_BYTES
            && all().all(is_there)
            && readings.any(|reading| reading == Reading::Neighbours)
    };
    let widths = [MOST_ABREAST, 2];
    match request.device.kind {
        DeviceKind::CPU => 1,
        _ => widths.into_iter().find(fits).unwrap_or(1),
    }
}

/// Invocations that share a row.
fn lanes(length: u64, rows: u64, width: u64, request: &Request<'_>) -> u64 {
    let device = request.device;
    let most = u64::from(grid::threads(device, 1024));
    if device.kind == DeviceKind::CPU {
        return length.div_ceil(8).next_power_of_two().min(most);
    }
    let units = u64::from(device.compute_units.max(4));
    let [many, few] = SHARES.map(|share| length.div_ceil(share.max(width)).next_power_of_two());
    let lanes = if rows * many >= units * BUSY {
        many
    } else {
        few
    };
    let least = u64::from(device.subgroup_size.max(1));
    let least = least.min(length.div_ceil(width).next_power_of_two());
    lanes.max(least).min(most)
}

fn emit(
    request: &Request<'_>,
    expression: &Expression,
    axes: &[(u64, Vec<i64>)],
    share: &Share,
) -> Result<Plan, Refusal> {
    let device = request.device;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    let most = u64::from(grid::threads(device, 1024));
    let threads = share.lanes.max(WORKGROUP.min(most));
    let mut operands: Vec<DType> = inputs.iter().map(|input| input.dtype).collect();
    // What is known of calls from some part on: operands of the parts after it.
    let mut known: Vec<Option<usize>> = vec![None; expression.calls.len()];
    let mut reductions: Vec<Reduction> = Vec::new();
    for (place, call) in expression.calls.iter().enumerate() {
        if !call.reduces() {
            continue;
        }
        let code = Code::of(&part(expression, &call.terms, &known), &operands, device)?;
        let term = match call.terms[..] {
            [Term::Operand(index)] => format!("i{index}"),
            [Term::Made(made)] if known[made].is_some() => {
                format!("i{}", known[made].unwrap_or_default())
            }
            _ => code.results.first().cloned().unwrap_or_default(),
        };
        let mut next = |call: usize| {
            operands.push(expression.calls[call].dtype);
            known[call] = Some(operands.len() - 1);
            operands.len() - 1
        };
        let kept = call
            .terms
            .iter()
            .find_map(made)
            .filter(|made| is_needed(expression, *made));
        let kept = kept.filter(|_| !code.results.is_empty());
        let kept = kept.map(|made| (made, next(made)));
        reductions.push(Reduction::of(call, (code, term), kept, next(place))?);
    }
    let results: Vec<Term> = expression
        .results
        .iter()
        .map(|&call| Term::Made(call))
        .collect();
    let code = Code::of(&part(expression, &results, &known), &operands, device)?;

    let vector = |name: &str, dtype: DType, width: u64| {
        let storage = glsl::types(dtype).map_or("float", |types| types.0);
        define(
            format!("{name}_VECTOR"),
            glsl::vector(storage, width).unwrap_or(storage),
        )
    };
    let lane = if share.width == 1 { "x" } else { "x[n]" };
    let mut defines = Vec::new();
    for (k, input) in inputs.iter().enumerate() {
        let name = format!("I{k}");
        let reading = reading(request, k, axes, share.width);
        defines.extend(operand(&name, input.dtype));
        defines.push(vector(&name, input.dtype, share.width));
        defines.push(define(
            format!("{name}_READ"),
            match reading {
                Reading::One => "READ_ONE",
                Reading::Neighbours => "READ_NEIGHBOURS",
                Reading::Apart => "READ_APART",
            },
        ));
    }
    for (k, output) in outputs.iter().enumerate() {
        let name = format!("R{k}");
        let is_row = output.shape.last() == Some(&1) && share.length > 1;
        let stored_as = if is_row {
            "STORE_ROW"
        } else {
            "STORE_ELEMENTS"
        };
        defines.extend(operand(&name, output.dtype));
        defines.push(vector(
            &name,
            output.dtype,
            if is_row { 1 } else { share.width },
        ));
        defines.push(define(format!("{name}_MADE"), code.results[k].as_str()));
        defines.push(define(format!("{name}_STORING"), stored_as));
    }
    let is_wide = reductions
        .iter()
        .any(|reduction| reduction.dtype == DType::F64);
    for (k, reduction) in reductions.iter().enumerate() {
        reduction.define(k, &reductions, expression, &mut defines);
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
    let kept = reductions
        .iter()
        .enumerate()
        .filter(|(_, reduction)| reduction.kept.is_some());
    let kept: Vec<usize> = kept.map(|(k, _)| k).collect();
    defines.extend([
        each("EACH_OPERAND(f)", 0..inputs.len()),
        each("EACH_REDUCTION(f)", 0..reductions.len()),
        each("EACH_KEPT(f)", kept),
        each("EACH_RESULT(f)", 0..outputs.len()),
        define("CODE", code.body.as_str()),
        define("NAMES_OF_ALL", names(&reductions)),
        define("LANE", lane),
        define("SHARED_VALUE", if is_wide { "double" } else { "float" }),
        number("INPUTS", inputs.len() as u64),
        number("AXES", axes.len() as u64),
        number("LANES", share.lanes),
        number("WIDTH", share.width),
        number("TIMES", share.times),
        number("LENGTH", share.length),
        number("SUBGROUP", subgroup),
        number("WORKGROUP", threads),
    ]);
    let mut words = vec![share.rows as u32];
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
        groups: grid::spread(share.rows.div_ceil(threads / share.lanes), device)?,
        subgroup_size: subgroup,
        ..Step::default()
    };
    let mut plan = Plan::default();
    step.add_within(&mut plan, device.push_bytes);
    Ok(plan)
}

/// Whether something beside reductions needs a call.
fn is_needed(expression: &Expression, call: usize) -> bool {
    let reads = |other: &Call| !other.reduces() && other.terms.contains(&Term::Made(call));
    expression.results.contains(&call) || expression.calls.iter().any(reads)
}

impl Reduction {
    fn of(
        call: &Call,
        (code, term): (Code, String),
        kept: Option<(usize, usize)>,
        operand: usize,
    ) -> Result<Reduction, Refusal> {
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
            operand,
            kept,
            take,
            has_rest,
            start,
            code,
            term,
        })
    }

    /// What the shader needs to know of reduction `k` of `all`.
    fn define(&self, k: usize, all: &[Reduction], expression: &Expression, to: &mut Vec<Define>) {
        let name = format!("M{k}");
        let keeps = match self.kept {
            Some((call, _)) => {
                to.extend(operand(&format!("S{k}"), expression.calls[call].dtype));
                format!("element.s{k} = {}; ", self.term)
            }
            None => String::new(),
        };
        let whole = if self.has_rest { "whole(a, rest)" } else { "a" };
        let own = stored(&format!("nxv_to_{}(x)", self.dtype), self.dtype);
        to.extend(operand(&name, self.dtype));
        to.extend(self.code.defines());
        to.extend([
            define(format!("NAMES_BEFORE_{k}"), names(&all[..k])),
            define(format!("{name}_TAKE(a, a_rest, b, b_rest)"), self.take),
            define(format!("{name}_WHOLE(a, rest)"), whole),
            define(
                format!("{name}_HAS_REST"),
                if self.has_rest { "true" } else { "false" },
            ),
            define(format!("{name}_START"), self.start),
            define(
                format!("{name}_CODE"),
                format!("{}{keeps}return {};", self.code.body, self.term),
            ),
            define(format!("{name}_STORED(x)"), own),
        ]);
    }
}

/// The calls that `terms` need, of operands and of calls that are `known`, which are further operands.
fn part(expression: &Expression, terms: &[Term], known: &[Option<usize>]) -> Expression {
    let mut needed = vec![false; expression.calls.len()];
    let mut next: Vec<usize> = terms.iter().filter_map(made).collect();
    while let Some(call) = next.pop() {
        if known[call].is_none() && !std::mem::replace(&mut needed[call], true) {
            next.extend(expression.calls[call].terms.iter().filter_map(made));
        }
    }
    let mut renamed: Vec<Term> = Vec::new();
    let mut calls = Vec::new();
    for ((call, needed), known) in expression.calls.iter().zip(needed).zip(known) {
        renamed.push(match known {
            Some(operand) => Term::Operand(*operand),
            None => Term::Made(calls.len()),
        });
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
    // A result is a call, be it one that gives what is known.
    let mut results = Vec::new();
    for made in terms.iter().filter_map(made) {
        results.push(match renamed[made] {
            Term::Made(call) => call,
            known => {
                calls.push(Call {
                    op: "as_type".to_owned(),
                    terms: vec![known],
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

/// Names of operands for what reductions give and keep.
fn names(reductions: &[Reduction]) -> String {
    let mut all = String::new();
    for (k, reduction) in reductions.iter().enumerate() {
        if let Some((_, operand)) = reduction.kept {
            all += &format!("S{k}_VALUE i{operand} = element.s{k}; ");
        }
        all += &format!("M{k}_VALUE i{} = reduced.m{k}; ", reduction.operand);
    }
    all
}

/// `f(0) f(1)`, for macros that stand for one of several.
fn each(name: &str, numbers: impl IntoIterator<Item = usize>) -> Define {
    let all: Vec<String> = numbers.into_iter().map(|k| format!("f({k})")).collect();
    define(name, all.join(" "))
}
