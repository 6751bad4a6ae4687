//! Plans of `indexed_put` and `indexed_add`. Updates of one place come in their order, so the bits are the same each time.

use crate::{
    chunks,
    deal::{self, Update},
    emit::{Words, ascends, in_form},
    few, lists, sort,
    walk::{Component, Indices, LIMIT, Shift, Side, Walk, component_defines},
};
use nx_vulkan_abi::{
    Access, BufArg, Define, Plan, Refusal, Request, glsl::define, layout::contiguous_strides,
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, number, read, scratch},
};

const WORKGROUP: u32 = 256;

/// Updates of a tensor, without what becomes of them.
pub(crate) struct Scatter<'a> {
    pub(crate) request: &'a Request<'a>,
    pub(crate) rows: u64,
    /// Extents of the part that each update goes to.
    pub(crate) part: Vec<u64>,
    /// Steps of the part's axes in the result, and among the updates.
    pub(crate) to: Vec<i64>,
    pub(crate) from: Vec<i64>,
    pub(crate) indices: Side,
    pub(crate) components: Vec<Component>,
    /// Places that an update may go to.
    pub(crate) places: u64,
}

impl<'a> Scatter<'a> {
    /// The updates that a request asks for, nothing where there are none. The result's bytes are the tensor's in `plan`.
    pub(crate) fn new(
        request: &'a Request<'a>,
        plan: &mut Plan,
    ) -> Result<Option<Scatter<'a>>, Refusal> {
        let [tensor, indices, updates] = request.inputs.as_slice() else {
            return Err(Refusal::BadRequest(format!(
                "{} takes 3 operands",
                request.op
            )));
        };
        let (result, device) = (&request.outputs[0], request.device);
        let axes = request.ints("axes");
        let kept: Vec<usize> = (0..tensor.rank())
            .filter(|axis| !axes.contains(&(*axis as i64)))
            .collect();
        let part: Vec<u64> = kept.iter().map(|axis| tensor.shape[*axis]).collect();
        let named = axes
            .iter()
            .all(|axis| (0..tensor.rank() as i64).contains(axis));
        let fits = indices.rank() == 2
            && indices.shape[1] == axes.len() as u64
            && kept.len() + axes.len() == tensor.rank()
            && updates.shape.first() == indices.shape.first()
            && updates.shape.as_slice().get(1..) == Some(&part);
        if !named || !ascends(axes) || !fits || tensor.shape != result.shape {
            return Err(Refusal::BadRequest(format!(
                "{} of {:?} at {:?} by {:?} along {axes:?}",
                request.op, tensor.shape, indices.shape, updates.shape
            )));
        }
        if axes.is_empty() {
            return Err(Refusal::decline("updates without an index"));
        }
        in_form(request, &[0, 2], &[1], true)?;
        if result.elements() == 0 {
            return Ok(None);
        }
        let size = result.dtype.size();
        let strides = contiguous_strides(result.shape.as_slice());
        let whole = Walk {
            shape: result.shape.as_slice().to_vec(),
            size,
            from: Side::of(
                tensor,
                BufArg::input(0),
                tensor.strides.as_slice().to_vec(),
                device,
            )?,
            to: Side::of(result, BufArg::output(0), strides.clone(), device)?,
            indices: None,
        };
        whole.add_to(plan, device)?;
        if updates.elements() == 0 {
            return Ok(None);
        }
        let mut places = 1u64;
        let mut components = Vec::new();
        for (k, &axis) in axes.iter().enumerate().rev() {
            let axis = axis as usize;
            components.push(Component {
                at: k as i64,
                limit: tensor.shape[axis],
                step: strides[axis],
                number: places,
                dtype: indices.dtype,
            });
            places = places.saturating_mul(tensor.shape[axis]);
        }
        components.reverse();
        let scatter = Scatter {
            request,
            rows: indices.shape[0],
            part,
            to: kept.iter().map(|axis| strides[*axis]).collect(),
            from: updates.strides.as_slice().to_vec(),
            indices: Side::of(indices, BufArg::input(1), Vec::new(), device)?,
            components,
            places,
        };
        if places >= LIMIT || updates.elements() >= LIMIT || scatter.indices.arg.len / 4 >= LIMIT {
            return Err(Refusal::decline(
                "there are too many places or updates for 32-bit indices",
            ));
        }
        Ok(Some(scatter))
    }

    /// Whether all elements of the tensor are the same one, as those of a gradient that begins with zeros.
    pub(crate) fn is_same(&self) -> bool {
        let tensor = &self.request.inputs[0];
        let mut axes = tensor.shape.iter().zip(tensor.strides.iter());
        axes.all(|(extent, stride)| *extent == 1 || *stride == 0)
    }

    /// That they are, for shaders that read elements of this type in GLSL.
    pub(crate) fn same(&self, storage: &str) -> Option<Define> {
        self.is_same().then(|| define("SAME", storage))
    }

    /// Elements of the part that each update goes to.
    pub(crate) fn part_elements(&self) -> u64 {
        self.part.iter().product()
    }

    /// Numbers the updates in `to`: the last one of each place, or all with their places, or lists of those of groups of
    /// places, which are linked in another buffer.
    pub(crate) fn rows(
        &self,
        to: BufArg,
        others: &[BufArg],
        defines: Vec<Define>,
        plan: &mut Plan,
    ) -> Result<(), Refusal> {
        let device = self.request.device;
        let workgroup = grid::threads(device, WORKGROUP);
        let mut step = Step {
            file: "rows.comp",
            defines: component_defines(&self.components, 1),
            args: [&[to, self.indices.arg], others].concat(),
            groups: grid::spread(self.rows.div_ceil(u64::from(workgroup)), device)?,
            ..Step::default()
        };
        step.defines.push(number("WORKGROUP", workgroup));
        step.defines.extend(defines);
        let mut words = Words::default();
        words.push(self.rows as i64);
        self.index_words(&mut words);
        words.add_to(step, plan, device);
        Ok(())
    }

    /// Where indices are, how far apart those of updates are, and what each does.
    pub(crate) fn index_words(&self, words: &mut Words) {
        words.push(self.indices.at);
        words.push(self.components.len() as i64);
        self.components
            .iter()
            .for_each(|component| words.component(component));
    }

    /// A new scratch buffer of `words` words, the first `zeros` of which are 0, and up to three more.
    pub(crate) fn zeros(&self, words: u64, zeros: u64, plan: &mut Plan) -> Result<BufArg, Refusal> {
        let device = self.request.device;
        let to = scratch(plan, words.next_multiple_of(4) * 4);
        let workgroup = grid::threads(device, WORKGROUP);
        let count = zeros.div_ceil(4);
        let mut words = Words::default();
        words.push(count as i64);
        let step = Step {
            file: "zeros.comp",
            defines: vec![number("WORKGROUP", workgroup)],
            args: vec![to],
            groups: grid::spread(count.div_ceil(u64::from(workgroup)), device)?,
            ..Step::default()
        };
        words.add_to(step, plan, device);
        Ok(to)
    }
}

/// The same buffer, to be read and written.
pub(crate) fn both(arg: BufArg) -> BufArg {
    BufArg {
        access: Access::READ_WRITE,
        ..arg
    }
}

/// Declines what is faster when it is dealt, or looked for by all.
fn leave_to_others(scatter: &Scatter<'_>, update: Update) -> Result<(), Refusal> {
    leave_to_few(scatter, update)?;
    match deal::serves(scatter, update) {
        true => Err(Refusal::decline("these updates are dealt to buckets")),
        false => Ok(()),
    }
}

fn leave_to_few(scatter: &Scatter<'_>, update: Update) -> Result<(), Refusal> {
    match few::serves(scatter, update) {
        true => Err(Refusal::decline("all workgroups look for these updates")),
        false => Ok(()),
    }
}

pub(crate) fn dealt(update: Update, request: &Request<'_>) -> Result<Plan, Refusal> {
    let plan = |scatter: &Scatter<'_>, update| {
        leave_to_few(scatter, update)?;
        deal::plan(scatter, update)
    };
    by(plan, update, request)
}

pub(crate) fn few(update: Update, request: &Request<'_>) -> Result<Plan, Refusal> {
    by(few::plan, update, request)
}

fn by(
    plan_of: impl Fn(&Scatter<'_>, Update) -> Result<Plan, Refusal>,
    update: Update,
    request: &Request<'_>,
) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    let Some(scatter) = Scatter::new(request, &mut plan)? else {
        return Ok(plan);
    };
    if update == Update::Add {
        let dtype = request.outputs[0].dtype;
        nx_vulkan_pack_kit::operand::supports("indexed_add", dtype, request.device)?;
    }
    plan_of(&scatter, update)
}

pub(crate) fn put(request: &Request<'_>) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    let Some(scatter) = Scatter::new(request, &mut plan)? else {
        return Ok(plan);
    };
    leave_to_others(&scatter, Update::Put)?;
    let (updates, result, device) = (&request.inputs[2], &request.outputs[0], request.device);
    if scatter.places * 4 > device.max_buffer_range {
        return Err(Refusal::decline(
            "there are more places than one buffer argument holds",
        ));
    }
    let claims = scatter.zeros(scatter.places, scatter.places, &mut plan)?;
    scatter.rows(both(claims), &[], vec![define("CLAIMED", "1")], &mut plan)?;
    let along_row = scatter.components.len() as i64;
    let walk = Walk {
        shape: [&[scatter.rows], &scatter.part[..]].concat(),
        size: result.dtype.size(),
        from: Side::of(updates, BufArg::input(2), scatter.from, device)?,
        to: Side::of(
            result,
            BufArg::output(0),
            [&[0], &scatter.to[..]].concat(),
            device,
        )?,
        indices: Some(Indices {
            shift: Shift::Claimed,
            at: scatter.indices.at,
            strides: [vec![along_row], vec![0; scatter.part.len()]].concat(),
            args: vec![scatter.indices.arg, read(claims)],
            components: scatter.components,
        }),
    };
    walk.add_to(&mut plan, device)?;
    Ok(plan)
}

pub(crate) fn add(request: &Request<'_>) -> Result<Plan, Refusal> {
    let mut plan = Plan::default();
    let Some(scatter) = Scatter::new(request, &mut plan)? else {
        return Ok(plan);
    };
    nx_vulkan_pack_kit::operand::supports("indexed_add", request.outputs[0].dtype, request.device)?;
    leave_to_others(&scatter, Update::Add)?;
    if lists::suit(&scatter) {
        return lists::add(&scatter);
    }
    if chunks::suit(&scatter) {
        return chunks::add(&scatter);
    }
    let bytes = scatter.rows * 8;
    if bytes > request.device.max_buffer_range {
        return Err(Refusal::decline(
            "there are more updates than one buffer argument holds",
        ));
    }
    let rows = scratch(&mut plan, bytes);
    scatter.rows(rows, &[], Vec::new(), &mut plan)?;
    let sorted = sort::by_number(
        rows,
        scatter.rows,
        scatter.places,
        &mut plan,
        request.device,
    )?;
    sort::sums(&scatter, sorted, &mut plan)?;
    Ok(plan)
}
