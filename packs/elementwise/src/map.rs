//! Plans of the ops that are an expression of the operands at one index.

use crate::copy;
use crate::dispatch::{self, Code};
use crate::space::{Space, Walk};
use nx_vulkan_abi::{
    DType, Define, DeviceKind, InputAs, Plan, Refusal, Request,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    operand::supports,
    rows::{Entry, Row},
    vendor,
};

/// From this many elements on, copying a transposed operand first beats reading it with strides.
const WORTH_COPYING: u64 = 1 << 18;

/// Plans `op`.
pub(crate) fn plan(op: &Row, request: &Request<'_>) -> Result<Plan, Refusal> {
    let Some((space, code)) = walk(op, request)? else {
        return Ok(Plan::default());
    };
    let transposed = transposed_inputs(&space, request);
    if !transposed.is_empty() {
        return Err(Refusal::InputsAs(transposed));
    }
    dispatch::plan(&space, &code, request.device)
}

/// Plans `as_type` between two types. It makes the copies that other ops ask for, so it cannot ask for one.
pub(crate) fn convert(op: &Row, request: &Request<'_>) -> Result<Plan, Refusal> {
    let Some((space, code)) = walk(op, request)? else {
        return Ok(Plan::default());
    };
    match space.inputs[0].swapped_axis(&space.shape) {
        Some(axis) => copy::transpose(&space, axis, code, request),
        None => dispatch::plan(&space, &code, request.device),
    }
}

/// What is walked through and what is done there; nothing where there are no elements.
fn walk(op: &Row, request: &Request<'_>) -> Result<Option<(Space, Code)>, Refusal> {
    let mut code = code(op, request)?;
    if request.outputs[0].elements() == 0 {
        return Ok(None);
    }
    let space = Space::of(request)?;
    let has_vectors = |storage: &&'static str| glsl::vector(storage, 2).is_some();
    code.width = if code.storage.iter().all(has_vectors) {
        space.width()
    } else {
        1
    };
    Ok(Some((space, code)))
}

/// The operands that are better copied first. A repeated one would grow, so it stays.
pub(crate) fn transposed_inputs(space: &Space, request: &Request<'_>) -> Vec<InputAs> {
    let worth = |input: &Walk| {
        space.count() >= WORTH_COPYING
            && !input.strides.contains(&0)
            && input.swapped_axis(&space.shape).is_some()
    };
    let inputs = (0..).zip(request.inputs).zip(&space.inputs);
    inputs
        .filter(|(_, walk)| worth(walk))
        .map(|((index, input), _)| InputAs::new(index, input.dtype))
        .collect()
}

fn code(op: &Row, request: &Request<'_>) -> Result<Code, Refusal> {
    let result = request.outputs[0].dtype;
    let types: Vec<DType> = request.inputs.iter().map(|input| input.dtype).collect();
    let is_complex = types
        .iter()
        .chain([&result])
        .any(|dtype| dtype.is_complex());
    let Entry {
        types: computed,
        is_order,
        is_mixed,
    } = op.entry(&types, result);
    for dtype in types.iter().chain(&computed).chain([&result]) {
        supports(&op.op, *dtype, request.device)?;
    }

    let mut code = Code {
        storage: Vec::new(),
        width: 1,
        vectors: match request.device.kind {
            _ if !op.math => 8,
            DeviceKind::CPU => 4,
            _ => 2,
        },
        defines: Vec::new(),
    };
    for ((name, stored), computed) in ["A", "B", "C"].into_iter().zip(&types).zip(&computed) {
        code.defines
            .extend(operand(name, *stored, &mut code.storage)?);
        code.defines.extend(glsl::needs(*computed));
        let (_, register) = known(*computed)?;
        code.defines
            .push(define(format!("{name}_COMPUTE"), register));
        code.defines
            .push(define(format!("{name}_CAST(x)"), cast(*computed)));
        let bits = computed.row().map_or(0, |row| row.bits);
        code.defines
            .push(define(format!("{name}_BITS"), bits.to_string()));
    }
    code.defines
        .extend(operand("R", result, &mut code.storage)?);
    code.defines.push(define("R_CAST(x)", cast(result)));
    let real = op.code(&computed, result);
    let complex = op.complex.as_ref().filter(|_| is_complex && !is_order);
    let is_function = complex.is_some_and(|glsl| glsl.starts_with("complex_"));
    if op.math || is_function {
        let wide = computed.iter().any(|dtype| dtype.part() == DType::F64);
        code.defines
            .push(define(if wide { "MATH_F64" } else { "MATH_F32" }, "1"));
    }
    let is_nvidia = vendor::is_nvidia(request.device);
    code.defines
        .extend(vendor::defines(is_nvidia, op.math || is_function));
    if is_mixed {
        code.defines.push(define("MIXED", "1"));
    }
    if is_order {
        code.defines.push(define("ORDERED", "1"));
    }
    code.defines
        .extend(is_function.then(|| define("COMPLEX_FUNCTIONS", "1")));
    code.defines
        .push(define("EXPRESSION", complex.map_or(real, String::as_str)));
    Ok(code)
}

fn operand(
    name: &str,
    dtype: DType,
    storage: &mut Vec<&'static str>,
) -> Result<Vec<Define>, Refusal> {
    storage.push(known(dtype)?.0);
    Ok(glsl::operand(name, dtype))
}

fn known(dtype: DType) -> Result<(&'static str, &'static str), Refusal> {
    glsl::types(dtype).ok_or_else(|| Refusal::decline(format!("{dtype} has no form in shaders")))
}

/// The cast of `dtype.glsl` to that type.
pub(crate) fn cast(dtype: DType) -> String {
    format!("nxv_to_{}(x)", dtype.name())
}
