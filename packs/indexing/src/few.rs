//! Updates that are few: each workgroup looks through the indices of all of them, in one dispatch.

use crate::{
    chunks,
    deal::Update,
    emit::Words,
    scatter::Scatter,
    walk::{LIMIT, Side, component_defines},
};
use nx_vulkan_abi::{
    BufArg, Define, DeviceInfo, DeviceKind, Plan, Refusal,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    grid, operand,
    steps::{Step, number},
};

const WORKGROUP: u32 = 256;
/// Updates at most. All of them may be of one place, and come one after the other then.
const MOST: u64 = 512;
/// And where neighbours are of other places, so that they wait for each other's updates: an H200 (driver 580.159.04) adds 512 to one
/// place in 59 us so, and by lists in 19.
const MOST_APART: u64 = 64;
/// Vectors of a place for which neighbours are mostly of the same.
const SIDE_BY_SIDE: u64 = 32;
/// Indices that all workgroups together look at, at most: beyond them lists are faster.
const LOOKS: u64 = 1 << 22;
/// Elements of a vector, where places are of whole ones.
const WIDTH: u64 = 4;
/// Vectors of an invocation, where there are so many that enough invocations are left.
const VECTORS: u64 = 4;
const MANY_VECTORS: u64 = 1 << 18;

/// The operands and the result as elements that updates take the place of, or are added to.
pub(crate) struct Elements {
    pub(crate) tensor: Side,
    /// Where it begins, in vectors; in elements where all of them are the same one.
    pub(crate) tensor_at: i64,
    pub(crate) updates: Side,
    pub(crate) result: Side,
    /// Elements that move together.
    pub(crate) width: u64,
    pub(crate) defines: Vec<Define>,
}

impl Elements {
    pub(crate) fn of(scatter: &Scatter<'_>, update: Update) -> Result<Elements, Refusal> {
        let (request, device) = (scatter.request, scatter.request.device);
        let [tensor, updates, result] = [
            (&request.inputs[0], BufArg::input(0)),
            (&request.inputs[2], BufArg::input(2)),
            (&request.outputs[0], BufArg::output(0)),
        ]
        .map(|(desc, arg)| Side::of(desc, arg, Vec::new(), device));
        let (tensor, updates, result) = (tensor?, updates?, result?);
        let dtype = request.outputs[0].dtype;
        let (storage, mut defines) = match update {
            Update::Add => {
                let storage = glsl::types(dtype).map_or("", |(storage, _)| storage);
                (storage, glsl::operand("R", dtype))
            }
            Update::Put => {
                let (storage, dtype) = operand::raw_type(dtype.size());
                operand::supports("indexed_put", dtype, device)?;
                (storage, glsl::operand("R", dtype))
            }
        };
        let is_same = scatter.is_same();
        let at = if is_same { 0 } else { tensor.at as u64 };
        let is_even = [scatter.part_elements(), at, updates.at as u64]
            .iter()
            .all(|words| words.is_multiple_of(WIDTH));
        let vector = glsl::vector(storage, WIDTH).filter(|_| is_even);
        let width = if vector.is_some() { WIDTH } else { 1 };
        defines.extend(scatter.same(storage));
        defines.extend([
            define("R_VECTOR", vector.unwrap_or(storage)),
            define("ELEMENT(v, k)", if vector.is_some() { "v[k]" } else { "v" }),
            number("WIDTH", width),
        ]);
        Ok(Elements {
            tensor_at: tensor.at / if is_same { 1 } else { width as i64 },
            tensor,
            updates,
            result,
            width,
            defines,
        })
    }
}

/// Vectors of an invocation, and workgroups of so many vectors.
fn spread(count: u64, device: &DeviceInfo<'_>) -> (u64, u64) {
    let vectors = if count >= MANY_VECTORS { VECTORS } else { 1 };
    let workgroup = u64::from(grid::threads(device, WORKGROUP));
    (vectors, count.div_ceil(workgroup * vectors))
}

/// Whether all workgroups look for the updates: on a GPU, where that suits. A CPU takes longer for it than for lists.
pub(crate) fn serves(scatter: &Scatter<'_>, update: Update) -> bool {
    scatter.request.device.kind != DeviceKind::CPU && plan(scatter, update).is_ok()
}

pub(crate) fn plan(scatter: &Scatter<'_>, update: Update) -> Result<Plan, Refusal> {
    let (request, device) = (scatter.request, scatter.request.device);
    if !chunks::reach(scatter) {
        return Err(Refusal::decline("the operands are not in order"));
    }
    let elements = Elements::of(scatter, update)?;
    let is_apart = update == Update::Add && scatter.part_elements() < SIDE_BY_SIDE * elements.width;
    if scatter.rows > if is_apart { MOST_APART } else { MOST } {
        return Err(Refusal::decline("there are too many updates"));
    }
    let count = request.outputs[0].elements() / elements.width;
    let (vectors, groups) = spread(count, device);
    if count >= LIMIT || groups * scatter.rows > LOOKS {
        return Err(Refusal::decline(
            "there are too many updates for so large a tensor",
        ));
    }
    let Elements {
        tensor,
        tensor_at,
        updates,
        result,
        width,
        mut defines,
    } = elements;
    defines.extend(component_defines(&scatter.components, 3));
    defines.extend([
        number("WORKGROUP", grid::threads(device, WORKGROUP)),
        number("VECTORS", vectors),
        number("MOST", scatter.rows.next_multiple_of(32)),
    ]);
    if update == Update::Put {
        defines.push(define("KEEPS_LAST", "1"));
    }
    let step = Step {
        file: "few.comp",
        defines,
        args: vec![tensor.arg, updates.arg, result.arg, scatter.indices.arg],
        groups: grid::spread(groups, device)?,
        ..Step::default()
    };
    let mut words = Words::default();
    words.push(count as i64);
    words.extent(scatter.part_elements() / width);
    words.push(tensor_at);
    words.push(updates.at / width as i64);
    words.push(scatter.rows as i64);
    scatter.index_words(&mut words);
    let mut plan = Plan::default();
    words.add_to(step, &mut plan, device);
    Ok(plan)
}
