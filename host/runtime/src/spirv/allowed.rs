//! What a SPIR-V module may declare, whoever it comes from. What is not in a table here is refused.

use nx_vulkan_abi::Features;

/// Capabilities, and the feature of a device that each stands for; those without a feature come with Vulkan 1.2 and
/// compute.
const CAPABILITIES: &[(u32, &str, Option<Features>)] = &[
    (0, "Matrix", None),
    (1, "Shader", None),
    (9, "Float16", Some(Features::FP16)),
    (10, "Float64", Some(Features::FP64)),
    (11, "Int64", Some(Features::INT64)),
    (12, "Int64Atomics", Some(Features::INT64_ATOMICS)),
    (22, "Int16", Some(Features::INT16)),
    (39, "Int8", Some(Features::INT8)),
    (61, "GroupNonUniform", None),
    (
        62,
        "GroupNonUniformVote",
        Some(Features::SUBGROUP_ARITHMETIC),
    ),
    (
        63,
        "GroupNonUniformArithmetic",
        Some(Features::SUBGROUP_ARITHMETIC),
    ),
    (
        64,
        "GroupNonUniformBallot",
        Some(Features::SUBGROUP_ARITHMETIC),
    ),
    (
        65,
        "GroupNonUniformShuffle",
        Some(Features::SUBGROUP_SHUFFLE),
    ),
    (4433, "StorageBuffer16BitAccess", Some(Features::STORAGE16)),
    (4448, "StorageBuffer8BitAccess", Some(Features::STORAGE8)),
    (5345, "VulkanMemoryModel", Some(Features::MEMORY_MODEL)),
    (
        5346,
        "VulkanMemoryModelDeviceScope",
        Some(Features::MEMORY_MODEL),
    ),
    (BFLOAT16, "BFloat16TypeKHR", Some(Features::BF16)),
    (
        5118,
        "BFloat16CooperativeMatrixKHR",
        Some(Features::COOPMAT_BF16),
    ),
    (
        5430,
        "CooperativeMatrixReductionsNV",
        Some(Features::COOPMAT_FUNCTIONS),
    ),
    (
        5431,
        "CooperativeMatrixConversionsNV",
        Some(Features::COOPMAT_FUNCTIONS),
    ),
    (
        5432,
        "CooperativeMatrixPerElementOperationsNV",
        Some(Features::COOPMAT_FUNCTIONS),
    ),
    (
        5433,
        "CooperativeMatrixTensorAddressingNV",
        Some(Features::COOPMAT2),
    ),
    (
        5434,
        "CooperativeMatrixBlockLoadsNV",
        Some(Features::COOPMAT2),
    ),
    (
        TENSOR_ADDRESSING,
        "TensorAddressingNV",
        Some(Features::COOPMAT2),
    ),
    (
        COOPERATIVE_MATRIX,
        "CooperativeMatrixKHR",
        Some(Features::COOPMAT),
    ),
];

/// Capabilities that types need.
pub(super) const BFLOAT16: u32 = 5116;
pub(super) const TENSOR_ADDRESSING: u32 = 5439;
pub(super) const COOPERATIVE_MATRIX: u32 = 6022;

/// Features whose accesses the host cannot bound: a module may need them only where its kernel says so.
pub(crate) const DECLARED: Features = Features::COOPMAT
    .with(Features::COOPMAT_BF16)
    .with(Features::COOPMAT2)
    .with(Features::COOPMAT_FUNCTIONS);

/// Those of [`DECLARED`] among `features`.
pub(crate) fn declared(features: Features) -> Features {
    Features(features.0 & DECLARED.0)
}

/// Extensions that only say what the capabilities above do.
const EXTENSIONS: &[&str] = &[
    "SPV_KHR_storage_buffer_storage_class",
    "SPV_KHR_8bit_storage",
    "SPV_KHR_16bit_storage",
    "SPV_KHR_vulkan_memory_model",
    "SPV_KHR_cooperative_matrix",
    "SPV_KHR_bfloat16",
    "SPV_NV_tensor_addressing",
    "SPV_NV_cooperative_matrix2",
];

/// The newest version of SPIR-V, and that of Vulkan 1.2.
pub(super) const NEWEST: u32 = 0x0001_0600;
pub(super) const OF_1_2: u32 = 0x0001_0500;

pub(super) const GLSL: &str = "GLSL.std.450";

/// Storage classes by number.
pub(super) const INPUT: u32 = 1;
pub(super) const UNIFORM: u32 = 2;
pub(super) const WORKGROUP: u32 = 4;
pub(super) const PRIVATE: u32 = 6;
pub(super) const FUNCTION: u32 = 7;
pub(super) const PUSH_CONSTANT: u32 = 9;
pub(super) const STORAGE_BUFFER: u32 = 12;

const CLASSES: &[u32] = &[
    INPUT,
    UNIFORM,
    WORKGROUP,
    PRIVATE,
    FUNCTION,
    PUSH_CONSTANT,
    STORAGE_BUFFER,
];

/// Decorations that something here reads.
pub(super) const SPEC_ID: u32 = 1;
pub(super) const BLOCK: u32 = 2;
pub(super) const BUFFER_BLOCK: u32 = 3;
pub(super) const ARRAY_STRIDE: u32 = 6;
pub(super) const MATRIX_STRIDE: u32 = 7;
pub(super) const BUILT_IN: u32 = 11;
pub(super) const NON_WRITABLE: u32 = 24;
pub(super) const BINDING: u32 = 33;
pub(super) const DESCRIPTOR_SET: u32 = 34;
pub(super) const OFFSET: u32 = 35;

/// The others: precision, row and column major, layouts of GLSL, invariant, restrict, aliased, volatile, coherent,
/// non-readable, uniform, rounding, no contraction, no wrap.
const DECORATIONS: &[u32] = &[
    0, 4, 5, 8, 9, 18, 19, 20, 21, 23, 25, 26, 27, 39, 42, 4469, 4470,
];

pub(super) const WORKGROUP_SIZE: u32 = 25;

/// Built-in variables: those of workgroups, invocations and subgroups, each with how many integers of 32 bits it has.
const BUILT_INS: &[(u32, u32)] = &[
    (24, 3),
    (WORKGROUP_SIZE, 3),
    (26, 3),
    (27, 3),
    (28, 3),
    (29, 1),
    (36, 1),
    (38, 1),
    (40, 1),
    (41, 1),
    (4416, 4),
    (4417, 4),
    (4418, 4),
    (4419, 4),
    (4420, 4),
];

/// How many integers of 32 bits a built-in variable has.
pub(super) fn built_in(number: u32) -> Option<u32> {
    let row = BUILT_INS.iter().find(|row| row.0 == number);
    row.map(|row| row.1)
}

/// Execution modes that give the size of a workgroup.
pub(super) const LOCAL_SIZE: u32 = 17;
pub(super) const LOCAL_SIZE_ID: u32 = 38;

/// The feature that a capability needs.
pub(super) fn capability(number: u32) -> Result<Features, String> {
    let row = CAPABILITIES.iter().find(|row| row.0 == number);
    row.map(|row| row.2.unwrap_or(Features::NONE))
        .ok_or(format!(
            "it needs SPIR-V capability {number}, which nx_vulkan does not enable"
        ))
}

/// Names of the capabilities that stand for features in `needed` and not in `given`.
pub(crate) fn missing(needed: Features, given: Features) -> String {
    let names = CAPABILITIES.iter().filter_map(|(_, name, feature)| {
        let feature = (*feature)?;
        (needed.has(feature) && !given.has(feature)).then_some(*name)
    });
    names.collect::<Vec<_>>().join(", ")
}

pub(super) fn extension(words: &[u32]) -> Result<(), String> {
    let name = text(words);
    match EXTENSIONS.contains(&name.as_str()) {
        true => Ok(()),
        false => Err(format!(
            "it needs the SPIR-V extension {name:?}, which nx_vulkan does not enable"
        )),
    }
}

pub(super) fn storage_class(class: u32) -> Result<(), String> {
    match CLASSES.contains(&class) {
        true => Ok(()),
        false => Err(format!(
            "it uses storage class {class}, and only buffers, push constants, shared and private memory are bound"
        )),
    }
}

pub(super) fn decoration(number: u32, operands: &[u32]) -> Result<(), String> {
    let known = [
        SPEC_ID,
        BLOCK,
        BUFFER_BLOCK,
        ARRAY_STRIDE,
        MATRIX_STRIDE,
        BUILT_IN,
        NON_WRITABLE,
        BINDING,
        DESCRIPTOR_SET,
        OFFSET,
    ];
    if !known.contains(&number) && !DECORATIONS.contains(&number) {
        return Err(format!("it uses decoration {number}"));
    }
    match (number, operands) {
        (BUILT_IN, [built_in]) if self::built_in(*built_in).is_none() => {
            Err(format!("it uses built-in variable {built_in}"))
        }
        (DESCRIPTOR_SET, [set]) if *set != 0 => {
            Err("it uses descriptor sets other than 0".to_owned())
        }
        _ => Ok(()),
    }
}

/// Text of a literal string, up to its end and at most a line of it.
pub(super) fn text(words: &[u32]) -> String {
    let bytes = words.iter().flat_map(|word| word.to_le_bytes());
    let bytes: Vec<u8> = bytes.take_while(|byte| *byte != 0).take(100).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}
