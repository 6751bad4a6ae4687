//! Products on matrix units: what they are packed as, how they are cut up, and when the general units are left to them.

use super::ask::{PACK, Side, ask, matrices};
use crate::{Table, describe, plan_from};
use nx_vulkan_abi::{BufArg, DType, DeviceInfo, Features, Matrix, Plan, Refusal, Request};
use nx_vulkan_pack_kit::testing::{Ask, Pack, defined, files, gpu, with_fact, without, words};
use std::{collections::BTreeSet, sync::LazyLock};

pub(super) const CORES: &str = "dot_cores";
pub(super) const CORES_BF16: &str = "dot_cores_bf16";

pub(super) fn h200() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "NVIDIA H200".into(),
        vendor: 0x10de,
        push_bytes: 256,
        ..gpu()
    }
}

/// The pack on units so fast that they always pay.
pub(super) const EAGER: Pack = Pack {
    describe,
    plan: eager,
};

fn eager(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let text = include_str!("../../pack.toml");
        let text = text.replace("matrix = 3300.0", "matrix = 99000.0");
        let text = text.replace("matrix = 900.0", "matrix = 99000.0");
        Table::parse(&text).expect("the pack's own table with other numbers")
    });
    plan_from(&TABLE, row, request)
}

fn kernel([a, b, c]: [DType; 3]) -> &'static str {
    let on_bf16 = c == DType::BF16 || [a, b] == [DType::BF16; 2] && c == DType::F32;
    if on_bf16 { CORES_BF16 } else { CORES }
}

/// A product of matrices with operands and result of these types, whose layouts have to be packed.
fn mixed([m, n, k]: [u64; 3], [a, b, c]: [DType; 3]) -> Ask {
    let kernel = kernel([a, b, c]);
    let (a, b) = (
        Side::new(&[m, k], &[], &[1]).of(a).aside(),
        Side::new(&[k, n], &[], &[0]).of(b).aside(),
    );
    let mut ask = ask(kernel, h200(), &a, &b);
    ask.outputs[0].dtype = c;
    Ask { pack: EAGER, ..ask }
}

fn plan(size: [u64; 3], types: [DType; 3]) -> Plan {
    mixed(size, types).plan().expect("matrix units take it")
}

const F16: [DType; 3] = [DType::F16; 3];
const BF16: [DType; 3] = [DType::BF16; 3];

#[test]
fn operands_are_packed_and_then_multiplied() {
    let plan = plan([4096; 3], F16);
    assert_eq!(
        files(&plan),
        ["cores_pack.comp", "cores_pack.comp", "cores.comp"]
    );
    let sides = [0, 1].map(|step| (defined(&plan, step, "SIDE_A"), defined(&plan, step, "RAW")));
    assert_eq!(sides, [("1", "1"), ("0", "1")]);
    // The two pack steps have nothing in common, so that the host puts no barrier between them.
    assert_eq!(plan.steps[0].args[0].index, 0);
    assert_eq!(plan.steps[1].args[0].index, 1);
    assert_ne!(plan.steps[0].args[1].index, plan.steps[1].args[1].index);
    assert_eq!(plan.shaders[2].subgroup_size, 32);
    assert_eq!(words(&plan, 2)[..6], [4096, 4096, 1, 256, 64, 256]);
    // What is packed depends on one operand alone, so that the host may keep it.
    let derived = Vec::from_iter(plan.derived());
    assert_eq!(derived, [Some((0, 0)), Some((1, 1))]);
}

#[test]
fn types_say_what_is_packed() {
    let [bf16, f16, f32, s8, u8] = [DType::BF16, DType::F16, DType::F32, DType::S8, DType::U8];
    let [s16, s32, u32] = [DType::S16, DType::S32, DType::U32];
    for (types, is_bf16) in [
        ([f16, f16, f16], "0"),
        ([f16, f16, f32], "0"),
        ([bf16, bf16, f32], "1"),
        // Operands convert to the result's type first.
        ([f32, bf16, bf16], "1"),
        ([bf16, bf16, f16], "0"),
        ([s8, s8, s32], "0"),
        ([s8, s8, s8], "0"),
        ([u8, u8, u32], "0"),
        ([u8, u8, s16], "0"),
    ] {
        let plan = plan([4096; 3], types);
        assert_eq!(defined(&plan, 2, "ELEMENT_IS_BF16"), is_bf16, "{types:?}");
        let bytes = if types[0].size() == 1 { "1" } else { "0" };
        assert_eq!(defined(&plan, 0, "BYTES"), bytes, "{types:?}");
    }
    for types in [
        // What would lose bits.
        [f32, f32, f32],
        [f32, bf16, f32],
        [f16, bf16, f32],
        [f32, f32, DType::F64],
        [s8, u8, s16],
        [s8, s8, DType::S64],
        [s16, s16, s16],
        [f16, s8, f16],
        [DType::F64, f16, f16],
    ] {
        let reason = mixed([4096; 3], types).reason();
        assert!(reason.contains("matrix units do not take"), "{reason}");
    }
}

#[test]
fn any_layout_is_packed_along_its_fast_axis() {
    let a = Side::new(&[512, 1024], &[], &[1]).of(DType::F16).aside();
    let b = Side::new(&[1024, 512], &[], &[0]).of(DType::F16).aside();
    let (at, bt) = (
        a.clone().strided(&[1, 512], 4),
        b.clone().strided(&[1, 1024], 4),
    );
    for (a, b, along) in [
        (&a, &b, ["1", "0"]),
        (&at, &b, ["0", "0"]),
        (&a, &bt, ["1", "1"]),
        (&at, &bt, ["0", "1"]),
    ] {
        let plan = ask(CORES, h200(), a, b).plan().unwrap();
        assert_eq!([0, 1].map(|step| defined(&plan, step, "ALONG_K")), along);
        assert_eq!([0, 1].map(|step| defined(&plan, step, "WIDE")), ["1"; 2]);
    }
    let odd = a.strided(&[1027, 1], 3).within(1 << 21);
    let plan = ask(CORES, h200(), &odd, &b).plan().unwrap();
    assert_eq!(defined(&plan, 0, "WIDE"), "0");
    assert_eq!(words(&plan, 0)[2..6], [3, 0, 1027, 1]);
}

/// Halves of indices are what pairs of rows are loaded by. Strides are modulo 2^32, where half of a negative one would be
/// something else.
#[test]
fn pairs_of_rows_lie_at_even_indices_whatever_the_strides() {
    let backwards = |extents: [u64; 2], k: usize, dtype| {
        let mut strides = [1, 1];
        strides[k] = -(extents[1 - k] as i64);
        let offset = (extents[k] - 1) * extents[1 - k];
        let side = Side::new(&extents, &[], &[k as i64]);
        side.of(dtype).strided(&strides, offset)
    };
    for [from, to] in [
        [DType::F16; 2],
        [DType::F32, DType::F16],
        [DType::U8, DType::U32],
    ] {
        let [a, b] = [
            backwards([510, 1001], 1, from),
            backwards([1001, 382], 0, from),
        ];
        let mut ask = ask(CORES, h200(), &a, &b);
        ask.outputs[0].dtype = to;
        ask.pack = EAGER;
        let plan = ask.plan().unwrap();
        for (step, rows) in [(0, 510u64), (1, 382)] {
            let read = ["ALONG_K", "WIDE"].map(|name| defined(&plan, step, name));
            assert_eq!(read, ["0", "1"], "{from} {to}");
            let [_, k, offset, _, row_stride, k_stride] = words(&plan, step)[..6] else {
                panic!("there are ten words");
            };
            assert_eq!(
                (k, row_stride, k_stride),
                (1001, 1, (rows as u32).wrapping_neg())
            );
            for l in 0..k {
                for row in (0..rows as u32).step_by(2) {
                    let index = offset
                        .wrapping_add(row)
                        .wrapping_add(l.wrapping_mul(k_stride));
                    let pair = u64::from(1000 - l) * rows / 2 + u64::from(row) / 2;
                    assert_eq!(u64::from(index / 2), pair, "{row} {l}");
                    assert_eq!(index % 2, 0);
                }
            }
        }
    }
}

#[test]
fn operands_that_do_not_collapse_are_gathered_in_their_own_type() {
    let a = Side::new(&[64, 16, 32, 16], &[], &[1, 3]).of(DType::BF16);
    let b = Side::new(&[16, 16, 2048], &[], &[0, 1]).of(DType::F32);
    let mut ask = ask(CORES_BF16, h200(), &a, &b);
    ask.outputs[0].dtype = DType::BF16;
    ask.pack = EAGER;
    let plan = ask.plan().unwrap();
    assert_eq!(files(&plan)[0], "gather.comp");
    assert_eq!(defined(&plan, 0, "T_IS_BF16"), "1");
    assert_eq!(plan.scratch[0], 64 * 16 * 32 * 16 * 2);
    assert_eq!([1, 2].map(|step| defined(&plan, step, "RAW")), ["1", "0"]);
    // What is packed out of a copy depends on that.
    assert_eq!(Vec::from_iter(plan.derived()), [Some((2, 1))]);
}

/// Bytes until the last one that is read: the last subgroup loads one step along k more than it multiplies.
fn reach(plan: &Plan, product: usize) -> [u64; 2] {
    let words = words(plan, product);
    let [m, n, batches, tiles, columns, steps] = std::array::from_fn(|i| u64::from(words[i]));
    let number = |name: &str| defined(plan, product, name).parse::<u64>();
    let rows = number("WARP_M").unwrap();
    let last_row = (m - 1) / rows * rows / 16 + rows / 16;
    let last_block = (n - 1) / 64 + 1;
    [
        (((batches - 1) * tiles + last_row) * steps + 1) * 512,
        (((batches - 1) * columns + last_block) * steps + 1) * 2048,
    ]
}

#[test]
fn packed_operands_hold_what_is_read() {
    let held =
        |plan: &Plan| [0, 1].map(|step| plan.scratch[plan.steps[step].args[1].index as usize]);
    let mut rows = BTreeSet::new();
    for types in [F16, BF16, [DType::S8, DType::S8, DType::S32]] {
        for size in [
            [4096, 4096, 4096],
            [1000, 3001, 2001],
            [129, 4097, 4000],
            [2001, 65, 8192],
            [20, 8192, 4096],
            [1536, 1536, 1536],
        ] {
            let plan = plan(size, types);
            assert_eq!(held(&plan), reach(&plan, 2), "{size:?} {types:?}");
            rows.insert(defined(&plan, 2, "WARP_M").to_owned());
        }
        for (m, n) in (43..200).step_by(13).zip((110..500).step_by(16)) {
            let a = Side::new(&[30, m, 901], &[0], &[2]).of(types[0]);
            let b = Side::new(&[30, 901, n], &[0], &[1]).of(types[1]);
            let mut ask = ask(kernel(types), h200(), &a, &b);
            (ask.outputs[0].dtype, ask.pack) = (types[2], EAGER);
            let plan = ask.plan().unwrap();
            assert_eq!(held(&plan), reach(&plan, 2), "{m} {n} {types:?}");
            rows.insert(defined(&plan, 2, "WARP_M").to_owned());
        }
    }
    assert_eq!(Vec::from_iter(rows), ["32", "48", "64", "80"]);
}

#[test]
fn what_all_batches_have_in_common_is_packed_once() {
    let a = Side::new(&[64, 256, 256], &[0], &[2]).of(DType::F16);
    let b = Side::new(&[64, 256, 256], &[0], &[1])
        .of(DType::F16)
        .aside();
    let one = b.clone().strided(&[0, 256, 1], 4);
    let plans = [&b, &one].map(|b| {
        let mut ask = ask(CORES, h200(), &a, b);
        ask.pack = EAGER;
        ask.plan().unwrap()
    });
    let steps = plans.each_ref().map(|plan| words(plan, 2)[3..5].to_vec());
    assert_eq!(steps, [[16, 4], [16, 0]]);
    // A block of 64 columns has 16 steps of 4 fragments.
    let held = plans.each_ref().map(|plan| plan.scratch[1]);
    assert_eq!(held, [64, 1].map(|batches| (batches * 4 * 16 + 1) * 2048));
    // Workgroups of 64 columns and 8 steps.
    let groups = plans.each_ref().map(|plan| plan.steps[1].groups);
    assert_eq!(groups, [[64 * 4 * 2, 1, 1], [4 * 2, 1, 1]]);
}

#[test]
fn packed_operands_take_an_eighth_of_the_memory_at_most() {
    let whole = plan([4096; 3], F16).scratch.iter().sum::<u64>();
    let having = |bytes: u64| {
        let device = with_fact(h200(), "memory_bytes", &[bytes as i64]);
        mixed([4096; 3], F16).on(device)
    };
    assert!(having(8 * whole + (8 << 20)).plan().is_ok());
    let reason = having(4 * whole).reason();
    let parts = [whole, whole / 2].map(|bytes| bytes.to_string());
    assert!(parts.iter().all(|part| reason.contains(part)), "{reason}");
    // Parts are left out before the whole is declined.
    let deep = |device| mixed([256, 256, 65_536], F16).on(device).plan().unwrap();
    let [split, least] = [deep(h200()), {
        let packed: u64 = deep(h200()).scratch[..2].iter().sum();
        deep(with_fact(h200(), "memory_bytes", &[8 * packed as i64]))
    }];
    assert!(split.scratch.len() == 3 && least.scratch.len() < 3);
}

#[test]
fn partial_results_are_no_more_than_one_binding_covers() {
    const SIZE: [u64; 3] = [512, 512, 4096];
    let on = |device| {
        let ask = mixed(SIZE, F16).on(device);
        Ask { pack: PACK, ..ask }.plan().unwrap()
    };
    let split = on(h200()).scratch;
    let partials = split[2];
    assert!(partials > split[0].max(split[1]), "{split:?}");
    let device = DeviceInfo {
        max_buffer_range: partials - 1,
        ..h200()
    };
    let fewer = on(device);
    assert!(fewer.scratch.get(2).is_none_or(|bytes| *bytes < partials));
}

#[test]
fn deep_products_of_few_tiles_are_split() {
    for types in [F16, BF16] {
        let deep = plan([256, 256, 65_536], types);
        assert_eq!(files(&deep).last(), Some(&"splits.comp"));
        let product = words(&deep, 2);
        let (steps, chunk) = (product[5], product[6]);
        assert!(
            chunk < steps && chunk.is_multiple_of(2),
            "{chunk} of {steps}"
        );
        let splits = u64::from(steps.div_ceil(chunk));
        assert_eq!(deep.scratch[2], splits * 256 * 256 * 4);
        // Parts are summed in f32, whatever the result.
        assert_eq!(defined(&deep, 2, "T_IS_F32"), "1");
        assert_eq!(deep.steps[3].args[1], BufArg::output(0));
    }
    let large = plan([4096; 3], F16);
    assert_eq!(files(&large).len(), 3);
}

#[test]
fn batches_are_slabs() {
    let a = Side::new(&[64, 256, 256], &[0], &[2]).of(DType::BF16);
    let b = Side::new(&[64, 256, 256], &[0], &[1])
        .of(DType::BF16)
        .aside();
    let plan = ask(CORES_BF16, h200(), &a, &b).plan().unwrap();
    let words = words(&plan, 2);
    assert_eq!(words[2], 64);
    let [blocks_m, blocks_n, jobs] = [words[7], words[8], words[9]];
    assert_eq!(jobs, 64 * blocks_m * blocks_n);
}

#[test]
fn what_is_left_to_the_general_units() {
    for size in [[64; 3], [3, 4096, 4096], [4096, 1, 4096]] {
        let small = matrices(CORES, h200(), size, DType::F16).reason();
        assert!(small.contains("too few"), "{small}");
    }
    for (device, part) in [
        (
            without(h200(), Features::COOPMAT_ORDER),
            "order of elements in fragments",
        ),
        (
            DeviceInfo {
                features: Features(!Features::MEMORY_MODEL.0),
                ..h200()
            },
            "lacks memory_model",
        ),
        (
            with_fact(h200(), Matrix::FACT, &[]),
            "lists no product of f16",
        ),
        (
            DeviceInfo {
                subgroup_size: 64,
                min_subgroup_size: 64,
                max_subgroup_size: 64,
                ..h200()
            },
            "subgroups have 64",
        ),
        (
            DeviceInfo {
                max_buffer_range: 1 << 25,
                ..h200()
            },
            "binds at most",
        ),
    ] {
        let reason = matrices(CORES, device, [4096; 3], DType::F16).reason();
        assert!(reason.contains(part), "{reason}");
    }
}

#[test]
fn nothing_is_multiplied_where_an_extent_is_zero() {
    let none = mixed([0, 64, 64], F16).plan().unwrap();
    assert!(none.steps.is_empty());
    let zeros = mixed([64, 64, 0], F16).plan().unwrap();
    assert_eq!(files(&zeros), ["zeros.comp"]);
}
