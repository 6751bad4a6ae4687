//! A kernel pack with two ops on f32: `square`, which is its own, and `negate`, which is one of Nx.

use nx_vulkan_abi::{
    BufArg, DType, DTypeSet, Description, Dispatch, InputAs, Numerics, Plan, Refusal, Request, Row,
    ShaderVariant, Source, glsl::define,
};

nx_vulkan_abi::pack! { id: "template", version: "0.1.0", describe: describe, plan: plan }

/// Invocations per workgroup: at least this many are allowed on every device.
const WORKGROUP: u64 = 128;

/// Op and its GLSL expression; each row is one kernel.
const ROWS: [(&str, &str); 2] = [("square", "a * a"), ("negate", "-a")];

/// What the host asks once, after loading: the shaders, and one row per kernel.
fn describe() -> Result<Description, String> {
    let f32 = DTypeSet::of(&[DType::F32]);
    let row = |(op, _): &(&str, &str)| Row {
        id: format!("{op}_f32"),
        op: (*op).to_owned(),
        inputs: f32,
        outputs: f32,
        numerics: Numerics::EXACT,
        ..Row::default()
    };
    Ok(Description {
        sources: vec![Source::glsl(
            "unary.comp",
            include_str!("../shaders/unary.comp"),
        )],
        kernels: ROWS.iter().map(row).collect(),
    })
}

/// What the host asks once per kind of request: how would you run it? The first argument is the index of the row.
fn plan(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    let ([input], [_]) = (request.inputs.as_slice(), request.outputs.as_slice()) else {
        return Err(Refusal::BadRequest(
            "the op takes one operand and has one result".to_owned(),
        ));
    };
    let (_, expression) = ROWS
        .get(row as usize)
        .ok_or_else(|| Refusal::Internal(format!("there is no row {row}")))?;
    if !input.is_contiguous() {
        return Err(Refusal::InputsAs(vec![InputAs::new(0, DType::F32)]));
    }
    let too_large = || Refusal::decline("the tensor is too large for one dispatch");
    let count = u32::try_from(input.elements()).map_err(|_| too_large())?;
    let first = u32::try_from(input.offset).map_err(|_| too_large())?;
    let groups = u64::from(count).div_ceil(WORKGROUP) as u32;
    if groups > request.device.max_groups[0] || input.storage_len > request.device.max_buffer_range
    {
        return Err(too_large());
    }
    let push: Vec<u8> = [first, count]
        .iter()
        .flat_map(|word| word.to_le_bytes())
        .collect();
    let shader = ShaderVariant {
        file: "unary.comp".into(),
        defines: vec![
            define("WORKGROUP", WORKGROUP.to_string()),
            define("EXPRESSION(a)", *expression),
        ]
        .into(),
        bindings: 2,
        push_bytes: push.len() as u32,
        ..ShaderVariant::default()
    };
    let step = Dispatch {
        groups: [groups, 1, 1],
        args: vec![BufArg::input(0), BufArg::output(0)].into(),
        push: push.into(),
        ..Dispatch::default()
    };
    Ok(Plan {
        shaders: vec![shader].into(),
        steps: vec![step].into(),
        ..Plan::default()
    })
}

#[cfg(test)]
mod tests;
