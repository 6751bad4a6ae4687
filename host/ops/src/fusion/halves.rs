//! Halves of an axis that are put together again, each with ops of its own, are read where they lie: a rotary embedding turns one
//! half and lets both change places. So that is one dispatch with what reads it, and nothing is copied.

use super::{
    Facts, Input, append,
    follow::expression_of,
    group::MOST_BOUND,
    operand_of, shapes,
    split::{Split, Writer},
};
use crate::{
    Attr, DType, Program, Request, Result, Step, Value, View, attrs::ints, expression::FUSED,
};
use nx_vulkan_abi::expression::{ATTRIBUTE, Call, Expression, MOST_CALLS, Term};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The program in which elementwise requests of floats read both halves of a value themselves. It gives the same bits.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn halves(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let all = 0..program.steps().len();
    let readers: Vec<Option<Reader>> = all
        .map(|place| Reader::of(&program, place, &facts, &shapes))
        .collect();
    if readers.iter().all(Option::is_none) {
        return Ok(program);
    }
    let mut is_part = vec![false; readers.len()];
    let parts = readers.iter().flatten();
    parts
        .flat_map(|reader| &reader.halves.places)
        .for_each(|&place| is_part[place] = true);

    let mut writer = Writer::of(&program);
    let mut masks = HashMap::new();
    for (place, reader) in readers.iter().enumerate() {
        match reader {
            Some(reader) => reader.write(&program, &facts, &shapes, &mut writer, &mut masks),
            None if is_part[place] => {}
            None => writer.keep(&program, place, &facts),
        }
    }
    writer.finish(&program)
}

/// Both halves of an axis of a value, put together in one order or the other.
#[derive(Debug)]
struct Halves {
    axis: usize,
    of: Value,
    /// Whether the second half comes first.
    is_turned: bool,
    /// What is made of each; the half is their only operand.
    pieces: [Vec<Call>; 2],
    /// The steps that this stands for.
    places: Vec<usize>,
}

impl Halves {
    /// What a value is that concatenates halves which nobody else reads.
    fn of(
        program: &Program<'static>,
        whole: Value,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Halves> {
        let place = facts.maker(whole)?;
        let Step::Request(request) = &program.steps()[place] else {
            return None;
        };
        let (&[first, second], &[axis]) = (&*request.inputs, ints(&request.attrs, "axis")) else {
            return None;
        };
        if request.op != "concatenate" {
            return None;
        }
        let axis = usize::try_from(axis).ok()?;
        let mut places = vec![place];
        let mut piece = |value| Halves::piece(program, value, axis, facts, shapes, &mut places);
        let ((of, from, calls), (other, behind, others)) = (piece(first)?, piece(second)?);
        let dtype = facts.dtypes[whole as usize];
        let is_one = of == other
            && from + behind == shapes[first as usize][axis]
            && dtype.is_float()
            && [first, second]
                .iter()
                .all(|&value| facts.dtypes[value as usize] == dtype);
        is_one.then_some(Halves {
            axis,
            of,
            is_turned: from > 0,
            pieces: [calls, others],
            places,
        })
    }

    /// The value of which a piece is half, where that begins, and what is made of it.
    fn piece(
        program: &Program<'static>,
        value: Value,
        axis: usize,
        facts: &Facts,
        shapes: &[Vec<u64>],
        places: &mut Vec<usize>,
    ) -> Option<(Value, u64, Vec<Call>)> {
        let is_alone = |value: Value| facts.uses[value as usize] == 1;
        let place = facts.maker(value).filter(|_| is_alone(value))?;
        places.push(place);
        let (half, calls) = match &program.steps()[place] {
            Step::View(..) => (place, Vec::new()),
            Step::Request(request) => {
                let (&[half], expression) = (&*request.inputs, expression_of(request, facts)?)
                else {
                    return None;
                };
                // An error has to name the op that has no result, and integers alone lack one.
                let mut calls = expression.calls.iter();
                let is_last = expression.results == [expression.calls.len() - 1]
                    && calls.all(|call| call.dtype.is_float());
                let slice = facts.maker(half).filter(|_| is_last && is_alone(half))?;
                places.push(slice);
                (slice, expression.calls)
            }
        };
        let Step::View(of, View::Slice(starts, lengths, strides)) = &program.steps()[half] else {
            return None;
        };
        let whole = &shapes[*of as usize];
        let ranks = [starts, lengths, strides].map(Vec::len);
        if ranks != [whole.len(); 3] || axis >= whole.len() {
            return None;
        }
        let is_half = (0..whole.len()).all(|at| match at == axis {
            true => whole[at] == 2 * lengths[at] && (starts[at] == 0 || starts[at] == lengths[at]),
            false => whole[at] == lengths[at],
        });
        let fits = is_half && lengths[axis] > 0 && strides.iter().all(|&stride| stride == 1);
        fits.then(|| (*of, starts[axis], calls))
    }
}

/// An elementwise request that reads halves which are put together.
#[derive(Debug)]
struct Reader {
    place: usize,
    request: Request<'static, Value>,
    expression: Expression,
    /// The value in which they are.
    whole: Value,
    halves: Halves,
    split: Split,
}

impl Reader {
    fn of(
        program: &Program<'static>,
        place: usize,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Reader> {
        let Step::Request(request) = &program.steps()[place] else {
            return None;
        };
        let expression = expression_of(request, facts)?;
        let (whole, halves) = request.inputs.iter().find_map(|&value| {
            let reads = request.inputs.iter().filter(|read| **read == value);
            let is_alone = facts.uses[value as usize] == reads.count();
            let halves = is_alone.then(|| Halves::of(program, value, facts, shapes))?;
            Some((value, halves?))
        })?;
        let shape = &shapes[whole as usize];
        let split = Split {
            rank: shape.len(),
            axis: halves.axis,
            parts: [2, shape[halves.axis] / 2],
        };
        let calls = halves.pieces.iter().map(Vec::len).sum::<usize>() + 1 + expression.calls.len();
        let mut inputs = request.inputs.iter();
        // The half and which one it is come in the place of both.
        let fits = request.outputs.iter().all(|(_, of)| of == shape)
            && inputs.all(|&value| split.of(&shapes[value as usize]).is_some())
            && calls <= MOST_CALLS
            && request.inputs.len() + 1 + request.outputs.len() <= MOST_BOUND;
        fits.then(|| Reader {
            place,
            request: request.clone(),
            expression,
            whole,
            halves,
            split,
        })
    }

    /// Writes what stands in its place. `masks` are values of 0 for the first half of an axis and 1 for the second.
    fn write(
        &self,
        program: &Program<'static>,
        facts: &Facts,
        shapes: &[Vec<u64>],
        writer: &mut Writer,
        masks: &mut HashMap<Vec<u64>, Value>,
    ) {
        let Split { rank, axis, .. } = self.split;
        let steps = self.halves.places.iter().chain([&self.place]);
        let mut places: SmallVec<[usize; 1]> =
            steps.flat_map(|&step| program.stands_for(step)).collect();
        places.sort_unstable();
        let split = |writer: &mut Writer, value: Value| match self.split.of(&shapes[value as usize])
        {
            Some(shape) if shape != shapes[value as usize] => {
                writer.view(value, View::Reshape(shape), &places)
            }
            _ => value,
        };

        let mut half = split(writer, self.halves.of);
        if self.halves.is_turned {
            half = writer.view(half, View::Reverse(vec![axis]), &places);
        }
        let mut mask = vec![1; rank - axis + 1];
        mask[0] = 2;
        let mask = *masks.entry(mask).or_insert_with_key(|shape| {
            let outputs = vec![(DType::U8, shape.clone())];
            let iota = Request::new("iota", Vec::new(), outputs, &[]);
            writer.add(iota.into(), &places)
        });

        let mut operands = vec![half, mask];
        let mut calls = Vec::new();
        let [first, second] = self.halves.pieces.each_ref().map(|piece| {
            append(&mut calls, piece, |_| Term::Operand(0));
            match piece.is_empty() {
                true => Term::Operand(0),
                false => Term::Made(calls.len() - 1),
            }
        });
        calls.push(Call {
            op: "select".into(),
            terms: vec![Term::Operand(1), second, first],
            dtype: facts.dtypes[self.whole as usize],
        });
        let whole = Term::Made(calls.len() - 1);
        let mut known: HashMap<Value, Value> = HashMap::new();
        let own = append(&mut calls, &self.expression.calls, |index| {
            let value = self.request.inputs[index];
            if value == self.whole {
                return whole;
            }
            let value = *known.entry(value).or_insert_with(|| split(writer, value));
            Term::Operand(operand_of(&mut operands, value))
        });
        let results = self.expression.results.iter().map(|call| call + own);
        let text = Expression {
            results: results.collect(),
            calls,
        };
        let outputs = self.request.outputs.iter().map(|(dtype, shape)| {
            let shape = self.split.of(shape).unwrap_or_default();
            (*dtype, shape)
        });
        let attrs = vec![Attr::text(ATTRIBUTE, &text.to_string())];
        let request = Request::new(FUSED, operands, outputs.collect::<Vec<_>>(), attrs);
        let made = writer.add(request.into(), &places);
        let values = (made..).zip(facts.first[self.place]..);
        for ((value, before), (_, shape)) in values.zip(self.request.outputs.iter()) {
            writer.view_as(value, View::Reshape(shape.clone()), before, &places);
        }
    }
}
