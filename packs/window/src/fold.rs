//! Plans of `window_sum` and its like: one dispatch over all windows, or one for each axis where windows are large.

use crate::{runs::Runs, table::Fold};
use nx_vulkan_abi::{
    BufArg, DType, DTypeSet, Define, Plan, Refusal, Request,
    glsl::{self, define, operand},
};
use nx_vulkan_pack_kit::{
    axes::{self, Axis, divisor},
    grid,
    operand::{supports, within_reach},
    steps::{Step, bytes_of, distinct, number, read, scratch},
    table, vendor,
};

/// Windows of so many elements fold axis by axis.
const LARGE: u64 = 32;
/// Elements that one invocation may visit: a device takes longer dispatches for hung.
const MOST: u64 = 1 << 22;

/// Plans a reduction of windows.
pub(crate) fn plan(op: &Fold, takes: DTypeSet, request: &Request<'_>) -> Result<Plan, Refusal> {
    table::expect_types(&op.op, &[takes], takes, request)?;
    let (x, out) = (&request.inputs[0], &request.outputs[0]);
    if x.dtype != out.dtype {
        return Err(Refusal::BadRequest(format!(
            "{} of {} gives {0}",
            op.op, x.dtype
        )));
    }
    supports(&op.op, x.dtype, request.device)?;
    within_reach(request)?;
    let axes = axes::axes(request, (&x.shape, &x.strides), &out.shape)?;
    if out.elements() == 0 {
        return Ok(Plan::default());
    }
    if x.elements() == 0 {
        return fill(op.combination(out.dtype)[0], request);
    }
    let mut passes = Passes {
        op,
        request,
        plan: Plan::default(),
    };
    let windowed = axes.iter().filter(|axis| axis.window > 1).count();
    let size = axes
        .iter()
        .fold(1u64, |size, axis| size.saturating_mul(axis.window));
    let whole = Pass {
        from: BufArg::input(0),
        first: x.offset as i64,
        types: [x.dtype, out.dtype],
    };
    if size < LARGE || windowed < 2 {
        passes.add(whole, &axes, BufArg::output(0))?;
    } else {
        passes.by_axis(whole, axes)?;
    }
    Ok(passes.plan)
}

/// What a pass reads, from which element on, and the types of operand and result.
#[derive(Debug, Clone, Copy)]
struct Pass {
    from: BufArg,
    first: i64,
    types: [DType; 2],
}

#[derive(Debug)]
struct Passes<'a> {
    op: &'a Fold,
    request: &'a Request<'a>,
    plan: Plan,
}

impl Passes<'_> {
    /// One pass for each axis that has windows, those that leave the fewest results first.
    fn by_axis(&mut self, mut pass: Pass, mut axes: Vec<Axis>) -> Result<(), Refusal> {
        let result = pass.types[1];
        let register = result.register();
        let mut order: Vec<usize> = (0..axes.len()).filter(|k| !axes[*k].is_plain()).collect();
        order.sort_by_key(|k| axes[*k].positions * 1000 / axes[*k].extent.max(1));
        let last = order.last().copied();
        for k in order {
            // The other axes pass as they are.
            let mut own = axes.clone();
            for (other, axis) in own.iter_mut().enumerate() {
                if other != k && !axis.is_plain() {
                    *axis = Axis {
                        positions: axis.extent,
                        ..axis.folded(axis.step)
                    };
                    axis.extent = axis.positions;
                }
            }
            let shape: Vec<u64> = own.iter().map(|axis| axis.positions).collect();
            if Some(k) == last {
                pass.types[1] = result;
                return self.add(pass, &own, BufArg::output(0));
            }
            pass.types[1] = register;
            let bytes = shape.iter().product::<u64>() * register.size();
            if bytes > self.request.device.max_buffer_range || bytes / register.size() >= 1 << 31 {
                return Err(Refusal::decline(
                    "the partial results are too large for one buffer",
                ));
            }
            let to = scratch(&mut self.plan, bytes);
            self.add(pass, &own, to)?;
            let steps = nx_vulkan_abi::layout::contiguous_strides(&shape);
            axes = (0..own.len())
                .map(
                    |other| match other == k || own[other].is_plain() && axes[other].is_plain() {
                        true => own[other].folded(steps[other]),
                        false => Axis {
                            step: steps[other],
                            ..axes[other]
                        },
                    },
                )
                .collect();
            pass = Pass {
                from: read(to),
                first: 0,
                types: [register; 2],
            };
        }
        Ok(())
    }

    fn add(&mut self, pass: Pass, axes: &[Axis], to: BufArg) -> Result<(), Refusal> {
        let (op, device) = (self.op, self.request.device);
        let count: u64 = axes.iter().map(|axis| axis.positions).product();
        let axes = axes::merged(axes);
        let size = axes
            .iter()
            .fold(1u64, |size, axis| size.saturating_mul(axis.window));
        if size > MOST || count >= 1 << 31 {
            return Err(Refusal::decline(format!(
                "{} of windows of {size} elements takes the device too long",
                op.op
            )));
        }
        let first = pass.first - axes.iter().map(|axis| axis.low * axis.step).sum::<i64>();
        let runs = Runs::of(&axes);
        let (file, count, words, own) = match &runs {
            Some(runs) => ("runs.comp", runs.count(), runs.words(first), runs.defines()),
            None => {
                let (words, defines) = whole(&axes, count, first);
                ("window.comp", count, words, defines)
            }
        };
        let threads = grid::threads(device, 256);
        let [a, r] = pass.types;
        let [start, combined] = op.combination(r);
        let mut defines = distinct([operand("A", a), operand("R", r)].concat());
        defines.extend(bounds(self.request.outputs[0].dtype));
        defines.extend(vendor::defines(vendor::is_nvidia(device), false));
        defines.extend([
            define("START", start),
            define("COMBINE(a, b)", format!("({combined})")),
            number("WORKGROUP", threads),
        ]);
        defines.extend(own);
        let step = Step {
            file,
            defines,
            args: vec![pass.from, to],
            push: bytes_of(&words),
            groups: grid::spread(count.div_ceil(u64::from(threads)), device)?,
            ..Step::default()
        };
        step.add_within(&mut self.plan, device.push_bytes);
        Ok(())
    }
}

/// Params and defines where an invocation folds one window, whatever its axes.
fn whole(axes: &[Axis], count: u64, first: i64) -> (Vec<u32>, Vec<Define>) {
    let inner = (0..axes.len()).rev().find(|k| !axes[*k].is_plain());
    let inner = inner.unwrap_or(axes.len() - 1);
    let rows: u64 = axes[..inner].iter().map(|axis| axis.window).product();
    let mut words = vec![count as u32, first as u32, rows as u32];
    let mut windowed = 0u32;
    for (k, axis) in axes.iter().enumerate() {
        let [magic, shift] = divisor(axis.positions);
        windowed |= u32::from(!axis.is_plain()) << k;
        words.extend([
            axis.positions as u32,
            magic,
            shift,
            axis.stride_step() as u32,
            axis.stride as u32,
            axis.low as u32,
            axis.extent as u32,
            axis.window as u32,
            axis.dilation as u32,
            (axis.dilation as i64 * axis.step) as u32,
        ]);
    }
    let defines = vec![
        number("RANK", axes.len() as u64),
        number("INNER", inner as u64),
        number("WINDOWED", windowed),
    ];
    (words, defines)
}

/// The plan that stores `start` everywhere.
pub(crate) fn fill(start: &str, request: &Request<'_>) -> Result<Plan, Refusal> {
    let (out, device) = (&request.outputs[0], request.device);
    let threads = grid::threads(device, 256);
    let mut defines = operand("R", out.dtype);
    defines.extend(bounds(out.dtype));
    defines.extend([define("START", start), number("WORKGROUP", threads)]);
    let mut plan = Plan::default();
    let step = Step {
        file: "fill.comp",
        defines,
        args: vec![BufArg::output(0)],
        push: bytes_of(&[out.elements() as u32]),
        groups: grid::spread(out.elements().div_ceil(u64::from(threads)), device)?,
        ..Step::default()
    };
    step.add_to(&mut plan);
    Ok(plan)
}

/// `LOWEST` and `HIGHEST`.
pub(crate) fn bounds(dtype: DType) -> [Define; 2] {
    let bounds = glsl::of(dtype).and_then(|glsl| glsl.bounds);
    let (lowest, highest) = bounds.unwrap_or(("0", "0"));
    [define("LOWEST", lowest), define("HIGHEST", highest)]
}
