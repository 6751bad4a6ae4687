//! Attention gives its result in the order of axes in which it is read: heads beside each other, where op by op they are copied.

use super::{Facts, Input, shapes, split::Writer};
use crate::{
    Attr, Program, Request, Result, Step, Value, View,
    attention::{ATTENTION, ORDER},
};
use smallvec::SmallVec;
use std::collections::HashMap;

/// The program in which attention whose result is read in another order of axes alone gives it in that.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn turned(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let readers = readers(&program, &facts);
    let all = 0..program.steps().len();
    let found: Vec<Option<Turned>> = all
        .map(|place| Turned::of(&program, place, &readers, &facts, &shapes))
        .collect();
    let views = found.iter().flatten().flat_map(|turned| &turned.views);
    let is_view: Vec<usize> = views.copied().collect();
    let mut writer = Writer::of(&program);
    for (place, turned) in found.into_iter().enumerate() {
        match turned {
            Some(turned) => turned.write(&program, place, &facts, &mut writer),
            None if is_view.contains(&place) => {}
            None => writer.keep(&program, place, &facts),
        }
    }
    writer.finish(&program)
}

/// Who reads a value that is read once.
fn readers(program: &Program<'static>, facts: &Facts) -> HashMap<Value, usize> {
    let steps = program.steps().iter().enumerate();
    let reads = steps.flat_map(|(place, step)| step.inputs().iter().map(move |of| (*of, place)));
    let once = reads.filter(|(value, _)| facts.uses[*value as usize] == 1);
    once.collect()
}

/// Attention, and the views of its result that are left out.
struct Turned {
    request: Request<'static, Value>,
    views: Vec<usize>,
    /// The shape that its result is seen as, where that is not its own.
    seen: Option<Vec<u64>>,
}

impl Turned {
    fn of(
        program: &Program<'static>,
        place: usize,
        readers: &HashMap<Value, usize>,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Turned> {
        let Step::Request(request) = &program.steps()[place] else {
            return None;
        };
        let has_order = request.attrs.iter().any(|attr| attr.name == ORDER);
        let (ATTENTION, false, [(dtype, shape)]) = (&*request.op, has_order, &*request.outputs)
        else {
            return None;
        };
        let (mut value, mut views) = (facts.first[place], Vec::new());
        let mut groups: Vec<Vec<usize>> = (0..shape.len()).map(|axis| vec![axis]).collect();
        let order = loop {
            let reader = *readers.get(&value)?;
            let Step::View(_, view) = &program.steps()[reader] else {
                return None;
            };
            views.push(reader);
            value = facts.first[reader];
            match view {
                View::Reshape(to) if views.len() == 1 => groups = merged(shape, to)?,
                View::Transpose(order) => break order,
                _ => return None,
            }
        };
        let order: Vec<usize> = order
            .iter()
            .filter_map(|&axis| groups.get(axis))
            .flatten()
            .copied()
            .collect();
        // Rows of v's elements stay whole, and kernels know two axes of batches and of rows.
        let batches = shapes[*request.inputs.get(1)? as usize]
            .len()
            .checked_sub(2)?;
        let long = |axes: &[u64]| axes.iter().filter(|extent| **extent != 1).count();
        let (last, before) = shape.split_last()?;
        let is_known = long(&before[..batches]) <= 2 && long(&before[batches..]) <= 2 && *last > 0;
        if !is_known || order.len() != shape.len() || order.last() != Some(&before.len()) {
            return None;
        }
        let turned: Vec<u64> = order.iter().map(|&axis| shape[axis]).collect();
        let seen = &shapes[value as usize];
        let axes = order.iter().map(|&axis| axis as i64);
        let mut request = request.clone();
        let attrs = request.attrs.to_mut();
        attrs.push(Attr::ints(ORDER, Vec::from_iter(axes)));
        attrs.sort_by(|a, b| a.name.cmp(&b.name));
        let seen = (*seen != turned).then(|| seen.clone());
        request.outputs = vec![(*dtype, turned)].into();
        Some(Turned {
            request,
            views,
            seen,
        })
    }

    fn write(self, program: &Program<'static>, place: usize, facts: &Facts, writer: &mut Writer) {
        let own = [place].into_iter().chain(self.views.iter().copied());
        let places = own.flat_map(|place| program.stands_for(place));
        let places: SmallVec<[usize; 1]> = places.collect();
        let last = self.views.last().copied().unwrap_or(place);
        let made = facts.first[last];
        match self.seen {
            Some(shape) => {
                let value = writer.add(self.request.into(), &places);
                writer.add_as(Step::View(value, View::Reshape(shape)), made, &places);
            }
            None => writer.add_as(self.request.into(), made, &places),
        }
    }
}

/// The axes of a shape that each axis of another one is together; `None` where one is a part of an axis.
fn merged(shape: &[u64], to: &[u64]) -> Option<Vec<Vec<usize>>> {
    let mut groups: Vec<Vec<usize>> = Vec::new();
    let mut next = 0;
    for &extent in to {
        let (mut group, mut product) = (Vec::new(), 1);
        while next < shape.len() && (product < extent || group.is_empty() && shape[next] == 1) {
            product *= shape[next];
            group.push(next);
            next += 1;
        }
        if product != extent {
            return None;
        }
        groups.push(group);
    }
    let is_one = shape[next..].iter().all(|&extent| extent == 1);
    groups.last_mut()?.extend(next..shape.len());
    is_one.then_some(groups)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn axes_are_merged_but_not_taken_apart() {
        let groups = |shape: &[u64], to: &[u64]| merged(shape, to);
        assert_eq!(
            groups(&[1, 8, 4, 5, 6], &[1, 32, 5, 6]),
            Some(vec![vec![0], vec![1, 2], vec![3], vec![4]])
        );
        assert_eq!(groups(&[2, 1, 3], &[2, 3]), Some(vec![vec![0], vec![1, 2]]));
        assert_eq!(groups(&[2, 3], &[2, 1, 3]).map(|all| all.len()), Some(3));
        assert_eq!(groups(&[4, 6], &[2, 12]), None);
        assert_eq!(groups(&[4, 6], &[4, 2, 3]), None);
    }
}
