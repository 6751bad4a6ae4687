//! Windows along axes: what a request says of them, checked, and as shaders want to know it.

use nx_vulkan_abi::{Refusal, Request};

/// Positions and places that shaders compute in 32 bits stay below this.
const MOST: u64 = 1 << 30;

/// A window along one axis.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Axis {
    /// Elements of the axis, without padding.
    pub extent: u64,
    /// How many positions the window has.
    pub positions: u64,
    /// Elements of a window.
    pub window: u64,
    /// Steps from one window to the next.
    pub stride: u64,
    /// Steps from one element of a window to the next.
    pub dilation: u64,
    /// Padding in front; less than 0 cuts off.
    pub low: i64,
    /// Elements of the operand from one index to the next.
    pub step: i64,
}

/// The windows of a request over `input` that give `positions`.
///
/// # Errors
/// A bad request where lists do not fit the axes; a decline of what 32 bits do not hold.
pub fn axes(
    request: &Request<'_>,
    (shape, strides): (&[u64], &[i64]),
    positions: &[u64],
) -> Result<Vec<Axis>, Refusal> {
    let rank = shape.len();
    let list = |name: &'static str, each: usize| match request.ints(name) {
        list if list.len() == each * rank => Ok(list),
        list => Err(Refusal::BadRequest(format!(
            "{}: attribute {name} {list:?} for {rank} axes",
            request.op
        ))),
    };
    let (window, padding) = (list("window", 1)?, list("padding", 2)?);
    let steps = list("strides", 1)?;
    let dilations = match request.attr("window_dilations") {
        Some(_) => list("window_dilations", 1)?.to_vec(),
        None => vec![1; rank],
    };
    if positions.len() != rank {
        return Err(Refusal::BadRequest(format!(
            "{}: the windows lie in {rank} axes",
            request.op
        )));
    }
    let axis = |k: usize| {
        let positive = [window[k], steps[k], dilations[k]].map(|n| u64::try_from(n).unwrap_or(0));
        let [window, stride, dilation] = positive;
        let axis = Axis {
            extent: shape[k],
            positions: positions[k],
            window,
            stride,
            dilation,
            low: padding[2 * k],
            step: strides[k],
        };
        match positive.contains(&0) {
            true => Err(Refusal::BadRequest(format!(
                "{}: a window of no size",
                request.op
            ))),
            false => axis.within_reach().map(|()| axis),
        }
    };
    (0..rank).map(axis).collect()
}

impl Axis {
    /// One index.
    pub const ONE: Axis = Axis {
        extent: 1,
        positions: 1,
        window: 1,
        stride: 1,
        dilation: 1,
        low: 0,
        step: 0,
    };

    fn within_reach(&self) -> Result<(), Refusal> {
        let reach = |count: u64, step: u64| count.saturating_sub(1).saturating_mul(step);
        let ends = [
            self.extent,
            self.low.unsigned_abs(),
            self.stride,
            self.dilation,
        ];
        let ends = ends.into_iter().chain([
            reach(self.positions, self.stride),
            self.window.saturating_mul(self.dilation),
        ]);
        match ends.into_iter().all(|end| end < MOST) {
            true => Ok(()),
            false => Err(Refusal::decline(format!(
                "a window of {} elements, {} apart, is out of reach of 32-bit places",
                self.window, self.dilation
            ))),
        }
    }

    /// Whether each position has one element, which is there.
    pub fn is_plain(&self) -> bool {
        let last = (self.positions.max(1) - 1) as i64 * self.stride as i64 - self.low;
        self.window == 1 && self.low <= 0 && last < self.extent as i64
    }

    /// Elements of the operand from one position to the next.
    pub fn stride_step(&self) -> i64 {
        self.stride as i64 * self.step
    }

    /// An axis of the same positions whose windows are its elements.
    pub fn folded(&self, step: i64) -> Axis {
        Axis {
            extent: self.positions,
            positions: self.positions,
            step,
            ..Axis::ONE
        }
    }
}

/// `magic` and `shift` of an `NxvDivisor`.
pub fn divisor(extent: u64) -> [u32; 2] {
    let shift = extent.max(2).next_power_of_two().trailing_zeros() - 1;
    let magic = (1u128 << (32 + shift)) / u128::from(extent.max(2)) + 1;
    [magic as u32, shift]
}

/// Merges plain axes that follow each other in memory.
pub fn merged(axes: &[Axis]) -> Vec<Axis> {
    let mut merged: Vec<Axis> = Vec::new();
    for axis in axes {
        if axis.is_plain() && axis.positions == 1 && axis.low == 0 {
            continue;
        }
        let before = merged.last_mut().filter(|before| {
            let follows = before.stride_step() == axis.stride_step() * axis.positions as i64;
            let joined = before.positions.saturating_mul(axis.positions) < MOST;
            before.is_plain()
                && axis.is_plain()
                && before.low == 0
                && axis.low == 0
                && follows
                && joined
        });
        match before {
            Some(before) => {
                before.positions *= axis.positions;
                before.extent = before.positions;
                before.stride = 1;
                before.step = axis.stride_step();
            }
            None => merged.push(*axis),
        }
    }
    if merged.is_empty() {
        merged.push(Axis::ONE);
    }
    merged
}
