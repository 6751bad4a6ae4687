//! Walks: the axes along which elements move, with a place in each buffer. A walk becomes one dispatch.

use crate::emit::Words;
use nx_vulkan_abi::{
    BufArg, DType, Define, DeviceInfo, Plan, Refusal, TensorDesc,
    glsl::{self, define},
    layout,
};
use nx_vulkan_pack_kit::{
    grid,
    operand::{raw_type, supports},
    span::Span,
    steps::{Step, number},
};

/// `nxv_divide` is exact below this many elements.
pub(crate) const LIMIT: u64 = 1 << 31;
/// Invocations of a workgroup, at most.
const WORKGROUP: u32 = 256;
/// Largest element that a thread moves at once, in bytes.
const WIDEST: u64 = 16;
/// Fewer elements are moved by one thread each.
const MANY: u64 = 1 << 16;
/// Walks that one dispatch may take.
pub(crate) const JOINED: usize = 8;

/// A buffer with a place in it.
#[derive(Debug, Clone)]
pub(crate) struct Side {
    /// The range of the buffer that is bound.
    pub(crate) arg: BufArg,
    /// First element, counted from the start of the range.
    pub(crate) at: i64,
    /// Step along each axis of the walk, in elements.
    pub(crate) strides: Vec<i64>,
}

impl Side {
    /// The first element of a tensor, in a range that holds all of its elements.
    pub(crate) fn of(
        tensor: &TensorDesc<'_>,
        arg: BufArg,
        strides: Vec<i64>,
        device: &DeviceInfo<'_>,
    ) -> Result<Side, Refusal> {
        let size = tensor.dtype.size();
        let axes = tensor
            .shape
            .iter()
            .copied()
            .zip(tensor.strides.iter().copied());
        let bytes = Span::of(tensor.offset as i64, axes).bytes(size);
        let bytes = bytes.filter(|bytes| bytes.end - bytes.start <= device.max_buffer_range);
        let Some(range) = bytes else {
            return Err(Refusal::decline(
                "a tensor is too large for one buffer argument",
            ));
        };
        Ok(Side {
            arg: arg.range(range.start, range.end - range.start),
            at: tensor.offset as i64 - (range.start / size) as i64,
            strides,
        })
    }

    /// The place that many elements further.
    pub(crate) fn shifted(mut self, by: i64) -> Side {
        self.at += by;
        self
    }

    /// Elements of `size` bytes in its range.
    fn elements(&self, size: u64) -> u64 {
        self.arg.len / size
    }

    fn is_even(&self) -> bool {
        let (last, outer) = self.strides.split_last().unwrap_or((&0, &[]));
        *last == 1 && self.at % 2 == 0 && outer.iter().all(|stride| stride % 2 == 0)
    }

    fn halve(&mut self) {
        let last = self.strides.len() - 1;
        self.strides[..last]
            .iter_mut()
            .for_each(|stride| *stride /= 2);
        self.at /= 2;
    }
}

/// An index that shifts one of the places.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Component {
    /// Where it is, from the place of the indices.
    pub(crate) at: i64,
    /// The highest start, or the extent of the axis.
    pub(crate) limit: u64,
    /// Elements that one step of it shifts the place by.
    pub(crate) step: i64,
    /// What one step of it adds to the number of the place.
    pub(crate) number: u64,
    /// Its type.
    pub(crate) dtype: DType,
}

/// What indices do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shift {
    /// They are neighbours in one buffer, and say which elements are read.
    Reads,
    /// Each is in a buffer of its own, and the first element that is read.
    Starts,
    /// Each is in a buffer of its own, and the first element that is written.
    Targets,
    /// They are neighbours in one buffer, and say which elements are written by those who claimed them.
    Claimed,
}

/// Elements on their way.
#[derive(Debug, Clone)]
pub(crate) struct Walk {
    /// Extents, outermost first.
    pub(crate) shape: Vec<u64>,
    /// Bytes of an element.
    pub(crate) size: u64,
    pub(crate) from: Side,
    pub(crate) to: Side,
    pub(crate) indices: Option<Indices>,
}

/// Indices that are read on the way.
#[derive(Debug, Clone)]
pub(crate) struct Indices {
    pub(crate) shift: Shift,
    /// First index, counted from the start of the first range.
    pub(crate) at: i64,
    /// Step along each axis of the walk.
    pub(crate) strides: Vec<i64>,
    pub(crate) args: Vec<BufArg>,
    pub(crate) components: Vec<Component>,
}

impl Walk {
    /// Puts its dispatch at the end of `plan`.
    pub(crate) fn add_to(
        mut self,
        plan: &mut Plan,
        device: &DeviceInfo<'_>,
    ) -> Result<(), Refusal> {
        if self.shape.contains(&0) {
            return Ok(());
        }
        self.collapse();
        while self.size < WIDEST && self.widens() {
            self.widen();
        }
        let (moved, like) = raw_type(self.size);
        supports("moving elements", like, device)?;
        self.expect_within_reach()?;
        let count = self.count();
        let elements = each(count, self.size);
        let workgroup = grid::threads(device, WORKGROUP);
        let mut defines = glsl::needs(like);
        defines.extend([
            define("MOVED", moved),
            number("WORKGROUP", workgroup),
            number("ELEMENTS", elements),
            number("RANK", self.shape.len() as u64),
        ]);
        let mut args = vec![self.from.arg, self.to.arg];
        defines.extend(self.index_defines(&mut args));
        let step = Step {
            file: "move.comp",
            defines,
            args,
            groups: grid::spread(count.div_ceil(u64::from(workgroup) * elements), device)?,
            ..Step::default()
        };
        self.params(count).add_to(step, plan, device);
        Ok(())
    }

    fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Declines where places are beyond 32 bits.
    fn expect_within_reach(&self) -> Result<(), Refusal> {
        let reach = [&self.from, &self.to].map(|side| side.elements(self.size));
        match reach.into_iter().chain([self.count()]).all(|n| n < LIMIT) {
            true => Ok(()),
            false => Err(Refusal::decline(
                "a tensor has too many elements for 32-bit indices",
            )),
        }
    }

    fn index_defines(&self, args: &mut Vec<BufArg>) -> Vec<Define> {
        let Some(indices) = &self.indices else {
            return vec![number("COMPONENTS", 0u64)];
        };
        let shifted = match indices.shift {
            Shift::Reads | Shift::Starts => "from",
            Shift::Targets | Shift::Claimed => "to",
        };
        let mut defines = component_defines(&indices.components, args.len());
        defines.push(define("SHIFTED", shifted));
        match indices.shift {
            Shift::Starts | Shift::Targets => defines.push(define("STARTS", "1")),
            Shift::Claimed => defines.push(number("CLAIMS", args.len() as u64 + 1)),
            Shift::Reads => {}
        }
        args.extend(&indices.args);
        defines
    }

    fn params(&self, count: u64) -> Words {
        let mut words = Words::default();
        let index = self.indices.as_ref().map_or(0, |indices| indices.at);
        for word in [count as i64, self.from.at, self.to.at, index] {
            words.push(word);
        }
        let components = self.indices.iter().flat_map(|indices| &indices.components);
        components.for_each(|component| words.component(component));
        for axis in (0..self.shape.len()).rev() {
            words.extent(self.shape[axis]);
            words.push(self.from.strides[axis]);
            words.push(self.to.strides[axis]);
            words.push(
                self.indices
                    .as_ref()
                    .map_or(0, |indices| indices.strides[axis]),
            );
        }
        words
    }

    /// The same walk with as few axes as possible.
    fn collapse(&mut self) {
        let none = vec![0; self.shape.len()];
        let indices = self
            .indices
            .as_ref()
            .map_or(none, |indices| indices.strides.clone());
        let strides = [self.from.strides.clone(), self.to.strides.clone(), indices];
        let space = layout::collapse(&self.shape, &strides);
        let [from, to, indices]: [Vec<i64>; 3] = space.strides.try_into().unwrap_or_default();
        self.shape = space.shape;
        (self.from.strides, self.to.strides) = (from, to);
        if let Some(own) = &mut self.indices {
            own.strides = indices;
        }
    }

    /// Whether two neighbours are always moved together.
    fn widens(&self) -> bool {
        let together = |indices: &Indices| {
            indices.strides.last() == Some(&0) && indices.components.iter().all(|c| c.step % 2 == 0)
        };
        self.shape.last().is_some_and(|last| last.is_multiple_of(2))
            && self.from.is_even()
            && self.to.is_even()
            && self.indices.iter().all(together)
    }

    fn widen(&mut self) {
        if let Some(last) = self.shape.last_mut() {
            *last /= 2;
        }
        self.size *= 2;
        self.from.halve();
        self.to.halve();
        let components = self
            .indices
            .iter_mut()
            .flat_map(|indices| &mut indices.components);
        components.for_each(|component| component.step /= 2);
    }
}

/// Elements that a thread moves, of so many of `size` bytes.
fn each(count: u64, size: u64) -> u64 {
    match (count < MANY, size) {
        (true, _) => 1,
        (_, 16) => 2,
        _ => 4,
    }
}

/// Puts walks to one buffer, without indices and at most [`JOINED`] of them, at the end of `plan`: as one dispatch, since of several
/// the host would have each wait for the one before it.
pub(crate) fn join(
    mut walks: Vec<Walk>,
    plan: &mut Plan,
    device: &DeviceInfo<'_>,
) -> Result<(), Refusal> {
    if walks.len() == 1 {
        return walks
            .into_iter()
            .try_for_each(|walk| walk.add_to(plan, device));
    }
    walks.iter_mut().for_each(Walk::collapse);
    while walks.iter().all(|walk| walk.size < WIDEST && walk.widens()) {
        walks.iter_mut().for_each(Walk::widen);
    }
    let Some(Walk { size, to, .. }) = walks.first() else {
        return Ok(());
    };
    let (moved, like) = raw_type(*size);
    supports("moving elements", like, device)?;
    walks.iter().try_for_each(Walk::expect_within_reach)?;
    let rank = walks.iter().map(|walk| walk.shape.len()).max().unwrap_or(1);
    let elements = each(walks.iter().map(Walk::count).sum(), *size);
    let workgroup = grid::threads(device, WORKGROUP);
    let mut args = vec![to.arg];
    let (mut groups, mut parts) = (0, Words::default());
    for walk in &walks {
        for word in [groups as i64, walk.count() as i64, walk.from.at, walk.to.at] {
            parts.push(word);
        }
        let axes = walk
            .shape
            .iter()
            .zip(&walk.from.strides)
            .zip(&walk.to.strides);
        for ((extent, from), to) in axes.rev() {
            parts.extent(*extent);
            parts.push(*from);
            parts.push(*to);
        }
        for _ in walk.shape.len()..rank {
            parts.extent(1);
            parts.push(0);
            parts.push(0);
        }
        args.push(walk.from.arg);
        groups += walk.count().div_ceil(u64::from(workgroup) * elements);
    }
    let mut words = Words::default();
    words.push(groups as i64);
    words.append(parts);
    let mut defines = glsl::needs(like);
    defines.extend([
        define("MOVED", moved),
        number("WORKGROUP", workgroup),
        number("ELEMENTS", elements),
        number("RANK", rank as u64),
        number("PARTS", walks.len() as u64),
    ]);
    let step = Step {
        file: "join.comp",
        defines,
        args,
        groups: grid::spread(groups, device)?,
        ..Step::default()
    };
    words.add_to(step, plan, device);
    Ok(())
}

/// What `indices.glsl` has to know.
pub(crate) fn component_defines(components: &[Component], first: usize) -> Vec<Define> {
    let mut defines = vec![
        number("COMPONENTS", components.len() as u64),
        number("FIRST_INDEX", first as u64),
        number("KIND_WIDE", WIDE),
        number("KIND_SIGNED", SIGNED),
    ];
    if let Some((first, others)) = components.split_first() {
        let kind = first.kind();
        let is_one = others.iter().all(|component| component.kind() == kind);
        defines.extend(is_one.then(|| number("KIND", kind)));
    }
    defines
}

/// Bits of [`Component`]'s kind in shaders.
const WIDE: u32 = 1;
const SIGNED: u32 = 2;

impl Component {
    /// Its type, as shaders are told it.
    pub(crate) fn kind(&self) -> u32 {
        let is_wide = self.dtype.size() == 8;
        (u32::from(is_wide) * WIDE) | (u32::from(self.dtype.is_signed()) * SIGNED)
    }
}
