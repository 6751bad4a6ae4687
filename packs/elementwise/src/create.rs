//! Plans of the ops without operands: an expression of the index, or one repeated element.

use crate::copy::MAX_SIZE;
use crate::dispatch::{INDEX_LIMIT, Params, Step, WORKGROUP, assemble};
use crate::map::cast;
use crate::space::{Part, Space};
use nx_vulkan_abi::{
    Define, Plan, Refusal, Request, TensorDesc,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    operand::{raw_type, supports},
    rows::Row,
};

/// Plans `op`.
pub(crate) fn plan(op: &Row, request: &Request<'_>) -> Result<Plan, Refusal> {
    let output = &request.outputs[0];
    if output.elements() == 0 {
        return Ok(Plan::default());
    }
    if op.op == "fill" {
        fill(op, output, request)
    } else {
        index(op, output, request)
    }
}

/// What the shader is told besides the range to write.
struct Content {
    storage: &'static str,
    width: u64,
    defines: Vec<Define>,
    extent: u64,
    inner: u64,
    bits: [u8; MAX_SIZE as usize],
}

fn index(op: &Row, output: &TensorDesc<'_>, request: &Request<'_>) -> Result<Plan, Refusal> {
    let dtype = output.dtype;
    supports(&op.op, dtype, request.device)?;
    let Some((storage, _)) = glsl::types(dtype) else {
        return Err(Refusal::decline(format!(
            "{} of {dtype} has no shader form",
            op.op
        )));
    };
    let (extent, inner) = counted(op, output, request)?;
    let space = Space::of(request)?;
    let mut defines = glsl::operand("R", dtype);
    defines.push(define("R_CAST(x)", cast(dtype)));
    let content = Content {
        storage,
        width: match glsl::vector(storage, 2) {
            Some(_) => space.width(),
            None => 1,
        },
        defines,
        extent,
        inner,
        bits: [0; 16],
    };
    dispatches(op, &space, content, request)
}

/// The extent of the axis that the op counts along, and the elements below one index of it.
fn counted(
    op: &Row,
    output: &TensorDesc<'_>,
    request: &Request<'_>,
) -> Result<(u64, u64), Refusal> {
    let (shape, rank) = (output.shape.as_slice(), output.rank());
    let axis = match (op.op.as_str(), request.ints("axis")) {
        ("eye", _) if rank >= 2 => rank - 2,
        ("iota", []) => return Ok((output.elements(), 1)),
        ("iota", [axis]) if (0..rank as i64).contains(axis) => *axis as usize,
        (name, axis) => {
            let got = format!("axis {axis:?}, shape {shape:?}");
            return Err(Refusal::BadRequest(format!(
                "expected {name} along an axis of its shape, got: {got}"
            )));
        }
    };
    Ok((shape[axis], shape[axis + 1..].iter().product()))
}

fn fill(op: &Row, output: &TensorDesc<'_>, request: &Request<'_>) -> Result<Plan, Refusal> {
    let size = output.dtype.size() as usize;
    let bytes: Vec<u8> = request
        .ints("bits")
        .iter()
        .flat_map(|bits| bits.to_le_bytes())
        .collect();
    if bytes.len() < size.max(8) || size == 0 {
        let got = request.ints("bits").len();
        return Err(Refusal::BadRequest(format!(
            "expected the bits of one {}, got: {got} integers",
            output.dtype
        )));
    }
    let mut bits = [0; MAX_SIZE as usize];
    bits.chunks_mut(size)
        .for_each(|element| element.copy_from_slice(&bytes[..size]));

    let mut space = Space::of(request)?;
    while space.output.size < MAX_SIZE && space.count().is_multiple_of(2) {
        space.shape[0] /= 2;
        space.output.size *= 2;
    }
    let (storage, like) = raw_type(space.output.size);
    supports(&op.op, like, request.device)?;
    let lanes = match space.output.size {
        16 => "all".to_owned(),
        8 => "(all).xy".to_owned(),
        _ => format!("{storage}((all).x)"),
    };
    let mut defines = glsl::needs(like);
    defines.extend([
        define("R_STORAGE", storage),
        define("R_STORE(x)", "x"),
        define("R_CAST(all)", lanes),
    ]);
    let width = if space.output.size < 8 { 4 } else { 1 };
    dispatches(
        op,
        &space,
        Content {
            storage,
            width,
            defines,
            extent: 1,
            inner: 1,
            bits,
        },
        request,
    )
}

fn dispatches(
    op: &Row,
    space: &Space,
    content: Content,
    request: &Request<'_>,
) -> Result<Plan, Refusal> {
    let Content {
        storage,
        width,
        mut defines,
        extent,
        inner,
        bits,
    } = content;
    let vector = glsl::vector(storage, width).unwrap_or(storage);
    defines.push(define("R_VECTOR", vector));
    defines.push(define("WORKGROUP", WORKGROUP.to_string()));
    defines.push(define("WIDTH", width.to_string()));
    defines.push(define("EXPRESSION", op.glsl.as_str()));
    let mut parts = space.parts(request.device)?;
    parts
        .iter_mut()
        .for_each(|part| part.wide |= space.count() >= INDEX_LIMIT);
    let step = |part: &Part| {
        let mut params = Params::new(part, space);
        params.index(part.start as i64);
        params.axis(extent);
        params.axis(inner);
        bits.as_chunks()
            .0
            .iter()
            .for_each(|word| params.word(u32::from_le_bytes(*word)));
        Step {
            file: "create.comp",
            defines: [part.index_defines(), defines.clone()].concat(),
            args: part.args.clone(),
            params,
            groups: part.count.div_ceil(WORKGROUP * width),
        }
    };
    assemble(request.device, parts.iter().map(step))
}
