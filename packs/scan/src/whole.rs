//! Scans in one dispatch that reads and writes every element once, where a workgroup can have whole lines and there are
//! enough of them; few lines along memory are cut into parts that other workgroups sum before.

use crate::plan::{Steps, Task, units};
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceInfo, DeviceKind, Features, Refusal,
    glsl::{self, define},
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, number, read},
};

/// Bytes of a vector, and the most elements of one.
const VECTOR_BYTES: u64 = 16;
const MOST_WIDTH: u64 = 4;
/// Bytes that an invocation keeps of a row, and of a tile of columns.
const ROW_BYTES: u64 = 128;
const COLUMN_BYTES: u64 = 64;
/// Elements of it on a CPU, whose compiler takes long over many.
const CPU_ITEMS: u64 = 4;
/// Vectors of a row that an invocation keeps at most.
const MOST_VECTORS: u64 = 16;
/// Times that a workgroup goes on along a line before it pays to cut it into parts, workgroups for each compute unit that these
/// shall give, and how many there are at most: one workgroup scans what those of a line amount to.
const LONG: u64 = 4;
const GROUPS_PER_UNIT: u64 = 4;
const MOST_PARTS: u64 = 4096;
/// Lines shorter than this share workgroups.
const SHORT: u64 = 256;
/// Bytes of lines beside each other that a workgroup scans, and what they cost: short rows use memory badly.
const BESIDE: [(u64, u64); 3] = [(256, 256), (128, 128), (64, 96)];
/// Stretches of columns that `columns.comp` sums at once.
const GROUP: u64 = 8;

/// Adds the dispatch; nothing where another way suits better.
pub(crate) fn scan(steps: &mut Steps<'_>, task: &Task<'_>) -> Result<bool, Refusal> {
    if task.lines.extent < SHORT {
        return Ok(false);
    }
    match task.lines.strides {
        [1, 1] | [-1, -1] => rows(steps, task),
        _ => columns(steps, task),
    }
}

fn rows(steps: &mut Steps<'_>, task: &Task<'_>) -> Result<bool, Refusal> {
    let (lines, device) = (task.lines, steps.device);
    let most = u64::from(grid::threads(device, 256));
    let lanes = u64::from(device.subgroup_size);
    let needed = Features::SUBGROUP_SHUFFLE.with(Features::SUBGROUP_SIZE_CONTROL);
    let has_subgroups = device.features.has(needed) && lanes.is_power_of_two() && lanes <= most;
    if !has_subgroups {
        return Ok(false);
    }
    let is_reverse = lines.strides[0] < 0;
    let back = if is_reverse {
        lines.extent as i64 - 1
    } else {
        0
    };
    let firsts = [lines.first - back, task.result_at - back];
    let width = width(task, lines.extent, &firsts, &lines.axes);
    let kept = (most_items(task, device, ROW_BYTES) / width).clamp(1, MOST_VECTORS);
    let vectors = lines.extent / width;
    let workgroup = (vectors.div_ceil(kept).next_power_of_two()).clamp(lanes.min(most), most);
    let mut kept = vectors.div_ceil(workgroup).min(kept);
    let mut part = vectors;
    if lines.count * 2 <= units(device) && vectors > workgroup * kept * LONG {
        let parts = |kept: u64| lines.count * vectors.div_ceil(workgroup * kept);
        while kept > 1 && parts(kept) < units(device) * GROUPS_PER_UNIT {
            kept /= 2;
        }
        part = workgroup * kept * parts(kept).div_ceil(MOST_PARTS);
    }
    let parts = vectors.div_ceil(part);
    let (axes, axes_count) = steps.axes(lines);
    let words = [
        firsts[0] as u32,
        firsts[1] as u32,
        lines.count as u32,
        axes_count,
        lines.extent as u32,
        parts as u32,
        part as u32,
    ];
    let step = |steps: &Steps<'_>, file, to: DType, args| -> Result<Step, Refusal> {
        let mut defines = defines(steps, task, to, width);
        defines.extend([
            number("WORKGROUP", workgroup),
            number("VECTORS", kept),
            number("SUBGROUPS", lanes),
        ]);
        defines.extend(is_reverse.then(|| number("REVERSE", 1u64)));
        Ok(Step {
            file,
            defines,
            args,
            push: bytes_of(&words),
            groups: grid::spread(lines.count * parts, device)?,
            subgroup_size: device.subgroup_size,
            ..Step::default()
        })
    };
    let (from, to) = (BufArg::input(0), BufArg::output(0));
    if parts == 1 {
        let step = step(steps, "rows.comp", task.dtype, vec![axes, from, to])?;
        step.add_to(&mut steps.plan);
        return Ok(true);
    }
    let totals = steps.totals(task, parts);
    let first = step(
        steps,
        "totals.comp",
        task.dtype.register(),
        vec![axes, from, totals],
    )?;
    first.add_to(&mut steps.plan);
    let carries = steps.carries(task, parts, read(totals))?;
    let mut last = step(
        steps,
        "rows.comp",
        task.dtype,
        vec![axes, from, to, carries],
    )?;
    last.defines.push(number("CARRIES", 1u64));
    last.add_to(&mut steps.plan);
    Ok(true)
}

fn columns(steps: &mut Steps<'_>, task: &Task<'_>) -> Result<bool, Refusal> {
    let (lines, device) = (task.lines, steps.device);
    let Some((&(beside, [1, 1]), outer)) = lines.axes.split_last() else {
        return Ok(false);
    };
    let size = task.dtype.size();
    let [step, result_step] = lines.strides;
    let places = [lines.first, task.result_at, step, result_step];
    let width = width(task, beside, &places, outer);
    let workgroup = u64::from(grid::threads(device, 512));
    let tiles = |tile: u64| lines.count / beside * beside.div_ceil(tile);
    let units = units(device);
    let fits = |(bytes, _): &(u64, u64)| {
        let tile = bytes / size;
        let is_full = tiles(tile) * 2 >= units && beside * 2 > tile;
        is_full && workgroup >= tile / width * GROUP
    };
    // Elements that the busiest compute unit gets, by what a row of them costs.
    let cost = |(bytes, cost): &(u64, u64)| tiles(bytes / size).div_ceil(units) * cost;
    let Some((bytes, _)) = BESIDE.into_iter().filter(fits).min_by_key(cost) else {
        return Ok(false);
    };
    let tile = bytes / size;
    let mut defines = defines(steps, task, task.dtype, width);
    defines.extend([
        number("WORKGROUP", workgroup),
        number("COLUMNS", tile),
        number(
            "ITEMS",
            (most_items(task, device, COLUMN_BYTES) / width).max(1),
        ),
    ]);
    let (axes, axes_count) = steps.axes(lines);
    let words = [
        lines.first as u32,
        step as u32,
        task.result_at as u32,
        result_step as u32,
        tiles(tile) as u32,
        axes_count,
        lines.extent as u32,
        beside as u32,
        beside.div_ceil(tile) as u32,
    ];
    let step = Step {
        file: "columns.comp",
        defines,
        args: vec![axes, BufArg::input(0), BufArg::output(0)],
        push: bytes_of(&words),
        groups: grid::spread(tiles(tile), device)?,
        ..Step::default()
    };
    step.add_to(&mut steps.plan);
    Ok(true)
}

/// Elements that an invocation keeps in so many bytes of registers.
fn most_items(task: &Task<'_>, device: &DeviceInfo<'_>, bytes: u64) -> u64 {
    let register = task.dtype.register();
    match device.kind {
        DeviceKind::CPU => CPU_ITEMS,
        _ => bytes / register.size(),
    }
}

/// Elements of a vector, of which `extent` are beside each other: as many as every place at which one starts is a multiple of.
fn width(task: &Task<'_>, extent: u64, places: &[i64], axes: &[(u64, [i64; 2])]) -> u64 {
    let storage = glsl::of(task.dtype).map_or("", |glsl| glsl.storage);
    let steps = axes.iter().flat_map(|(_, strides)| *strides);
    let places: Vec<i64> = steps.chain(places.iter().copied()).collect();
    let fits = |width: u64| {
        glsl::vector(storage, width).is_some()
            && extent.is_multiple_of(width)
            && places.iter().all(|place| place % width as i64 == 0)
    };
    let mut width = (VECTOR_BYTES / task.dtype.size()).min(MOST_WIDTH);
    while width > 1 && !fits(width) {
        width /= 2;
    }
    width.max(1)
}

fn defines(steps: &Steps<'_>, task: &Task<'_>, to: DType, width: u64) -> Vec<Define> {
    let mut defines = steps.types([task.dtype, to]);
    let storage = glsl::of(task.dtype).map_or("", |glsl| glsl.storage);
    let vector = glsl::vector(storage, width).unwrap_or(storage);
    defines.extend([
        define("A_VECTOR", vector),
        define("R_VECTOR", vector),
        number("WIDTH", width),
    ]);
    defines
}
