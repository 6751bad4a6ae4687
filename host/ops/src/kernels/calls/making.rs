//! What the calls of an expression are computed with, and where their blocks are.

use super::plan::{Kind, Made, Value};
use crate::{
    contracts::elementwise,
    expression::element,
    kernels::{
        cells::as_others,
        kernel::Sums,
        lanes::{self, Lane, Loop},
    },
    view::View,
};
use nx_vulkan_abi::{
    DType, Expression,
    expression::{Call, REDUCTIONS, Term},
};
use std::collections::HashMap;

/// The values that the calls of an expression need, each behind those that it is made of, and which of them each call is; `per_row`
/// says by call whether it makes one element for each row.
///
/// # Errors
/// That an op or a type is none of those.
pub(super) fn values(
    expression: &Expression,
    operands: &[Kind],
    per_row: &[bool],
    sums: Sums,
) -> Result<(Vec<Value>, Vec<usize>), String> {
    let mut making = Making {
        values: Vec::new(),
        known: HashMap::new(),
        sums,
    };
    let mut made = Vec::new();
    for (call, &per_row) in expression.calls.iter().zip(per_row) {
        let terms = call.terms.iter().map(|term| match *term {
            Term::Operand(index) => making.operand(index, &operands[index]),
            Term::Made(index) => made[index],
            Term::Number(number, dtype) => making.one(dtype, element(number, dtype)),
        });
        let terms: Vec<usize> = terms.collect();
        made.push(making.call(call, terms, per_row)?);
    }
    Ok((making.values, made))
}

/// The values that were found so far.
struct Making {
    values: Vec<Value>,
    /// Operands, and what values are cast to.
    known: HashMap<Known, usize>,
    sums: Sums,
}

#[derive(PartialEq, Eq, Hash)]
enum Known {
    Operand(usize),
    One(DType, Vec<u8>),
    As(usize, DType),
    Spread(usize),
}

impl Making {
    fn push(&mut self, dtype: DType, per_row: bool, made: Made) -> usize {
        self.values.push(Value {
            dtype,
            is_read: false,
            per_row,
            made,
        });
        self.values.len() - 1
    }

    fn one(&mut self, dtype: DType, one: Vec<u8>) -> usize {
        let known = Known::One(dtype, one.clone());
        if let Some(&value) = self.known.get(&known) {
            return value;
        }
        let value = self.push(dtype, true, Made::One(one));
        self.known.insert(known, value);
        value
    }

    fn operand(&mut self, index: usize, kind: &Kind) -> usize {
        if let Some(&value) = self.known.get(&Known::Operand(index)) {
            return value;
        }
        let value = match *kind {
            Kind::Same(dtype, _, one) => self.one(dtype, one[..dtype.size() as usize].to_vec()),
            Kind::Row(dtype) => self.push(dtype, false, Made::Row(index)),
            Kind::Each(dtype, per_row) => self.push(dtype, per_row, Made::Operand(index)),
        };
        self.known.insert(Known::Operand(index), value);
        value
    }

    fn call(&mut self, call: &Call, terms: Vec<usize>, per_row: bool) -> Result<usize, String> {
        if let Some(op) = REDUCTIONS.into_iter().find(|op| *op == call.op) {
            return Ok(self.push(call.dtype, true, Made::Reduced(op, terms)));
        }
        let op = elementwise(&call.op).ok_or_else(|| format!("no op named {}", call.op))?;
        let found = match (op.lane, self.sums) {
            (Some(lane), Sums::Own) => self.found(lane, &terms, call.dtype),
            _ => None,
        };
        let (found, mut terms) = match found {
            Some((found, terms)) => (Some(found), terms),
            None => (None, terms),
        };
        if !per_row {
            terms.iter_mut().for_each(|term| *term = self.spread(*term));
        }
        let first = terms.first().map(|&term| self.values[term].dtype);
        let made = match found {
            // What is widened is f32 already.
            Some(Loop::Cast(_)) if first == Some(call.dtype) => return Ok(terms[0]),
            Some(Loop::Cast(_)) if first == Some(DType::F32) && lanes::is_narrow(call.dtype) => {
                Made::Narrowed(terms[0])
            }
            Some(found) => Made::Loop(found, terms),
            None => Made::Op(op.name, terms),
        };
        Ok(self.push(call.dtype, per_row, made))
    }

    /// The loop that makes a type of these values, where there is one, and the values as it takes them.
    fn found(&mut self, lane: Lane, terms: &[usize], to: DType) -> Option<(Loop, Vec<usize>)> {
        let views: Vec<View<'_>> = terms.iter().map(|&term| self.view(term)).collect();
        let others = as_others(lane, &views);
        let types = views.iter().zip(&others);
        let types = types.map(|(view, other)| other.map_or(view.dtype, |(dtype, _)| dtype));
        let types: Vec<DType> = types.collect();
        let (taken, found) = lane.of(&types, to)?;
        let mut own = Vec::new();
        for (index, (&term, other)) in terms.iter().zip(others).enumerate() {
            let term = match other {
                Some((dtype, bytes)) => self.one(dtype, bytes[..dtype.size() as usize].to_vec()),
                None => term,
            };
            own.push(match found {
                Loop::Select if index == 0 => term,
                Loop::Cast(_) => self.widened(term),
                _ => self.taken(term, taken),
            });
        }
        Some((found, own))
    }

    /// A value as one of an op's operands: one element, or many.
    fn view(&self, value: usize) -> View<'_> {
        let value = &self.values[value];
        let (shape, strides, bytes): (&[u64], &[i64], &[u8]) = match &value.made {
            Made::One(one) => (&[], &[], one),
            _ => (&[2], &[1], &[]),
        };
        View {
            dtype: value.dtype,
            shape,
            strides,
            offset: 0,
            bytes,
        }
    }

    /// A value with floats of 16 bits as f32.
    fn widened(&mut self, value: usize) -> usize {
        let dtype = self.values[value].dtype;
        match lanes::is_narrow(dtype) {
            true => self.known_as(value, DType::F32, Made::Widened),
            false => value,
        }
    }

    /// A value with the elements as those of that type.
    fn taken(&mut self, value: usize, taken: DType) -> usize {
        let dtype = self.values[value].dtype;
        match lanes::cast(dtype, taken) {
            None => value,
            Some(_) if lanes::is_narrow(dtype) && taken == DType::F32 => self.widened(value),
            Some(cast) => {
                let value = self.widened(value);
                self.known_as(value, taken, |from| Made::Cast(from, cast))
            }
        }
    }

    fn known_as(&mut self, value: usize, dtype: DType, made: impl Fn(usize) -> Made) -> usize {
        if let Some(&known) = self.known.get(&Known::As(value, dtype)) {
            return known;
        }
        let per_row = self.values[value].per_row;
        let made = match (&self.values[value].made, made(value)) {
            (Made::One(one), made) => {
                let mut cast = vec![0; dtype.size() as usize];
                match made {
                    Made::Cast(_, f) => f(one, &mut cast),
                    _ => lanes::widen(
                        self.values[value].dtype,
                        one.as_chunks().0,
                        cast.as_chunks_mut().0,
                    ),
                }
                Made::One(cast)
            }
            (_, made) => made,
        };
        let known = self.push(dtype, per_row, made);
        self.known.insert(Known::As(value, dtype), known);
        known
    }

    /// A value with an element for each of a row.
    fn spread(&mut self, value: usize) -> usize {
        let Value {
            dtype,
            per_row,
            made,
            ..
        } = &self.values[value];
        if !per_row || matches!(made, Made::One(_)) {
            return value;
        }
        if let Some(&known) = self.known.get(&Known::Spread(value)) {
            return known;
        }
        let known = self.push(*dtype, false, Made::Spread(value));
        self.known.insert(Known::Spread(value), known);
        known
    }
}

impl Made {
    fn reads(&self) -> &[usize] {
        match self {
            Made::Operand(_) | Made::Row(_) | Made::One(_) => &[],
            Made::Widened(from)
            | Made::Narrowed(from)
            | Made::Cast(from, _)
            | Made::Spread(from) => std::slice::from_ref(from),
            Made::Loop(_, terms) | Made::Op(_, terms) | Made::Reduced(_, terms) => terms,
        }
    }
}

/// The register of each value, which others get when nobody reads it any more, and the bytes of an element in each register; says of
/// values whether they are read.
pub(super) fn registers(
    values: &mut [Value],
    results: &[usize],
) -> (Vec<Option<usize>>, Vec<usize>) {
    let mut last_read: Vec<usize> = (0..values.len()).collect();
    for index in 0..values.len() {
        let of_op = matches!(values[index].made, Made::Op(..));
        for read in values[index].made.reads().to_vec() {
            last_read[read] = index;
            values[read].is_read |= !(of_op && matches!(values[read].made, Made::One(_)));
        }
    }
    for &result in results {
        last_read[result] = usize::MAX;
        values[result].is_read = true;
    }
    let mut ends: Vec<Vec<usize>> = vec![Vec::new(); values.len()];
    let (mut registers, mut sizes, mut free) = (Vec::new(), Vec::new(), Vec::new());
    for (index, value) in values.iter().enumerate() {
        let register = match value.made {
            Made::One(_) | Made::Row(_) => None,
            _ => Some(free.pop().unwrap_or_else(|| {
                sizes.push(0);
                sizes.len() - 1
            })),
        };
        registers.push(register);
        if let Some(register) = register {
            sizes[register] = value.size().max(sizes[register]);
            if let Some(ends) = ends.get_mut(last_read[index]) {
                ends.push(register);
            }
        }
        free.append(&mut ends[index]);
    }
    (registers, sizes)
}
