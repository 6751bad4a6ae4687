//! Epilogues: a product of floats takes along the ops that follow it, where nothing else reads what it gives.

use super::{Facts, Input, rebuilt};
use crate::{
    Attr, DType, Program, Request, Result, Step, Value,
    attrs::text,
    epilogue::{self, check_call},
    expression::FUSED,
    find,
    op::{Gives, Op},
};
use nx_vulkan_abi::{
    epilogue::{ATTRIBUTE, Call, Epilogue, FACTORS, MOST_CALLS, Term, Types},
    expression::{self, Expression, Number},
};

/// Most operands of a product and its epilogue together: the kit's kernels take four for an epilogue.
const MOST_OPERANDS: usize = FACTORS + 4;

/// Ops of a few instructions. Where a product has many results more of them than that take longer behind each sum, by the few
/// invocations that a tile of sums has, than by themselves: with a gelu bf16 1568x512 by 512x2048 takes an H200 (driver 580.159.04)
/// 36 us, without one 21.
const LIGHT: [&str; 12] = [
    "abs", "add", "as_type", "divide", "max", "min", "multiply", "negate", "rsqrt", "select",
    "sqrt", "subtract",
];
/// Results of a product that are few: each invocation has one or two.
const FEW_RESULTS: u64 = 1 << 16;

/// The program in which products with what follows them are one request each, as [`super::fuse`] left that. Their sums are as
/// exact as an epilogue has them: what has less than 32 bits is rounded once, at its end.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn take_along(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let steps = program.steps();
    let mut joined: Vec<Option<(usize, Request<'static, Value>)>> = vec![None; steps.len()];
    let mut is_taken = vec![false; steps.len()];
    for (place, step) in steps.iter().enumerate() {
        let Step::Request(last) = step else { continue };
        let found = last.inputs.iter().filter_map(|&value| {
            let product = facts.maker(value)?;
            let request = with(&program, product, last, value, &facts)?;
            (!is_taken[product]).then_some((product, request))
        });
        // The latest: what was made before it is there already.
        joined[place] = found.max_by_key(|(product, _)| *product);
        if let Some((product, _)) = joined[place] {
            is_taken[product] = true;
        }
    }

    let mut kept = Vec::new();
    for (place, (step, joined)) in steps.iter().zip(joined).enumerate() {
        let own = program.stands_for(place);
        kept.push(match joined {
            _ if is_taken[place] => None,
            Some((product, request)) => {
                let product = program.stands_for(product).into_iter();
                Some((request.into(), product.chain(own).collect()))
            }
            None => Some((step.clone(), own)),
        });
    }
    rebuilt(&program, kept)
}

/// The product at a place with `last`, which reads its result, as its epilogue; `None` where they cannot be one.
fn with(
    program: &Program<'static>,
    place: usize,
    last: &Request<'static, Value>,
    sums: Value,
    facts: &Facts,
) -> Option<Request<'static, Value>> {
    let Step::Request(product) = &program.steps()[place] else {
        return None;
    };
    let (own, [(made, shape)], [(result, of)]) =
        (find(&product.op)?, &*product.outputs, &*last.outputs)
    else {
        return None;
    };
    let reads = last.inputs.iter().filter(|value| **value == sums).count();
    let is_alone = facts.uses[sums as usize] == reads;
    if !epilogue::takes(own) || epilogue::has(&product.attrs) || shape != of || !is_alone {
        return None;
    }
    let expression = expression_of(last, facts)?;
    if of.iter().product::<u64>() <= FEW_RESULTS && waits(program, place, last, facts) {
        return None;
    }
    let mut operands: Vec<Value> = product.inputs.to_vec();
    // One type of numbers, but for the precision of what has less than 32 bits in the product or its result.
    let types: &[DType] = match [*made, *result] {
        [DType::F64, DType::F64] => &[DType::F64],
        [made, result] => &[DType::F32, made, result],
    };
    let epilogue = translated(&expression, last, sums, types, &mut operands, FACTORS)?;

    let dtypes: Vec<DType> = operands
        .iter()
        .map(|value| facts.dtypes[*value as usize])
        .collect();
    let computed = Types::of(&dtypes, *result, product.op == "conv")?;
    let is_wide = |dtype: &DType| *dtype == DType::F64;
    let mut floats = dtypes.iter().chain([made, result]);
    let fits = floats.clone().all(|dtype| dtype.is_float())
        && (floats.clone().all(is_wide) || !floats.any(is_wide))
        && operands.len() <= MOST_OPERANDS
        && epilogue.calls.len() <= MOST_CALLS
        && (is_light(&expression)? || shape.iter().product::<u64>() <= FEW_RESULTS)
        && epilogue
            .calls
            .iter()
            .all(|call| check_call(call, computed.compute).is_ok());
    if !fits {
        return None;
    }
    let mut attrs = product.attrs.to_vec();
    attrs.push(Attr::text(ATTRIBUTE, &epilogue.to_string()));
    attrs.sort_by(|a, b| a.name.cmp(&b.name));
    Some(Request::new(
        product.op.to_string(),
        operands,
        last.outputs.to_vec(),
        attrs,
    ))
}

/// Whether `product` would wait for another one of the same operand, whose result `last` reads as well: few results are made
/// sooner side by side, with `last` behind both.
fn waits(
    program: &Program<'static>,
    product: usize,
    last: &Request<'static, Value>,
    facts: &Facts,
) -> bool {
    let steps = program.steps();
    let operand = steps[product].inputs()[0];
    let makers = last.inputs.iter().filter_map(|&value| facts.maker(value));
    let mut others = makers.filter(|maker| *maker != product);
    others.any(|other| {
        let is_product = find(steps[other].op()).is_some_and(epilogue::takes);
        is_product
            && steps[other].inputs()[..FACTORS].contains(&operand)
            && !depends(steps, product.max(other), product.min(other), facts)
    })
}

/// Whether the step at a place needs what an earlier one makes.
fn depends(steps: &[Step<'_>], place: usize, earlier: usize, facts: &Facts) -> bool {
    let mut is_needed = vec![false; place + 1 - earlier];
    is_needed[place - earlier] = true;
    for place in (earlier + 1..=place).rev() {
        if is_needed[place - earlier] {
            let makers = steps[place].inputs().iter();
            let makers = makers.filter_map(|&value| facts.maker(value)?.checked_sub(earlier));
            makers.for_each(|maker| is_needed[maker] = true);
        }
    }
    is_needed[0]
}

/// Whether all of its ops are light; `None` where one is none at all.
pub(super) fn is_light(expression: &Expression) -> Option<bool> {
    let light = |call: &expression::Call| {
        let op = find(&call.op)?;
        Some(LIGHT.contains(&op.name) || is_test(op))
    };
    let calls: Option<Vec<bool>> = expression.calls.iter().map(light).collect();
    Some(calls?.into_iter().all(|is_light| is_light))
}

/// Whether it tells 1 or 0.
fn is_test(op: &Op) -> bool {
    op.gives == Gives::Bool
}

/// What an elementwise request computes.
pub(super) fn expression_of(
    request: &Request<'static, Value>,
    facts: &Facts,
) -> Option<Expression> {
    if request.op == FUSED {
        return text(&request.attrs, expression::ATTRIBUTE)?.parse().ok();
    }
    let is_plain = find(&request.op)?.kernel.is_elementwise() && request.attrs.is_empty();
    let term = |(index, value): (usize, &Value)| {
        let number = facts.numbers[*value as usize];
        let dtype = facts.dtypes[*value as usize];
        match number {
            Some(number) => expression::Term::Number(number, dtype),
            None => expression::Term::Operand(index),
        }
    };
    let call = expression::Call {
        op: request.op.to_string(),
        terms: request.inputs.iter().enumerate().map(term).collect(),
        dtype: request.outputs[0].0,
    };
    is_plain.then(|| Expression {
        calls: vec![call],
        results: vec![0],
    })
}

/// An expression as the epilogue of the product whose result is `sums`; the operands that it reads become further ones, behind the
/// request's own. It is computed in the widest of `types`: nothing where a number needs more, or something is rounded to another type
/// on the way.
pub(super) fn translated(
    expression: &Expression,
    request: &Request<'static, Value>,
    sums: Value,
    types: &[DType],
    operands: &mut Vec<Value>,
    own: usize,
) -> Option<Epilogue> {
    let last = expression.calls.len().checked_sub(1)?;
    if expression.results[..] != [last] {
        return None;
    }
    let is_held = |number: f64| {
        types.contains(&DType::F64) || number.is_nan() || f64::from(number as f32) == number
    };
    let mut calls = Vec::new();
    // What each call of the expression is here.
    let mut made: Vec<Term> = Vec::new();
    for call in &expression.calls {
        // What is no float is a test, which is 1 or 0 in the type of the others as well.
        if !is_test(find(&call.op)?) && !types.contains(&call.dtype) {
            return None;
        }
        let mut terms = Vec::new();
        for term in &call.terms {
            terms.push(match *term {
                expression::Term::Operand(index) if request.inputs[index] == sums => Term::Sum,
                expression::Term::Operand(index) => {
                    let value = request.inputs[index];
                    let further = &operands[own..];
                    let known = further.iter().position(|known| *known == value);
                    Term::Operand(
                        own + known.unwrap_or_else(|| {
                            operands.push(value);
                            operands.len() - own - 1
                        }),
                    )
                }
                expression::Term::Made(call) => made[call],
                expression::Term::Number(Number::Float(number), _) => {
                    is_held(number).then_some(Term::Number(number))?
                }
                expression::Term::Number(Number::Integer(number), _) => {
                    // An integer of at most 24 bits is a float of every type but the narrowest.
                    let small = i32::try_from(number).ok()?;
                    (small.unsigned_abs() < 1 << 24).then_some(Term::Number(small.into()))?
                }
            });
        }
        if call.op == "as_type" {
            made.extend(terms);
            continue;
        }
        made.push(Term::Made(calls.len()));
        calls.push(Call {
            op: call.op.clone(),
            terms,
        });
    }
    let is_last = made[last] == Term::Made(calls.len().checked_sub(1)?);
    is_last.then_some(Epilogue { calls })
}
