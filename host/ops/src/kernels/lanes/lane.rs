//! Which loops an op has, and which of them makes elements of some types of others.

use super::bits::{Bits, Longs};
use super::typed::{
    Binary, LongMap, LongRelation, PartialBinary, Partly, Relations, Three, Triples, Unary,
};
use super::{Bytes, Cell, Choice, Map, Pairs, Relation, Test, Zip, cast, is_fused, is_narrow};
use crate::partial::{AMOUNT, EXPONENT, Partial};
use nx_vulkan_abi::DType;

/// The loops that an op has.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Lane {
    /// Of f32.
    Map(Map),
    /// Of f32 and other types.
    Unary(Map, &'static Unary),
    /// Of f32, and of f64.
    Floats(Map, LongMap),
    /// Of two f32.
    Zip(Zip),
    /// Of two f32, and of two numbers of other types.
    Binary(Zip, &'static Binary),
    /// Of two f32, and of two f64.
    PairsOfFloats(Zip, Longs),
    /// Of two f32, and of two integers of which some have no result.
    Power(Zip, &'static PartialBinary),
    /// Of two f32, two complex numbers of f32, or two integers of one, four or eight bytes.
    Ring {
        floats: Zip,
        bytes: Bytes,
        complex: Pairs,
        integers: Bits,
        doubles: Longs,
    },
    /// Of two integers of four or eight bytes.
    Bits(Bits),
    /// Of two such integers, which refuses a negative amount.
    Shift(&'static PartialBinary),
    /// Of two integers, which refuses to divide by 0.
    Quotient,
    /// Of f32, to 0 or 1.
    Test(Test),
    /// Of two numbers, to 0 or 1.
    Relation {
        floats: Relation,
        integers: Relation,
        others: &'static Relations,
    },
    /// Of three numbers.
    Choice(Choice, &'static Triples),
    /// Elements of the second or the third operand, as a u8 says.
    Select,
    /// From one type to another.
    Cast,
}

/// The loop that makes elements of four bytes, and predicates, of others.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) enum Loop {
    /// Of one operand.
    Map(Map),
    /// Of one operand, to 0 or 1.
    Test(Test),
    /// Of two.
    Zip(Zip),
    /// Of two bytes.
    Bytes(Bytes),
    /// Of two complex numbers.
    Pairs(Pairs),
    /// Of two integers of eight bytes.
    Longs(Longs),
    /// Of one element of eight bytes.
    LongMap(LongMap),
    /// Of two such, to 0 or 1.
    RelationOfLongs(LongRelation),
    /// Of three of eight bytes, and of one.
    ChoiceOfLongs(Three<[u8; 8]>),
    ChoiceOfBytes(Three<[u8; 1]>),
    /// Of two integers of four bytes, of eight and of one, of which some have no result.
    Partly(Partly<Cell>, &'static Partial),
    PartlyOfLongs(Partly<[u8; 8]>, &'static Partial),
    PartlyOfBytes(Partly<[u8; 1]>, &'static Partial),
    /// Of two s32.
    Quotient,
    /// Of two u8.
    QuotientOfBytes,
    /// Of two, to 0 or 1.
    Relation(Relation),
    /// Of three.
    Choice(Choice),
    /// Elements of the second or the third operand, as a u8 says.
    Select,
}

impl Lane {
    /// The one that makes `to` of these types, where there is one that is faster than what serves every type. Floats of 16 bits
    /// are f32 for it.
    pub(in crate::kernels) fn of(self, from: &[DType], to: DType) -> Option<Loop> {
        const F32: DType = DType::F32;
        const U8: DType = DType::U8;
        let wide = |dtype: &DType| if is_narrow(*dtype) { F32 } else { *dtype };
        let wide_from: Vec<DType> = from.iter().map(wide).collect();
        match (self, &wide_from[..], wide(&to)) {
            (Lane::Map(f) | Lane::Unary(f, _) | Lane::Floats(f, _), [F32], F32) if is_fused() => {
                Some(Loop::Map(f))
            }
            (Lane::Floats(_, f), [DType::F64], DType::F64) => Some(Loop::LongMap(f)),
            (Lane::Unary(_, f), [x], _) if *x == to => f.of(to),
            (
                Lane::Zip(f) | Lane::Binary(f, _) | Lane::PairsOfFloats(f, _) | Lane::Power(f, _),
                [F32, F32],
                F32,
            ) if is_fused() => Some(Loop::Zip(f)),
            (
                Lane::PairsOfFloats(_, f) | Lane::Ring { doubles: f, .. },
                [DType::F64, DType::F64],
                DType::F64,
            ) => Some(Loop::Longs(f)),
            (Lane::Binary(_, f), [x, y], _) if [*x, *y] == [to; 2] => f.of(to),
            (Lane::Power(_, f), [x, y], _) if [*x, *y] == [to; 2] => f.of(to, &EXPONENT),
            (Lane::Ring { floats, .. }, [F32, F32], F32) if is_fused() => Some(Loop::Zip(floats)),
            (Lane::Ring { bytes, .. }, [U8, U8], U8) => Some(Loop::Bytes(bytes)),
            (Lane::Ring { complex, .. }, [DType::C64, DType::C64], DType::C64) => {
                Some(Loop::Pairs(complex))
            }
            (Lane::Ring { integers: f, .. } | Lane::Bits(f), [x, y], _) if [*x, *y] == [to; 2] => {
                match to {
                    DType::S32 | DType::U32 => Some(Loop::Zip(f.words)),
                    DType::S64 | DType::U64 => Some(Loop::Longs(f.longs)),
                    _ => None,
                }
            }
            (Lane::Shift(f), [x, y], _) if [*x, *y] == [to; 2] => f.of(to, &AMOUNT),
            (Lane::Quotient, [DType::S32, DType::S32], DType::S32) => Some(Loop::Quotient),
            (Lane::Quotient, [U8, U8], U8) => Some(Loop::QuotientOfBytes),
            (Lane::Test(f), [F32], U8) => Some(Loop::Test(f)),
            (Lane::Relation { floats, .. }, [F32, F32], U8) => Some(Loop::Relation(floats)),
            (Lane::Relation { integers, .. }, [DType::S32, DType::S32], U8) => {
                Some(Loop::Relation(integers))
            }
            (Lane::Relation { others, .. }, [x, y], U8) if x == y => others.of(*x),
            (Lane::Choice(f, _), [F32, F32, F32], F32) => Some(Loop::Choice(f)),
            (Lane::Choice(_, f), [x, y, z], _) if [*x, *y, *z] == [to; 3] => f.of(to),
            (Lane::Select, [U8, ..], _) => (from[1..] == [to; 2]).then_some(Loop::Select),
            // What is no float is rounded once.
            (Lane::Cast, [x], wide_to) if wide_to == to || *x == F32 => {
                cast(*x, wide_to).map(Loop::Map)
            }
            _ => None,
        }
    }
}
