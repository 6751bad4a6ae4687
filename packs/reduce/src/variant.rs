//! Shader variants: the defines that turn a pattern into the shader of one op, type and pass.

use crate::{
    pass::{Pattern, Tuning, uses_subgroups},
    table::TableRow,
};
use nx_vulkan_abi::{
    DType, Define, Features, Refusal, Request, ShaderVariant,
    glsl::{define, operand},
};

/// Bytes of push constants of the pass shaders.
pub(crate) const PUSH_BYTES: u32 = 84;

/// Element in memory, vector of it, and elements of the vector: 16 bytes, but not more than four elements.
const VECTORS: &[(&str, &str, u64)] = &[
    ("uint8_t", "u8vec4", 4),
    ("uint16_t", "u16vec4", 4),
    ("uint", "uvec4", 4),
    ("uint64_t", "u64vec2", 2),
    ("int8_t", "i8vec4", 4),
    ("int16_t", "i16vec4", 4),
    ("int", "ivec4", 4),
    ("int64_t", "i64vec2", 2),
    ("float", "vec4", 4),
    ("double", "dvec2", 2),
];

/// Type, lowest and highest value of it, in its register form. glslang reads defines before extensions are on, so there
/// are no 64-bit literals.
const BOUNDS: &[(DType, &str, &str)] = &[
    (DType::U8, "0u", "255u"),
    (DType::U16, "0u", "65535u"),
    (DType::U32, "0u", "0xffffffffu"),
    (DType::U64, "uint64_t(0)", "(~uint64_t(0))"),
    (DType::S8, "-128", "127"),
    (DType::S16, "-32768", "32767"),
    (DType::S32, "int(0x80000000u)", "0x7fffffff"),
    (DType::S64, "(int64_t(1) << 63)", "(~(int64_t(1) << 63))"),
    (DType::F16, FLOAT_LOWEST, FLOAT_HIGHEST),
    (DType::BF16, FLOAT_LOWEST, FLOAT_HIGHEST),
    (DType::F32, FLOAT_LOWEST, FLOAT_HIGHEST),
    (
        DType::F64,
        "packDouble2x32(uvec2(0u, 0xfff00000u))",
        "packDouble2x32(uvec2(0u, 0x7ff00000u))",
    ),
];
const FLOAT_LOWEST: &str = "uintBitsToFloat(0xff800000u)";
const FLOAT_HIGHEST: &str = "uintBitsToFloat(0x7f800000u)";

/// An op on the types of one request.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    pub(crate) row: &'a TableRow,
    pub(crate) operand: DType,
    pub(crate) result: DType,
    pub(crate) compute: DType,
    vector: &'static str,
    pub(crate) width: u64,
    tie_high: bool,
}

impl<'a> Typed<'a> {
    /// The op on the types that `request` names.
    ///
    /// # Errors
    /// A decline when the device cannot compute with one of the types, a bad request when an attribute is wrong.
    pub(crate) fn new(row: &'a TableRow, request: &Request<'_>) -> Result<Typed<'a>, Refusal> {
        let (operand, result, op) = (
            request.inputs[0].dtype,
            request.outputs[0].dtype,
            &row.op.op,
        );
        let unknown =
            |dtype: DType| Refusal::decline(format!("{op}: shaders do not compute with {dtype}"));
        let vector_of = |dtype: DType| {
            let (storage, _) = nx_vulkan_abi::glsl::types(dtype)?;
            VECTORS.iter().find(|row| row.0 == storage)
        };
        let (_, vector, width) = *vector_of(operand).ok_or_else(|| unknown(operand))?;
        vector_of(result).ok_or_else(|| unknown(result))?;
        let compute = row.compute(operand, result)?;
        for dtype in [operand, result, compute] {
            let needed = Features::for_dtype(dtype);
            let has = request.device.features;
            if !has.has(needed) {
                let lacking = Features(needed.0 & !has.0).names().join(" and ");
                return Err(Refusal::decline(format!("{op} on {dtype} needs {lacking}")));
            }
        }
        let tie_high = match (row.picks(), request.text("tie_break")) {
            (false, _) | (true, Some("low")) => false,
            (true, Some("high")) => true,
            (true, other) => {
                let got = other.unwrap_or("nothing");
                return Err(Refusal::BadRequest(format!(
                    "{op}: expected tie_break to be \"low\" or \"high\", got: {got:?}"
                )));
            }
        };
        Ok(Typed {
            row,
            operand,
            result,
            compute,
            vector,
            width,
            tie_high,
        })
    }

    /// Whether a state carries rounding errors beside its value.
    fn compensates(&self) -> bool {
        self.row.op.compensate && self.result == DType::F32
    }

    /// Whether a state has a second field.
    pub(crate) fn has_second(&self) -> bool {
        self.row.picks() || self.compensates()
    }

    /// Bytes of a state's fields.
    pub(crate) fn state_bytes(&self) -> Vec<u64> {
        let second = self.has_second().then_some(4);
        std::iter::once(self.compute.size()).chain(second).collect()
    }

    /// The shader of one pass. `merges`: it reads states; `partial`: it gives states.
    pub(crate) fn pass(
        &self,
        request: &Request<'_>,
        tuning: &Tuning,
        pattern: Pattern,
        width: u64,
        merges: bool,
        partial: bool,
    ) -> ShaderVariant {
        let seconds = u32::from(self.has_second());
        let result_binding = 2 + if merges { seconds } else { 0 };
        let mut defines = self.defines(request, tuning);
        let item_bytes = if merges {
            16
        } else {
            width * self.operand.size()
        };
        // As many loads in flight as make 64 bytes for each invocation.
        let unroll = (64 / item_bytes).clamp(4, 8);
        let vector = if width == 1 { "A_STORAGE" } else { self.vector };
        defines.extend([
            define("A_VECTOR", vector),
            define("WIDTH", width.to_string()),
            define("UNROLL", unroll.to_string()),
            define("RESULT_BINDING", result_binding.to_string()),
        ]);
        defines.extend(merges.then(|| define("MERGES", "1")));
        defines.extend(partial.then(|| define("PARTIAL", "1")));
        let file = match pattern {
            Pattern::Rows => "rows.comp",
            Pattern::Columns => "columns.comp",
        };
        let subgroups = uses_subgroups(request.device, tuning.workgroup);
        ShaderVariant {
            file: file.into(),
            defines: defines.into(),
            bindings: result_binding + 1 + if partial { seconds } else { 0 },
            push_bytes: PUSH_BYTES,
            subgroup_size: if subgroups {
                request.device.subgroup_size
            } else {
                0
            },
            spare: 0,
        }
    }

    /// The shader that gives the result of no elements.
    pub(crate) fn empty(&self, request: &Request<'_>, tuning: &Tuning) -> ShaderVariant {
        ShaderVariant {
            file: "empty.comp".into(),
            defines: self.defines(request, tuning).into(),
            bindings: 1,
            push_bytes: 4,
            ..ShaderVariant::default()
        }
    }

    fn defines(&self, request: &Request<'_>, tuning: &Tuning) -> Vec<Define> {
        let bounds = BOUNDS.iter().find(|row| row.0 == self.operand);
        let (_, lowest, highest) = bounds.copied().unwrap_or((self.operand, "0", "0"));
        let glsl = format!("({})", self.row.op.glsl);
        let mut defines: Vec<Define> = Vec::new();
        for (name, dtype) in [
            ("A", self.operand),
            ("R", self.result),
            ("ACC", self.compute),
        ] {
            // Operands of one size ask for the same NXV_NEEDS_* switch.
            for new in operand(name, dtype) {
                if defines.iter().all(|define| define.name != new.name) {
                    defines.push(new);
                }
            }
        }
        defines.extend([
            define("WORKGROUP", tuning.workgroup.to_string()),
            define("LOWEST", lowest),
            define("HIGHEST", highest),
            define("START", self.row.op.start.as_str()),
        ]);
        if uses_subgroups(request.device, tuning.workgroup) {
            defines.push(define("SUBGROUPS", "1"));
        }
        if self.row.picks() {
            defines.extend([define("PICK", "1"), define("BEATS(a,b)", glsl)]);
            defines.extend(self.tie_high.then(|| define("TIE_HIGH", "1")));
        } else if self.compensates() {
            defines.push(define("COMPENSATED", "1"));
        } else {
            let each = format!("({})", self.row.op.each.as_deref().unwrap_or("x"));
            defines.extend([define("COMBINE(a,b)", glsl), define("EACH(x)", each)]);
        }
        defines
    }
}
