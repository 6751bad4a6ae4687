//! Numbers of SPIR-V's instructions, and where those that only compute have their operands.

pub(super) const UNDEF: u32 = 1;
pub(super) const SOURCE_CONTINUED: u32 = 2;
pub(super) const SOURCE_EXTENSION: u32 = 4;
pub(super) const NAME: u32 = 5;
pub(super) const MEMBER_NAME: u32 = 6;
pub(super) const STRING: u32 = 7;
pub(super) const LINE: u32 = 8;
pub(super) const EXTENSION: u32 = 10;
pub(super) const EXT_INST_IMPORT: u32 = 11;
pub(super) const EXT_INST: u32 = 12;
pub(super) const MEMORY_MODEL: u32 = 14;
pub(super) const ENTRY_POINT: u32 = 15;
pub(super) const EXECUTION_MODE: u32 = 16;
pub(super) const CAPABILITY: u32 = 17;
pub(super) const TYPE_VOID: u32 = 19;
pub(super) const TYPE_BOOL: u32 = 20;
pub(super) const TYPE_INT: u32 = 21;
pub(super) const TYPE_FLOAT: u32 = 22;
pub(super) const TYPE_VECTOR: u32 = 23;
pub(super) const TYPE_MATRIX: u32 = 24;
pub(super) const TYPE_ARRAY: u32 = 28;
pub(super) const TYPE_RUNTIME_ARRAY: u32 = 29;
pub(super) const TYPE_STRUCT: u32 = 30;
pub(super) const TYPE_POINTER: u32 = 32;
pub(super) const TYPE_FUNCTION: u32 = 33;
pub(super) const CONSTANT_TRUE: u32 = 41;
pub(super) const CONSTANT_FALSE: u32 = 42;
pub(super) const CONSTANT: u32 = 43;
pub(super) const CONSTANT_COMPOSITE: u32 = 44;
pub(super) const CONSTANT_NULL: u32 = 46;
pub(super) const SPEC_CONSTANT_TRUE: u32 = 48;
pub(super) const SPEC_CONSTANT_FALSE: u32 = 49;
pub(super) const SPEC_CONSTANT: u32 = 50;
pub(super) const SPEC_CONSTANT_COMPOSITE: u32 = 51;
pub(super) const SPEC_CONSTANT_OP: u32 = 52;
pub(super) const FUNCTION: u32 = 54;
pub(super) const FUNCTION_PARAMETER: u32 = 55;
pub(super) const FUNCTION_END: u32 = 56;
pub(super) const FUNCTION_CALL: u32 = 57;
pub(super) const VARIABLE: u32 = 59;
pub(super) const LOAD: u32 = 61;
pub(super) const STORE: u32 = 62;
pub(super) const COPY_MEMORY: u32 = 63;
pub(super) const ACCESS_CHAIN: u32 = 65;
pub(super) const IN_BOUNDS_ACCESS_CHAIN: u32 = 66;
pub(super) const ARRAY_LENGTH: u32 = 68;
pub(super) const DECORATE: u32 = 71;
pub(super) const MEMBER_DECORATE: u32 = 72;
pub(super) const VECTOR_EXTRACT_DYNAMIC: u32 = 77;
pub(super) const VECTOR_INSERT_DYNAMIC: u32 = 78;
pub(super) const COMPOSITE_EXTRACT: u32 = 81;
pub(super) const COPY_OBJECT: u32 = 83;
pub(super) const I_SUB: u32 = 130;
pub(super) const U_MOD: u32 = 137;
pub(super) const BITWISE_AND: u32 = 199;
pub(super) const S_CONVERT: u32 = 114;
pub(super) const CONTROL_BARRIER: u32 = 224;
pub(super) const MEMORY_BARRIER: u32 = 225;
pub(super) const ATOMIC_LOAD: u32 = 227;
pub(super) const ATOMIC_STORE: u32 = 228;
pub(super) const ATOMIC_COMPARE_EXCHANGE: u32 = 230;
pub(super) const ATOMIC_I_INCREMENT: u32 = 232;
pub(super) const ATOMIC_XOR: u32 = 242;
pub(super) const PHI: u32 = 245;
pub(super) const LOOP_MERGE: u32 = 246;
pub(super) const SELECTION_MERGE: u32 = 247;
pub(super) const LABEL: u32 = 248;
pub(super) const BRANCH: u32 = 249;
pub(super) const BRANCH_CONDITIONAL: u32 = 250;
pub(super) const SWITCH: u32 = 251;
pub(super) const RETURN: u32 = 253;
pub(super) const RETURN_VALUE: u32 = 254;
pub(super) const UNREACHABLE: u32 = 255;
pub(super) const NO_LINE: u32 = 317;
pub(super) const MODULE_PROCESSED: u32 = 330;
pub(super) const EXECUTION_MODE_ID: u32 = 331;
pub(super) const COOPERATIVE_MATRIX_REDUCE: u32 = 5366;
pub(super) const COOPERATIVE_MATRIX_LOAD_TENSOR: u32 = 5367;
pub(super) const COOPERATIVE_MATRIX_STORE_TENSOR: u32 = 5368;
pub(super) const COOPERATIVE_MATRIX_PER_ELEMENT: u32 = 5369;
pub(super) const TYPE_TENSOR_LAYOUT: u32 = 5370;
pub(super) const TYPE_TENSOR_VIEW: u32 = 5371;
pub(super) const TYPE_COOPERATIVE_MATRIX: u32 = 4456;
pub(super) const COOPERATIVE_MATRIX_LOAD: u32 = 4457;
pub(super) const COOPERATIVE_MATRIX_STORE: u32 = 4458;
pub(super) const COOPERATIVE_MATRIX_LENGTH: u32 = 4460;

/// `UMin` of the instructions of GLSL.
pub(super) const GLSL_U_MIN: u32 = 38;

/// Every operand is a value.
const ALL: u32 = u32::MAX;

/// Instructions that make a value of values: first, last, and a bit for each operand that is a value; the others are
/// literals. The last bit stands for all further operands.
const VALUES: &[(u32, u32, u32)] = &[
    // Dynamic extract and insert, shuffle, construct, extract, insert, transpose.
    (77, 78, ALL),
    (79, 79, 0b11),
    (80, 80, ALL),
    (81, 81, 0b1),
    (82, 82, 0b11),
    (84, 84, ALL),
    // Conversions, bitcast.
    (109, 116, ALL),
    (124, 124, ALL),
    // Arithmetic up to the extended products.
    (126, 152, ALL),
    // Any, all, not a number, infinite.
    (154, 157, ALL),
    // Logic, select, comparisons.
    (164, 191, ALL),
    // Shifts and bits.
    (194, 205, ALL),
    // Subgroups: elect, vote, broadcast, ballot; its bit count; find and shuffle; arithmetic.
    (333, 341, ALL),
    (342, 342, !0b10),
    (343, 346, ALL),
    (349, 364, !0b10),
    // Copy logical.
    (400, 400, ALL),
    // Product of cooperative matrices.
    (4459, 4459, 0b111),
    // Conversion and transposition of cooperative matrices.
    (5293, 5293, ALL),
    (5390, 5390, ALL),
    // Layouts and views of tensors: create, dimensions, strides, slice, clamp, clip, block size.
    (5372, 5379, ALL),
    (5382, 5382, ALL),
    (5384, 5384, ALL),
];

/// Of an instruction that makes a value of values, a bit for each operand that is a value.
pub(super) fn value_operands(opcode: u32) -> Option<u32> {
    let row = VALUES
        .iter()
        .find(|(first, last, _)| (*first..=*last).contains(&opcode));
    row.map(|row| row.2)
}

/// Whether operand `n` is one of `operands`.
pub(super) fn is_value(operands: u32, n: usize) -> bool {
    operands >> n.min(31) & 1 == 1
}

/// Instructions of GLSL that take pointers, are not for compute, or do not exist.
const NOT_GLSL: [u32; 7] = [0, 35, 47, 51, 76, 77, 78];

/// Whether an instruction of GLSL only computes.
pub(super) fn is_glsl(number: u32) -> bool {
    number <= 81 && !NOT_GLSL.contains(&number)
}

/// Whether an instruction says something to debuggers only.
pub(super) fn is_for_debuggers(opcode: u32) -> bool {
    matches!(opcode, SOURCE_CONTINUED..=LINE | NO_LINE | MODULE_PROCESSED)
}
