//! Reductions of the last axis of what is computed just before keep that axis, and a view drops it: rows are of one shape then.

use super::{Facts, Input, follow::expression_of, rows::reduced, shapes, split::Writer};
use crate::{Program, Request, Result, Step, Value, View, attrs::ints};
use nx_vulkan_abi::expression::REDUCTIONS;

/// The program in which they do.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub fn kept(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
    let facts = Facts::of(&program, inputs);
    let shapes = shapes(&program, inputs);
    let mut writer = Writer::of(&program);
    for (place, step) in program.steps().iter().enumerate() {
        let Some(request) = keeping(&program, step, &facts, &shapes) else {
            writer.keep(&program, place, &facts);
            continue;
        };
        let places = program.stands_for(place);
        let made = facts.first[place];
        let value = writer.add(request.into(), &places);
        let view = View::Reshape(shapes[made as usize].clone());
        writer.view_as(value, view, made, &places);
    }
    writer.finish(&program)
}

/// A step that drops an axis, as one that keeps it; `None` for others, and of what is not computed element by element.
fn keeping(
    program: &Program<'static>,
    step: &Step<'static>,
    facts: &Facts,
    shapes: &[Vec<u64>],
) -> Option<Request<'static, Value>> {
    let Step::Request(request) = step else {
        return None;
    };
    let (&[value], [(dtype, out)]) = (&*request.inputs, &*request.outputs) else {
        return None;
    };
    let shape = &shapes[value as usize];
    let (_, lead) = shape.split_last()?;
    let drops = REDUCTIONS.contains(&&*request.op)
        && request.attrs.len() == 1
        && ints(&request.attrs, "axes") == [lead.len() as i64]
        && out == lead;
    let Step::Request(maker) = &program.steps()[facts.maker(value)?] else {
        return None;
    };
    let is_computed = maker.outputs.iter().all(|output| output.1 == *shape)
        && expression_of(maker, facts).is_some();
    let outputs = vec![(*dtype, reduced(shape))];
    (drops && is_computed).then(|| Request {
        outputs: outputs.into(),
        ..request.clone()
    })
}
