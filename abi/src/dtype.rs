//! Element types of tensors.

mod set;
#[cfg(test)]
mod tests;

pub use set::DTypeSet;

use crate::request::Features;
use abi_stable::StableAbi;

/// An element type: an open integer, so that a newer side can name types an older one does not know.
#[repr(transparent)]
#[derive(StableAbi, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct DType(pub u32);

/// What the elements of a type are.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Class {
    /// Integers from 0.
    Unsigned,
    /// Integers of both signs, in two's complement.
    Signed,
    /// Binary floating point.
    Float,
    /// Two floats: the real part, then the imaginary one.
    Complex,
}

/// All that is known of an element type.
#[derive(Debug)]
pub struct TypeRow {
    /// The type.
    pub dtype: DType,
    /// The name Nx prints.
    pub name: &'static str,
    /// What its elements are.
    pub class: Class,
    /// Bits of an element in Nx, which packs those of fewer than 8. On the device each takes a byte at least.
    pub bits: u32,
    /// Bits of a number but for its sign: those of an integer, those of a float's significand with the hidden one. Of a
    /// complex number they are those of each part.
    pub digits: u32,
    /// Exponent of the smallest normal number of a float or of a part; 0 for integers.
    pub lowest_exponent: i32,
    /// How shaders see it; `None` for a type that no shader computes with.
    pub glsl: Option<Glsl>,
}

/// How shaders see a type.
#[derive(Debug)]
pub struct Glsl {
    /// An element in memory.
    pub storage: &'static str,
    /// Two and four elements in memory, where there are vectors of them.
    pub vectors: Option<[&'static str; 2]>,
    /// The type whose elements in memory are what this one's are in registers.
    pub register: DType,
    /// The function from memory to register: a type's name, one of `dtype.glsl`, or nothing.
    pub load: &'static str,
    /// The function back, which rounds or wraps.
    pub store: &'static str,
    /// The switch that `dtype.glsl` turns into extensions.
    pub switch: Option<&'static str>,
    /// What a device must have.
    pub needs: Features,
    /// The lowest and the highest value in a register; nothing where values have no order. glslang reads defines before
    /// extensions are on, so there are no 64-bit literals.
    pub bounds: Option<(&'static str, &'static str)>,
}

const fn row(
    dtype: DType,
    name: &'static str,
    (class, bits): (Class, u32),
    (digits, lowest_exponent): (u32, i32),
    glsl: Option<Glsl>,
) -> TypeRow {
    TypeRow {
        dtype,
        name,
        class,
        bits,
        digits,
        lowest_exponent,
        glsl,
    }
}

const fn glsl(
    register: DType,
    (storage, vectors): (&'static str, [&'static str; 2]),
    (load, store): (&'static str, &'static str),
    bounds: (&'static str, &'static str),
) -> Option<Glsl> {
    Some(Glsl {
        storage,
        vectors: Some(vectors),
        register,
        load,
        store,
        switch: None,
        needs: Features::NONE,
        bounds: Some(bounds),
    })
}

const fn with(glsl: Option<Glsl>, switch: &'static str, needs: Features) -> Option<Glsl> {
    match glsl {
        Some(glsl) => Some(Glsl {
            switch: Some(switch),
            needs,
            ..glsl
        }),
        None => None,
    }
}

const INT8: (&str, Features) = ("NXV_NEEDS_INT8", Features::STORAGE8.with(Features::INT8));
const INT16: (&str, Features) = ("NXV_NEEDS_INT16", Features::STORAGE16.with(Features::INT16));
const INT64: (&str, Features) = ("NXV_NEEDS_INT64", Features::INT64);
const FP64: (&str, Features) = ("NXV_NEEDS_FP64", Features::FP64.with(Features::INT64));
/// Infinities by their bits.
const FLOATS: (&str, &str) = (
    "uintBitsToFloat(0xff800000u)",
    "uintBitsToFloat(0x7f800000u)",
);
const DOUBLES: (&str, &str) = (
    "packDouble2x32(uvec2(0u, 0xfff00000u))",
    "packDouble2x32(uvec2(0u, 0x7ff00000u))",
);

/// Every type, in the order of their codes from 1.
#[rustfmt::skip]
static TYPES: &[TypeRow] = &[
    row(DType::U8,        "u8",        (Class::Unsigned, 8),  (8, 0),      with(glsl(DType::U32, ("uint8_t", ["u8vec2", "u8vec4"]), ("uint", "uint8_t"), ("0u", "255u")), INT8.0, INT8.1)),
    row(DType::U16,       "u16",       (Class::Unsigned, 16), (16, 0),     with(glsl(DType::U32, ("uint16_t", ["u16vec2", "u16vec4"]), ("uint", "uint16_t"), ("0u", "65535u")), INT16.0, INT16.1)),
    row(DType::U32,       "u32",       (Class::Unsigned, 32), (32, 0),     glsl(DType::U32, ("uint", ["uvec2", "uvec4"]), ("", ""), ("0u", "0xffffffffu"))),
    row(DType::U64,       "u64",       (Class::Unsigned, 64), (64, 0),     with(glsl(DType::U64, ("uint64_t", ["u64vec2", "u64vec4"]), ("", ""), ("uint64_t(0)", "(~uint64_t(0))")), INT64.0, INT64.1)),
    row(DType::S8,        "s8",        (Class::Signed, 8),    (7, 0),      with(glsl(DType::S32, ("int8_t", ["i8vec2", "i8vec4"]), ("int", "int8_t"), ("-128", "127")), INT8.0, INT8.1)),
    row(DType::S16,       "s16",       (Class::Signed, 16),   (15, 0),     with(glsl(DType::S32, ("int16_t", ["i16vec2", "i16vec4"]), ("int", "int16_t"), ("-32768", "32767")), INT16.0, INT16.1)),
    row(DType::S32,       "s32",       (Class::Signed, 32),   (31, 0),     glsl(DType::S32, ("int", ["ivec2", "ivec4"]), ("", ""), ("int(0x80000000u)", "0x7fffffff"))),
    row(DType::S64,       "s64",       (Class::Signed, 64),   (63, 0),     with(glsl(DType::S64, ("int64_t", ["i64vec2", "i64vec4"]), ("", ""), ("(int64_t(1) << 63)", "(~(int64_t(1) << 63))")), INT64.0, INT64.1)),
    row(DType::F16,       "f16",       (Class::Float, 16),    (11, -14),   with(glsl(DType::F32, ("uint16_t", ["u16vec2", "u16vec4"]), ("nxv_load_f16", "nxv_store_f16"), FLOATS), INT16.0, INT16.1)),
    row(DType::BF16,      "bf16",      (Class::Float, 16),    (8, -126),   with(glsl(DType::F32, ("uint16_t", ["u16vec2", "u16vec4"]), ("nxv_load_bf16", "nxv_store_bf16"), FLOATS), INT16.0, INT16.1)),
    row(DType::F32,       "f32",       (Class::Float, 32),    (24, -126),  glsl(DType::F32, ("float", ["vec2", "vec4"]), ("", ""), FLOATS)),
    row(DType::F64,       "f64",       (Class::Float, 64),    (53, -1022), with(glsl(DType::F64, ("double", ["dvec2", "dvec4"]), ("", ""), DOUBLES), FP64.0, FP64.1)),
    row(DType::C64,       "c64",       (Class::Complex, 64),  (24, -126),  Some(Glsl { storage: "vec2", vectors: None, register: DType::C64, load: "", store: "", switch: None, needs: Features::NONE, bounds: None })),
    row(DType::C128,      "c128",      (Class::Complex, 128), (53, -1022), Some(Glsl { storage: "dvec2", vectors: None, register: DType::C128, load: "", store: "", switch: Some(FP64.0), needs: FP64.1, bounds: None })),
    row(DType::F8,        "f8",        (Class::Float, 8),     (3, -14), with(glsl(DType::F32, ("uint8_t", ["u8vec2", "u8vec4"]), ("nxv_load_f8", "nxv_store_f8"), FLOATS), INT8.0, INT8.1)),
    row(DType::F8_E4M3FN, "f8_e4m3fn", (Class::Float, 8),     (4, -6), with(glsl(DType::F32, ("uint8_t", ["u8vec2", "u8vec4"]), ("nxv_load_f8_e4m3fn", "nxv_store_f8_e4m3fn"), FLOATS), INT8.0, INT8.1)),
    row(DType::U2,        "u2",        (Class::Unsigned, 2),  (2, 0), with(glsl(DType::U32, ("uint8_t", ["u8vec2", "u8vec4"]), ("uint", "nxv_store_u2"), ("0u", "3u")), INT8.0, INT8.1)),
    row(DType::U4,        "u4",        (Class::Unsigned, 4),  (4, 0), with(glsl(DType::U32, ("uint8_t", ["u8vec2", "u8vec4"]), ("uint", "nxv_store_u4"), ("0u", "15u")), INT8.0, INT8.1)),
    row(DType::S2,        "s2",        (Class::Signed, 2),    (1, 0), with(glsl(DType::S32, ("int8_t", ["i8vec2", "i8vec4"]), ("int", "nxv_store_s2"), ("-2", "1")), INT8.0, INT8.1)),
    row(DType::S4,        "s4",        (Class::Signed, 4),    (3, 0), with(glsl(DType::S32, ("int8_t", ["i8vec2", "i8vec4"]), ("int", "nxv_store_s4"), ("-8", "7")), INT8.0, INT8.1)),
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
        TYPES.iter().map(|row| row.dtype)
    }

    /// The type of that name (`"f32"`), or `None`.
    pub fn from_name(name: &str) -> Option<DType> {
        TYPES
            .iter()
            .find(|row| row.name == name)
            .map(|row| row.dtype)
    }

    /// What is known of the type; `None` for one that this version does not know.
    #[inline]
    pub fn row(self) -> Option<&'static TypeRow> {
        TYPES.get((self.0 as usize).checked_sub(1)?)
    }

    /// The name Nx prints (`"f32"`), or `"unknown"`.
    pub fn name(self) -> &'static str {
        self.row().map_or("unknown", |row| row.name)
    }

    /// What its elements are; `None` for a type that this version does not know.
    pub fn class(self) -> Option<Class> {
        self.row().map(|row| row.class)
    }

    /// Bytes of one element in a device buffer; 0 for a type this version does not know. Sub-byte types take a whole byte
    /// on the device.
    #[inline]
    pub fn size(self) -> u64 {
        self.row().map_or(0, |row| u64::from(row.bits.div_ceil(8)))
    }

    /// Whether this version knows the type.
    pub fn is_known(self) -> bool {
        self.row().is_some()
    }

    /// u2 to u64.
    pub fn is_unsigned(self) -> bool {
        DTypeSet::UNSIGNED.has(self)
    }

    /// s2 to s64.
    pub fn is_signed(self) -> bool {
        DTypeSet::SIGNED.has(self)
    }

    /// u2 to u64 and s2 to s64.
    pub fn is_integer(self) -> bool {
        DTypeSet::INTEGER.has(self)
    }

    /// f8 to f64.
    pub fn is_float(self) -> bool {
        DTypeSet::FLOAT.has(self)
    }

    /// c64 and c128.
    pub fn is_complex(self) -> bool {
        DTypeSet::COMPLEX.has(self)
    }

    /// The type of each part of a complex number; other types are their own.
    pub fn part(self) -> DType {
        let part = |row: &&TypeRow| {
            let of_same_digits = self.row().is_some_and(|own| own.digits == row.digits);
            row.class == Class::Float && of_same_digits
        };
        match self.class() {
            Some(Class::Complex) => TYPES.iter().find(part).map_or(self, |row| row.dtype),
            Some(Class::Unsigned | Class::Signed | Class::Float) | None => self,
        }
    }

    /// The type that shaders compute with: the same or a wider one of the same class. A type that they do not know is its own.
    pub fn register(self) -> DType {
        let glsl = self.row().and_then(|row| row.glsl.as_ref());
        glsl.map_or(self, |glsl| glsl.register)
    }

    /// What lies between 1 and the next number of a float, or of a part of a complex number; 1 for integers.
    pub fn epsilon(self) -> f64 {
        let digits = self.row().filter(|row| row.lowest_exponent != 0);
        digits.map_or(1.0, |row| 1.0 / (1u64 << (row.digits - 1)) as f64)
    }

    /// The type that operands of both types have in common, as `docs/ops.md` defines merging.
    pub fn merge(self, other: DType) -> DType {
        let (Some(a), Some(b)) = (self.row(), other.row()) else {
            return self;
        };
        let (low, high) = if a.class.rank() <= b.class.rank() {
            (a, b)
        } else {
            (b, a)
        };
        match (low.class, high.class) {
            (Class::Unsigned, Class::Signed) => signed((low.bits * 2).min(64).max(high.bits)),
            (Class::Float, Class::Complex) if low.bits * 2 > high.bits => DType::C128,
            // f16 and bf16, the two of 8 bits: neither holds the values of the other.
            (Class::Float, Class::Float) if low.bits == high.bits && self != other => DType::F32,
            (low_class, high_class) if low_class == high_class && low.bits > high.bits => low.dtype,
            (Class::Unsigned | Class::Signed | Class::Float | Class::Complex, _) => high.dtype,
        }
    }
}

impl Class {
    /// Where types of different classes meet, the one of the higher rank holds both.
    fn rank(self) -> u32 {
        match self {
            Class::Unsigned => 0,
            Class::Signed => 1,
            Class::Float => 2,
            Class::Complex => 3,
        }
    }
}

/// The signed type of so many bits, or the widest.
fn signed(bits: u32) -> DType {
    let mut rows = TYPES.iter().filter(|row| row.class == Class::Signed);
    rows.find(|row| row.bits == bits)
        .map_or(DType::S64, |row| row.dtype)
}

impl std::fmt::Debug for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.row() {
            Some(row) => f.write_str(row.name),
            None => write!(f, "DType({})", self.0),
        }
    }
}

impl std::fmt::Display for DType {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        std::fmt::Debug::fmt(self, f)
    }
}
