//! What the host asks: one op on given operands, on a given device.

use crate::DType;
use abi_stable::{
    StableAbi,
    std_types::{RSlice, RStr},
};

/// One op request. It belongs to the host: a pack reads it during the call and keeps no pointer into it.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct Request<'a> {
    /// Name of the op, as in `docs/ops.md`: `add`, `reduce_max`, `dot`. \[borrowed\]
    pub op: RStr<'a>,
    /// Operands, in the op's order. Layouts may be any view: strided, broadcast (stride 0), reversed. \[borrowed\]
    pub inputs: RSlice<'a, TensorDesc<'a>>,
    /// Results. Always contiguous, at offset 0 of a buffer of their own. \[borrowed\]
    pub outputs: RSlice<'a, TensorDesc<'a>>,
    /// Attributes of the op, sorted by name. \[borrowed\]
    pub attrs: RSlice<'a, Attr<'a>>,
    /// The device that will run the plan. \[borrowed\]
    pub device: &'a DeviceInfo<'a>,
    /// Zero in ABI 1.
    pub spare: [u64; 4],
}

impl<'a> Request<'a> {
    /// The attribute of that name, or `None`.
    pub fn attr(&self, name: &str) -> Option<&'a Attr<'a>> {
        self.attrs.as_slice().iter().find(|a| a.name == name)
    }

    /// An integer-list attribute; empty when it is absent.
    pub fn ints(&self, name: &str) -> &'a [i64] {
        self.attr(name).map_or(&[], |a| a.ints.as_slice())
    }

    /// A floating-point attribute; empty when it is absent.
    pub fn floats(&self, name: &str) -> &'a [f64] {
        self.attr(name).map_or(&[], |a| a.floats.as_slice())
    }

    /// A text attribute, or `None`.
    pub fn text(&self, name: &str) -> Option<&'a str> {
        self.attr(name)
            .filter(|a| a.kind == AttrKind::TEXT)
            .map(|a| a.text.as_str())
    }
}

/// The layout of one operand. Element `(i0, i1, …)` is at element index `offset + Σ ik * strides[k]` of its buffer.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct TensorDesc<'a> {
    /// Element type.
    pub dtype: DType,
    /// Zero in ABI 1.
    pub spare: u32,
    /// Extent of each axis, in elements. Empty for a scalar. An extent may be 0. \[borrowed\]
    pub shape: RSlice<'a, u64>,
    /// Step of each axis, in elements; 0 for a broadcast axis, negative for a reversed one. \[borrowed\]
    pub strides: RSlice<'a, i64>,
    /// First element, in elements from the start of the buffer.
    pub offset: u64,
    /// Size of the buffer in bytes: of the part of it, for a view, that the elements lie in. Its start is aligned to 256 bytes.
    pub storage_len: u64,
    /// Zero in ABI 1.
    pub reserved: [u64; 2],
}

impl<'a> TensorDesc<'a> {
    /// Number of elements.
    pub fn elements(&self) -> u64 {
        self.shape.iter().product()
    }

    /// Number of axes.
    pub fn rank(&self) -> usize {
        self.shape.len()
    }

    /// Whether the elements lie in row-major order without gaps (the offset may be anything).
    pub fn is_contiguous(&self) -> bool {
        crate::layout::is_contiguous(self.shape.as_slice(), self.strides.as_slice())
    }
}

/// How an attribute's value is stored. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct AttrKind(pub u32);

impl AttrKind {
    /// The value is in [`Attr::ints`].
    pub const INTS: AttrKind = AttrKind(1);
    /// The value is in [`Attr::floats`].
    pub const FLOATS: AttrKind = AttrKind(2);
    /// The value is in [`Attr::text`].
    pub const TEXT: AttrKind = AttrKind(3);
}

/// One named attribute of a request.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct Attr<'a> {
    /// Name, as in `docs/ops.md`. \[borrowed\]
    pub name: RStr<'a>,
    /// Which of the fields below holds the value.
    pub kind: AttrKind,
    /// Zero in ABI 1.
    pub spare: u32,
    /// Integers (axes, flags, bit patterns). \[borrowed\]
    pub ints: RSlice<'a, i64>,
    /// Floating-point values. \[borrowed\]
    pub floats: RSlice<'a, f64>,
    /// Text. \[borrowed\]
    pub text: RStr<'a>,
}

/// Capabilities of a device, one bit each. A bit that a reader does not know counts as absent.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Features(pub u64);

impl Features {
    /// No capability at all.
    pub const NONE: Features = Features(0);
    /// `shaderFloat64`
    pub const FP64: Features = Features(1);
    /// `shaderInt64`
    pub const INT64: Features = Features(1 << 1);
    /// `shaderInt16`
    pub const INT16: Features = Features(1 << 2);
    /// `shaderInt8`
    pub const INT8: Features = Features(1 << 3);
    /// `shaderFloat16`
    pub const FP16: Features = Features(1 << 4);
    /// `storageBuffer8BitAccess`
    pub const STORAGE8: Features = Features(1 << 5);
    /// `storageBuffer16BitAccess`
    pub const STORAGE16: Features = Features(1 << 6);
    /// Subgroup arithmetic in compute shaders (and basic, vote, ballot).
    pub const SUBGROUP_ARITHMETIC: Features = Features(1 << 7);
    /// Subgroup shuffle in compute shaders.
    pub const SUBGROUP_SHUFFLE: Features = Features(1 << 8);
    /// `VK_KHR_cooperative_matrix`
    pub const COOPMAT: Features = Features(1 << 9);
    /// `vulkanMemoryModel` and its device scope
    pub const MEMORY_MODEL: Features = Features(1 << 10);
    /// `subgroupSizeControl` and `computeFullSubgroups`
    pub const SUBGROUP_SIZE_CONTROL: Features = Features(1 << 11);
    /// `shaderBufferInt64Atomics`
    pub const INT64_ATOMICS: Features = Features(1 << 12);
    /// `shaderBFloat16Type`: `bfloat16_t` in shaders
    pub const BF16: Features = Features(1 << 13);
    /// `shaderBFloat16CooperativeMatrix`: cooperative matrices of bf16
    pub const COOPMAT_BF16: Features = Features(1 << 14);
    /// `VK_NV_cooperative_matrix2` with workgroup scope, flexible dimensions, tensor addressing and block loads
    pub const COOPMAT2: Features = Features(1 << 15);
    /// Conversions, reductions and functions of each element of `VK_NV_cooperative_matrix2`
    pub const COOPMAT_FUNCTIONS: Features = Features(1 << 16);
    /// The host has measured that lanes hold the elements of cooperative matrices in the order of `docs/abi.md`, of all products
    /// listed there that the driver has
    pub const COOPMAT_ORDER: Features = Features(1 << 17);

    const NAMES: &'static [(&'static str, Features)] = &[
        ("fp64", Features::FP64),
        ("int64", Features::INT64),
        ("int16", Features::INT16),
        ("int8", Features::INT8),
        ("fp16", Features::FP16),
        ("storage8", Features::STORAGE8),
        ("storage16", Features::STORAGE16),
        ("subgroup_arithmetic", Features::SUBGROUP_ARITHMETIC),
        ("subgroup_shuffle", Features::SUBGROUP_SHUFFLE),
        ("coopmat", Features::COOPMAT),
        ("memory_model", Features::MEMORY_MODEL),
        ("subgroup_size_control", Features::SUBGROUP_SIZE_CONTROL),
        ("int64_atomics", Features::INT64_ATOMICS),
        ("bf16", Features::BF16),
        ("coopmat_bf16", Features::COOPMAT_BF16),
        ("coopmat2", Features::COOPMAT2),
        ("coopmat_functions", Features::COOPMAT_FUNCTIONS),
        ("coopmat_order", Features::COOPMAT_ORDER),
    ];

    /// Both sets together.
    #[must_use]
    pub const fn with(self, other: Features) -> Features {
        Features(self.0 | other.0)
    }

    /// Whether every capability in `needed` is here.
    pub const fn has(self, needed: Features) -> bool {
        self.0 & needed.0 == needed.0
    }

    /// The capability of that name, or `None`.
    pub fn from_name(name: &str) -> Option<Features> {
        Self::NAMES
            .iter()
            .find(|row| row.0 == name)
            .map(|row| row.1)
    }

    /// Names of the capabilities in this set that `self` knows, for messages.
    pub fn names(self) -> Vec<&'static str> {
        Self::NAMES
            .iter()
            .filter(|row| self.has(row.1))
            .map(|row| row.0)
            .collect()
    }

    /// What a shader needs to load and store elements of `dtype` in its own type and compute with them.
    pub fn for_dtype(dtype: DType) -> Features {
        crate::glsl::of(dtype).map_or(Features::NONE, |glsl| glsl.needs)
    }
}

/// Kind of a device, as `VkPhysicalDeviceType` counts. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceKind(pub u32);

impl DeviceKind {
    /// None of the others.
    pub const OTHER: DeviceKind = DeviceKind(0);
    /// A GPU that shares the host's memory.
    pub const INTEGRATED: DeviceKind = DeviceKind(1);
    /// A GPU with memory of its own.
    pub const DISCRETE: DeviceKind = DeviceKind(2);
    /// A GPU of a virtual machine.
    pub const VIRTUAL: DeviceKind = DeviceKind(3);
    /// A driver that runs on the CPU.
    pub const CPU: DeviceKind = DeviceKind(4);
}

/// Limits and capabilities of the device that will run a plan.
#[repr(C)]
#[derive(StableAbi, Debug, Clone, Copy)]
pub struct DeviceInfo<'a> {
    /// Name the driver reports. \[borrowed\]
    pub name: RStr<'a>,
    /// PCI vendor id.
    pub vendor: u32,
    /// PCI device id.
    pub device: u32,
    /// Driver version, in the vendor's own encoding.
    pub driver: u32,
    /// Vulkan version of the device, as `VK_MAKE_API_VERSION` packs it.
    pub api: u32,
    /// What kind of device it is.
    pub kind: DeviceKind,
    /// Invocations per subgroup when a shader asks for nothing else.
    pub subgroup_size: u32,
    /// Smallest value of [`crate::ShaderVariant::subgroup_size`]; 0 without [`Features::SUBGROUP_SIZE_CONTROL`].
    pub min_subgroup_size: u32,
    /// Largest value of [`crate::ShaderVariant::subgroup_size`]; 0 without [`Features::SUBGROUP_SIZE_CONTROL`].
    pub max_subgroup_size: u32,
    /// Shared memory of a workgroup, in bytes.
    pub shared_bytes: u32,
    /// Push constants, in bytes. At least 128.
    pub push_bytes: u32,
    /// Invocations of one workgroup.
    pub max_invocations: u32,
    /// Streaming multiprocessors or compute units; 0 where the driver does not say.
    pub compute_units: u32,
    /// Extent of one workgroup per dimension.
    pub max_workgroup_size: [u32; 3],
    /// Workgroups of one dispatch per dimension.
    pub max_groups: [u32; 3],
    /// Largest byte range that one buffer argument may cover.
    pub max_buffer_range: u64,
    /// Required alignment of [`crate::BufArg::offset`], in bytes. A power of two, at most 256.
    pub buffer_align: u64,
    /// Capabilities.
    pub features: Features,
    /// Further facts, sorted by name, which a reader that does not know a name skips. None in ABI 1.0; [`crate::Matrix`] reads those of 1.1. \[borrowed\]
    pub facts: RSlice<'a, Attr<'a>>,
    /// Zero in ABI 1.
    pub spare: [u64; 4],
}

/// The least that a device offers with which the host works: what a pack's own tests start from.
impl Default for DeviceInfo<'_> {
    fn default() -> Self {
        DeviceInfo {
            name: RStr::from_str("default"),
            vendor: 0,
            device: 0,
            driver: 0,
            api: 1 << 22 | 2 << 12,
            kind: DeviceKind::OTHER,
            subgroup_size: 1,
            min_subgroup_size: 0,
            max_subgroup_size: 0,
            shared_bytes: 16384,
            push_bytes: 128,
            max_invocations: 128,
            compute_units: 0,
            max_workgroup_size: [128, 128, 64],
            max_groups: [65535; 3],
            max_buffer_range: 1 << 27,
            buffer_align: 256,
            features: Features::NONE,
            facts: RSlice::EMPTY,
            spare: [0; 4],
        }
    }
}
