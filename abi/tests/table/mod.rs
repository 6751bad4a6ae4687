//! Sizes and offsets of everything that crosses the contract, written down: a change here is a new major version.

use nx_vulkan_abi::{
    Attr, BufArg, Define, DeviceInfo, Dispatch, HostApi, InputAs, Kernel, Pack, Plan, Reply,
    Request, ShaderVariant, Source, SpecConst, Status, TensorDesc, pack::Described,
};
use std::mem::{align_of, offset_of, size_of};

/// A type as it is laid out, or as it is written down.
#[derive(Debug, PartialEq)]
pub(crate) struct Layout {
    pub(crate) name: &'static str,
    pub(crate) size: usize,
    pub(crate) align: usize,
    /// Name and offset of each field.
    pub(crate) fields: Vec<(&'static str, usize)>,
}

/// Each type as this compiler lays it out, and as it is written down for 64-bit targets.
macro_rules! layouts {
    ($($type:ident, $size:expr, $align:expr, [$($field:ident: $offset:expr),+];)+) => {
        pub(crate) fn layouts() -> Vec<(Layout, Layout)> {
            vec![$((
                Layout {
                    name: stringify!($type),
                    size: size_of::<$type>(),
                    align: align_of::<$type>(),
                    fields: vec![$((stringify!($field), offset_of!($type, $field))),+],
                },
                Layout {
                    name: stringify!($type),
                    size: $size,
                    align: $align,
                    fields: vec![$((stringify!($field), $offset)),+],
                },
            )),+]
        }
    };
}

layouts! {
    Pack, 56, 8, [id: 0, version: 16, init: 32, describe: 40, retire: 48];
    HostApi, 16, 8, [abi_minor: 0, log: 8];
    Kernel, 88, 8, [id: 0, op: 16, row: 32, inputs: 40, outputs: 48, needs: 56, numerics: 64, rank: 68, plan: 72, offers: 80];
    Described, 136, 8, [status: 0, sources: 40, kernels: 72, spare: 104];
    Source, 72, 8, [name: 0, kind: 16, spare: 20, text: 24, words: 40, reserved: 56];
    Status, 40, 8, [fault: 0, spare: 4, message: 8];
    Request, 104, 8, [op: 0, inputs: 16, outputs: 32, attrs: 48, device: 64, spare: 72];
    TensorDesc, 72, 8, [dtype: 0, spare: 4, shape: 8, strides: 24, offset: 40, storage_len: 48, reserved: 56];
    Attr, 72, 8, [name: 0, kind: 16, spare: 20, ints: 24, floats: 40, text: 56];
    DeviceInfo, 160, 8, [name: 0, vendor: 16, device: 20, driver: 24, api: 28, kind: 32, subgroup_size: 36, min_subgroup_size: 40, max_subgroup_size: 44, shared_bytes: 48, push_bytes: 52, max_invocations: 56, compute_units: 60, max_workgroup_size: 64, max_groups: 76, max_buffer_range: 88, buffer_align: 96, features: 104, facts: 112, spare: 128];
    Reply, 248, 8, [outcome: 0, fault: 4, message: 8, inputs_as: 40, plan: 72, spare: 232];
    InputAs, 16, 4, [index: 0, dtype: 4, spare: 8];
    Plan, 160, 8, [shaders: 0, scratch: 32, params: 64, steps: 96, spare: 128];
    ShaderVariant, 80, 8, [file: 0, defines: 32, bindings: 64, push_bytes: 68, subgroup_size: 72, spare: 76];
    Define, 64, 8, [name: 0, value: 32];
    Dispatch, 128, 8, [shader: 0, groups: 4, spec: 16, args: 48, push: 80, spare: 112];
    SpecConst, 8, 4, [id: 0, value: 4];
    BufArg, 32, 8, [slot: 0, index: 4, offset: 8, len: 16, access: 24, spare: 28];
}
