//! Long lines: a stable radix sort, eight bits a pass from the lowest on.

use crate::job::{Job, Steps, subgroup};
use nx_vulkan_abi::{
    Access, BufArg, DType, DeviceInfo, DeviceKind, Features, Plan, Refusal, Request,
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Bytes of a tile's elements for each invocation; a CPU's compiler takes long over many.
const ITEM_BYTES: u64 = 64;
const MOST_ITEMS: u64 = 16;
const CPU_ITEMS: u64 = 4;
/// Elements of it at least, where there are few tiles.
const LEAST_ITEMS: u64 = 4;
/// Digits of a line whose tiles are no more than the first are summed by an invocation each; up to the second, where lines
/// are many.
const FEW_TILES: [u64; 2] = [4, 32];
/// Compute units of a device that does not say how many it has.
const SOME_UNITS: u64 = 64;

/// How tiles are sorted.
struct Tiling {
    workgroup: u64,
    tile: u64,
    /// Invocations of a subgroup; 0 where there is none to rank digits.
    lanes: u32,
}

impl Tiling {
    fn new(job: &Job, device: &DeviceInfo<'_>) -> Tiling {
        let mut items = match device.kind {
            DeviceKind::CPU => CPU_ITEMS,
            _ => (ITEM_BYTES / job.dtype.size()).min(MOST_ITEMS),
        };
        let threads = u64::from(grid::threads(device, 256));
        let elements = job.lines.count * job.lines.extent;
        while items > LEAST_ITEMS && elements < 2 * units(device) * threads * items {
            items /= 2;
        }
        let of = |workgroup: u64| Tiling {
            workgroup,
            tile: workgroup * items,
            lanes: subgroup(device, Features::SUBGROUP_ARITHMETIC, workgroup),
        };
        let mut tiling = of(threads);
        while tiling.workgroup > 1 && tiling.bytes(job) > u64::from(device.shared_bytes) {
            tiling = of(tiling.workgroup / 2);
        }
        tiling
    }

    /// Shared memory that it takes.
    fn bytes(&self, job: &Job) -> u64 {
        let digits = 2 * 256 * 4;
        match u64::from(self.lanes) {
            // Entries, the cells of half a digit, and the exchange of sums.
            0 => digits + self.tile * 4 + self.workgroup * (16 + 2) * 4,
            // Elements with their origins, and how often each subgroup has each digit.
            lanes => {
                let origin = if job.indices.is_some() { 4 } else { 0 };
                let element = job.dtype.size().max(4) + origin;
                digits + self.tile * element + self.workgroup / lanes * 256 * 4
            }
        }
    }
}

fn units(device: &DeviceInfo<'_>) -> u64 {
    match device.compute_units {
        0 => SOME_UNITS,
        units => units.into(),
    }
}

pub(crate) fn plan(job: &Job, request: &Request<'_>) -> Result<Plan, Refusal> {
    let mut steps = Steps::new(job, request.device);
    let (lines, extent, size) = (job.lines.count, job.lines.extent, job.dtype.size());
    let Tiling {
        workgroup,
        tile,
        lanes,
    } = Tiling::new(job, request.device);
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
        steps.dispatch("count.comp", common(None), &words, args, lines * tiles, 0)?;

        let few = tiles <= FEW_TILES[usize::from(lines >= units(request.device))];
        let most = if few {
            256
        } else {
            tiles.div_ceil(4).clamp(32, 256)
        };
        let summers = u64::from(grid::threads(
            request.device,
            most.next_power_of_two() as u32,
        ));
        let mut defines = vec![number("WORKGROUP", summers)];
        defines.extend(few.then(|| number("FEW", 1u64)));
        let both = BufArg {
            access: Access::READ_WRITE,
            ..counts
        };
        let sums = [(lines * 256) as u32, tiles as u32];
        let args = vec![both, totals];
        let each = if few { summers } else { 1 };
        let groups = (lines * 256).div_ceil(each);
        steps.dispatch("sum.comp", defines, &sums, args, groups, 0)?;

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
        let file = if lanes > 0 {
            "rank.comp"
        } else {
            "scatter.comp"
        };
        steps.dispatch(file, defines, &words, args, lines * tiles, lanes)?;
    }
    Ok(steps.plan)
}
