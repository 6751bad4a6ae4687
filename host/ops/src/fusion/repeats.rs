//! Repeats that were copied are read once. Batches of a product with the same right operand are rows of one batch, as with attention
//! whose queries share keys; and what is put into a tensor, such as a cache of keys, is repeated there.

use super::{
    Facts, Input, shapes,
    split::{Split, Writer},
};
use crate::{Attr, Program, Request, Result, Step, Value, View, attrs::ints};
use smallvec::SmallVec;

/// The program in which products and slices read what was repeated for them once. It gives the same bits, but for the order in which
/// a product is summed.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn repeats(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let mut writer = Writer::of(&program);
    for (place, step) in program.steps().iter().enumerate() {
        let places = program.stands_for(place);
        let rewritten = match step {
            Step::Request(own) if own.op == "dot" => {
                product(&program, own, &facts, &shapes, &mut writer, &places)
            }
            Step::Request(own) if own.op == "put_slice" => {
                put(&program, own, &facts, &shapes, &mut writer, &places)
            }
            _ => None,
        };
        let (Step::Request(own), Some(rewritten)) = (step, rewritten) else {
            writer.keep(&program, place, &facts);
            continue;
        };
        let (dtype, shape) = own.outputs[0].clone();
        let outputs = vec![(dtype, rewritten.split.of(&shape).unwrap_or_default())];
        let Rewritten { inputs, attrs, .. } = rewritten;
        let request = Request::new(own.op.to_string(), inputs, outputs, attrs);
        let made = writer.add(request.into(), &places);
        writer.view_as(made, View::Reshape(shape), facts.first[place], &places);
    }
    writer.finish(&program)
}

/// A part of an axis.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Part {
    /// An axis of another value, as long as that.
    Of(usize, u64),
    /// The same elements so many times.
    Repeated(u64),
}

impl Part {
    fn extent(self) -> u64 {
        let (Part::Of(_, extent) | Part::Repeated(extent)) = self;
        extent
    }
}

/// A value as the parts of another one; axes of one element have none.
#[derive(Debug)]
struct Parts {
    of: Value,
    axes: Vec<Vec<Part>>,
}

impl Parts {
    /// A value as itself.
    fn whole(value: Value, shape: &[u64]) -> Parts {
        let parts = |(axis, &extent): (usize, &u64)| match extent {
            1 => Vec::new(),
            _ => vec![Part::Of(axis, extent)],
        };
        Parts {
            of: value,
            axes: shape.iter().enumerate().map(parts).collect(),
        }
    }

    /// What views made it of, as far back as they leave axes whole.
    fn of(program: &Program<'_>, value: Value, facts: &Facts, shapes: &[Vec<u64>]) -> Parts {
        let mut views = Vec::new();
        let mut first = value;
        while let Some(Step::View(of, view)) =
            facts.maker(first).map(|place| &program.steps()[place])
        {
            views.push((first, view));
            first = *of;
        }
        let mut parts = Parts::whole(first, &shapes[first as usize]);
        for (value, view) in views.into_iter().rev() {
            let shape = &shapes[value as usize];
            parts = match after(parts.axes, view, shape) {
                Some(axes) => Parts { axes, ..parts },
                None => Parts::whole(value, shape),
            };
        }
        parts
    }
}

/// The parts of what a view makes; `None` where that takes an axis apart, or is of some of its elements.
fn after(axes: Vec<Vec<Part>>, view: &View, shape: &[u64]) -> Option<Vec<Vec<Part>>> {
    match view {
        View::Reshape(_) => {
            let mut rest = axes.into_iter().flatten().peekable();
            let gathered = shape.iter().map(|&extent| {
                let (mut parts, mut have) = (Vec::new(), 1);
                while have < extent {
                    let part = rest.next()?;
                    have = part.extent().saturating_mul(have);
                    parts.push(part);
                }
                (have == extent).then_some(parts)
            });
            gathered.collect()
        }
        View::Transpose(order) => order.iter().map(|&axis| axes.get(axis).cloned()).collect(),
        View::Broadcast(_, places) => {
            let repeated = |&extent: &u64| match extent {
                1 => Vec::new(),
                _ => vec![Part::Repeated(extent)],
            };
            let mut all: Vec<Vec<Part>> = shape.iter().map(repeated).collect();
            for (parts, &place) in axes.into_iter().zip(places) {
                if !parts.is_empty() {
                    *all.get_mut(place)? = parts;
                }
            }
            Some(all)
        }
        View::Squeeze(_) | View::Slice(..) | View::Reverse(_) | View::Bitcast(_) => None,
    }
}

/// A value that repeats another one along a part of an axis, which no view of that has.
struct Repeated {
    of: Value,
    /// The order of its axes, and their extents as those of the value, without the repeats.
    order: Vec<usize>,
    shape: Vec<u64>,
    axis: usize,
    times: u64,
}

impl Repeated {
    fn of(
        program: &Program<'static>,
        value: Value,
        axis: usize,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Repeated> {
        let parts = Parts::of(program, value, facts, shapes);
        let (Part::Repeated(times), rest) = parts.axes.get(axis)?.split_last()? else {
            return None;
        };
        let (times, rest) = (*times, rest.to_vec());
        let mut axes = parts.axes.clone();
        axes[axis] = rest;
        let own = |part: &Part| match part {
            Part::Of(axis, _) => Some(*axis),
            Part::Repeated(_) => None,
        };
        let order: Option<Vec<usize>> = axes.iter().flatten().map(own).collect();
        let of = &shapes[parts.of as usize];
        let ones = (0..of.len()).filter(|axis| of[*axis] == 1);
        let order: Vec<usize> = ones.chain(order?).collect();
        let extent = |parts: &Vec<Part>| parts.iter().map(|part| part.extent()).product();
        let is_merged = !axes[axis].is_empty() && order.len() == of.len();
        is_merged.then(|| Repeated {
            of: parts.of,
            order,
            shape: axes.iter().map(extent).collect(),
            axis,
            times,
        })
    }

    /// The axis of shapes of that many, as elements and repeats.
    fn split(&self, rank: usize) -> Split {
        Split {
            rank,
            axis: self.axis,
            parts: [self.shape[self.axis], self.times],
        }
    }

    /// What it repeats, once, in the order of its axes.
    fn once(&self, view: &mut impl FnMut(Value, View) -> Value) -> Value {
        let turned = match self.order.is_sorted() {
            true => self.of,
            false => view(self.of, View::Transpose(self.order.clone())),
        };
        view(turned, View::Reshape(self.shape.clone()))
    }
}

/// A request as it is with an axis split in two.
struct Rewritten {
    inputs: Vec<Value>,
    attrs: Vec<Attr>,
    split: Split,
}

/// A product whose right operand is the same for several batches: these become rows.
fn product(
    program: &Program<'static>,
    request: &Request<'static, Value>,
    facts: &Facts,
    shapes: &[Vec<u64>],
    writer: &mut Writer,
    places: &SmallVec<[usize; 1]>,
) -> Option<Rewritten> {
    let axis = ints(&request.attrs, "batch_b").len().checked_sub(1)?;
    let leading: Vec<i64> = (0..=axis as i64).collect();
    let (&[left, right, ref further @ ..], [(_, result)]) = (&*request.inputs, &*request.outputs)
    else {
        return None;
    };
    let keys = Repeated::of(program, right, axis, facts, shapes)?;
    let split = keys.split(result.len());
    let rows = &shapes[left as usize];
    let fits = ints(&request.attrs, "batch_a") == leading
        && ints(&request.attrs, "batch_b") == leading
        && axis < rows.len().min(result.len())
        && !ints(&request.attrs, "contract_a").is_empty()
        && further
            .iter()
            .all(|value| split.of(&shapes[*value as usize]).is_some());
    if !fits {
        return None;
    }
    let mut view = |value: Value, view: View| writer.view(value, view, places);
    let rows = [&rows[..axis], &split.parts, &rows[axis + 1..]].concat();
    let mut inputs = vec![view(left, View::Reshape(rows)), keys.once(&mut view)];
    for &value in further {
        let shape = &shapes[value as usize];
        let split = split.of(shape).filter(|split| split != shape);
        inputs.push(split.map_or(value, |split| view(value, View::Reshape(split))));
    }
    let mut attrs = request.attrs.to_vec();
    for attr in attrs.iter_mut().filter(|attr| attr.name == "contract_a") {
        let behind = ints(std::slice::from_ref(attr), "contract_a").iter();
        *attr = Attr::ints(
            "contract_a",
            behind.map(|axis| axis + 1).collect::<Vec<_>>(),
        );
    }
    Some(Rewritten {
        inputs,
        attrs,
        split,
    })
}

/// A slice that is put into a tensor, and repeats something along a whole axis of that.
fn put(
    program: &Program<'static>,
    request: &Request<'static, Value>,
    facts: &Facts,
    shapes: &[Vec<u64>],
    writer: &mut Writer,
    places: &SmallVec<[usize; 1]>,
) -> Option<Rewritten> {
    let &[tensor, slice, ref starts @ ..] = &*request.inputs else {
        return None;
    };
    let [tensor_shape, slice_shape] = [tensor, slice].map(|value| &shapes[value as usize]);
    let rank = slice_shape.len();
    let mut fixed = ints(&request.attrs, "starts").to_vec();
    if fixed.len() != rank || tensor_shape.len() != rank {
        return None;
    }
    let keys = (0..rank)
        .filter(|&axis| tensor_shape[axis] == slice_shape[axis])
        .find_map(|axis| Repeated::of(program, slice, axis, facts, shapes))?;
    let (split, axis) = (keys.split(rank), keys.axis as i64);
    let mut view = |value: Value, view: View| writer.view(value, view, places);
    let whole = split.of(tensor_shape)?;
    let once = keys.once(&mut view);
    let one = [
        &keys.shape[..=keys.axis],
        &[1],
        &keys.shape[keys.axis + 1..],
    ]
    .concat();
    let once = view(once, View::Reshape(one));
    let each = View::Broadcast(split.of(slice_shape)?, (0..=rank).collect());
    let mut inputs = vec![view(tensor, View::Reshape(whole)), view(once, each)];
    // Whatever it says, along a whole axis a slice starts at 0.
    let mut axes = Vec::new();
    for (&own, &start) in ints(&request.attrs, "axes").iter().zip(starts) {
        if own != axis {
            axes.push(own + i64::from(own > axis));
            inputs.push(start);
        }
    }
    fixed.insert(keys.axis + 1, 0);
    Some(Rewritten {
        inputs,
        attrs: vec![Attr::ints("axes", axes), Attr::ints("starts", fixed)],
        split,
    })
}
