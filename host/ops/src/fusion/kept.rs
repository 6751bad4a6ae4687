//! Reductions of the last axis of what is computed just before keep that axis, and a view drops it: rows are of one shape then.

use super::{
    Facts, Input,
    follow::expression_of,
    rows::{reduced, reduced_by},
    shapes,
    split::Writer,
};
use crate::{DType, Program, Request, Result, Step, Value, View};

/// The program in which they do.
///
/// # Errors
/// None that [`Program::new`] does not have, which it passed.
pub(super) fn kept(program: Program<'static>, inputs: &[Input]) -> Result<Program<'static>> {
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
    let (shape, out) = reduced_by(step, shapes)?;
    let Step::Request(request) = step else {
        return None;
    };
    let (&value, &(dtype, _)) = (request.inputs.first()?, request.outputs.first()?);
    let Step::Request(maker) = &program.steps()[facts.maker(value)?] else {
        return None;
    };
    let is_of_rows = shape.split_last().is_some_and(|(_, lead)| out == lead)
        && [DType::F16, DType::BF16, DType::F32, DType::F64].contains(&dtype)
        && facts.dtypes[value as usize] == dtype
        && maker.outputs.iter().all(|output| output.1 == *shape)
        && expression_of(maker, facts).is_some();
    let outputs = vec![(dtype, reduced(shape))];
    is_of_rows.then(|| Request {
        outputs: outputs.into(),
        ..request.clone()
    })
}
