//! A `dot` request, checked and brought into the form batch x m x n x k; it chooses no kernel.

use crate::operand::{Operand, Roles, select};
use nx_vulkan_abi::{
    Access, BufArg, DType, DeviceInfo, Features, InputAs, Refusal, Request, TensorDesc, lasting,
    layout,
};
use nx_vulkan_pack_kit::{epilogue::Finish, operand as kit};

/// `C[b, i, j] = Σ A[b, i, l] * B[b, j, l]`.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Problem {
    pub(crate) dtype: DType,
    pub(crate) batches: u32,
    pub(crate) m: u32,
    pub(crate) n: u32,
    pub(crate) k: u32,
    pub(crate) a: Operand,
    pub(crate) b: Operand,
    /// Steps of C along m and n.
    pub(crate) c_strides: [u32; 2],
    /// Copies that come first; copy `i` fills scratch buffer `i`.
    pub(crate) gathers: Vec<Gather>,
    /// What becomes of the sums, which have type `dtype`, before they are stored.
    pub(crate) finish: Option<Finish>,
    /// Whether rows of C are columns of the result.
    pub(crate) is_exchanged: bool,
    /// Whether B holds the same in many calls, so that packing it costs nothing.
    pub(crate) b_lasts: bool,
}

/// A copy of an input whose axes do not collapse.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Gather {
    pub(crate) input: u32,
    pub(crate) dtype: DType,
    pub(crate) offset: u64,
    pub(crate) extents: Vec<u64>,
    pub(crate) strides: Vec<i64>,
}

impl Problem {
    /// Reads a request. Asks for operands in the result type where the shaders do not convert them, declines what they
    /// cannot index.
    pub(crate) fn new(request: &Request<'_>) -> Result<Problem, Refusal> {
        Problem::read(request, true)
    }

    /// The same, with operands in whatever types they have.
    pub(crate) fn of_any_types(request: &Request<'_>) -> Result<Problem, Refusal> {
        Problem::read(request, false)
    }

    fn read(request: &Request<'_>, in_one_type: bool) -> Result<Problem, Refusal> {
        let ([a, b, further @ ..], [c]) = (request.inputs.as_slice(), request.outputs.as_slice())
        else {
            return Err(Refusal::BadRequest(
                "dot takes two operands and gives one result".into(),
            ));
        };
        let mut roles = [roles(request, "a", a)?, roles(request, "b", b)?];
        let extents = |tensor: &TensorDesc<'_>, axes: &[usize]| select(tensor, axes).0;
        if [0, 2]
            .iter()
            .any(|&i| extents(a, &roles[0][i]) != extents(b, &roles[1][i]))
        {
            return Err(Refusal::BadRequest(
                "dot's batch or contracted axes differ in extent".into(),
            ));
        }
        let [batch, free_a] = [0, 1].map(|i| roles[0][i].len());
        let axes = [0..batch, batch..batch + free_a, batch + free_a..c.rank()].map(Vec::from_iter);
        let finish = Finish::of(request, &axes)?;
        if finish.is_none() && !further.is_empty() {
            return Err(Refusal::BadRequest(
                "dot takes two operands where it has no epilogue".into(),
            ));
        }
        let dtype = finish.as_ref().map_or(c.dtype, |finish| finish.types.sum);
        let wrong = (0..2).filter(|&i| {
            let from = request.inputs[i as usize].dtype;
            in_one_type && from != dtype && !converts(from, dtype, request.device)
        });
        let wrong: Vec<InputAs> = wrong.map(|index| InputAs::new(index, dtype)).collect();
        if !wrong.is_empty() {
            return Err(Refusal::InputsAs(wrong));
        }
        kit::supports("dot", dtype, request.device)?;
        order_contracted(a, b, &mut roles);

        let count = |tensor, axes: &[usize]| extents(tensor, axes).iter().product::<u64>();
        let [batches, m, k] = std::array::from_fn(|i| count(a, &roles[0][i]));
        let n = count(b, &roles[1][1]);
        if batches.saturating_mul(m).saturating_mul(n) != c.elements() {
            return Err(Refusal::BadRequest(
                "dot's result has another number of elements".into(),
            ));
        }
        check_range("the result", c.elements() * c.dtype.size(), request.device)?;
        let limit = |extent: u64| match i32::try_from(extent) {
            Ok(extent) => Ok(extent as u32),
            Err(_) => Err(Refusal::decline(format!(
                "an extent of {extent} exceeds 2^31 - 1"
            ))),
        };
        let mut gathers = Vec::new();
        Ok(Problem {
            dtype,
            batches: limit(batches)?,
            m: limit(m)?,
            n: limit(n)?,
            k: limit(k)?,
            a: operand(0, a, &roles[0], request.device, &mut gathers)?,
            b: operand(1, b, &roles[1], request.device, &mut gathers)?,
            c_strides: [limit(n)?, 1],
            gathers,
            finish,
            is_exchanged: false,
            b_lasts: lasting::of(request, 1),
        })
    }

    /// Asks for the operands that are of another type than the result.
    pub(crate) fn of_one_type(&self) -> Result<(), Refusal> {
        let operands = [&self.a, &self.b];
        let wrong = (0..2).filter(|&i| operands[i as usize].dtype != self.dtype);
        let wrong: Vec<InputAs> = wrong.map(|index| InputAs::new(index, self.dtype)).collect();
        match wrong.is_empty() {
            true => Ok(()),
            false => Err(Refusal::InputsAs(wrong)),
        }
    }

    /// Type of the result.
    pub(crate) fn result(&self) -> DType {
        self.finish
            .as_ref()
            .map_or(self.dtype, |finish| finish.result)
    }

    /// Whether the sums are finished by a dispatch of their own.
    pub(crate) fn finishes_apart(&self) -> bool {
        let finish = self.finish.as_ref();
        finish.is_some_and(|finish| finish.stands_apart(self.elements()))
    }

    /// Whether sums go to memory first: where there are several of each, or where they are finished apart.
    pub(crate) fn is_partial(&self, splits: u32) -> bool {
        splits > 1 || self.finishes_apart()
    }

    /// Bytes of the sums of 32 bits of all parts that go to memory first.
    pub(crate) fn partial_bytes(&self, splits: u32) -> u64 {
        match self.is_partial(splits) {
            false => 0,
            true => self.elements() * u64::from(splits) * 4,
        }
    }

    /// Elements of the result.
    pub(crate) fn elements(&self) -> u64 {
        u64::from(self.batches) * u64::from(self.m) * u64::from(self.n)
    }

    /// Has B copied first, where that makes neighbours along k neighbours in memory.
    pub(crate) fn turn_b(&mut self, device: &DeviceInfo<'_>) {
        let b = &self.b;
        let bytes = b.batches() * b.extents[1] * b.extents[2] * b.dtype.size();
        // A gather reads whole inputs.
        let is_whole = b.arg == BufArg::input(b.arg.index);
        if b.is_along_k() || !is_whole || bytes > binds_at_most(device) {
            return;
        }
        let arg = BufArg::scratch(self.gathers.len() as u32, Access::READ);
        let extents = [b.batches(), b.extents[1], b.extents[2]];
        self.gathers.push(Gather {
            input: b.arg.index,
            dtype: b.dtype,
            offset: b.offset as u64,
            extents: extents.to_vec(),
            strides: b.strides.to_vec(),
        });
        let mut turned = Operand::gathered(arg, b.dtype, extents);
        turned.extents = b.extents;
        self.b = turned;
    }

    /// The same product with the roles of A and B exchanged.
    pub(crate) fn exchanged(self) -> Problem {
        let [row, column] = self.c_strides;
        Problem {
            m: self.n,
            n: self.m,
            a: self.b,
            b: self.a,
            c_strides: [column, row],
            is_exchanged: !self.is_exchanged,
            b_lasts: false,
            ..self
        }
    }
}

/// Whether the shaders read an operand of that type as it is: in registers it is then what `as_type` makes of it, and a
/// copy would have more bytes.
fn converts(from: DType, to: DType, device: &DeviceInfo<'_>) -> bool {
    let (Some(row), Some(result)) = (from.row(), to.row()) else {
        return false;
    };
    let is_register = result.glsl.as_ref().is_some_and(|glsl| glsl.register == to);
    let is_exact = from.is_integer() && to.is_float() && row.digits <= result.digits;
    !from.is_complex()
        && !to.is_complex()
        && from.size() <= to.size()
        && (is_register || is_exact)
        && device.features.has(Features::for_dtype(from))
}

/// The axes of one operand by role, checked against its rank.
fn roles(request: &Request<'_>, name: &str, tensor: &TensorDesc<'_>) -> Result<Roles, Refusal> {
    let named = |role: &str| -> Result<Vec<usize>, Refusal> {
        let attr = format!("{role}_{name}");
        let axes = request.ints(&attr).iter();
        axes.map(|&axis| match usize::try_from(axis) {
            Ok(axis) if axis < tensor.rank() => Ok(axis),
            _ => Err(Refusal::BadRequest(format!(
                "{attr}: operand has no axis {axis}"
            ))),
        })
        .collect()
    };
    let (batch, contracted) = (named("batch")?, named("contract")?);
    let taken = |axis: &usize| batch.contains(axis) || contracted.contains(axis);
    let free: Vec<usize> = (0..tensor.rank()).filter(|axis| !taken(axis)).collect();
    if batch.len() + contracted.len() + free.len() != tensor.rank() {
        return Err(Refusal::BadRequest(format!(
            "an axis of {name} has two roles in dot"
        )));
    }
    Ok([batch, free, contracted])
}

/// The order of the pairs of contracted axes does not matter, so it is the one in which most operands collapse.
fn order_contracted(a: &TensorDesc<'_>, b: &TensorDesc<'_>, roles: &mut [Roles; 2]) {
    let tensors = [a, b];
    let collapsing = |roles: &[Roles; 2]| {
        let in_place = |i: &usize| Operand::in_place(0, tensors[*i], &roles[*i]).is_some();
        (0..2).filter(in_place).count()
    };
    let sorted_by = |side: usize| {
        let mut order: Vec<usize> = (0..roles[0][2].len()).collect();
        order.sort_by_key(|&i| {
            std::cmp::Reverse(tensors[side].strides[roles[side][2][i]].unsigned_abs())
        });
        let mut sorted = roles.clone();
        for (new, old) in sorted.iter_mut().zip(roles.iter()) {
            new[2] = order.iter().map(|&i| old[2][i]).collect();
        }
        sorted
    };
    let candidates = [roles.clone(), sorted_by(0), sorted_by(1)];
    let best = candidates.into_iter().rev().max_by_key(collapsing);
    *roles = best.expect("there are three candidates");
}

fn operand(
    index: u32,
    tensor: &TensorDesc<'_>,
    roles: &Roles,
    device: &DeviceInfo<'_>,
    gathers: &mut Vec<Gather>,
) -> Result<Operand, Refusal> {
    if let Some(operand) = Operand::in_place(index, tensor, roles) {
        return operand.windowed(tensor.storage_len, device);
    }
    check_range("an operand", tensor.storage_len, device)?;
    check_range(
        "a gathered operand",
        tensor.elements().saturating_mul(tensor.dtype.size()),
        device,
    )?;
    let (shape, strides) = select(tensor, &roles.concat());
    let space = layout::collapse(&shape, &[strides]);
    let arg = BufArg::scratch(gathers.len() as u32, Access::READ);
    let gather = Gather {
        input: index,
        dtype: tensor.dtype,
        offset: tensor.offset,
        extents: space.shape,
        strides: space.strides.concat(),
    };
    gathers.push(gather);
    let extents = std::array::from_fn(|i| select(tensor, &roles[i]).0.iter().product());
    Ok(Operand::gathered(arg, tensor.dtype, extents))
}

/// Bytes that one binding covers and 32 bits index.
pub(crate) fn binds_at_most(device: &DeviceInfo<'_>) -> u64 {
    device.max_buffer_range.min(u64::from(u32::MAX))
}

/// Refuses buffers that one binding cannot cover or 32 bits cannot index.
pub(crate) fn check_range(what: &str, bytes: u64, device: &DeviceInfo<'_>) -> Result<(), Refusal> {
    let limit = binds_at_most(device);
    if bytes <= limit {
        return Ok(());
    }
    Err(Refusal::decline(format!(
        "{what} covers {bytes} bytes and the device binds at most {limit}"
    )))
}
