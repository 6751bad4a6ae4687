//! Long lines: a stable radix sort, eight bits a pass from the lowest on.

use crate::job::{Job, Steps};
use nx_vulkan_abi::{Access, BufArg, DType, DeviceInfo, DeviceKind, Plan, Refusal, Request};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Elements of a tile for each invocation; a CPU's compiler takes long over many.
const ITEMS: u64 = 16;
const CPU_ITEMS: u64 = 4;

/// Invocations of the shader that orders tiles: as many as shared memory has room for.
fn workgroup(device: &DeviceInfo<'_>, items: u64) -> u64 {
    // Entries, the cells of half a digit, the exchange of sums, and two words for each digit.
    let bytes = |threads: u64| threads * (items + 16 + 2) * 4 + 2 * 256 * 4;
    let mut threads = u64::from(grid::threads(device, 256));
    while threads > 1 && bytes(threads) > u64::from(device.shared_bytes) {
        threads /= 2;
    }
    threads
}

pub(crate) fn plan(job: &Job, request: &Request<'_>) -> Result<Plan, Refusal> {
    let mut steps = Steps::new(job, request.device);
    let (lines, extent, size) = (job.lines.count, job.lines.extent, job.dtype.size());
    let items = match request.device.kind {
        DeviceKind::CPU => CPU_ITEMS,
        _ => ITEMS,
    };
    let workgroup = workgroup(request.device, items);
    let tile = workgroup * items;
    let tiles = extent.div_ceil(tile);
    let counts = steps.scratch(lines * 256 * tiles * 4)?;
    let totals = steps.scratch(lines * 256 * 4)?;
    let passes = size as u32;
    let buffers = u64::from(passes - 1).min(2);
    let mut elements = Vec::new();
    let mut origins = Vec::new();
    for _ in 0..buffers {
        elements.push(steps.scratch(lines * extent * size)?);
        if job.indices.is_some() {
            origins.push(steps.scratch(lines * extent * 4)?);
        }
    }
    for digit in 0..passes {
        let (is_first, is_last) = (digit == 0, digit == passes - 1);
        let before = |buffers: &[BufArg]| match is_first {
            true => None,
            false => buffers.get((digit as usize - 1) % 2).copied().map(read),
        };
        let from = before(&elements).unwrap_or(BufArg::input(0));
        let words = [
            job.lines.first as u32,
            job.lines.strides[0] as u32,
            job.lines.strides[1] as u32,
            lines as u32,
            steps.axes_count,
            extent as u32,
            job.keep as u32,
            tiles as u32,
            digit,
        ];
        let common = |index| {
            let mut defines = job.defines(index);
            defines.extend([number("WORKGROUP", workgroup), number("TILE", tile)]);
            defines.extend(is_first.then(|| number("FIRST", 1u64)));
            defines
        };
        let args = vec![BufArg::params(), from, counts];
        steps.dispatch("count.comp", common(None), &words, args, lines * tiles)?;

        let summers = u64::from(grid::threads(request.device, 64));
        let defines = vec![number("WORKGROUP", summers)];
        let both = BufArg {
            access: Access::READ_WRITE,
            ..counts
        };
        let sums = [(lines * 256) as u32, tiles as u32];
        steps.dispatch("sum.comp", defines, &sums, vec![both, totals], lines * 256)?;

        let (values, indices, index_type) = match is_last {
            true => (
                job.values.map(BufArg::output),
                job.indices.map(|(index, _)| BufArg::output(index)),
                job.indices.map(|(_, dtype)| dtype),
            ),
            false => (
                elements.get(digit as usize % 2).copied(),
                origins.get(digit as usize % 2).copied(),
                job.indices.map(|_| DType::U32),
            ),
        };
        let mut defines = common(index_type);
        defines.extend(is_last.then(|| number("LAST", 1u64)));
        let mut args = vec![BufArg::params(), from, read(counts), read(totals)];
        let mut bind = |name: &str, arg: Option<BufArg>| {
            if let Some(arg) = arg {
                defines.push(number(name, args.len() as u64));
                args.push(arg);
            }
        };
        bind("VALUES", values);
        bind("ORIGINS", before(&origins));
        bind("INDICES", indices);
        steps.dispatch("scatter.comp", defines, &words, args, lines * tiles)?;
    }
    Ok(steps.plan)
}
