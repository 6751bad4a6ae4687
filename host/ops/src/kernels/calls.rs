//! The calls of an expression on blocks of elements, or of rows of them, that stay in a core's cache from call to call. What each
//! is computed with is found once, for all blocks.

mod blocks;
mod loops;
mod making;
mod plan;

use super::{
    cells::LONG, crew::Wakes, elementwise::TASK, expression::run, kernel::Sums, lanes,
    operand::Operand, parallel,
};
use crate::view::{Out, Outcome};
use blocks::Registers;
use loops::{apply, reduce, spread};
use nx_vulkan_abi::Expression;
use plan::{Made, Plan};
use std::{
    ops::RangeInclusive,
    sync::{Arc, OnceLock},
};

/// Bytes of a core's second cache that the blocks of all values take at most, and where rows are reduced. Blocks of 24 KiB,
/// for the first cache, take longer: each call takes some time for each block.
const ALL: usize = 64 << 10;
const ALL_OF_ROWS: usize = 128 << 10;
/// Elements of a block.
const ELEMENTS: RangeInclusive<usize> = 512..=4096;
const ELEMENTS_OF_ROWS: RangeInclusive<usize> = 2048..=TASK;

/// Loops that take a block no longer than it takes to wake a thread.
const FEW: usize = 3;

/// The calls of an expression on operands.
pub(super) struct Calls<'a> {
    plan: Arc<Plan>,
    operands: &'a [(Operand<'a>, bool)],
    /// Rows, elements of each, and rows of a block at most.
    rows: usize,
    length: usize,
    block: usize,
    /// Elements of an operand's row, after which a block ends.
    line: Option<u64>,
    sums: Sums,
}

impl<'a> Calls<'a> {
    /// Those of an expression that fits so many elements of operands, as exact as that.
    ///
    /// # Errors
    /// That an op or a type is none of those.
    pub(super) fn of_elements(
        expression: &Arc<Expression>,
        operands: &'a [(Operand<'a>, bool)],
        count: usize,
        sums: Sums,
    ) -> Result<Calls<'a>, String> {
        let plan = plan::of(expression, operands, None, sums)?;
        let block = (ALL / plan.bytes).clamp(*ELEMENTS.start(), *ELEMENTS.end());
        let lines = operands.iter().filter_map(|(operand, _)| operand.row());
        Ok(Calls {
            plan,
            operands,
            rows: count,
            length: 1,
            block: (block / blocks::LINE * blocks::LINE).min(count),
            line: lines.min().filter(|extent| *extent >= LONG),
            sums,
        })
    }

    /// Those of an expression that fits so many rows of so many elements. Each operand says whether it has one for each row.
    ///
    /// # Errors
    /// That an op or a type is none of those.
    pub(super) fn of_rows(
        expression: &Arc<Expression>,
        operands: &'a [(Operand<'a>, bool)],
        (rows, length): (usize, usize),
        sums: Sums,
    ) -> Result<Calls<'a>, String> {
        let plan = plan::of(expression, operands, Some(length as u64), sums)?;
        let (least, most) = ELEMENTS_OF_ROWS.into_inner();
        let elements = (ALL_OF_ROWS / plan.bytes).clamp(least, most);
        Ok(Calls {
            plan,
            operands,
            rows,
            length,
            block: (elements / length.max(1)).clamp(1, rows.max(1)),
            line: None,
            sums,
        })
    }

    /// Bytes of a row in all blocks.
    pub(super) fn row_bytes(&self) -> usize {
        self.plan.bytes.saturating_mul(self.length)
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
        let wakes = match self.plan.computed > FEW {
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
        let (value, per_row) = self.plan.results[index];
        self.elements(rows, per_row) * self.plan.values[value].size()
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
            let to = self.plan.last.map(|last| &mut results[last][range(last)]);
            self.block(registers, start, own, to)?;
            for (index, to) in results.iter_mut().enumerate() {
                if self.plan.last != Some(index) {
                    let (value, per_row) = self.plan.results[index];
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
        let values = &self.plan.values;
        let others = values.len() - usize::from(last.is_some());
        for (index, value) in values[..others].iter().enumerate() {
            if let Made::Operand(at) = value.made {
                let operand = &self.operands[at].0;
                let [start, count] = [start, rows].map(|rows| self.elements(rows, value.per_row));
                let line = operand.line_from(start as u64, count);
                registers.lines[index] = line;
                if line.is_some() {
                    continue;
                }
            }
            let Some(register) = self.plan.registers[index] else {
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
        let values = &self.plan.values;
        let value = &values[index];
        let count = self.elements(rows, value.per_row);
        let mut wide = std::mem::take(&mut registers.wide);
        let block = |value: usize| self.made(value, registers, count);
        let outcome = match &value.made {
            Made::Operand(at) => {
                let operand = &self.operands[*at].0;
                operand.copy(self.elements(start, value.per_row) as u64, to)
            }
            Made::One(_) | Made::Row(_) => {
                to.copy_from_slice(&registers.same[index].bytes()[..to.len()]);
                Ok(())
            }
            Made::Widened(from) => {
                let (from, dtype) = (block(*from), values[*from].dtype);
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
                    let value = &values[term];
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
                        (values[term].dtype, self.made(term, registers, elements))
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
        let size = count * self.plan.values[value].size();
        match (self.plan.registers[value], registers.lines[value]) {
            (_, Some(line)) => line,
            (Some(register), _) => &registers.blocks[register].bytes()[..size],
            _ => &registers.same[value].bytes()[..size],
        }
    }
}
