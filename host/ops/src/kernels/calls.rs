//! The calls of an expression on blocks of elements, or of rows of them, that stay in a core's cache from call to call. What each
//! is computed with is found once, for all blocks.

mod blocks;
mod loops;
mod making;

use super::{
    cells::LONG,
    crew::Wakes,
    elementwise::TASK,
    expression::run,
    kernel::Sums,
    lanes::{self, Cast, Loop},
    operand::Operand,
    parallel,
};
use crate::view::{Out, Outcome};
use blocks::Registers;
use loops::{apply, reduce, spread};
use making::{registers, values};
use nx_vulkan_abi::{DType, Expression};
use std::{ops::RangeInclusive, sync::OnceLock};

/// Bytes that the blocks of all values take at most, where that leaves enough elements: of the first cache; of the second one
/// where rows are reduced, which takes some time for each block.
const FIRST: usize = 24 << 10;
const SECOND: usize = 128 << 10;
/// Elements of a block.
const ELEMENTS: RangeInclusive<usize> = 512..=4096;
const ELEMENTS_OF_ROWS: RangeInclusive<usize> = 2048..=TASK;

/// Loops that take a block no longer than it takes to wake a thread.
const FEW: usize = 3;

/// The calls of an expression on operands.
pub(super) struct Calls<'a> {
    values: Vec<Value<'a>>,
    /// By value where its blocks are, if they are nowhere yet.
    registers: Vec<Option<usize>>,
    /// Bytes of an element in each register.
    sizes: Vec<usize>,
    /// The value that each result is, and whether it has one element for each row.
    results: Vec<(usize, bool)>,
    /// The result that the last value is, and no other value reads.
    last: Option<usize>,
    /// Rows, elements of each, and rows of a block at most.
    rows: usize,
    length: usize,
    block: usize,
    /// Elements of an operand's row, after which a block ends.
    line: Option<u64>,
    sums: Sums,
}

/// What there may be a block of.
struct Value<'a> {
    dtype: DType,
    /// Whether its elements are read, and not only the one that all of them are.
    is_read: bool,
    /// Whether it has one element for each row.
    per_row: bool,
    made: Made<'a>,
}

/// How the elements of a value are made.
enum Made<'a> {
    /// They are those of an operand.
    Operand(&'a Operand<'a>),
    /// The same, of which all rows are the same one.
    Row(&'a Operand<'a>),
    /// All are the same one.
    One(Vec<u8>),
    /// Those of another value, of 16 bits, as f32.
    Widened(usize),
    /// Those of another value, rounded to 16 bits.
    Narrowed(usize),
    /// Those of another value, cast.
    Cast(usize, Cast),
    /// Those of another value, which has one for each row.
    Spread(usize),
    /// By a loop.
    Loop(Loop, Vec<usize>),
    /// By an op that has no loop for them.
    Op(&'a str, Vec<usize>),
    /// Of each row of another value.
    Reduced(&'a str, Vec<usize>),
}

impl<'a> Calls<'a> {
    /// Those of an expression that fits so many elements of operands, as exact as that.
    ///
    /// # Errors
    /// That an op or a type is none of those.
    pub(super) fn of_elements(
        expression: &'a Expression,
        operands: &'a [(Operand<'a>, bool)],
        count: usize,
        sums: Sums,
    ) -> Result<Calls<'a>, String> {
        let per_row = vec![false; expression.calls.len()];
        let (values, calls) = values(expression, operands, &per_row, sums)?;
        let results = expression.results.iter().map(|&call| (calls[call], false));
        let mut all = Calls::new(values, results.collect(), (count, 1), sums);
        let block = (FIRST / all.bytes()).clamp(*ELEMENTS.start(), *ELEMENTS.end());
        all.block = (block / blocks::LINE * blocks::LINE).min(count);
        let lines = operands.iter().filter_map(|(operand, _)| operand.row());
        all.line = lines.min().filter(|extent| *extent >= LONG);
        Ok(all)
    }

    /// Those of an expression that fits so many rows of so many elements. Each operand says whether it has one for each row, and
    /// `per_row` by call whether that makes one.
    ///
    /// # Errors
    /// That an op or a type is none of those.
    pub(super) fn of_rows(
        expression: &'a Expression,
        operands: &'a [(Operand<'a>, bool)],
        (rows, length): (usize, usize),
        per_row: &[bool],
        sums: Sums,
    ) -> Result<Calls<'a>, String> {
        let (mut values, calls) = values(expression, operands, per_row, sums)?;
        for value in &mut values {
            match value.made {
                Made::Operand(operand) if !value.per_row && operand.repeats(length as u64) => {
                    value.made = Made::Row(operand);
                }
                _ => {}
            }
        }
        let results = expression.results.iter();
        let results = results.map(|&call| (calls[call], per_row[call]));
        let mut all = Calls::new(values, results.collect(), (rows, length), sums);
        let (least, most) = ELEMENTS_OF_ROWS.into_inner();
        let elements = (SECOND / all.bytes()).clamp(least, most);
        all.block = (elements / length.max(1)).clamp(1, rows.max(1));
        Ok(all)
    }

    fn new(
        mut values: Vec<Value<'a>>,
        results: Vec<(usize, bool)>,
        (rows, length): (usize, usize),
        sums: Sums,
    ) -> Calls<'a> {
        let own: Vec<usize> = results.iter().map(|result| result.0).collect();
        let (registers, sizes) = registers(&mut values, &own);
        let is_last = |result: &(usize, bool)| result.0 + 1 == values.len();
        let last = results.iter().position(is_last);
        Calls {
            last: last.filter(|last| !results[last + 1..].iter().any(is_last)),
            values,
            registers,
            sizes,
            results,
            rows,
            length,
            block: 0,
            line: None,
            sums,
        }
    }

    /// Bytes of a row in all blocks.
    pub(super) fn row_bytes(&self) -> usize {
        self.bytes().saturating_mul(self.length)
    }

    /// Bytes of an element in all blocks.
    fn bytes(&self) -> usize {
        let own = self.values.iter().filter(|value| value.is_same());
        let own = own.map(Value::size);
        self.sizes.iter().copied().chain(own).sum::<usize>().max(1)
    }

    /// Computes the results.
    ///
    /// # Errors
    /// That elements have no result.
    pub(super) fn run(&self, outputs: &mut [Out]) -> Outcome {
        let rows = (TASK / self.length.max(1)).max(1);
        // What one core makes of all results.
        let mut tasks: Vec<Vec<&mut [u8]>> = Vec::new();
        tasks.resize_with(self.rows.div_ceil(rows), Vec::new);
        for (index, out) in outputs.iter_mut().enumerate() {
            let chunks = out.bytes.chunks_mut(self.result_size(index, rows));
            let tasks = tasks.iter_mut().zip(chunks);
            tasks.for_each(|(task, chunk)| task.push(chunk));
        }
        let computes = |value: &&Value<'_>| {
            !matches!(value.made, Made::Operand(_) | Made::Row(_) | Made::One(_))
        };
        let wakes = match self.values.iter().filter(computes).count() > FEW {
            true => Wakes::Now,
            false => Wakes::Late,
        };
        let failure = OnceLock::new();
        let state = || Registers::of(self);
        parallel::parts_with(&mut tasks, 1, wakes, &state, &|own, task, results| {
            let first = task * rows;
            let count = rows.min(self.rows - first);
            for results in results {
                if let Err(why) = self.fill(own, first, count, results) {
                    failure.get_or_init(|| why);
                }
            }
        });
        failure.into_inner().map_or(Ok(()), Err)
    }

    /// Elements of so many rows.
    fn elements(&self, rows: usize, per_row: bool) -> usize {
        if per_row { rows } else { rows * self.length }
    }

    /// Bytes of so many rows of a result.
    fn result_size(&self, index: usize, rows: usize) -> usize {
        let (value, per_row) = self.results[index];
        self.elements(rows, per_row) * self.values[value].size()
    }

    /// Computes so many rows of each result from the row `first` on.
    fn fill(
        &self,
        registers: &mut Registers<'a>,
        first: usize,
        count: usize,
        results: &mut [&mut [u8]],
    ) -> Outcome {
        let mut done = 0;
        while done < count {
            let start = first + done;
            let left = self
                .line
                .map_or(u64::MAX, |extent| extent - start as u64 % extent);
            let own = self.block.min(count - done).min(left as usize);
            let range = |index: usize| {
                let [from, size] = [done, own].map(|rows| self.result_size(index, rows));
                from..from + size
            };
            let to = self.last.map(|last| &mut results[last][range(last)]);
            self.block(registers, start, own, to)?;
            for (index, to) in results.iter_mut().enumerate() {
                if self.last != Some(index) {
                    let (value, per_row) = self.results[index];
                    let made = self.made(value, registers, self.elements(own, per_row));
                    to[range(index)].copy_from_slice(made);
                }
            }
            done += own;
        }
        Ok(())
    }

    /// Computes so many rows of each value, the last one to there.
    fn block(
        &self,
        registers: &mut Registers<'a>,
        start: usize,
        rows: usize,
        last: Option<&mut [u8]>,
    ) -> Outcome {
        let others = self.values.len() - usize::from(last.is_some());
        for (index, value) in self.values[..others].iter().enumerate() {
            if let Made::Operand(operand) = value.made {
                let [start, count] = [start, rows].map(|rows| self.elements(rows, value.per_row));
                let line = operand.line_from(start as u64, count);
                registers.lines[index] = line;
                if line.is_some() {
                    continue;
                }
            }
            let Some(register) = self.registers[index] else {
                continue;
            };
            let mut to = std::mem::take(&mut registers.blocks[register]);
            let size = self.elements(rows, value.per_row) * value.size();
            let own = &mut to.bytes_mut()[..size];
            let outcome = self.make(index, registers, start, rows, own);
            registers.blocks[register] = to;
            outcome?;
        }
        match last {
            Some(to) => self.make(others, registers, start, rows, to),
            None => Ok(()),
        }
    }

    /// Computes so many rows of a value that is made of values before it.
    fn make(
        &self,
        index: usize,
        registers: &mut Registers<'a>,
        start: usize,
        rows: usize,
        to: &mut [u8],
    ) -> Outcome {
        let value = &self.values[index];
        let count = self.elements(rows, value.per_row);
        let mut wide = std::mem::take(&mut registers.wide);
        let block = |value: usize| self.made(value, registers, count);
        let outcome = match &value.made {
            Made::Operand(operand) => operand.copy(self.elements(start, value.per_row) as u64, to),
            Made::One(_) | Made::Row(_) => {
                to.copy_from_slice(&registers.same[index].bytes()[..to.len()]);
                Ok(())
            }
            Made::Widened(from) => {
                let (from, dtype) = (block(*from), self.values[*from].dtype);
                lanes::widen(dtype, from.as_chunks().0, to.as_chunks_mut().0);
                Ok(())
            }
            Made::Narrowed(from) => {
                lanes::narrow(
                    value.dtype,
                    block(*from).as_chunks().0,
                    to.as_chunks_mut().0,
                );
                Ok(())
            }
            Made::Cast(from, cast) => {
                cast(block(*from), to);
                Ok(())
            }
            Made::Spread(from) => {
                let from = self.made(*from, registers, rows);
                spread(value.size(), from, self.length, to)
            }
            Made::Loop(found, terms) => {
                let term = |k: usize| terms.get(k).map_or(&[][..], |term| block(*term));
                let terms = std::array::from_fn(term);
                apply(
                    *found,
                    terms,
                    value.dtype,
                    wide.get_mut(..count).unwrap_or_default(),
                    to,
                )
            }
            Made::Op(op, terms) => {
                let operand = |&term: &usize| {
                    let value = &self.values[term];
                    match &value.made {
                        Made::One(one) => (value.dtype, &one[..]),
                        _ => (value.dtype, block(term)),
                    }
                };
                let operands: Vec<_> = terms.iter().map(operand).collect();
                let shape = [count as u64];
                run(op, &operands, (value.dtype, &shape), to, self.sums)
            }
            Made::Reduced(op, terms) => {
                let (dtype, from) = match terms[..] {
                    [term] => {
                        let elements = self.elements(rows, false);
                        (
                            self.values[term].dtype,
                            self.made(term, registers, elements),
                        )
                    }
                    _ => return Err(format!("{op} has one operand")),
                };
                reduce(op, (dtype, from), self.length, (value.dtype, to), self.sums)
            }
        };
        registers.wide = wide;
        outcome
    }

    /// So many elements of a value that is there.
    fn made<'b>(&'b self, value: usize, registers: &'b Registers<'a>, count: usize) -> &'b [u8] {
        let size = count * self.values[value].size();
        match (self.registers[value], registers.lines[value]) {
            (_, Some(line)) => line,
            (Some(register), _) => &registers.blocks[register].bytes()[..size],
            _ => &registers.same[value].bytes()[..size],
        }
    }
}

impl Value<'_> {
    /// Bytes of an element.
    fn size(&self) -> usize {
        self.dtype.size() as usize
    }

    /// Whether it has blocks, which are all the same.
    fn is_same(&self) -> bool {
        self.is_read && matches!(self.made, Made::One(_) | Made::Row(_))
    }
}
