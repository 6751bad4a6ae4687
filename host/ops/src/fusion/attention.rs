//! Attention is one request: a product, the softmax of its rows, and the product of that with a third tensor. Its scores and weights,
//! one for each row and key, are then nowhere in memory.

mod apart;
mod regroup;
mod softmax;

use super::{Facts, Input, follow::translated, shapes, split::Writer};
use crate::{
    Attr, DType, Program, Request, Result, Spec, Step, Value, View,
    attention::{ATTENTION, OWN, SCORES},
    attrs::{ints, text},
    epilogue::has,
    expression::{self, ROWS},
    op::Gives,
    precision::{self, Precision},
};
use apart::{Made, apart};
use nx_vulkan_abi::{
    epilogue::{self, Epilogue, FACTORS, Term},
    expression::{Expression, Term as Element},
};
use regroup::regrouped;
use smallvec::SmallVec;
use softmax::softmax_of;
use std::collections::HashMap;

/// Types that its kernels are for. Of others the products are as exact, and faster by themselves.
const TYPES: [DType; 2] = [DType::F16, DType::BF16];
/// Most operands: the kit's kernels take four for the scores.
const MOST_OPERANDS: usize = OWN + 4;

/// The program in which attention is one request. Scores and weights are rounded less often, or elsewhere, than op by op.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn attention(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let mut is_part = vec![false; program.steps().len()];
    let mut found = Vec::new();
    for place in 0..program.steps().len() {
        let chain = Chain::of(&program, place, &facts, &shapes);
        // What is the second product of one is not the first of another.
        let chain = chain.filter(|chain| chain.places.iter().all(|&place| !is_part[place]));
        let parts = chain.iter().flat_map(|chain| &chain.places);
        parts.for_each(|&place| is_part[place] = true);
        found.push(chain);
    }
    let chains = found.iter_mut().flatten();
    let mut others: HashMap<usize, Made> = chains.filter_map(|chain| chain.others.take()).collect();
    let mut writer = Writer::of(&program);
    for (place, chain) in found.into_iter().enumerate() {
        match chain {
            Some(chain) => chain.write(&program, facts.first[place], &mut writer),
            None if is_part[place] => {
                if let Some((request, made)) = others.remove(&place) {
                    writer.add_all_as(request.into(), made, &program.stands_for(place));
                }
            }
            None => writer.keep(&program, place, &facts),
        }
    }
    writer.finish(&program)
}

/// Whether f32, in which scores are finished, holds all numbers of a type.
fn is_exact(dtype: DType) -> bool {
    dtype != DType::F64 && (dtype.is_float() || dtype.size() <= 2)
}

/// What is one request.
struct Chain {
    /// Where its steps stand, ascending.
    places: Vec<usize>,
    request: Request<'static, Value>,
    /// How each operand of the request is seen.
    views: Vec<Option<View>>,
    /// What the softmax's place makes beside it.
    others: Option<(usize, Made)>,
}

impl Chain {
    /// The chain whose last step is at that place.
    fn of(
        program: &Program<'static>,
        place: usize,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Chain> {
        let means = Product::of(program, place, shapes)?;
        let &[weights, v] = &*means.request.inputs else {
            return None;
        };
        let mut places = vec![place];
        let (softmax, result) = maker(program, weights, facts, &mut places)?;
        let Step::Request(rows) = &program.steps()[softmax] else {
            return None;
        };
        let behind = places.len();
        let (scores, product) = rows.inputs.iter().find_map(|&value| {
            places.truncate(behind);
            let (place, _) = maker(program, value, facts, &mut places)?;
            Some((value, Product::of(program, place, shapes)?))
        })?;
        let spec = |value: Value| (facts.dtypes[value as usize], shapes[value as usize].clone());
        let made: Vec<Value> = (facts.first[softmax]..).take(rows.outputs.len()).collect();
        let (rows, others) = apart(rows, (&made, result), scores, spec)?;
        let (ROWS, [(_, of)], [(made, shape)], [(dtype, _)]) = (
            &*rows.op,
            &*rows.outputs,
            &*product.request.outputs,
            &*means.request.outputs,
        ) else {
            return None;
        };

        // Views in between cancel, and leave rows whole.
        let is_one = shapes[weights as usize] == *shape
            && shapes[scores as usize] == *of
            && of.last() == shape.last()
            && product.batches == means.batches
            && means.left + 1 == shape.len()
            && !has(&means.request.attrs);
        let own = product.request.inputs[..FACTORS].iter();
        let mut types = own
            .chain([&v, &weights])
            .map(|&value| facts.dtypes[value as usize]);
        if !is_one || !TYPES.contains(dtype) || made != dtype || types.any(|own| own != *dtype) {
            return None;
        }
        let (text, further) = finished(product.request, &rows, scores, *dtype)?;
        let mut seen = product.operands(v, &means, facts, shapes);
        for value in further {
            let (dtype, own) = (facts.dtypes[value as usize], &shapes[value as usize]);
            let shape = regrouped(own, of, shape)?;
            let view = (shape != *own).then(|| View::Reshape(shape.clone()));
            let spec = (dtype, shape);
            seen.push(Seen { value, view, spec });
        }
        let specs: Vec<Spec> = seen.iter().map(|seen| seen.spec.clone()).collect();
        let values: Vec<Value> = seen.iter().map(|seen| seen.value).collect();
        let attrs = text.map(|text| Attr::text(SCORES, &text.to_string()));
        let outputs = means.request.outputs.to_vec();
        let request = Request::new(ATTENTION, values, outputs, Vec::from_iter(attrs));
        let fits = seen.len() <= MOST_OPERANDS
            && specs.iter().all(|spec| is_exact(spec.0))
            && request.over(specs).check().is_ok();
        places.sort_unstable();
        fits.then(|| Chain {
            places,
            request,
            views: seen.into_iter().map(|seen| seen.view).collect(),
            others: others.map(|others| (softmax, others)),
        })
    }

    /// Writes it as what makes the value `made`.
    fn write(self, program: &Program<'static>, made: Value, writer: &mut Writer) {
        let own = self
            .places
            .iter()
            .flat_map(|&place| program.stands_for(place));
        let places: SmallVec<[usize; 1]> = own.collect();
        let mut request = self.request;
        let values = request.inputs.to_mut().iter_mut();
        for (value, view) in values.zip(self.views) {
            if let Some(view) = view {
                *value = writer.view(*value, view, &places);
            }
        }
        writer.add_as(request.into(), made, &places);
    }
}

/// A value as an operand: how it is seen, and what it then is.
struct Seen {
    value: Value,
    view: Option<View>,
    spec: Spec,
}

impl Seen {
    /// A value with its axes in that order.
    fn turned(value: Value, order: Vec<usize>, facts: &Facts, shapes: &[Vec<u64>]) -> Seen {
        let shape = &shapes[value as usize];
        let turned = order.iter().map(|&axis| shape[axis]).collect();
        Seen {
            value,
            view: (!order.is_sorted()).then_some(View::Transpose(order)),
            spec: (facts.dtypes[value as usize], turned),
        }
    }
}

/// A product of the default precision, whose right operand has batches, an axis that is summed over, and one that is not.
struct Product<'a> {
    request: &'a Request<'static, Value>,
    batches: usize,
    /// The axis of each operand that is summed over.
    left: usize,
    right: usize,
}

impl<'a> Product<'a> {
    fn of(program: &'a Program<'static>, place: usize, shapes: &[Vec<u64>]) -> Option<Product<'a>> {
        let Step::Request(request) = &program.steps()[place] else {
            return None;
        };
        let [batch_a, batch_b, contract_a, contract_b] =
            ["batch_a", "batch_b", "contract_a", "contract_b"]
                .map(|name| ints(&request.attrs, name));
        let (&[a, b, ..], &[left], &[right]) = (&*request.inputs, contract_a, contract_b) else {
            return None;
        };
        let [left, right] = [left, right].map(|axis| usize::try_from(axis).unwrap_or(usize::MAX));
        let [a, b] = [a, b].map(|value| shapes[value as usize].len());
        let batches = batch_a.len();
        let is_one = request.op == "dot"
            && precision::of(&request.op, &request.attrs) == Precision::Default
            && batch_b.len() == batches
            && b == batches + 2
            && a >= b
            && left < a
            && right < b;
        is_one.then_some(Product {
            request,
            batches,
            left,
            right,
        })
    }

    /// Its operands as those of attention, with v between its factors and the others; `means` is the product with that.
    fn operands(
        &self,
        v: Value,
        means: &Product<'_>,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Vec<Seen> {
        let see = |value: Value, first: usize, last: Option<usize>| {
            let mut order: Vec<usize> = (0..shapes[value as usize].len()).collect();
            order[first..].sort_by_key(|&axis| Some(axis) == last);
            Seen::turned(value, order, facts, shapes)
        };
        let values = &self.request.inputs;
        // Of v's two axes behind the batches the one that is not summed over is the last.
        let column = 2 * means.batches + 1 - means.right;
        let own = [
            see(values[0], self.batches, Some(self.left)),
            see(values[1], self.batches, Some(self.right)),
            see(v, means.batches, Some(column)),
        ];
        let further = values[FACTORS..].iter();
        let further = further.map(|&value| see(value, 0, None));
        own.into_iter().chain(further).collect()
    }
}

/// The place of the request that makes a value, or what the value is a reshape of, and which value that is, where each of these is
/// read once. Their places are added.
fn maker(
    program: &Program<'static>,
    mut value: Value,
    facts: &Facts,
    places: &mut Vec<usize>,
) -> Option<(usize, Value)> {
    loop {
        let place = facts
            .maker(value)
            .filter(|_| facts.uses[value as usize] == 1)?;
        places.push(place);
        match &program.steps()[place] {
            Step::Request(_) => return Some((place, value)),
            Step::View(of, View::Reshape(_)) => value = *of,
            Step::View(..) => return None,
        }
    }
}

/// What becomes of the scores between their sums and the softmax, and the operands of that behind those of the product; `None`
/// where there is no softmax.
fn finished(
    product: &Request<'static, Value>,
    rows: &Request<'static, Value>,
    scores: Value,
    dtype: DType,
) -> Option<(Option<Epilogue>, Vec<Value>)> {
    let expression = expression::of(&rows.attrs).ok()?;
    // What rounds otherwise than the operands do is something else.
    let is_wide = |own: DType| [dtype, DType::F32].contains(&own);
    let is_test = |op: &str| crate::find(op).is_some_and(|op| op.gives == Gives::Bool);
    let mut calls = expression.calls.iter();
    if !calls.all(|call| is_wide(call.dtype) || is_test(&call.op)) {
        return None;
    }
    let mut all: Vec<epilogue::Call> = Vec::new();
    if has(&product.attrs) {
        let own: Epilogue = text(&product.attrs, epilogue::ATTRIBUTE)?.parse().ok()?;
        append(&mut all, own.calls, OWN - FACTORS);
    }
    let mut operands = vec![Value::MAX; OWN];
    match softmax_of(&expression)? {
        Element::Operand(index) if rows.inputs.get(index) == Some(&scores) => {}
        Element::Made(call) => {
            let before = Expression {
                calls: expression.calls[..=call].to_vec(),
                results: vec![call],
            };
            let types = [dtype, DType::F32];
            let own = translated(&before, rows, scores, &types, &mut operands, OWN)?;
            append(&mut all, own.calls, product.inputs.len() - FACTORS);
        }
        Element::Operand(_) | Element::Number(..) => return None,
    }
    let text = (!all.is_empty()).then_some(Epilogue { calls: all });
    Some((text, operands.split_off(OWN)))
}

/// Calls behind others, of what these give; their operands have numbers that are greater by `shift`.
fn append(all: &mut Vec<epilogue::Call>, own: Vec<epilogue::Call>, shift: usize) {
    let first = all.len();
    for mut call in own {
        for term in &mut call.terms {
            *term = match *term {
                Term::Sum if first > 0 => Term::Made(first - 1),
                Term::Made(call) => Term::Made(first + call),
                Term::Operand(index) => Term::Operand(index + shift),
                sum_or_number => sum_or_number,
            };
        }
        all.push(call);
    }
}
