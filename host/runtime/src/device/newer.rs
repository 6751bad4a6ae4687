//! Extensions that are newer than vulkano: what a device has of those that packs can use.

use ash::vk::{
    self, Bool32, ExtendsDeviceCreateInfo, ExtendsPhysicalDeviceFeatures2,
    ExtendsPhysicalDeviceProperties2, StructureType, TaggedStructure,
};
use nx_vulkan_abi::Features;
use std::{ffi::CStr, ffi::c_void, ptr};
use vulkano::{Version, VulkanObject as _, device::physical::PhysicalDevice};

pub(super) const BFLOAT16: &CStr = c"VK_KHR_shader_bfloat16";
pub(super) const COOPERATIVE_MATRIX2: &CStr = c"VK_NV_cooperative_matrix2";

/// The first version of Vulkan's header that has each of them: older validation layers report what they do not know.
const SINCE: [(&CStr, Version); 2] = [
    (BFLOAT16, version(1, 4, 311)),
    (COOPERATIVE_MATRIX2, version(1, 4, 300)),
];

const fn version(major: u32, minor: u32, patch: u32) -> Version {
    Version {
        major,
        minor,
        patch,
    }
}

/// What of newer extensions a device has, or what of them is enabled.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct Newer {
    pub(super) bf16: bool,
    pub(super) coopmat_bf16: bool,
    pub(super) coopmat2: bool,
    pub(super) coopmat_functions: bool,
}

/// `VkPhysicalDeviceShaderBfloat16FeaturesKHR`
#[repr(C)]
#[derive(Debug)]
pub(super) struct Bfloat16Features {
    s_type: StructureType,
    p_next: *mut c_void,
    /// Type, dot product, cooperative matrix.
    has: [Bool32; 3],
}

/// `VkPhysicalDeviceCooperativeMatrix2FeaturesNV`
#[repr(C)]
#[derive(Debug)]
pub(super) struct CooperativeMatrix2Features {
    s_type: StructureType,
    p_next: *mut c_void,
    /// Workgroup scope, flexible dimensions, reductions, conversions, operations by element, tensor addressing, block
    /// loads.
    has: [Bool32; 7],
}

/// `VkPhysicalDeviceCooperativeMatrix2PropertiesNV`
#[repr(C)]
#[derive(Debug)]
pub(super) struct CooperativeMatrix2Properties {
    s_type: StructureType,
    p_next: *mut c_void,
    /// Invocations of a workgroup at most, extent of a flexible matrix at most, shared memory that is the driver's.
    pub(super) limits: [u32; 3],
}

// SAFETY: each struct begins with the tag and the pointer, and is laid out as `vulkan_core.h` 1.4.311 has the type that it is
// named after.
unsafe impl TaggedStructure for Bfloat16Features {
    const STRUCTURE_TYPE: StructureType = StructureType::from_raw(1_000_141_000);
}
// SAFETY: as above.
unsafe impl TaggedStructure for CooperativeMatrix2Features {
    const STRUCTURE_TYPE: StructureType = StructureType::from_raw(1_000_593_000);
}
// SAFETY: as above.
unsafe impl TaggedStructure for CooperativeMatrix2Properties {
    const STRUCTURE_TYPE: StructureType = StructureType::from_raw(1_000_593_002);
}
// SAFETY: `vk.xml` lists the struct as one that extends the other, as it does those below.
unsafe impl ExtendsPhysicalDeviceFeatures2 for Bfloat16Features {}
// SAFETY: as above.
unsafe impl ExtendsDeviceCreateInfo for Bfloat16Features {}
// SAFETY: as above.
unsafe impl ExtendsPhysicalDeviceFeatures2 for CooperativeMatrix2Features {}
// SAFETY: as above.
unsafe impl ExtendsDeviceCreateInfo for CooperativeMatrix2Features {}
// SAFETY: as above.
unsafe impl ExtendsPhysicalDeviceProperties2 for CooperativeMatrix2Properties {}

impl Bfloat16Features {
    fn new(has: [bool; 3]) -> Self {
        Bfloat16Features {
            s_type: Self::STRUCTURE_TYPE,
            p_next: ptr::null_mut(),
            has: has.map(Bool32::from),
        }
    }
}

impl CooperativeMatrix2Features {
    fn new(has: [bool; 7]) -> Self {
        CooperativeMatrix2Features {
            s_type: Self::STRUCTURE_TYPE,
            p_next: ptr::null_mut(),
            has: has.map(Bool32::from),
        }
    }
}

impl Newer {
    /// What `device` has of extensions that layers of that version know.
    pub(super) fn supported(device: &PhysicalDevice, layers: Version) -> Newer {
        let listed = |name: &CStr| {
            let known = SINCE.iter().any(|row| row.0 == name && row.1 <= layers);
            let mut all = device.extension_properties().iter();
            known && all.any(|own| Ok(own.extension_name.as_str()) == name.to_str())
        };
        let mut bfloat16 = Bfloat16Features::new([false; 3]);
        let mut matrix2 = CooperativeMatrix2Features::new([false; 7]);
        let mut all = vk::PhysicalDeviceFeatures2::default();
        if listed(BFLOAT16) {
            all = all.push_next(&mut bfloat16);
        }
        if listed(COOPERATIVE_MATRIX2) {
            all = all.push_next(&mut matrix2);
        }
        let fns = device.instance().fns();
        // SAFETY: the device has Vulkan 1.1 or newer where the instance has, and the chain holds only structs of
        // extensions that the device lists.
        unsafe { (fns.v1_1.get_physical_device_features2)(device.handle(), &mut all) };
        let base = {
            let features = device.supported_features();
            let extensions = device.supported_extensions();
            extensions.khr_cooperative_matrix
                && features.cooperative_matrix
                && features.vulkan_memory_model
        };
        let [bf16, _, coopmat_bf16] = bfloat16.has.map(|bit| bit != 0);
        let [
            workgroup,
            flexible,
            reductions,
            conversions,
            elements,
            addressing,
            blocks,
        ] = matrix2.has.map(|bit| bit != 0);
        Newer {
            bf16,
            coopmat_bf16: base && bf16 && coopmat_bf16,
            coopmat2: base && workgroup && flexible && addressing && blocks,
            coopmat_functions: base && reductions && conversions && elements,
        }
    }

    /// Names of the extensions to enable.
    pub(super) fn extensions(self) -> impl Iterator<Item = &'static CStr> {
        let bfloat16 = self.bf16.then_some(BFLOAT16);
        let matrix2 = self.has_matrix2().then_some(COOPERATIVE_MATRIX2);
        bfloat16.into_iter().chain(matrix2)
    }

    /// What to chain where the extensions are enabled.
    pub(super) fn structs(self) -> (Bfloat16Features, CooperativeMatrix2Features) {
        let (products, functions) = (self.coopmat2, self.coopmat_functions);
        (
            Bfloat16Features::new([self.bf16, false, self.coopmat_bf16]),
            CooperativeMatrix2Features::new([
                products, products, functions, functions, functions, products, products,
            ]),
        )
    }

    pub(super) fn has_matrix2(self) -> bool {
        self.coopmat2 || self.coopmat_functions
    }

    /// As packs name it.
    pub(super) fn features(self) -> Features {
        let rows = [
            (self.bf16, Features::BF16),
            (self.coopmat_bf16, Features::COOPMAT_BF16),
            (self.coopmat2, Features::COOPMAT2),
            (self.coopmat_functions, Features::COOPMAT_FUNCTIONS),
        ];
        let rows = rows.iter().filter(|row| row.0);
        rows.fold(Features::NONE, |set, row| set.with(row.1))
    }
}

/// Limits of `VK_NV_cooperative_matrix2`, which the device has.
pub(super) fn matrix2_limits(device: &PhysicalDevice) -> [u32; 3] {
    let mut properties = CooperativeMatrix2Properties {
        s_type: CooperativeMatrix2Properties::STRUCTURE_TYPE,
        p_next: ptr::null_mut(),
        limits: [0; 3],
    };
    let mut all = vk::PhysicalDeviceProperties2::default().push_next(&mut properties);
    let fns = device.instance().fns();
    // SAFETY: the device has Vulkan 1.1 or newer, and the extension that the chained struct belongs to.
    unsafe { (fns.v1_1.get_physical_device_properties2)(device.handle(), &mut all) };
    properties.limits
}
