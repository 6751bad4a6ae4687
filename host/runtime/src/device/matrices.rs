//! The products that cooperative matrices of a device do, as its driver lists them.

use ash::vk::{self, Bool32, ComponentTypeKHR, ScopeKHR, StructureType};
use nx_vulkan_abi::{DType, Features, Matrix, MatrixScope};
use std::{ffi::c_void, ptr};
use vulkano::{VulkanObject as _, device::physical::PhysicalDevice};

/// The most rows of a list that are told to packs.
const MAX_ROWS: usize = 1024;

/// `VkCooperativeMatrixFlexibleDimensionsPropertiesNV`
#[repr(C)]
#[derive(Debug, Clone, Copy)]
struct Flexible {
    s_type: StructureType,
    p_next: *mut c_void,
    /// What m, n and k have to be multiples of.
    extents: [u32; 3],
    /// Of a, b, c and the result.
    types: [ComponentTypeKHR; 4],
    saturates: Bool32,
    scope: ScopeKHR,
    invocations: u32,
}

type ListFlexible =
    unsafe extern "system" fn(vk::PhysicalDevice, *mut u32, *mut Flexible) -> vk::Result;

/// What `VK_KHR_cooperative_matrix` does with these features, as far as packs have names for its types.
pub(super) fn listed(device: &PhysicalDevice, features: Features) -> Vec<Matrix> {
    if !features.has(Features::COOPMAT) {
        return Vec::new();
    }
    let list = &device.instance().fns().khr_cooperative_matrix;
    let list = list.get_physical_device_cooperative_matrix_properties_khr;
    let rows = all(
        vk::CooperativeMatrixPropertiesKHR::default(),
        |count, rows| {
            // SAFETY: the device has the extension, and `rows` is null or points to `count` tagged structs.
            unsafe { list(device.handle(), count, rows) }
        },
    );
    let matrices = rows.iter().filter_map(|row| {
        matrix(
            [row.m_size, row.n_size, row.k_size],
            [row.a_type, row.b_type, row.c_type, row.result_type],
            (row.saturating_accumulation, row.scope, 0),
            features,
        )
    });
    matrices.collect()
}

/// What `VK_NV_cooperative_matrix2` does, with the least extents.
pub(super) fn flexible(device: &PhysicalDevice, features: Features) -> Vec<Matrix> {
    if !features.has(Features::COOPMAT2) {
        return Vec::new();
    }
    let (instance, name) = (
        device.instance(),
        c"vkGetPhysicalDeviceCooperativeMatrixFlexibleDimensionsPropertiesNV",
    );
    // SAFETY: the instance is alive, and the name ends with a zero.
    let found = unsafe {
        let library = instance.library();
        library.get_instance_proc_addr(instance.handle(), name.as_ptr())
    };
    let Some(found) = found else {
        return Vec::new();
    };
    // SAFETY: this is the type of the function of that name.
    let list: ListFlexible = unsafe { std::mem::transmute(found) };
    let empty = Flexible {
        s_type: StructureType::from_raw(1_000_593_001),
        p_next: ptr::null_mut(),
        extents: [0; 3],
        types: [ComponentTypeKHR::default(); 4],
        saturates: 0,
        scope: ScopeKHR::default(),
        invocations: 0,
    };
    let rows = all(empty, |count, rows| {
        // SAFETY: the device has the extension, and `rows` is null or points to `count` tagged structs.
        unsafe { list(device.handle(), count, rows) }
    });
    let matrices = rows.iter().filter_map(|row| {
        let how = (row.saturates, row.scope, row.invocations);
        matrix(row.extents, row.types, how, features)
    });
    matrices.collect()
}

/// What one of Vulkan's functions lists; nothing where it fails.
fn all<T: Copy>(empty: T, list: impl Fn(*mut u32, *mut T) -> vk::Result) -> Vec<T> {
    let mut count = 0;
    if list(&mut count, ptr::null_mut()) != vk::Result::SUCCESS {
        return Vec::new();
    }
    count = count.min(MAX_ROWS as u32);
    let mut rows = vec![empty; count as usize];
    match list(&mut count, rows.as_mut_ptr()) {
        vk::Result::SUCCESS | vk::Result::INCOMPLETE => {
            rows.truncate(count as usize);
            rows
        }
        _ => Vec::new(),
    }
}

/// A row, where everything it names is known and enabled.
fn matrix(
    extents: [u32; 3],
    [a, b, c, result]: [ComponentTypeKHR; 4],
    (saturates, scope, invocations): (Bool32, ScopeKHR, u32),
    features: Features,
) -> Option<Matrix> {
    let named = |component| {
        let (dtype, needs) = element(component)?;
        features.has(needs).then_some(dtype)
    };
    let scope = match scope {
        ScopeKHR::SUBGROUP => MatrixScope::SUBGROUP,
        ScopeKHR::WORKGROUP => MatrixScope::WORKGROUP,
        _ => return None,
    };
    if extents
        .iter()
        .any(|extent| *extent == 0 || *extent > 1 << 16)
    {
        return None;
    }
    Some(Matrix {
        extents,
        a: named(a)?,
        b: named(b)?,
        c: named(c)?,
        result: named(result)?,
        scope,
        saturates: saturates != 0,
        invocations,
    })
}

/// `VK_COMPONENT_TYPE_BFLOAT16_KHR`
const BFLOAT16: ComponentTypeKHR = ComponentTypeKHR::from_raw(1_000_141_000);

fn element(component: ComponentTypeKHR) -> Option<(DType, Features)> {
    use ComponentTypeKHR as C;
    Some(match component {
        C::FLOAT16 => (DType::F16, Features::FP16),
        C::FLOAT32 => (DType::F32, Features::NONE),
        C::FLOAT64 => (DType::F64, Features::FP64),
        C::SINT8 => (DType::S8, Features::INT8),
        C::SINT16 => (DType::S16, Features::INT16),
        C::SINT32 => (DType::S32, Features::NONE),
        C::SINT64 => (DType::S64, Features::INT64),
        C::UINT8 => (DType::U8, Features::INT8),
        C::UINT16 => (DType::U16, Features::INT16),
        C::UINT32 => (DType::U32, Features::NONE),
        C::UINT64 => (DType::U64, Features::INT64),
        BFLOAT16 => (DType::BF16, Features::COOPMAT_BF16),
        _ => return None,
    })
}

/// Names of a product, for people: `16x16x16 f16 f16 f32 -> f32 subgroup`.
pub(super) fn text(matrix: &Matrix) -> String {
    let [m, n, k] = matrix.extents;
    let [a, b, c, result] = [matrix.a, matrix.b, matrix.c, matrix.result].map(DType::name);
    let scope = match matrix.scope {
        MatrixScope::WORKGROUP => format!("workgroup of {}", matrix.invocations),
        _ => "subgroup".to_owned(),
    };
    let saturates = if matrix.saturates { " saturating" } else { "" };
    format!("{m}x{n}x{k} {a} {b} {c} -> {result} {scope}{saturates}")
}

/// Both lists, for people.
pub(super) fn texts(device: &PhysicalDevice, features: Features) -> Vec<String> {
    let mut texts: Vec<String> = listed(device, features).iter().map(text).collect();
    let flexible = flexible(device, features);
    texts.extend(flexible.iter().map(|m| format!("multiples of {}", text(m))));
    texts
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_with_what_is_unknown_or_not_enabled_are_left_out() {
        use ComponentTypeKHR as C;
        let all = Features(u64::MAX);
        let f16 = [C::FLOAT16, C::FLOAT16, C::FLOAT32, C::FLOAT32];
        let how = (0, ScopeKHR::SUBGROUP, 0);
        let found = matrix([16, 8, 16], f16, how, all).unwrap();
        assert_eq!(text(&found), "16x8x16 f16 f16 f32 -> f32 subgroup");
        assert_eq!(Matrix::from_ints(&found.to_ints()), Some(found));
        let bf16 = [BFLOAT16, BFLOAT16, C::FLOAT32, C::FLOAT32];
        let without = Features(!Features::COOPMAT_BF16.0);
        assert_eq!(matrix([16; 3], bf16, how, all).unwrap().a, DType::BF16);
        assert_eq!(matrix([16; 3], bf16, how, without), None);
        assert_eq!(matrix([16, 0, 16], f16, how, all), None);
        assert_eq!(matrix([u32::MAX; 3], f16, how, all), None);
        assert_eq!(matrix([16; 3], f16, (0, ScopeKHR::DEVICE, 0), all), None);
        assert_eq!(matrix([16; 3], [C::from_raw(77); 4], how, all), None);
        let shared = matrix([16, 16, 32], f16, (1, ScopeKHR::WORKGROUP, 256), all).unwrap();
        let told = "16x16x32 f16 f16 f32 -> f32 workgroup of 256 saturating";
        assert_eq!(text(&shared), told);
    }

    #[test]
    fn a_list_that_fails_or_grows_while_it_is_read_is_no_trouble() {
        assert!(all(0u8, |_, _| vk::Result::ERROR_OUT_OF_HOST_MEMORY).is_empty());
        let grows = all(7u8, |count, rows| {
            // SAFETY: `all` passes a number, and room for as many bytes as it says.
            unsafe {
                if rows.is_null() {
                    *count = 2;
                    return vk::Result::SUCCESS;
                }
                assert_eq!(*count, 2);
                rows.write(8);
            }
            vk::Result::INCOMPLETE
        });
        assert_eq!(grows, [8, 7]);
        let endless = all(7u8, |count, _| {
            // SAFETY: as above.
            unsafe { *count = (*count).max(1).saturating_mul(u32::MAX) };
            vk::Result::SUCCESS
        });
        assert_eq!(endless.len(), MAX_ROWS);
    }
}
