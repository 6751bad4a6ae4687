//! An axis as two: steps on what has both in its place.

use super::{Facts, Making, renumbered};
use crate::{Program, Result, Step, Value, View};
use smallvec::SmallVec;

/// An axis of a shape, and the extents of the two that it becomes.
#[derive(Debug, Clone, Copy)]
pub(super) struct Split {
    pub(super) rank: usize,
    pub(super) axis: usize,
    pub(super) parts: [u64; 2],
}

impl Split {
    /// A shape that broadcasts to the one with that axis; `None` where its axis is neither that long nor of one element.
    pub(super) fn of(&self, shape: &[u64]) -> Option<Vec<u64>> {
        // Axes that a shape lacks are before its first.
        let Some(axis) = (self.axis + shape.len()).checked_sub(self.rank) else {
            return Some(shape.to_vec());
        };
        let [first, second] = self.parts;
        let parts = match shape[axis] {
            1 => [1, 1],
            extent if extent == first * second => self.parts,
            _ => return None,
        };
        Some([&shape[..axis], &parts, &shape[axis + 1..]].concat())
    }
}

/// A program's steps as they are written anew.
pub(super) struct Writer {
    steps: Vec<Making>,
    next: Value,
}

impl Writer {
    pub(super) fn of(program: &Program<'_>) -> Writer {
        let made: usize = program.steps().iter().map(Step::made).sum();
        Writer {
            steps: Vec::new(),
            next: (program.inputs() + made) as Value,
        }
    }

    /// A step that makes values which the program did not have.
    pub(super) fn add(&mut self, step: Step<'static>, places: &SmallVec<[usize; 1]>) -> Value {
        let first = self.next;
        self.next += step.made() as Value;
        let made = (first..self.next).collect();
        self.steps.push((step, made, places.clone()));
        first
    }

    /// A view of a value.
    pub(super) fn view(
        &mut self,
        value: Value,
        view: View,
        places: &SmallVec<[usize; 1]>,
    ) -> Value {
        self.add(Step::View(value, view), places)
    }

    /// The step of the program at that place as it is.
    pub(super) fn keep(&mut self, program: &Program<'static>, place: usize, facts: &Facts) {
        let step = program.steps()[place].clone();
        let made = (facts.first[place]..).take(step.made()).collect();
        self.steps.push((step, made, program.stands_for(place)));
    }

    /// A view that is a value of the program.
    pub(super) fn view_as(
        &mut self,
        value: Value,
        view: View,
        made: Value,
        places: &SmallVec<[usize; 1]>,
    ) {
        self.add_as(Step::View(value, view), made, places);
    }

    /// A step that makes a value of the program.
    pub(super) fn add_as(
        &mut self,
        step: Step<'static>,
        made: Value,
        places: &SmallVec<[usize; 1]>,
    ) {
        self.add_all_as(step, vec![made], places);
    }

    /// A step that makes several values of the program.
    pub(super) fn add_all_as(
        &mut self,
        step: Step<'static>,
        made: Vec<Value>,
        places: &SmallVec<[usize; 1]>,
    ) {
        self.steps.push((step, made, places.clone()));
    }

    /// The program of these steps, without views that nobody reads: a reshape may be a copy.
    ///
    /// # Errors
    /// None that [`Program::new`] does not have.
    pub(super) fn finish(self, program: &Program<'static>) -> Result<Program<'static>> {
        let mut is_read = vec![false; self.next as usize];
        for &value in program.results() {
            is_read[value as usize] = true;
        }
        let mut steps: Vec<Option<Making>> = self.steps.into_iter().map(Some).collect();
        for step in steps.iter_mut().rev() {
            let is_needed = step.as_ref().is_some_and(|(step, made, _)| {
                let is_view = matches!(step, Step::View(..));
                !is_view || made.iter().any(|&value| is_read[value as usize])
            });
            match step {
                Some((step, _, _)) if is_needed => {
                    let values = step.inputs().iter();
                    values.for_each(|&value| is_read[value as usize] = true);
                }
                _ => *step = None,
            }
        }
        renumbered(program, steps)
    }
}
