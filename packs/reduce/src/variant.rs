//! Shader variants: the defines that turn a pattern into the shader of one op, type and pass.

use crate::{
    pass::{Pass, Pattern, Tuning},
    table::TableRow,
};
use nx_vulkan_abi::{
    DType, Define, DeviceKind, Refusal, Request, ShaderVariant,
    glsl::{self, define, operand},
};
use nx_vulkan_pack_kit::{grid, operand as kit, vendor};

/// Bytes of push constants of the pass shaders.
pub(crate) const PUSH_BYTES: u32 = 84;

/// Bytes of the widest loads.
const LOAD_BYTES: u64 = 16;
/// Bytes in flight for each invocation, and workgroups for each compute unit. Compensated sums of f32 need more of the
/// former and have fewer registers left: an H200 sums 2^26 f32 in 66 us with these values, in 79 us with the others. So do rows
/// that are too few for the units, of which nobody else has loads in flight.
const IN_FLIGHT: u64 = 64;
const GROUPS_PER_UNIT: u64 = 8;
const COMPENSATED_IN_FLIGHT: u64 = 128;
const COMPENSATED_GROUPS_PER_UNIT: u64 = 4;
/// States that an invocation keeps of a row, so that additions do not wait for one another.
const ROW_STATES: u64 = 4;

/// An op on the types of one request.
#[derive(Debug)]
pub(crate) struct Typed<'a> {
    pub(crate) row: &'a TableRow,
    pub(crate) operand: DType,
    pub(crate) result: DType,
    pub(crate) compute: DType,
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
        let compute = row.compute(operand, result)?;
        for dtype in [operand, result, compute] {
            kit::supports(op, dtype, request.device)?;
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
            tie_high,
        })
    }

    /// Whether a state carries rounding errors beside its value.
    fn compensates(&self) -> bool {
        self.row.op.compensate && self.result == DType::F32
    }

    /// What the passes of this op on `request`'s device are made to fit.
    pub(crate) fn tuning(&self, request: &Request<'_>) -> Tuning {
        let groups = if self.compensates() {
            COMPENSATED_GROUPS_PER_UNIT
        } else {
            GROUPS_PER_UNIT
        };
        Tuning::new(
            request.device,
            (self.widest(), self.operand.size()),
            self.state_bytes(),
            groups,
            self.row.picks(),
        )
    }

    /// Elements that one load takes at most.
    fn widest(&self) -> u64 {
        let has_vectors = glsl::of(self.operand).is_some_and(|glsl| glsl.vectors.is_some());
        if has_vectors {
            LOAD_BYTES / self.operand.size()
        } else {
            1
        }
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

    /// The shader of one pass. `merges`: it reads states.
    pub(crate) fn pass(
        &self,
        request: &Request<'_>,
        tuning: &Tuning,
        pass: &Pass,
        merges: bool,
    ) -> ShaderVariant {
        let (pattern, width, partial) = (pass.pattern, pass.width, pass.is_partial());
        let seconds = u32::from(self.has_second());
        let result_binding = 2 + if merges { seconds } else { 0 };
        let mut defines = self.defines(request, tuning);
        let item_bytes = if merges {
            LOAD_BYTES
        } else {
            width * self.operand.size()
        };
        let is_small = pattern == Pattern::Rows && pass.is_small(tuning);
        let in_flight = if self.compensates() || is_small {
            COMPENSATED_IN_FLIGHT
        } else {
            IN_FLIGHT
        };
        let (states, most) = match pattern {
            Pattern::Rows => (width.min(ROW_STATES), 8),
            Pattern::Columns => (width, 16),
        };
        // A CPU has no use for loads in flight, and its compiler takes long over them.
        let unroll = match request.device.kind {
            DeviceKind::CPU => 2,
            _ => (in_flight / item_bytes).clamp(4, most),
        };
        defines.extend(self.vector(width));
        defines.extend([
            define("WIDTH", width.to_string()),
            define("STATES", states.to_string()),
            define("UNROLL", unroll.to_string()),
            define("RESULT_BINDING", result_binding.to_string()),
        ]);
        defines.extend(merges.then(|| define("MERGES", "1")));
        defines.extend(partial.then(|| define("PARTIAL", "1")));
        let file = match pattern {
            Pattern::Rows => "rows.comp",
            Pattern::Columns => "columns.comp",
        };
        let subgroups = grid::has_full_subgroups(request.device, tuning.workgroup);
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

    /// How the shader names `width` elements: a vector of them, or of 32-bit words that hold several.
    fn vector(&self, width: u64) -> Vec<Define> {
        let (storage, _) = glsl::types(self.operand).unwrap_or_default();
        if width > 4 {
            let packed = width / 4;
            return vec![
                define("A_VECTOR", "uvec4"),
                define("PACKED", packed.to_string()),
            ];
        }
        let vector = glsl::vector(storage, width).unwrap_or(storage);
        vec![define("A_VECTOR", vector)]
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
        let bounds = glsl::of(self.operand).and_then(|glsl| glsl.bounds);
        let (lowest, highest) = bounds.unwrap_or(("0", "0"));
        let op = &self.row.op;
        let [start, glsl] = match &op.complex {
            Some(complex) if self.compute.is_complex() => complex,
            Some(_) | None => &[op.start.clone(), op.glsl.clone()],
        };
        let glsl = format!("({glsl})");
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
            define("START", start.as_str()),
        ]);
        if grid::has_full_subgroups(request.device, tuning.workgroup) {
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
        defines.extend(vendor::defines(vendor::is_nvidia(request.device), false));
        defines
    }
}
