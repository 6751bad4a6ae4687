//! From a request to dispatches: how lines are shared out among invocations and workgroups, and which shader that takes.

use crate::{table::TableRow, whole};
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceInfo, DeviceKind, InputAs, Plan, Refusal, Request, glsl,
};
use nx_vulkan_pack_kit::{
    grid,
    lines::Lines,
    operand,
    steps::{Step, bytes_of, number, read, scratch},
    table as kit,
};

/// Elements that an invocation takes at once; a CPU has no use for loads in flight, and its compiler takes long over them.
const ITEMS: u64 = 8;
const CPU_ITEMS: u64 = 2;
/// Bytes beside each other that make memory accesses worthwhile.
const BESIDE: u64 = 128;
/// Elements below which it costs nothing to read them in a bad order.
const FEW: u64 = 1 << 12;
/// Workgroups for each compute unit, where lines are cut into parts.
const GROUPS_PER_UNIT: u64 = 8;

pub(crate) fn plan(row: &TableRow, request: &Request<'_>) -> Result<Plan, Refusal> {
    kit::expect_types(&row.op.op, &[row.takes], row.takes, request)?;
    let (x, out) = (&request.inputs[0], &request.outputs[0]);
    if x.dtype != out.dtype || x.shape != out.shape {
        return Err(Refusal::BadRequest(format!(
            "{} gives the type and shape of its operand",
            row.op.op
        )));
    }
    let axis = request.ints("axis").first().copied().unwrap_or(0);
    let mut lines = Lines::new(request, axis)?;
    if out.elements() == 0 {
        return Ok(Plan::default());
    }
    operand::supports(&row.op.op, x.dtype, request.device)?;
    operand::within_reach(request)?;
    let shape = Shape::new(&lines, x.dtype, request.device);
    let in_order = match shape.along {
        true => lines.strides[0].unsigned_abs() <= 1,
        false => lines.beside().1,
    };
    if !in_order && !x.is_contiguous() && out.elements() > FEW {
        return Err(Refusal::InputsAs(vec![InputAs::new(0, x.dtype)]));
    }
    let mut result_at = 0;
    if request.ints("reverse") == [1] {
        let last = lines.extent as i64 - 1;
        lines.first += last * lines.strides[0];
        result_at += last * lines.strides[1];
        lines.strides = lines.strides.map(|stride| -stride);
    }
    let mut steps = Steps {
        plan: Plan::default(),
        row,
        device: request.device,
    };
    let task = Task {
        lines: &lines,
        result_at,
        dtype: x.dtype,
    };
    if !whole::scan(&mut steps, &task)? {
        steps.scan(&task, shape)?;
    }
    Ok(steps.plan)
}

/// Compute units, or a guess where the device does not say.
pub(crate) fn units(device: &DeviceInfo<'_>) -> u64 {
    match device.compute_units {
        0 if device.kind == DeviceKind::CPU => 2,
        0 => 64,
        units => u64::from(units),
    }
}

/// What is scanned.
#[derive(Debug)]
pub(crate) struct Task<'a> {
    /// In the order of the scan.
    pub(crate) lines: &'a Lines,
    /// The first element of the result in that order.
    pub(crate) result_at: i64,
    pub(crate) dtype: DType,
}

/// How lines are shared out.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Shape {
    workgroup: u64,
    /// Elements that an invocation takes at once.
    items: u64,
    /// Invocations that share a line.
    lanes: u64,
    /// Whether neighbours in a workgroup are neighbours on a line.
    along: bool,
    parts: u64,
    part_extent: u64,
}

impl Shape {
    fn new(lines: &Lines, dtype: DType, device: &DeviceInfo<'_>) -> Shape {
        let is_cpu = device.kind == DeviceKind::CPU;
        let items = if is_cpu { CPU_ITEMS } else { ITEMS };
        let (beside, _) = lines.beside();
        let along = beside == 1 || lines.strides[1] == 1;
        let mut workgroup = u64::from(grid::threads(device, 256));
        // An invocation has two places for what it hands on, its elements, some of which are apart, and where a line starts.
        let of_one = (items + 3) * dtype.register().size() + 8;
        while along && workgroup > 32 && workgroup * of_one > u64::from(device.shared_bytes) {
            workgroup /= 2;
        }
        let wanted = lines.extent.div_ceil(items).next_power_of_two();
        let most = match along {
            true => workgroup,
            false => {
                let together = (BESIDE / dtype.size()).min(beside.next_power_of_two());
                (workgroup / together.max(1)).max(1)
            }
        };
        let lanes = wanted.min(most);
        let groups = lines.count.div_ceil(workgroup / lanes);
        let stretches = lines.extent.div_ceil(lanes * items);
        let units = units(device);
        // Lines of one workgroup that are not whole ones have invocations of their own.
        let parts = match groups < units && lanes == most {
            true => (units * GROUPS_PER_UNIT / groups).min(stretches / 2).max(1),
            false => 1,
        };
        let part_stretches = stretches.div_ceil(parts);
        Shape {
            workgroup,
            items,
            lanes,
            along,
            parts: stretches.div_ceil(part_stretches),
            part_extent: part_stretches * lanes * items,
        }
    }
}

/// What a dispatch reads and writes.
struct Buffers {
    from: BufArg,
    to: BufArg,
    carries: Option<BufArg>,
    totals: bool,
}

/// A plan in the making.
#[derive(Debug)]
pub(crate) struct Steps<'a> {
    pub(crate) plan: Plan,
    row: &'a TableRow,
    pub(crate) device: &'a DeviceInfo<'a>,
}

impl Steps<'_> {
    fn scan(&mut self, task: &Task<'_>, shape: Shape) -> Result<(), Refusal> {
        let Task {
            lines,
            result_at,
            dtype,
        } = *task;
        let whole = Buffers {
            from: BufArg::input(0),
            to: BufArg::output(0),
            carries: None,
            totals: false,
        };
        if shape.parts == 1 {
            return self.dispatch(lines, result_at, shape, [dtype; 2], whole);
        }
        let sum = dtype.register();
        let totals = self.totals(task, shape.parts);
        let first = Buffers {
            to: totals,
            totals: true,
            ..whole
        };
        self.dispatch(lines, result_at, shape, [dtype, sum], first)?;
        let last = Buffers {
            from: BufArg::input(0),
            to: BufArg::output(0),
            carries: Some(self.carries(task, shape.parts, totals)?),
            totals: false,
        };
        self.dispatch(lines, result_at, shape, [dtype; 2], last)
    }

    /// A buffer for what each of the parts of every line amounts to.
    pub(crate) fn totals(&mut self, task: &Task<'_>, parts: u64) -> BufArg {
        let bytes = task.lines.count * parts * task.dtype.register().size();
        scratch(&mut self.plan, bytes)
    }

    /// Adds the dispatch that scans `totals`, and gives the buffer of what it makes of them.
    pub(crate) fn carries(
        &mut self,
        task: &Task<'_>,
        parts: u64,
        totals: BufArg,
    ) -> Result<BufArg, Refusal> {
        let sum = task.dtype.register();
        let lines = Lines::contiguous(task.lines.count, parts);
        let shape = Shape {
            parts: 1,
            part_extent: parts,
            ..Shape::new(&lines, sum, self.device)
        };
        let buffers = Buffers {
            from: read(totals),
            to: self.totals(task, parts),
            carries: None,
            totals: false,
        };
        let carries = read(buffers.to);
        self.dispatch(&lines, 0, shape, [sum; 2], buffers)?;
        Ok(carries)
    }

    fn dispatch(
        &mut self,
        lines: &Lines,
        result_at: i64,
        shape: Shape,
        [from, to]: [DType; 2],
        buffers: Buffers,
    ) -> Result<(), Refusal> {
        let (axes, axes_count) = self.axes(lines);
        let groups = lines.count.div_ceil(shape.workgroup / shape.lanes) * shape.parts;
        let words = [
            lines.first as u32,
            lines.strides[0] as u32,
            result_at as u32,
            lines.strides[1] as u32,
            lines.count as u32,
            axes_count,
            lines.extent as u32,
            shape.parts as u32,
            shape.part_extent as u32,
            shape.lanes.ilog2(),
        ];
        let mut args = vec![axes, buffers.from, buffers.to];
        args.extend(buffers.carries);
        let step = Step {
            file: "scan.comp",
            defines: self.defines(shape, [from, to], &buffers),
            args,
            push: bytes_of(&words),
            groups: grid::spread(groups, self.device)?,
            ..Step::default()
        };
        step.add_to(&mut self.plan);
        Ok(())
    }

    /// Where shaders find the axes of lines, and their number.
    pub(crate) fn axes(&mut self, lines: &Lines) -> (BufArg, u32) {
        let (axes, count) = lines.params();
        let at = self.plan.params.len() as u64;
        self.plan.params.extend(axes);
        self.plan
            .params
            .resize(self.plan.params.len().next_multiple_of(256), 0);
        let axes = BufArg::params().range(at, 16 * u64::from(count.max(1)));
        (axes, count)
    }

    fn defines(&self, shape: Shape, types: [DType; 2], buffers: &Buffers) -> Vec<Define> {
        let mut defines = self.types(types);
        let switch = |name: &str, on: bool| on.then(|| number(name, 1u64));
        let switches = [
            switch("ALONG", shape.along),
            switch("TOTALS", buffers.totals),
            switch("CARRIES", buffers.carries.is_some()),
        ];
        defines.extend([
            number("WORKGROUP", shape.workgroup),
            number("ITEMS", shape.items),
        ]);
        defines.extend(switches.into_iter().flatten());
        defines
    }

    /// What every shader is told of operand, result and op.
    pub(crate) fn types(&self, [from, to]: [DType; 2]) -> Vec<Define> {
        let glsl = glsl::of(from);
        let register = from.register();
        let (lowest, highest) = glsl.and_then(|glsl| glsl.bounds).unwrap_or(("0", "0"));
        let [start, combined] = self.row.op.combination(register);
        let mut defines: Vec<Define> = Vec::new();
        for (name, dtype) in [("A", from), ("R", to), ("ACC", register)] {
            // Operands of one size ask for the same NXV_NEEDS_* switch.
            for new in glsl::operand(name, dtype) {
                if defines.iter().all(|define| define.name != new.name) {
                    defines.push(new);
                }
            }
        }
        defines.extend([
            glsl::define("LOWEST", lowest),
            glsl::define("HIGHEST", highest),
            glsl::define("START", start),
            glsl::define("COMBINE(a, b)", format!("({combined})")),
        ]);
        defines
    }
}
