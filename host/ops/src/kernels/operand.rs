//! Operands as the kernels read them: a range of row-major indices at a time, converted to registers.

use half::{bf16, f16};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_abi::layout::{broadcast_strides, collapse};
use std::borrow::Cow;
use std::ops::Range;

use super::element::{Cast, Complex, FromElement};
use super::elementwise::is_single;
use super::lanes::{self, AT_ONCE, Cell, Rows};
use crate::element::Element;
use crate::f8::{E4M3FN, E5M2};
use crate::view::{Outcome, View};

/// Elements that kernels read, compute and write at a time; several such buffers fit the first-level cache.
pub(super) const BLOCK: usize = 1024;

/// A view whose axes are merged as far as its strides allow.
#[derive(Debug)]
pub(crate) struct Operand<'a> {
    pub(super) dtype: DType,
    bytes: &'a [u8],
    offset: i64,
    shape: Vec<u64>,
    strides: Vec<i64>,
}

/// Checks that every element of the view lies in its bytes.
pub(super) fn validate(view: &View) -> Result<(), String> {
    if view.strides.len() != view.shape.len() {
        return Err(format!(
            "{} strides for {} axes",
            view.strides.len(),
            view.shape.len()
        ));
    }
    if view.shape.contains(&0) {
        return Ok(());
    }
    let (mut low, mut high) = (i128::from(view.offset), i128::from(view.offset));
    for (&extent, &stride) in view.shape.iter().zip(view.strides) {
        let reach = (i128::from(extent) - 1).checked_mul(i128::from(stride));
        let (Some(reach), true) = (reach, high.abs() < 1 << 120 && low.abs() < 1 << 120) else {
            return Err("its strides overflow".to_owned());
        };
        low += reach.min(0);
        high += reach.max(0);
    }
    let elements = view.bytes.len() as u64 / view.dtype.size().max(1);
    if low < 0 || high >= i128::from(elements) {
        return Err(format!(
            "it spans elements {low} to {high} of a buffer of {elements}"
        ));
    }
    Ok(())
}

impl<'a> Operand<'a> {
    /// The operand that reads a valid `view` with these axes instead of its own. No extent may be 0.
    pub(super) fn new(view: &View<'a>, shape: &[u64], strides: Vec<i64>) -> Operand<'a> {
        let mut space = collapse(shape, &[strides]);
        let strides = space.strides.pop().unwrap_or_default();
        Operand {
            dtype: view.dtype,
            bytes: view.bytes,
            offset: view.offset as i64,
            shape: space.shape,
            strides,
        }
    }

    /// The operand that reads a valid `view` as if it had `shape`, or `None` when it does not broadcast to it.
    pub(super) fn broadcast(view: &View<'a>, shape: &[u64]) -> Option<Operand<'a>> {
        Some(Operand::new(
            view,
            shape,
            broadcast_strides(view.shape, view.strides, shape)?,
        ))
    }

    /// Number of elements.
    pub(super) fn count(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Extent and stride of the innermost axis.
    pub(super) fn inner(&self) -> (u64, i64) {
        (
            self.shape.last().copied().unwrap_or(1),
            self.strides.last().copied().unwrap_or(0),
        )
    }

    /// How far the element at the row-major `index` lies from the first one, in elements.
    pub(super) fn distance(&self, mut index: u64) -> i64 {
        let mut distance = 0;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            distance += (index % extent) as i64 * stride;
            index /= extent;
        }
        distance
    }

    /// Reads the elements from the row-major index `start` on, from a first element that lies `shift` further.
    #[inline(never)]
    pub(super) fn gather<D: FromElement>(&self, shift: i64, start: u64, to: &mut [D]) {
        macro_rules! read {
            ($t:ty) => {
                self.read(shift, start, to, |cell| D::cast(<$t>::from_ne_bytes(cell)))
            };
        }
        match Element::of(self.dtype) {
            Ok(Element::U2 | Element::U4 | Element::U8) => read!(u8),
            Ok(Element::U16) => read!(u16),
            Ok(Element::U32) => read!(u32),
            Ok(Element::U64) => read!(u64),
            Ok(Element::S2 | Element::S4 | Element::S8) => read!(i8),
            Ok(Element::S16) => read!(i16),
            Ok(Element::S32) => read!(i32),
            Ok(Element::S64) => read!(i64),
            Ok(Element::F8) => self.read(shift, start, to, |cell| D::cast(E5M2.load(cell))),
            Ok(Element::F8E4M3FN) => self.read(shift, start, to, |cell| D::cast(E4M3FN.load(cell))),
            Ok(Element::F16) => self.read(shift, start, to, |cell| {
                D::cast(f16::from_ne_bytes(cell).to_f32())
            }),
            Ok(Element::BF16) => self.read(shift, start, to, |cell| {
                D::cast(bf16::from_ne_bytes(cell).to_f32())
            }),
            Ok(Element::F32) => read!(f32),
            Ok(Element::F64) => read!(f64),
            Ok(Element::C64) => self.read(shift, start, to, |[a, b, c, d, e, f, g, h]| {
                D::cast(Complex {
                    re: f32::from_ne_bytes([a, b, c, d]),
                    im: f32::from_ne_bytes([e, f, g, h]),
                })
            }),
            Ok(Element::C128) => self.read(shift, start, to, |cell: [u8; 16]| {
                let (parts, _) = cell.as_chunks();
                D::cast(Complex {
                    re: f64::from_ne_bytes(parts[0]),
                    im: f64::from_ne_bytes(parts[1]),
                })
            }),
            // `supports` lets nothing come here that nobody computes with.
            Err(why) => debug_assert!(false, "{why}"),
        }
    }

    /// As [`Operand::gather`] into f64; with `single` every element is converted to f32 on the way.
    pub(super) fn gather_wide(&self, single: bool, shift: i64, start: u64, to: &mut [f64]) {
        if is_single(self.dtype) || !single {
            return self.gather(shift, start, to);
        }
        self.gather_through::<f32, _>(shift, start, to);
    }

    /// As [`Operand::gather`], every element converted to `N` on the way.
    pub(super) fn gather_through<N: FromElement, D: Copy + Cast<N>>(
        &self,
        shift: i64,
        start: u64,
        to: &mut [D],
    ) {
        let mut narrow = [N::default(); BLOCK];
        for (to, start) in to.chunks_mut(BLOCK).zip((start..).step_by(BLOCK)) {
            self.gather(shift, start, &mut narrow[..to.len()]);
            to.iter_mut()
                .zip(narrow)
                .for_each(|(to, x)| *to = D::cast(x));
        }
    }

    /// The bytes of `count` elements from the row-major index `start` on, where they lie side by side.
    pub(super) fn line_from(&self, start: u64, count: usize) -> Option<&'a [u8]> {
        let (extent, stride) = self.inner();
        let is_line = stride == 1 && start % extent + count as u64 <= extent;
        is_line.then(|| self.line(self.distance(start), count))
    }

    /// The same, copied where they do not; of one element where all are the same.
    pub(super) fn bytes(&self, start: u64, count: usize) -> Result<Cow<'a, [u8]>, String> {
        if self.is_constant() {
            return Ok(self.line(0, 1).into());
        }
        if let Some(line) = self.line_from(start, count) {
            return Ok(line.into());
        }
        let mut bytes = vec![0; count * self.dtype.size() as usize];
        self.copy(start, &mut bytes)?;
        Ok(bytes.into())
    }

    /// Reads elements without converting them.
    pub(super) fn copy(&self, start: u64, to: &mut [u8]) -> Outcome {
        match self.dtype.size() {
            1 => self.copy_cells::<1>(start, to),
            2 => self.copy_cells::<2>(start, to),
            4 => self.copy_cells::<4>(start, to),
            8 => self.copy_cells::<8>(start, to),
            16 => self.copy_cells::<16>(start, to),
            size => return Err(format!("elements of {size} bytes")),
        }
        Ok(())
    }

    /// The same of elements of `N` bytes.
    pub(super) fn copy_cells<const N: usize>(&self, start: u64, to: &mut [u8]) {
        self.read(0, start, to.as_chunks_mut::<N>().0, |cell: [u8; N]| cell);
    }

    /// Elements of a row that lie side by side, where the rows do not follow each other in memory.
    pub(super) fn row(&self) -> Option<u64> {
        let (extent, stride) = self.inner();
        (self.shape.len() > 1 && stride == 1).then_some(extent)
    }

    /// Whether it is one row of so many elements, which lie side by side, again and again.
    pub(super) fn repeats(&self, length: u64) -> bool {
        let lead = self.strides.split_last().map_or(&[][..], |(_, lead)| lead);
        self.inner() == (length, 1) && lead.iter().all(|stride| *stride == 0)
    }

    /// Whether one element stands for all.
    pub(super) fn is_constant(&self) -> bool {
        self.strides.iter().all(|stride| *stride == 0)
    }

    /// The element that stands for all, where it is one.
    pub(super) fn constant<const N: usize>(&self) -> Option<[u8; N]> {
        let cells = self.bytes.as_chunks::<N>().0;
        self.is_constant()
            .then(|| cells.get(self.offset as usize).copied())?
    }

    /// Elements from the row-major index `start` on, where they lie side by side.
    pub(super) fn side_by_side<const N: usize>(
        &self,
        shift: i64,
        start: u64,
        count: usize,
    ) -> Option<&[[u8; N]]> {
        let (extent, stride) = self.inner();
        if stride != 1 || start % extent + count as u64 > extent {
            return None;
        }
        let first = (self.offset + shift + self.distance(start)) as usize;
        self.bytes.as_chunks::<N>().0.get(first..first + count)
    }

    /// The bytes of elements side by side, from one that lies `shift` further than the first one on.
    pub(super) fn line(&self, shift: i64, count: usize) -> &'a [u8] {
        let size = self.dtype.size() as usize;
        &self.bytes[(self.offset + shift) as usize * size..][..count * size]
    }

    /// Calls `take` with the bytes of elements side by side, from one that lies `shift` further than the first one on. Floats of
    /// 16 bits become f32, a block at a time.
    pub(super) fn each_line(&self, shift: i64, count: usize, mut take: impl FnMut(&[u8])) {
        let bytes = self.line(shift, count);
        if !lanes::is_narrow(self.dtype) {
            return take(bytes);
        }
        let mut wide = [Cell::default(); BLOCK];
        for block in bytes.as_chunks().0.chunks(BLOCK) {
            let wide = &mut wide[..block.len()];
            lanes::widen(self.dtype, block, wide);
            take(wide.as_flattened());
        }
    }

    /// Calls `take` with the number of a row, a part of each row from that one on, and bytes with where those rows lie: the
    /// first row as in [`Operand::each_line`], it is `step` elements from each to the next.
    pub(super) fn each_grid(
        &self,
        shift: i64,
        step: i64,
        count: usize,
        width: usize,
        mut take: impl FnMut(usize, Range<usize>, &[u8], Rows),
    ) {
        let size = self.dtype.size() as i64;
        if !lanes::is_narrow(self.dtype) {
            let rows = Rows {
                first: ((self.offset + shift) * size) as usize,
                step: (step * size) as isize,
                count,
            };
            return take(0, 0..width, self.bytes, rows);
        }
        // Of several rows at a time, as far as a block holds them.
        let mut wide = [Cell::default(); BLOCK];
        let most = BLOCK / AT_ONCE;
        for row in (0..count).step_by(AT_ONCE) {
            let rows = AT_ONCE.min(count - row);
            for from in (0..width).step_by(most) {
                let part = from..width.min(from + most);
                for (i, wide) in wide.chunks_mut(part.len()).take(rows).enumerate() {
                    let first = shift + (row + i) as i64 * step + from as i64;
                    let cells = self.line(first, part.len()).as_chunks().0;
                    lanes::widen(self.dtype, cells, wide);
                }
                let rows = Rows {
                    first: 0,
                    step: (part.len() * size_of::<Cell>()) as isize,
                    count: rows,
                };
                take(row, part, wide.as_flattened(), rows);
            }
        }
    }

    fn read<const N: usize, D: Copy>(
        &self,
        shift: i64,
        start: u64,
        to: &mut [D],
        convert: impl Fn([u8; N]) -> D,
    ) {
        let cells = self.bytes.as_chunks::<N>().0;
        self.runs(shift, start, to, |first, stride, to| match stride {
            1 => to
                .iter_mut()
                .zip(&cells[first as usize..])
                .for_each(|(to, cell)| *to = convert(*cell)),
            0 => to.fill(convert(cells[first as usize])),
            _ => {
                let mut at = first;
                for to in to {
                    *to = convert(cells[at as usize]);
                    at += stride;
                }
            }
        });
    }

    /// Calls `run(first, stride, to)` for each stretch of the innermost axis that `to` covers.
    fn runs<D>(
        &self,
        shift: i64,
        start: u64,
        mut to: &mut [D],
        mut run: impl FnMut(i64, i64, &mut [D]),
    ) {
        let (extent, stride) = self.inner();
        let mut row = start / extent;
        let mut column = start % extent;
        let outer = self.shape.len() - 1;
        let mut index: Vec<u64> = Vec::new();
        let mut first = self.offset + shift;
        if outer > 0 {
            index.resize(outer, 0);
            for axis in (0..outer).rev() {
                index[axis] = row % self.shape[axis];
                row /= self.shape[axis];
                first += index[axis] as i64 * self.strides[axis];
            }
        }
        loop {
            let length = to.len().min((extent - column) as usize);
            let (now, rest) = to.split_at_mut(length);
            run(first + column as i64 * stride, stride, now);
            if rest.is_empty() {
                return;
            }
            (to, column) = (rest, 0);
            for axis in (0..outer).rev() {
                index[axis] += 1;
                first += self.strides[axis];
                if index[axis] < self.shape[axis] {
                    break;
                }
                first -= index[axis] as i64 * self.strides[axis];
                index[axis] = 0;
            }
        }
    }
}
