//! Element types of tensors, and sets of them.

use abi_stable::StableAbi;

/// An element type: an open integer, so that a newer side can name types an older one does not know.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub u32);

/// `(name, code, bytes per element in a device buffer)`. Sub-byte types take a whole byte on the device.
const TABLE: &[(&str, DType, u64)] = &[
    ("u8", DType::U8, 1),
    ("u16", DType::U16, 2),
    ("u32", DType::U32, 4),
    ("u64", DType::U64, 8),
    ("s8", DType::S8, 1),
    ("s16", DType::S16, 2),
    ("s32", DType::S32, 4),
    ("s64", DType::S64, 8),
    ("f16", DType::F16, 2),
    ("bf16", DType::BF16, 2),
    ("f32", DType::F32, 4),
    ("f64", DType::F64, 8),
    ("c64", DType::C64, 8),
    ("c128", DType::C128, 16),
    ("f8", DType::F8, 1),
    ("f8_e4m3fn", DType::F8_E4M3FN, 1),
    ("u2", DType::U2, 1),
    ("u4", DType::U4, 1),
    ("s2", DType::S2, 1),
    ("s4", DType::S4, 1),
];

impl DType {
    /// Unsigned integer of 8 bits.
    pub const U8: DType = DType(1);
    /// Unsigned integer of 16 bits.
    pub const U16: DType = DType(2);
    /// Unsigned integer of 32 bits.
    pub const U32: DType = DType(3);
    /// Unsigned integer of 64 bits.
    pub const U64: DType = DType(4);
    /// Signed integer of 8 bits.
    pub const S8: DType = DType(5);
    /// Signed integer of 16 bits.
    pub const S16: DType = DType(6);
    /// Signed integer of 32 bits.
    pub const S32: DType = DType(7);
    /// Signed integer of 64 bits.
    pub const S64: DType = DType(8);
    /// IEEE binary16.
    pub const F16: DType = DType(9);
    /// bfloat16.
    pub const BF16: DType = DType(10);
    /// IEEE binary32.
    pub const F32: DType = DType(11);
    /// IEEE binary64.
    pub const F64: DType = DType(12);
    /// Complex of two binary32.
    pub const C64: DType = DType(13);
    /// Complex of two binary64.
    pub const C128: DType = DType(14);
    /// 8-bit float, E5M2.
    pub const F8: DType = DType(15);
    /// 8-bit float, E4M3 without infinities.
    pub const F8_E4M3FN: DType = DType(16);
    /// Unsigned integer of 2 bits.
    pub const U2: DType = DType(17);
    /// Unsigned integer of 4 bits.
    pub const U4: DType = DType(18);
    /// Signed integer of 2 bits.
    pub const S2: DType = DType(19);
    /// Signed integer of 4 bits.
    pub const S4: DType = DType(20);
}

impl DType {
    /// Every type this version knows.
    pub fn all() -> impl Iterator<Item = DType> {
        TABLE.iter().map(|row| row.1)
    }

    /// The type of that name (`"f32"`), or `None`.
    pub fn from_name(name: &str) -> Option<DType> {
        TABLE.iter().find(|row| row.0 == name).map(|row| row.1)
    }

    /// The name Nx prints (`"f32"`), or `"unknown"`.
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.0)
    }

    /// Bytes of one element in a device buffer; 0 for a type this version does not know.
    pub fn size(self) -> u64 {
        self.row().map_or(0, |row| row.2)
    }

    /// Whether this version knows the type.
    pub fn is_known(self) -> bool {
        self.row().is_some()
    }

    /// u8 to u64.
    pub fn is_unsigned(self) -> bool {
        DTypeSet::UNSIGNED.has(self)
    }

    /// s8 to s64.
    pub fn is_signed(self) -> bool {
        DTypeSet::SIGNED.has(self)
    }

    /// u8 to u64 and s8 to s64.
    pub fn is_integer(self) -> bool {
        DTypeSet::INTEGER.has(self)
    }

    /// f16, bf16, f32 and f64.
    pub fn is_float(self) -> bool {
        DTypeSet::FLOAT.has(self)
    }

    fn row(self) -> Option<&'static (&'static str, DType, u64)> {
        TABLE.iter().find(|row| row.1 == self)
    }
}

impl std::fmt::Debug for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.row() {
            Some(row) => f.write_str(row.0),
            None => write!(f, "DType({})", self.0),
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}

/// A set of element types, one bit per code.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Debug)]
pub struct DTypeSet(pub u64);

impl DTypeSet {
    /// u8, u16, u32, u64.
    pub const UNSIGNED: DTypeSet = DTypeSet::of(&[DType::U8, DType::U16, DType::U32, DType::U64]);
    /// s8, s16, s32, s64.
    pub const SIGNED: DTypeSet = DTypeSet::of(&[DType::S8, DType::S16, DType::S32, DType::S64]);
    /// Unsigned and signed integers of 8 to 64 bits.
    pub const INTEGER: DTypeSet = DTypeSet(Self::UNSIGNED.0 | Self::SIGNED.0);
    /// f16, bf16, f32, f64.
    pub const FLOAT: DTypeSet = DTypeSet::of(&[DType::F16, DType::BF16, DType::F32, DType::F64]);
    /// Integers and floats.
    pub const REAL: DTypeSet = DTypeSet(Self::INTEGER.0 | Self::FLOAT.0);
    /// Every known type.
    pub const ALL: DTypeSet = DTypeSet(0x1f_fffe);

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

    /// The set named in a pack's table: `integer`, `float`, `real`, `all`, or a list of type names.
    pub fn from_names(names: &[&str]) -> Option<DTypeSet> {
        names.iter().try_fold(DTypeSet(0), |set, name| {
            let one = match *name {
                "unsigned" => Self::UNSIGNED,
                "signed" => Self::SIGNED,
                "integer" => Self::INTEGER,
                "float" => Self::FLOAT,
                "real" => Self::REAL,
                "all" => Self::ALL,
                name => DTypeSet::of(&[DType::from_name(name)?]),
            };
            Some(DTypeSet(set.0 | one.0))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_codes_are_unique_and_round_trip() {
        let codes: std::collections::HashSet<u32> = DType::all().map(|d| d.0).collect();
        assert_eq!(codes.len(), TABLE.len());
        for dtype in DType::all() {
            assert_eq!(DType::from_name(dtype.name()), Some(dtype));
            assert!(DTypeSet::ALL.has(dtype), "{dtype}");
        }
        assert_eq!(DTypeSet::ALL.0.count_ones() as usize, TABLE.len());
    }

    #[test]
    fn an_unknown_type_has_no_size_and_is_in_no_set() {
        assert_eq!(DType(99).size(), 0);
        assert!(!DTypeSet::ALL.has(DType(99)));
        assert_eq!(DTypeSet::of(&[DType(99)]), DTypeSet(0));
        assert!(!DType(0).is_known());
    }
}
