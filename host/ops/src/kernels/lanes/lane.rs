//! Which loops an op has, and which of them makes elements of some types of others.

use super::{Map, Zip, cast, is_fused, is_narrow};
use crate::kernels::binary::{outgrows, shared};
use crate::partial::Partial;
use nx_vulkan_abi::DType;

/// The loops that an op has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lane {
    /// That of f32, and those of others.
    Elements(Option<Each<4>>, Table),
    /// Elements of the second or the third operand, as a u8 says.
    Select,
    /// From one type to another.
    Cast,
}

/// Loops by the type of all operands.
pub(crate) type Table = &'static [(DType, Loop)];

/// A function of elements of `N` bytes, one after the other, to those of `M`.
type Unary<const N: usize, const M: usize> = fn(&[[u8; N]], &mut [[u8; M]]);
/// The same of pairs, of pairs where it says whether all have a result, and of three.
type Binary<const N: usize, const M: usize> = fn(&[[u8; N]], &[[u8; N]], &mut [[u8; M]]);
type Partly<const N: usize> = fn(&[[u8; N]], &[[u8; N]], &mut [[u8; N]]) -> bool;
type Ternary<const N: usize> = fn(&[[u8; N]], &[[u8; N]], &[[u8; N]], &mut [[u8; N]]);

/// A loop over elements of `N` bytes. The result's are as large, or truth values.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Each<const N: usize> {
    /// Of one operand.
    Map(Unary<N, N>),
    /// Of one operand, to 0 or 1.
    Test(Unary<N, 1>),
    /// Of two.
    Zip(Binary<N, N>),
    /// Of two, of which some have no result.
    Partly(Partly<N>, &'static Partial),
    /// Of two, to 0 or 1.
    Relation(Binary<N, 1>),
    /// Of three.
    Choice(Ternary<N>),
}

/// The loop that makes a result.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Loop {
    /// Of f32, and of floats of 16 bits as f32.
    Floats(Each<4>),
    /// Of one byte, two, four and eight.
    Bytes(Each<1>),
    Shorts(Each<2>),
    Words(Each<4>),
    Longs(Each<8>),
    /// Elements of the second or the third operand, as a u8 says.
    Select,
    /// From one type to another; floats of 16 bits are f32 on either side.
    Cast(cast::Cast),
}

impl<const N: usize> Each<N> {
    const fn operands(self) -> usize {
        match self {
            Each::Map(_) | Each::Test(_) => 1,
            Each::Zip(_) | Each::Partly(..) | Each::Relation(_) => 2,
            Each::Choice(_) => 3,
        }
    }

    /// The result's type.
    const fn gives(self, operand: DType) -> DType {
        match self {
            Each::Test(_) | Each::Relation(_) => DType::U8,
            Each::Map(_) | Each::Zip(_) | Each::Partly(..) | Each::Choice(_) => operand,
        }
    }

    /// Whether it is worth its time without instructions that multiply and add.
    fn is_fast(self) -> bool {
        !matches!(self, Each::Map(_) | Each::Zip(_)) || is_fused()
    }
}

impl Loop {
    /// Whether it makes `to` of so many operands of one type.
    fn fits(self, operand: DType, operands: usize, to: DType) -> bool {
        let (needs, gives) = match self {
            Loop::Floats(f) | Loop::Words(f) => (f.operands(), f.gives(operand)),
            Loop::Bytes(f) => (f.operands(), f.gives(operand)),
            Loop::Shorts(f) => (f.operands(), f.gives(operand)),
            Loop::Longs(f) => (f.operands(), f.gives(operand)),
            Loop::Select | Loop::Cast(_) => return false,
        };
        (needs, gives) == (operands, to)
    }
}

impl Lane {
    /// Of one f32.
    pub(crate) const fn map(f: Map) -> Lane {
        Lane::Elements(Some(Each::Map(f)), &[])
    }

    /// Of two f32.
    pub(crate) const fn zip(f: Zip) -> Lane {
        Lane::Elements(Some(Each::Zip(f)), &[])
    }

    /// Of integers alone.
    pub(crate) const fn integers(table: Table) -> Lane {
        Lane::Elements(None, table)
    }

    /// And of other types.
    pub(crate) const fn and(self, others: Table) -> Lane {
        match self {
            Lane::Elements(floats, _) => Lane::Elements(floats, others),
            Lane::Select | Lane::Cast => self,
        }
    }

    /// The one that makes `to` of these types, where there is one that is faster than what serves every type, and the type that
    /// it takes operands as. Floats of 16 bits are f32 for it.
    pub(in crate::kernels) fn of(self, from: &[DType], to: DType) -> Option<(DType, Loop)> {
        let [first, ..] = *from else { return None };
        match self {
            Lane::Elements(floats, others) => {
                let of = |dtype: DType| {
                    let found = match dtype {
                        DType::F32 => Loop::Floats(floats.filter(|f| f.is_fast())?),
                        _ => others.iter().find(|(other, _)| *other == dtype)?.1,
                    };
                    let fits = found.fits(dtype, from.len(), wide(to));
                    (fits && from.iter().all(|x| becomes(*x, dtype))).then_some((dtype, found))
                };
                let as_they_are = match from.iter().all(|x| wide(*x) == wide(first)) {
                    true => of(wide(first)),
                    false => None,
                };
                // What is computed is computed in the result's type, what is compared in one that holds both.
                let as_result = as_they_are.or_else(|| of(wide(to)));
                as_result.or_else(|| of(wide(value_type(from)?)))
            }
            Lane::Select => {
                let taken = from[1..]
                    .iter()
                    .all(|x| *x == to || !is_narrow(to) && becomes(*x, to));
                (first == DType::U8 && taken).then_some((to, Loop::Select))
            }
            // An f32 that is not the same number would be rounded twice.
            Lane::Cast => {
                let is_exact = wide(first) == DType::F32 || first.size() <= 2;
                // Of one type the bytes are copied.
                let once = !is_narrow(to) || is_exact && first != to;
                cast::find(wide(first), wide(to))
                    .filter(|_| once)
                    .map(|cast| (first, Loop::Cast(cast)))
            }
        }
    }
}

/// Whether elements of one type are those of another for whoever computes in that: integers have to be held by it.
fn becomes(x: DType, to: DType) -> bool {
    let is_held = to.is_float() || x.is_integer() && x.merge(to) == to && !outgrows(&[x, to]);
    wide(x) == to || is_held && cast::find(wide(x), to).is_some()
}

/// A type that holds the values of both of two operands.
fn value_type(from: &[DType]) -> Option<DType> {
    let [a, b] = *from else { return None };
    let is_long = |x: DType| x.is_integer() && x.size() == 8;
    let has_float = a.is_float() || b.is_float();
    let is_none = outgrows(from) || has_float && (is_long(a) || is_long(b));
    (!is_none).then(|| shared(a, b))
}

/// What a loop takes elements of that type as.
pub(super) fn wide(dtype: DType) -> DType {
    match is_narrow(dtype) {
        true => DType::F32,
        false => dtype,
    }
}

/// A row of a [`Table`]: a type by its name and its loop.
macro_rules! row {
    (u8, $f:expr) => {
        (DType::U8, Loop::Bytes($f))
    };
    (s8, $f:expr) => {
        (DType::S8, Loop::Bytes($f))
    };
    (u16, $f:expr) => {
        (DType::U16, Loop::Shorts($f))
    };
    (s16, $f:expr) => {
        (DType::S16, Loop::Shorts($f))
    };
    (u32, $f:expr) => {
        (DType::U32, Loop::Words($f))
    };
    (s32, $f:expr) => {
        (DType::S32, Loop::Words($f))
    };
    (u64, $f:expr) => {
        (DType::U64, Loop::Longs($f))
    };
    (s64, $f:expr) => {
        (DType::S64, Loop::Longs($f))
    };
    (f64, $f:expr) => {
        (DType::F64, Loop::Longs($f))
    };
    (c64, $f:expr) => {
        (DType::C64, Loop::Longs($f))
    };
}
pub(super) use row;

#[cfg(test)]
mod tests {
    use super::super::{ADD, LESS};
    use super::*;

    #[test]
    fn the_type_that_operands_are_taken_as_holds_them() {
        let [bf16, f32, f64] = [DType::BF16, DType::F32, DType::F64];
        let [u8, s8, s16, s32] = [DType::U8, DType::S8, DType::S16, DType::S32];
        let [u64, s64] = [DType::U64, DType::S64];
        for (lane, from, to, want) in [
            (ADD, &[s32, f32][..], f32, Some(f32)),
            (ADD, &[u8, s32], s32, Some(s32)),
            (ADD, &[bf16, f64], f64, Some(f64)),
            (ADD, &[s32, u8], bf16, Some(f32)),
            (ADD, &[s32, s32], u8, None),
            (ADD, &[u8, u8], s32, Some(s32)),
            (LESS, &[s32, f32], u8, Some(f64)),
            (LESS, &[u8, bf16], u8, Some(f32)),
            (LESS, &[u8, s8], u8, Some(s16)),
            (LESS, &[u64, s64], u8, None),
            (LESS, &[s64, f64], u8, None),
            (LESS, &[f32, u64], u8, None),
            (Lane::Select, &[u8, f32, s32], f32, Some(f32)),
            (Lane::Select, &[u8, f64, s32], s32, None),
        ] {
            let taken = lane.of(from, to).map(|(taken, _)| taken);
            assert_eq!(taken, want, "{from:?} to {to}");
        }
    }
}
