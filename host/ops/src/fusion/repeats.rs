//! Repeats: several batches of a product with the same right operand, which was copied for each of them, are rows of one batch. So it
//! is with attention whose queries share keys.

use super::{
    Facts, Input, shapes,
    split::{Split, Writer},
};
use crate::{Attr, Program, Request, Result, Step, Value, View, attrs::ints};

/// Operands of a product before those of its epilogue.
const FACTORS: usize = 2;

/// The program in which products read what was repeated for their batches once. It gives the same bits where a kernel sums in the
/// same order.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn repeats(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let mut writer = Writer::of(&program);
    for (place, step) in program.steps().iter().enumerate() {
        let product = match step {
            Step::Request(request) if request.op == "dot" => {
                Product::of(&program, request, &facts, &shapes)
            }
            _ => None,
        };
        match product {
            Some(product) => product.write(&program, place, &facts, &shapes, &mut writer),
            None => writer.keep(&program, place, &facts),
        }
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
                    have *= part.extent();
                    parts.push(part);
                }
                (have == extent).then_some(parts)
            });
            gathered.collect()
        }
        View::Transpose(order) => order.iter().map(|&axis| axes.get(axis).cloned()).collect(),
        View::Broadcast(_, places) => {
            let mut all: Vec<Vec<Part>> = shape
                .iter()
                .map(|&extent| {
                    if extent > 1 {
                        vec![Part::Repeated(extent)]
                    } else {
                        Vec::new()
                    }
                })
                .collect();
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

/// A product whose right operand is the same for several batches.
struct Product<'a> {
    request: &'a Request<'static, Value>,
    /// What the right operand repeats, the order of its axes, and their extents.
    of: Value,
    order: Vec<usize>,
    shape: Vec<u64>,
    /// The last batch axis of the result, as batches and rows.
    split: Split,
}

impl<'a> Product<'a> {
    fn of(
        program: &Program<'static>,
        request: &'a Request<'static, Value>,
        facts: &Facts,
        shapes: &[Vec<u64>],
    ) -> Option<Product<'a>> {
        let axis = ints(&request.attrs, "batch_b").len().checked_sub(1)?;
        let leading: Vec<i64> = (0..=axis as i64).collect();
        let ([_, right, ..], [(_, result)]) = (&*request.inputs, &*request.outputs) else {
            return None;
        };
        let parts = Parts::of(program, *right, facts, shapes);
        let (Part::Repeated(times), batches) = parts.axes.get(axis)?.split_last()? else {
            return None;
        };
        let mut axes = parts.axes.clone();
        axes[axis] = batches.to_vec();
        let order: Option<Vec<usize>> = axes
            .iter()
            .flatten()
            .map(|part| match part {
                Part::Of(axis, _) => Some(*axis),
                Part::Repeated(_) => None,
            })
            .collect();
        let order = order?;
        let of = &shapes[parts.of as usize];
        let ones = (0..of.len()).filter(|axis| of[*axis] == 1);
        let order: Vec<usize> = ones.chain(order).collect();
        let extent = |parts: &Vec<Part>| parts.iter().map(|part| part.extent()).product();
        let shape: Vec<u64> = axes.iter().map(extent).collect();
        let split = Split {
            rank: result.len(),
            axis,
            parts: [shape[axis], *times],
        };
        let further = request.inputs[FACTORS..].iter();
        let mut further = further.map(|value| &shapes[*value as usize]);
        let fits = ["batch_a", "batch_b"]
            .iter()
            .all(|name| ints(&request.attrs, name) == leading)
            && !ints(&request.attrs, "contract_a").is_empty()
            && !batches.is_empty()
            && order.len() == of.len()
            && further.all(|shape| split.of(shape).is_some());
        fits.then_some(Product {
            request,
            of: parts.of,
            order,
            shape,
            split,
        })
    }
    /// Writes what stands in its place.
    fn write(
        &self,
        program: &Program<'static>,
        place: usize,
        facts: &Facts,
        shapes: &[Vec<u64>],
        writer: &mut Writer,
    ) {
        let places = program.stands_for(place);
        let Split { axis, parts, .. } = self.split;
        let mut view = |value: Value, view: View| writer.view(value, view, &places);
        let mut inputs = self.request.inputs.to_vec();
        let left = &shapes[inputs[0] as usize];
        let split = [&left[..axis], &parts, &left[axis + 1..]].concat();
        inputs[0] = view(inputs[0], View::Reshape(split));
        inputs[1] = self.of;
        if !self.order.is_sorted() {
            inputs[1] = view(inputs[1], View::Transpose(self.order.clone()));
        }
        inputs[1] = view(inputs[1], View::Reshape(self.shape.clone()));
        for value in &mut inputs[FACTORS..] {
            let shape = &shapes[*value as usize];
            if let Some(split) = self.split.of(shape).filter(|split| split != shape) {
                *value = view(*value, View::Reshape(split));
            }
        }
        let mut attrs = self.request.attrs.to_vec();
        for attr in attrs.iter_mut().filter(|attr| attr.name == "contract_a") {
            let behind = ints(std::slice::from_ref(attr), "contract_a").iter();
            *attr = Attr::ints(
                "contract_a",
                behind.map(|axis| axis + 1).collect::<Vec<_>>(),
            );
        }
        let [(dtype, shape)] = &*self.request.outputs else {
            return;
        };
        let outputs = vec![(*dtype, self.split.of(shape).unwrap_or_default())];
        let request = Request::new(self.request.op.to_string(), inputs, outputs, attrs);
        let made = writer.add(request.into(), &places);
        writer.view_as(
            made,
            View::Reshape(shape.clone()),
            facts.first[place],
            &places,
        );
    }
}
