//! Sets of element types, for the rows of ops and packs.

use super::DType;
use abi_stable::StableAbi;

/// A set of element types, one bit per code.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeSet(pub u64);

impl DTypeSet {
    /// u2 to u64.
    pub const UNSIGNED: DTypeSet = DTypeSet::of(&[
        DType::U2,
        DType::U4,
        DType::U8,
        DType::U16,
        DType::U32,
        DType::U64,
    ]);
    /// s2 to s64.
    pub const SIGNED: DTypeSet = DTypeSet::of(&[
        DType::S2,
        DType::S4,
        DType::S8,
        DType::S16,
        DType::S32,
        DType::S64,
    ]);
    /// Unsigned and signed integers.
    pub const INTEGER: DTypeSet = DTypeSet(Self::UNSIGNED.0 | Self::SIGNED.0);
    /// f8, f8_e4m3fn, f16, bf16, f32, f64.
    pub const FLOAT: DTypeSet = DTypeSet::of(&[
        DType::F8,
        DType::F8_E4M3FN,
        DType::F16,
        DType::BF16,
        DType::F32,
        DType::F64,
    ]);
    /// c64, c128.
    pub const COMPLEX: DTypeSet = DTypeSet::of(&[DType::C64, DType::C128]);
    /// Integers and floats.
    pub const REAL: DTypeSet = DTypeSet(Self::INTEGER.0 | Self::FLOAT.0);
    /// Integers, floats and complex numbers.
    pub const NUMBER: DTypeSet = DTypeSet(Self::REAL.0 | Self::COMPLEX.0);
    /// Every known type.
    pub const ALL: DTypeSet = DTypeSet(0x1f_fffe);

    /// The sets that have a name in packs' tables and in registry files.
    pub const NAMED: &[(&str, DTypeSet)] = &[
        ("all", Self::ALL),
        ("number", Self::NUMBER),
        ("real", Self::REAL),
        ("float", Self::FLOAT),
        ("complex", Self::COMPLEX),
        ("integer", Self::INTEGER),
        ("signed", Self::SIGNED),
        ("unsigned", Self::UNSIGNED),
    ];

    /// The set of the given types. A code of 64 or more is in no set.
    pub const fn of(types: &[DType]) -> DTypeSet {
        let (mut bits, mut i) = (0, 0);
        while i < types.len() {
            if types[i].0 < 64 {
                bits |= 1 << types[i].0;
            }
            i += 1;
        }
        DTypeSet(bits)
    }

    /// Whether the set holds `dtype`.
    pub const fn has(self, dtype: DType) -> bool {
        dtype.0 < 64 && self.0 >> dtype.0 & 1 == 1
    }

    /// The types of all these sets and types, by their names.
    pub fn from_names(names: &[&str]) -> Option<DTypeSet> {
        names.iter().try_fold(DTypeSet(0), |set, name| {
            let known = Self::NAMED.iter().find(|(known, _)| known == name);
            let one = match known {
                Some((_, known)) => *known,
                None => DTypeSet::of(&[DType::from_name(name)?]),
            };
            Some(DTypeSet(set.0 | one.0))
        })
    }
}
