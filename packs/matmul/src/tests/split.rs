//! Products of f32 on matrix units: what a plan has, and when it is made.

use super::ask::{Side, ask, matrices};
use crate::{Table, describe, plan_from};
use nx_vulkan_abi::{
    Access, BufArg, DType, DeviceInfo, Features, Numerics, Offers, Plan, Refusal, Request, Slot,
};
use nx_vulkan_pack_kit::testing::{Ask, Pack, defined, files, gpu, with_fact, without, words};
use std::sync::LazyLock;

const SPLIT: &str = "dot_split";
const RELAXED: &str = "dot_split_relaxed";
const TILED: &str = "dot_tiled";

fn h200() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "NVIDIA H200".into(),
        vendor: 0x10de,
        push_bytes: 256,
        ..gpu()
    }
}

/// The pack on units so fast that they always pay.
const EAGER: Pack = Pack {
    describe,
    plan: eager,
};

fn eager(row: u32, request: &Request<'_>) -> Result<Plan, Refusal> {
    static TABLE: LazyLock<Table> = LazyLock::new(|| {
        let text = include_str!("../../pack.toml");
        let text = text.replace("plain = 290.0", "plain = 1.0");
        Table::parse(&text).expect("the pack's own table with another number")
    });
    plan_from(&TABLE, row, request)
}

fn mixed(kernel: &str, [m, n, k]: [u64; 3], [a, b]: [DType; 2]) -> Ask {
    let (a, b) = (
        Side::new(&[m, k], &[], &[1]).of(a),
        Side::new(&[k, n], &[], &[0]).of(b),
    );
    let mut ask = ask(kernel, h200(), &a, &b);
    ask.outputs[0].dtype = DType::F32;
    Ask { pack: EAGER, ..ask }
}

fn plan(size: [u64; 3]) -> Plan {
    let ask = mixed(SPLIT, size, [DType::F32; 2]);
    ask.plan().expect("matrix units take it")
}

/// What its parts may not stand for a product reads from the operands themselves.
#[test]
fn products_read_their_operands_once_more() {
    let plan = plan([4096; 3]);
    assert_eq!(
        files(&plan),
        ["split_pack.comp", "split_pack.comp", "split.comp"]
    );
    let [a, b, product] = [0, 1, 2].map(|step| &plan.steps[step]);
    let read = |arg: BufArg| BufArg {
        access: Access::READ,
        ..arg
    };
    assert_eq!(product.args[..2], [a, b].map(|step| read(step.args[1])));
    assert_eq!(product.args[2], BufArg::output(0));
    assert_eq!(product.args[3..], [a, b].map(|step| step.args[0]));
    // The extent of k, and how both lie, as for those who pack them.
    assert_eq!(words(&plan, 2)[5], 4096);
    let lie = |step: usize| words(&plan, step)[2..6].to_vec();
    assert_eq!(words(&plan, 2)[10..], [lie(0), lie(1)].concat());
    let told = ["A_ALONG_K", "A_WIDE", "B_ALONG_K", "B_WIDE"].map(|name| defined(&plan, 2, name));
    assert_eq!(told, ["1", "1", "0", "1"]);
    // What is packed depends on one operand alone, so that the host may keep it.
    let derived = Vec::from_iter(plan.derived());
    assert_eq!(derived, [Some((0, 0)), Some((1, 1))]);
}

#[test]
fn partial_results_are_added_up_once() {
    let plan = plan([256, 256, 8192]);
    let all = files(&plan);
    assert_eq!(all[all.len() - 2..], ["split.comp", "splits.comp"]);
    let sums = plan.steps[2].args[2];
    assert_eq!(
        (sums.slot, plan.steps[3].args[0].index),
        (Slot::SCRATCH, sums.index)
    );
    assert_eq!(plan.steps[3].args[1], BufArg::output(0));
}

#[test]
fn gathered_operands_are_gathered_once() {
    let a = Side::new(&[64, 16, 32, 16], &[], &[1, 3]);
    let b = Side::new(&[16, 16, 2048], &[], &[0, 1]);
    let mut ask = ask(SPLIT, h200(), &a, &b);
    ask.pack = EAGER;
    let plan = ask.plan().unwrap();
    let all = files(&plan);
    let gathers = all.iter().filter(|file| **file == "gather.comp").count();
    assert_eq!((all[0], gathers), ("gather.comp", 1));
    let product = all.iter().position(|file| *file == "split.comp").unwrap();
    let a = plan.steps[product].args[3];
    assert_eq!((a.slot, a.index), (Slot::SCRATCH, 0));
}

#[test]
fn types_say_how_many_parts_there_are() {
    let [bf16, f16, f32] = [DType::BF16, DType::F16, DType::F32];
    for (types, parts) in [
        ([f32, f32], ["3", "3"]),
        ([f32, bf16], ["3", "1"]),
        ([f16, f32], ["2", "3"]),
    ] {
        let plan = mixed(SPLIT, [2048; 3], types).plan().unwrap();
        assert_eq!([0, 1].map(|step| defined(&plan, step, "PARTS")), parts);
        let product = ["PARTS_A", "PARTS_B"].map(|name| defined(&plan, 2, name));
        assert_eq!(product, parts);
    }
    for types in [[bf16, bf16], [f16, f16], [f32, DType::F64]] {
        let reason = mixed(SPLIT, [2048; 3], types).plan();
        assert!(reason.is_err(), "{types:?}");
    }
}

/// Bytes until the last one that is read: the last subgroup loads one step along k more than it multiplies.
fn reach(plan: &Plan) -> [u64; 2] {
    let words = words(plan, 2);
    let [m, n, batches, tiles, columns, k] = std::array::from_fn(|i| u64::from(words[i]));
    let steps = k.div_ceil(32) * 2;
    let number = |name: &str| defined(plan, 2, name).parse::<u64>().unwrap();
    let rows = number("WARP_M");
    let last_row = (m - 1) / rows * rows / 16 + rows / 16;
    let last_block = (n - 1) / 64 + 1;
    [
        (((batches - 1) * tiles + last_row) * steps + 1) * 512 * number("PARTS_A"),
        (((batches - 1) * columns + last_block) * steps + 1) * 2048 * number("PARTS_B"),
    ]
}

#[test]
fn packed_operands_hold_what_is_read() {
    for (m, n) in (17..4000).step_by(411).zip((17..5000).step_by(377)) {
        for types in [[DType::F32; 2], [DType::F16, DType::F32]] {
            let a = Side::new(&[6, m, 900], &[0], &[2]).of(types[0]);
            let b = Side::new(&[6, 900, n], &[0], &[1]).of(types[1]);
            let mut ask = ask(SPLIT, h200(), &a, &b);
            (ask.outputs[0].dtype, ask.pack) = (DType::F32, EAGER);
            let plan = match ask.plan() {
                Err(Refusal::Decline(why)) if why.contains("too few") => continue,
                plan => plan.unwrap(),
            };
            let held = [0, 1].map(|step| plan.scratch[plan.steps[step].args[1].index as usize]);
            let read = reach(&plan);
            assert!(
                held.iter().zip(read).all(|(held, read)| *held >= read),
                "{m} {n}"
            );
            assert_eq!(held[1], read[1], "{m} {n}");
        }
    }
}

/// Errors are as the root of the roundings in a part over the number of parts, and there is one rounding for 16 elements.
#[test]
fn parts_are_no_longer_than_twice_those_of_the_plain_kernel() {
    for size in [
        [512, 512, 512],
        [256, 256, 65_536],
        [1024; 3],
        [512, 2048, 8192],
        [8192; 3],
    ] {
        let plan = plan(size);
        let plain = matrices(TILED, h200(), size, DType::F32).plan().unwrap();
        let (part, of_plain) = (16 * words(&plan, 2)[6], words(&plain, 0)[17]);
        assert!(part <= 2 * of_plain, "{part} {of_plain} {size:?}");
    }
}

/// One that is asked where the registry allows it has two parts at most and adds up all of k on the units.
#[test]
fn relaxed_products_have_fewer_parts() {
    for (types, parts) in [
        ([DType::F32; 2], ["2", "2"]),
        ([DType::F32, DType::BF16], ["2", "1"]),
    ] {
        let ask = mixed(RELAXED, [2048; 3], types);
        let plan = ask.plan().unwrap();
        assert_eq!([0, 1].map(|step| defined(&plan, step, "PARTS")), parts);
        assert_eq!(defined(&plan, 2, "ORDERS"), "2");
        assert_eq!(files(&plan).last(), Some(&"split.comp"));
    }
    let rows = Table::get().unwrap().rows().unwrap();
    let relaxed = rows.iter().filter(|row| row.numerics == Numerics::RELAXED);
    assert_eq!(Vec::from_iter(relaxed.map(|row| &*row.id)), [RELAXED]);
}

/// A request that allows it has two parts of the kernel that else takes three, whose sums are still rounded.
#[test]
fn requests_may_allow_fewer_parts() {
    let of = |word| {
        mixed(SPLIT, [2048; 3], [DType::F32; 2])
            .text("precision", word)
            .plan()
    };
    let facts = |plan: &Plan| {
        let products = ["PARTS_A", "PARTS_B", "ORDERS", "ROUNDS"]
            .map(|name| defined(plan, 2, name).to_owned());
        products.join(" ")
    };
    assert_eq!(facts(&of("high").unwrap()), "2 2 2 1");
    for word in ["default", "highest", "strange"] {
        let plan = of(word).unwrap();
        assert_eq!(facts(&plan), "3 3 3 1");
        assert_eq!(plan, self::plan([2048; 3]));
    }
    let relaxed = mixed(RELAXED, [2048; 3], [DType::F32; 2]).plan().unwrap();
    assert_eq!(facts(&relaxed), "2 2 2 0");
    let small = mixed(SPLIT, [64; 3], [DType::F32; 2]).text("precision", "high");
    assert!(small.reason().contains("too few"));
    let rows = Table::get().unwrap().rows().unwrap();
    let offers = rows.iter().filter(|row| row.offers.has(Offers::PRECISION));
    assert_eq!(Vec::from_iter(offers.map(|row| &*row.id)), [SPLIT]);
}

#[test]
fn what_is_left_to_the_plain_kernel() {
    let small = matrices(SPLIT, h200(), [64; 3], DType::F32).reason();
    assert!(small.contains("too few"), "{small}");
    let slow = matrices(SPLIT, h200(), [128; 3], DType::F32).reason();
    assert!(slow.contains("the general ones"), "{slow}");
    let unknown = without(h200(), Features::COOPMAT_ORDER);
    let other = matrices(SPLIT, unknown, [4096; 3], DType::F32).reason();
    assert!(other.contains("order of elements in fragments"), "{other}");
    let little = with_fact(h200(), "memory_bytes", &[1 << 30]);
    let large = matrices(SPLIT, little, [4096; 3], DType::F32).reason();
    assert!(
        large.contains("an eighth of the device's memory"),
        "{large}"
    );
    let none = mixed(SPLIT, [64, 64, 0], [DType::F32; 2]).plan().unwrap();
    assert_eq!(files(&none), ["zeros.comp"]);
}
