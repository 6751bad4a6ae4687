//! Products of f32 on matrix units: what a plan has, when it is made, and how exact sums of bf16 are.

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

#[test]
fn the_plain_kernel_follows_and_sees_the_flag() {
    let plan = plan([4096; 3]);
    assert_eq!(
        files(&plan),
        [
            "split_pack.comp",
            "split_pack.comp",
            "split.comp",
            "tile.comp"
        ]
    );
    let flag = plan.steps[0].args[2];
    assert_eq!(
        (flag.slot, flag.access, plan.scratch[flag.index as usize]),
        (Slot::SCRATCH, Access::WRITE, 4)
    );
    let seen = [2, 3].map(|step| plan.steps[step].args[3]);
    assert!(seen.iter().all(|arg| arg.index == flag.index));
    assert_eq!(
        seen.map(|arg| arg.access),
        [Access::READ_WRITE, Access::READ]
    );
    assert_eq!(defined(&plan, 3, "GUARDED"), "3");
    // The plain plan, but for the flag.
    let plain = matrices(TILED, h200(), [4096; 3], DType::F32);
    let plain = plain.plan().unwrap();
    let mut last = plan.steps[3].clone();
    last.args.pop();
    last.shader = plain.steps[0].shader;
    assert_eq!(last, plain.steps[0]);
    let mut variant = plan.shaders[plan.steps[3].shader as usize].clone();
    variant.defines.pop();
    variant.bindings -= 1;
    assert_eq!(variant, plain.shaders[0]);
}

#[test]
fn partial_results_of_the_plain_kernel_lie_where_those_of_the_split_one_were() {
    let size = [256, 256, 8192];
    let plan = plan(size);
    let plain = matrices(TILED, h200(), size, DType::F32).plan().unwrap();
    assert_eq!(files(&plain), ["tile.comp", "splits.comp"]);
    let count = plan.steps.len();
    assert_eq!(files(&plan)[count - 2..], ["tile.comp", "splits.comp"]);
    let sums = plan.steps[2].args[2].index;
    for (step, binding) in [(count - 2, "3"), (count - 1, "2")] {
        assert_eq!(defined(&plan, step, "GUARDED"), binding);
        let partial = |arg: &&BufArg| arg.slot == Slot::SCRATCH && arg.index == sums;
        assert_eq!(plan.steps[step].args.iter().filter(partial).count(), 1);
    }
    assert!(plan.scratch[sums as usize] >= plain.scratch[0]);
    assert_eq!(plan.steps[count - 1].args[1], BufArg::output(0));
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
    let plain = all.iter().position(|file| *file == "tile.comp").unwrap();
    assert_eq!(plan.steps[plain].args[0].index, 0);
    assert_eq!(plan.steps[plain].args[0].slot, Slot::SCRATCH);
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
    let [m, n, batches, tiles, columns, steps] = std::array::from_fn(|i| u64::from(words[i]));
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
        assert_eq!(files(&plan).last(), Some(&"tile.comp"));
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

/// The arithmetic of `split.glsl` and `split.comp`, with matrix units as they are measured: products and sums of them are
/// exact but for what is cut off below 2^-25 of the largest product, and below the result's last place.
mod arithmetic {
    fn nearest(x: f32) -> f32 {
        let bits = x.to_bits();
        f32::from_bits((bits + 0x7fff + (bits >> 16 & 1)) & 0xffff_0000)
    }

    fn parts(x: f32) -> [f32; 3] {
        let first = nearest(x);
        let rest = x - first;
        let second = nearest(rest);
        [first, second, rest - second]
    }

    /// A multiple of 2^`unit`, towards zero.
    fn cut(x: f64, unit: i32) -> f64 {
        (x * 2f64.powi(-unit)).trunc() * 2f64.powi(unit)
    }

    fn exponent(x: f64) -> i32 {
        (x.to_bits() >> 52 & 0x7ff) as i32 - 1023
    }

    /// sum + Σ a b, of 16 products.
    fn multiply_add(a: &[f32], b: &[f32], sum: f32) -> f32 {
        let products = a.iter().zip(b).map(|(a, b)| f64::from(*a) * f64::from(*b));
        let all: Vec<f64> = products.chain([f64::from(sum)]).collect();
        let largest = all.iter().fold(0f64, |most, x| most.max(x.abs()));
        if largest == 0.0 {
            return 0.0;
        }
        let unit = exponent(largest) - 25;
        let sum: f64 = all.iter().map(|x| cut(*x, unit)).sum();
        if sum == 0.0 {
            return 0.0;
        }
        cut(sum, exponent(sum) - 23) as f32
    }

    fn split(a: &[f32], b: &[f32]) -> f32 {
        let planes = |x: &[f32]| [0, 1, 2].map(|p| x.iter().map(|x| parts(*x)[p]).collect());
        let mut total = 0f32;
        for (a, b) in a.chunks(16).zip(b.chunks(16)) {
            let (a, b): ([Vec<f32>; 3], [Vec<f32>; 3]) = (planes(a), planes(b));
            let pairs = [[2, 0], [0, 2], [1, 1], [1, 0], [0, 1], [0, 0]];
            let all = pairs.into_iter();
            total += all.fold(0f32, |sum, [p, q]| multiply_add(&a[p], &b[q], sum));
        }
        total
    }

    fn plain(a: &[f32], b: &[f32]) -> f32 {
        a.iter().zip(b).fold(0f32, |sum, (a, b)| a.mul_add(*b, sum))
    }

    /// Σ a b and Σ |a b| with twice the digits of f64: products are exact, and the error of each addition is kept.
    fn exact(a: &[f32], b: &[f32]) -> [f64; 2] {
        let (mut sum, mut left, mut size) = (0f64, 0f64, 0f64);
        for (a, b) in a.iter().zip(b) {
            let product = f64::from(*a) * f64::from(*b);
            let next = sum + product;
            let rounded = next - sum;
            left += (sum - (next - rounded)) + (product - rounded);
            sum = next;
            size += product.abs();
        }
        [sum + left, size]
    }

    struct Random(u64);

    impl Random {
        fn next(&mut self) -> u64 {
            self.0 ^= self.0 << 13;
            self.0 ^= self.0 >> 7;
            self.0 ^= self.0 << 17;
            self.0
        }

        fn signed(&mut self) -> f64 {
            (self.next() >> 11) as f64 / (1u64 << 52) as f64 - 1.0
        }
    }

    #[test]
    fn three_parts_are_the_number() {
        let mut random = Random(7);
        let edges = [
            0u32,
            0x0d80_0000,
            0x5d7f_ffff,
            0x3fff_ffff,
            0x3f80_7fff,
            0x3f80_8000,
        ];
        let edges = edges.map(f32::from_bits);
        let least = 2f32.powi(-100);
        let many = (0..1_000_000).map(|_| f32::from_bits(random.next() as u32));
        let many = many.filter(|x| (least..2f32.powi(60)).contains(&x.abs()));
        for x in many.chain(edges) {
            let all = parts(x);
            assert_eq!(
                all.map(f64::from).iter().sum::<f64>(),
                f64::from(x),
                "{x:e}"
            );
            let are_bf16 = all.iter().all(|part| part.to_bits() & 0xffff == 0);
            let are_normal = all.iter().all(|part| *part == 0.0 || part.is_normal());
            assert!(are_bf16 && are_normal, "{x:e} {all:?}");
            // What bounds the products that are left out.
            assert!(f64::from(all[1].abs()) <= f64::from(x.abs()) / 256.0);
            assert!(f64::from(all[2].abs()) <= f64::from(x.abs()) / 65_536.0);
        }
    }

    #[test]
    fn errors_are_no_larger_than_those_of_multiply_adds() {
        type Of = fn(&mut Random, usize, usize) -> f32;
        let kinds: [(&str, Of); 6] = [
            ("signed", |random, _, _| random.signed() as f32),
            ("positive", |random, _, _| random.signed().abs() as f32),
            ("graded", |random, side, at| {
                let exponent = (at % 120) as i32 - 60;
                (random.signed() * 2f64.powi(if side == 0 { exponent } else { -exponent })) as f32
            }),
            ("rows", |random, side, _| {
                (random.signed() * [2f64.powi(60), 2f64.powi(-55)][side]) as f32
            }),
            ("cancelling", |random, side, at| {
                let sign = if side == 0 && at % 2 == 1 { -1.0 } else { 1.0 };
                (sign * (1.0 + random.signed() * 1e-4)) as f32
            }),
            ("spread", |random, _, _| {
                let exponent = (random.next() % 20) as i32 - 10;
                (random.signed() * 2f64.powi(exponent)) as f32
            }),
        ];
        for (name, value) in kinds {
            for k in [64, 512, 4096] {
                let mut random = Random(0x9e37_79b9_7f4a_7c15);
                let mut squares = [0f64; 2];
                for _ in 0..120 {
                    let [a, b] = [0, 1].map(|side| {
                        let all = (0..k).map(|at| value(&mut random, side, at));
                        all.collect::<Vec<f32>>()
                    });
                    let [truth, size] = exact(&a, &b);
                    let errors =
                        [split(&a, &b), plain(&a, &b)].map(|x| (f64::from(x) - truth).abs() / size);
                    for (sum, error) in squares.iter_mut().zip(errors) {
                        *sum += error * error;
                    }
                }
                let [split, plain] = squares.map(|sum| (sum / 120.0).sqrt());
                println!("{name} {k}: {split:.2e} {plain:.2e}");
                assert!(split <= plain, "{name} {k}: {split:e} {plain:e}");
            }
        }
    }
}
