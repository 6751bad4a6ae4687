//! How the invocations of a workgroup share rows, and how they read them.

use nx_vulkan_abi::{DeviceKind, Refusal, Request, TensorDesc, glsl};
use nx_vulkan_pack_kit::grid;

/// Elements of a row that are worth an invocation, where there are many rows and where there are few.
const SHARES: [u64; 2] = [16, 2];
/// Elements that are loaded at a time, and their bytes.
const MOST_ABREAST: u64 = 4;
const MOST_BYTES: u64 = 16;
/// Invocations that keep a compute unit busy.
const BUSY: u64 = 512;
/// Axes before the last one, where they do not follow from each other in memory.
const MOST_AXES: usize = 5;

/// How the invocations of a workgroup share rows.
pub(super) struct Share {
    pub(super) rows: u64,
    pub(super) length: u64,
    /// Invocations that hold one.
    pub(super) lanes: u64,
    /// Elements that an invocation holds next to each other, and how many times.
    pub(super) width: u64,
    pub(super) times: u64,
}

/// Axes before the last one: their extents, and each operand's strides along them.
pub(super) type Axes = Vec<(u64, Vec<i64>)>;

/// How an operand is read along a row.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Reading {
    /// One element for all of it.
    One,
    Neighbours,
    Apart,
}

impl Share {
    /// How rows of that length are shared.
    pub(super) fn of(request: &Request<'_>, axes: &Axes, rows: u64, length: u64) -> Share {
        let width = width(request, axes, length);
        let lanes = lanes(length, rows, width, request);
        Share {
            rows,
            length,
            lanes,
            width,
            times: length.div_ceil(lanes * width),
        }
    }

    /// Elements of an operand that an invocation holds.
    pub(super) fn held(&self) -> u64 {
        self.times * self.width
    }
}

/// What the operands broadcast to.
pub(super) fn shape(request: &Request<'_>) -> Result<Vec<u64>, Refusal> {
    let inputs = request.inputs.iter();
    let rank = inputs.clone().map(|input| input.rank()).max().unwrap_or(0);
    let mut shape = vec![1; rank];
    for input in inputs {
        for (to, &extent) in shape[rank - input.rank()..].iter_mut().zip(&*input.shape) {
            match (*to, extent) {
                (a, b) if a == b || b == 1 => {}
                (1, b) => *to = b,
                _ => {
                    return Err(Refusal::BadRequest(
                        "its operands do not broadcast to one shape".to_owned(),
                    ));
                }
            }
        }
    }
    Ok(shape)
}

/// The extents of the axes before the last one, joined where that is one for all operands, and each operand's strides along them.
pub(super) fn axes(request: &Request<'_>, lead: &[u64]) -> Result<Axes, Refusal> {
    let mut axes: Axes = Vec::new();
    for (axis, &extent) in lead.iter().enumerate() {
        if extent == 1 {
            continue;
        }
        let stride = |input: &TensorDesc<'_>| {
            let own = (axis + input.rank()).checked_sub(lead.len() + 1);
            own.filter(|own| input.shape[*own] != 1)
                .map_or(0, |own| input.strides[own])
        };
        let strides: Vec<i64> = request.inputs.iter().map(stride).collect();
        let follows = |before: &[i64]| {
            before
                .iter()
                .zip(&strides)
                .all(|(before, own)| *before == own * extent as i64)
        };
        match axes.last_mut() {
            Some((joined, before)) if follows(before) => {
                *joined *= extent;
                *before = strides;
            }
            _ => axes.push((extent, strides)),
        }
    }
    if axes.is_empty() {
        axes.push((1, vec![0; request.inputs.len()]));
    }
    match axes.len() {
        0..=MOST_AXES => Ok(axes),
        many => Err(Refusal::decline(format!(
            "rows along {many} axes that do not follow from each other"
        ))),
    }
}

/// How an operand is read, and whether vectors of `width` elements begin where they may.
pub(super) fn reading(request: &Request<'_>, k: usize, axes: &Axes, width: u64) -> Reading {
    let input = &request.inputs[k];
    let step = match (input.shape.last(), input.strides.last()) {
        (Some(extent), Some(stride)) if *extent != 1 => *stride,
        _ => 0,
    };
    let is_whole = |n: i64| n % width as i64 == 0;
    let vector = glsl::types(input.dtype).and_then(|types| glsl::vector(types.0, width));
    match step {
        0 => Reading::One,
        1 if width == 1 => Reading::Neighbours,
        1 if vector.is_some()
            && is_whole(input.offset as i64)
            && axes.iter().all(|axis| is_whole(axis.1[k])) =>
        {
            Reading::Neighbours
        }
        _ => Reading::Apart,
    }
}

/// Elements that are loaded and stored at a time.
fn width(request: &Request<'_>, axes: &Axes, length: u64) -> u64 {
    let all = || request.inputs.iter().chain(request.outputs);
    let largest = all().map(|tensor| tensor.dtype.size()).max().unwrap_or(1);
    let fits = |width: &u64| {
        let is_there = |tensor: &TensorDesc<'_>| {
            glsl::types(tensor.dtype)
                .and_then(|types| glsl::vector(types.0, *width))
                .is_some()
        };
        let mut readings = (0..request.inputs.len()).map(|k| reading(request, k, axes, *width));
        length.is_multiple_of(*width)
            && *width * largest <= MOST_BYTES
            && all().all(is_there)
            && readings.any(|reading| reading == Reading::Neighbours)
    };
    let widths = [MOST_ABREAST, 2];
    match request.device.kind {
        DeviceKind::CPU => 1,
        _ => widths.into_iter().find(fits).unwrap_or(1),
    }
}

/// Invocations that share a row.
fn lanes(length: u64, rows: u64, width: u64, request: &Request<'_>) -> u64 {
    let device = request.device;
    let most = u64::from(grid::threads(device, 1024));
    if device.kind == DeviceKind::CPU {
        return length.div_ceil(8).next_power_of_two().min(most);
    }
    let units = u64::from(device.compute_units.max(4));
    let [many, few] = SHARES.map(|share| length.div_ceil(share.max(width)).next_power_of_two());
    let lanes = if rows * many >= units * BUSY {
        many
    } else {
        few
    };
    let least = u64::from(device.subgroup_size.max(1));
    let least = least.min(length.div_ceil(width).next_power_of_two());
    lanes.max(least).min(most)
}
