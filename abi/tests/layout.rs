//! Sizes and offsets of everything that crosses the contract, written down: a change here is a new major version.

use nx_vulkan_abi::{
    Attr, BufArg, DType, DTypeSet, Define, DeviceInfo, Dispatch, Features, InputAs, Plan, Reply,
    Request, ShaderVariant, Source, SpecConst, Status, TensorDesc, pack::Described,
};
use std::mem::{align_of, offset_of, size_of};

/// Fails with every number that differs, so that one run shows the whole layout.
macro_rules! layout {
    ($type:ty, $size:expr, $($field:ident: $offset:expr),+) => {
        let found = (size_of::<$type>(), [$((stringify!($field), offset_of!($type, $field))),+]);
        assert_eq!(found, ($size, [$((stringify!($field), $offset)),+]), stringify!($type));
    };
}

#[test]
#[cfg(target_pointer_width = "64")]
fn value_structs_have_their_published_layout() {
    layout!(Request<'static>, 104, op: 0, inputs: 16, outputs: 32, attrs: 48, device: 64, spare: 72);
    layout!(TensorDesc<'static>, 72, dtype: 0, spare: 4, shape: 8, strides: 24, offset: 40, storage_len: 48, reserved: 56);
    layout!(Attr<'static>, 72, name: 0, kind: 16, spare: 20, ints: 24, floats: 40, text: 56);
    layout!(DeviceInfo<'static>, 128, name: 0, vendor: 16, driver: 20, kind: 24, subgroup_size: 28, shared_bytes: 32, push_bytes: 36, max_invocations: 40, compute_units: 44, max_workgroup_size: 48, max_groups: 60, max_buffer_range: 72, buffer_align: 80, features: 88, spare: 96);
    layout!(Plan, 160, shaders: 0, scratch: 32, params: 64, steps: 96, spare: 128);
    layout!(ShaderVariant, 80, file: 0, defines: 32, bindings: 64, push_bytes: 68, subgroup_size: 72, spare: 76);
    layout!(Define, 64, name: 0, value: 32);
    layout!(Dispatch, 128, shader: 0, groups: 4, spec: 16, args: 48, push: 80, spare: 112);
    layout!(SpecConst, 8, id: 0, value: 4);
    layout!(BufArg, 32, slot: 0, index: 4, offset: 8, len: 16, access: 24, spare: 28);
    layout!(InputAs, 8, index: 0, dtype: 4);
    layout!(Reply, 248, outcome: 0, fault: 4, message: 8, inputs_as: 40, plan: 72, spare: 232);
    layout!(Status, 40, fault: 0, spare: 4, message: 8);
    layout!(Described, 104, status: 0, sources: 40, kernels: 72);
    layout!(Source, 56, name: 0, kind: 16, spare: 20, text: 24, words: 40);
}

#[test]
fn open_integers_are_plain_integers() {
    assert_eq!((size_of::<DType>(), align_of::<DType>()), (4, 4));
    assert_eq!((size_of::<DTypeSet>(), align_of::<DTypeSet>()), (8, 8));
    assert_eq!((size_of::<Features>(), align_of::<Features>()), (8, 8));
}

#[test]
fn codes_are_frozen() {
    let codes: Vec<_> = DType::all().map(|d| (d.name(), d.0)).collect();
    let expected = [
        ("u8", 1),
        ("u16", 2),
        ("u32", 3),
        ("u64", 4),
        ("s8", 5),
        ("s16", 6),
        ("s32", 7),
        ("s64", 8),
        ("f16", 9),
        ("bf16", 10),
        ("f32", 11),
        ("f64", 12),
        ("c64", 13),
        ("c128", 14),
        ("f8", 15),
        ("f8_e4m3fn", 16),
        ("u2", 17),
        ("u4", 18),
        ("s2", 19),
        ("s4", 20),
    ];
    assert_eq!(codes, expected);
    assert_eq!(Features::INT64_ATOMICS.0, 1 << 12);
    assert_eq!(nx_vulkan_abi::ABI_VERSION, "1.0.0");
}
