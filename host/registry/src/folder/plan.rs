//! From a row and a request to a plan, a decline, or a wish for other operands; what has no number is declined.

use super::row::{Bound, Number, Push, Row, Step, Types, Value};
use crate::expression::{Expression, Tensor, desc, elements};
use nx_vulkan_abi::{
    Access, AttrKind, BufArg, Define, Dispatch, Fault, Features, InputAs, Outcome, Plan, Reply,
    Request, ShaderVariant, Slot, SpecConst, TensorDesc, glsl,
    plan::{MAX_DISPATCHES, MAX_SCRATCH_BYTES},
};

/// Why there is no plan.
enum Pass {
    Decline(String),
    InputsAs(Vec<InputAs>),
}

impl From<String> for Pass {
    fn from(reason: String) -> Pass {
        Pass::Decline(reason)
    }
}

/// Plans `request` by `row`. Pure, and total whatever the request says.
pub(crate) fn plan(row: &Row, request: &Request<'_>) -> Reply {
    let reply = Reply {
        outcome: Outcome::DECLINE,
        fault: Fault::NONE,
        message: "".into(),
        inputs_as: Vec::new().into(),
        plan: Plan::default(),
        spare: [0; 2],
    };
    match try_plan(row, request) {
        Ok(plan) => Reply {
            outcome: Outcome::PLAN,
            plan,
            ..reply
        },
        Err(Pass::InputsAs(list)) => Reply {
            outcome: Outcome::INPUTS_AS,
            inputs_as: list.into(),
            ..reply
        },
        Err(Pass::Decline(reason)) => Reply {
            message: reason.into(),
            ..reply
        },
    }
}

fn try_plan(row: &Row, request: &Request<'_>) -> Result<Plan, Pass> {
    check_types(row, request)?;
    for condition in &row.when {
        if condition.holds.evaluate(request)? == 0 {
            return Err(Pass::Decline(condition.reason.clone()));
        }
    }
    let mut results = request.outputs.iter().map(elements);
    if results.all(|count| count == Ok(0)) {
        return Ok(Plan::default());
    }
    let ordered = |(index, input): (u32, &TensorDesc<'_>)| {
        let starts = input.offset == 0 || row.offsets.contains(&index);
        let fits = starts && (!row.contiguous || input.is_contiguous());
        (!fits).then(|| InputAs::new(index, input.dtype))
    };
    let prepare: Vec<InputAs> = (0..)
        .zip(request.inputs.iter())
        .filter_map(ordered)
        .collect();
    if !prepare.is_empty() {
        return Err(Pass::InputsAs(prepare));
    }
    let mut plan = Plan::default();
    for bytes in &row.scratch {
        let value = bytes.evaluate(request)?;
        let size = u64::try_from(value).ok().filter(|&size| size > 0);
        plan.scratch.push(size.ok_or_else(|| {
            format!(
                "`{}` is {value}, which is no size of a scratch buffer",
                bytes.text
            )
        })?);
    }
    let operands = operands(request);
    // Steps that repeat no times are left out.
    let mut left_out = 0;
    for step in &row.steps {
        if let Some((steps, times)) = &step.repeat
            && times.evaluate(request)? == 0
        {
            left_out = *steps;
        }
        if left_out > 0 {
            left_out -= 1;
            continue;
        }
        let (shader, dispatch) = dispatch(step, request, &operands)?;
        let known = plan.shaders.iter().position(|known| *known == shader);
        let index = known.unwrap_or(plan.shaders.len());
        if known.is_none() {
            plan.shaders.push(shader);
        }
        plan.steps.push(Dispatch {
            shader: index as u32,
            ..dispatch
        });
    }
    check_totals(&plan, request)?;
    Ok(plan)
}

/// What sizes and repetitions come to, which the host would take for a broken plan.
fn check_totals(plan: &Plan, request: &Request<'_>) -> Result<(), String> {
    const COUNTS: u64 = 12; // bytes of workgroup counts
    let again = plan.steps.iter().filter_map(Dispatch::repetition);
    let again = again.map(|(steps, times)| u64::from(steps) * u64::from(times.saturating_sub(1)));
    let dispatches = plan.steps.len() as u64 + again.sum::<u64>();
    if dispatches > MAX_DISPATCHES as u64 {
        return Err(format!(
            "{dispatches} dispatches, and a plan has {MAX_DISPATCHES} at most"
        ));
    }
    let mut sizes = plan.scratch.iter();
    let bytes = sizes.try_fold(0u64, |sum, &size| sum.checked_add(size));
    if bytes.is_none_or(|bytes| bytes > MAX_SCRATCH_BYTES) {
        return Err(format!(
            "more than {MAX_SCRATCH_BYTES} bytes of scratch buffers"
        ));
    }
    let bytes = |arg: &BufArg| match arg.slot {
        Slot::INPUT => request
            .inputs
            .get(arg.index as usize)
            .map(|x| x.storage_len),
        Slot::OUTPUT => request
            .outputs
            .get(arg.index as usize)
            .map(|x| x.storage_len),
        _ => plan.scratch.get(arg.index as usize).copied(),
    };
    let args = plan.steps.iter().flat_map(|step| step.args.iter());
    let mut counts = args.filter(|arg| arg.spare != 0);
    match counts.find_map(|arg| bytes(arg).filter(|&bytes| bytes < COUNTS)) {
        None => Ok(()),
        Some(bytes) => Err(format!(
            "workgroup counts take {COUNTS} bytes, and what they are read from has {bytes}"
        )),
    }
}

fn check_types(row: &Row, request: &Request<'_>) -> Result<(), String> {
    let types = |list: &[TensorDesc<'_>]| list.iter().map(|desc| desc.dtype).collect::<Vec<_>>();
    let own = (
        types(request.inputs.as_slice()),
        types(request.outputs.as_slice()),
    );
    let every = || own.0.iter().chain(&own.1).copied();
    match &row.types {
        Types::Equal if every().zip(every().skip(1)).any(|(a, b)| a != b) => {
            return Err("it takes operands and results of one type".to_owned());
        }
        Types::Listed(list) if !list.contains(&own) => {
            return Err("it does not take these types together".to_owned());
        }
        Types::Any | Types::Equal | Types::Listed(_) => {}
    }
    for dtype in every() {
        let needs = Features::for_dtype(dtype);
        if !request.device.features.has(needs) {
            let missing = Features(needs.0 & !request.device.features.0).names();
            return Err(format!("{dtype} needs {}", missing.join(", ")));
        }
    }
    Ok(())
}

/// The defines that tell shaders the types: `A`, `B`, … for operands, `R`, `R1`, … for results.
fn operands(request: &Request<'_>) -> Vec<Define> {
    let letters = (b'A'..=b'P').map(|letter| char::from(letter).to_string());
    let inputs = letters.into_iter().zip(request.inputs.iter());
    let names = (0..).map(|index| {
        if index == 0 {
            "R".to_owned()
        } else {
            format!("R{index}")
        }
    });
    let mut defines: Vec<Define> = Vec::new();
    for (name, desc) in inputs.chain(names.zip(request.outputs.iter())) {
        for define in glsl::operand(&name, desc.dtype) {
            if !defines.contains(&define) {
                defines.push(define);
            }
        }
    }
    defines
}

fn dispatch(
    step: &Step,
    request: &Request<'_>,
    operands: &[Define],
) -> Result<(ShaderVariant, Dispatch), String> {
    let args = match &step.bindings {
        None => {
            let inputs = (0..request.inputs.len() as u32).map(BufArg::input);
            let outputs = (0..request.outputs.len() as u32).map(BufArg::output);
            inputs.chain(outputs).collect()
        }
        Some(list) => {
            let arg = |binding: &super::row::Binding| {
                let arg = match binding.buffer {
                    Bound::Tensor(Tensor::Input(index)) => BufArg::input(index),
                    Bound::Tensor(Tensor::Output(index)) => BufArg {
                        access: binding.access,
                        ..BufArg::output(index)
                    },
                    Bound::Scratch(index) => BufArg::scratch(index, binding.access),
                };
                if binding.counts { arg.counts() } else { arg }
            };
            list.iter().map(arg).collect::<Vec<_>>()
        }
    };
    check_buffers(&args, request)?;
    let mut defines = operands.to_vec();
    for (name, text) in &step.defines {
        defines.push(glsl::define(name.as_str(), text.fill(request)?));
    }
    let (push, counter) = push(&step.push, request)?;
    if push.len() > request.device.push_bytes as usize {
        let (own, most) = (push.len(), request.device.push_bytes);
        return Err(format!(
            "{own} bytes of push constants, and the device takes {most}"
        ));
    }
    let mut groups = [0; 3];
    for (axis, count) in groups.iter_mut().enumerate() {
        let (value, most) = (
            step.groups[axis].evaluate(request)?,
            request.device.max_groups[axis],
        );
        *count = u32::try_from(value)
            .ok()
            .filter(|&n| n <= most)
            .ok_or_else(|| {
                let text = &step.groups[axis].text;
                format!("`{text}` is {value}, and the device takes 0 to {most} workgroups there")
            })?;
    }
    let word = |expression: &Expression| {
        let value = expression.evaluate(request)?;
        integer(Number::U32, value).ok_or_else(|| beyond(&expression.text, value, Number::U32))
    };
    let mut constants = Vec::new();
    for (id, expression) in &step.constants {
        constants.push(SpecConst {
            id: *id,
            value: word(expression)? as u32,
        });
    }
    let subgroup_size = step.subgroup_size.as_ref().map(word).transpose()?;
    let shader = ShaderVariant {
        file: step.shader.as_str().into(),
        defines: defines.into(),
        bindings: args.len() as u32,
        push_bytes: push.len() as u32,
        subgroup_size: subgroup_size.unwrap_or(0) as u32,
        ..ShaderVariant::default()
    };
    let mut dispatch = Dispatch {
        groups,
        spec: constants.into(),
        args: args.into(),
        push: push.into(),
        ..Dispatch::default()
    };
    if let Some((steps, times)) = &step.repeat {
        dispatch = dispatch.repeated(*steps, word(times)? as u32);
    }
    if let Some((at, by)) = counter {
        dispatch = dispatch.counting(at, by);
    }
    Ok((shader, dispatch))
}

/// Tensors that the request lacks or that have no bytes cannot be bound.
fn check_buffers(args: &[BufArg], request: &Request<'_>) -> Result<(), String> {
    for arg in args {
        let (tensor, what) = match arg.slot {
            Slot::INPUT => (Tensor::Input(arg.index), "operand"),
            Slot::OUTPUT => (Tensor::Output(arg.index), "result"),
            _ => continue,
        };
        if elements(desc(tensor, request)?) == Ok(0) {
            return Err(format!("{what} {} is empty", arg.index));
        }
    }
    Ok(())
}

/// A word of the push constants, and what it grows by with each repetition.
type Counter = (u32, u32);

/// The bytes of the push constants, each aligned to its size as in std430.
fn push(list: &[Push], request: &Request<'_>) -> Result<(Vec<u8>, Option<Counter>), String> {
    let mut bytes: Vec<u8> = Vec::new();
    let mut counter = None;
    let whole = |expression: &Expression, number| {
        let value = expression.evaluate(request)?;
        integer(number, value).ok_or_else(|| beyond(&expression.text, value, number))
    };
    for Push { number, value } in list {
        bytes.resize(bytes.len().next_multiple_of(number.size()), 0);
        let bits = match value {
            Value::Float(value) => u64::from(value.to_bits()),
            Value::Attribute(name) => u64::from(float_attribute(name, request)?.to_bits()),
            Value::Integer(expression) => whole(expression, *number)?,
            Value::Counting(from, by) => {
                let by = whole(by, Number::I32)? as u32;
                counter = Some((bytes.len() as u32 / 4, by));
                whole(from, *number)?
            }
        };
        bytes.extend_from_slice(&bits.to_le_bytes()[..number.size()]);
    }
    Ok((bytes, counter))
}

/// The bits of an integer as a push constant; `None` where the type does not hold it.
fn integer(number: Number, value: i128) -> Option<u64> {
    match number {
        Number::U32 => u32::try_from(value).ok().map(u64::from),
        Number::I32 => i32::try_from(value).ok().map(|v| u64::from(v as u32)),
        Number::U64 => u64::try_from(value).ok(),
        Number::F32 => Some(u64::from((value as f32).to_bits())),
    }
}

fn beyond(text: &str, value: i128, number: Number) -> String {
    format!("`{text}` is {value}, which {} does not hold", number.name())
}

fn float_attribute(name: &str, request: &Request<'_>) -> Result<f32, String> {
    let attr = request.attr(name);
    let attr = attr.ok_or_else(|| format!("the request has no attribute `{name}`"))?;
    let number = match attr.kind {
        AttrKind::INTS => attr.ints.first().map(|&value| value as f32),
        AttrKind::FLOATS => attr.floats.first().map(|&value| value as f32),
        _ => None,
    };
    number.ok_or_else(|| format!("attribute `{name}` holds no number"))
}

/// How a step uses a buffer that its table does not say it of.
pub(super) fn usual_access(buffer: Bound) -> Access {
    match buffer {
        Bound::Tensor(Tensor::Input(_)) => Access::READ,
        Bound::Tensor(Tensor::Output(_)) => Access::WRITE,
        Bound::Scratch(_) => Access::READ_WRITE,
    }
}
