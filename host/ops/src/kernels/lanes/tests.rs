//! The functions of f32 numbers, beside the exact ones rounded once.

use super::{Cell, Each, Lane, Map, Short, Zip, cast, is_fused, narrow, pow, select, widen};
use crate::contracts::find;
use crate::kernels::{View, run, run_fast};
use crate::op::Op;
use crate::view::Out;
use nx_vulkan_abi::DType;

/// The ops of one f32, with their loops.
fn maps() -> Vec<(&'static str, Map)> {
    let of = |op: &Op| match op.lane {
        Some(Lane::Elements(Some(Each::Map(f)), _)) => Some((op.name, f)),
        _ => None,
    };
    let maps: Vec<_> = crate::ops().filter_map(of).collect();
    assert_eq!(maps.len(), 29);
    maps
}

/// The ops of two f32, with their loops.
fn zips() -> Vec<(&'static str, Zip)> {
    let of = |op: &Op| match op.lane {
        Some(Lane::Elements(Some(Each::Zip(f)), _)) => Some((op.name, f)),
        _ => None,
    };
    let zips: Vec<_> = crate::ops().filter_map(of).collect();
    assert_eq!(zips.len(), 8);
    zips
}

/// What the kernel gives that others are compared with.
fn exact(op: &str, operands: &[&[Cell]]) -> Vec<Cell> {
    let shape = [operands[0].len() as u64];
    let views: Vec<View> = operands
        .iter()
        .map(|cells| View {
            dtype: DType::F32,
            shape: &shape,
            strides: &[1],
            offset: 0,
            bytes: cells.as_flattened(),
        })
        .collect();
    let mut cells = vec![Cell::default(); operands[0].len()];
    let mut out = [Out {
        dtype: DType::F32,
        shape: &shape,
        bytes: cells.as_flattened_mut(),
    }];
    run(op, &views, &mut out, &[]).unwrap();
    cells
}

/// Units in the last place between two numbers; nothing between NaN and NaN, and between zeros of one sign.
fn apart(x: Cell, y: Cell) -> u64 {
    let (x, y) = (f32::from_ne_bytes(x), f32::from_ne_bytes(y));
    let ordered = |x: f32| {
        let size = i64::from(x.abs().to_bits());
        if x.is_sign_negative() {
            -1 - size
        } else {
            size
        }
    };
    match (x.is_nan(), y.is_nan()) {
        (true, true) => 0,
        (false, false) => ordered(x).abs_diff(ordered(y)),
        _ => u64::MAX,
    }
}

fn agree(op: &str, operands: &[&[Cell]], got: &[Cell]) -> u64 {
    let allowed = find(op).unwrap().bound.ulp.0;
    let zeros_equal = find(op).unwrap().bound.zeros_equal;
    let mut worst = 0;
    for (i, (got, want)) in got.iter().zip(exact(op, operands)).enumerate() {
        let zeros = zeros_equal && [*got, want].map(f32::from_ne_bytes) == [0.0; 2];
        let apart = if zeros { 0 } else { apart(*got, want) };
        let shown = || operands.iter().map(|cells| f32::from_ne_bytes(cells[i]));
        let (got, want) = (f32::from_ne_bytes(*got), f32::from_ne_bytes(want));
        assert!(
            apart <= allowed,
            "{op} of {:?}: {got:e} for {want:e}",
            Vec::from_iter(shown())
        );
        worst = worst.max(apart);
    }
    worst
}

/// Numbers of all sizes and signs, some of each.
fn numbers(step: usize) -> Vec<Cell> {
    let special = [
        0,
        1,
        0x7f_ffff,
        0x80_0000,
        0x3f80_0000,
        0x3f80_0001,
        0x7f7f_ffff,
        0x7f80_0000,
        0x7fc0_0000,
    ];
    let special = special.into_iter().flat_map(|bits| [bits, bits | 1 << 31]);
    let spread = (0..=u32::MAX).step_by(step);
    special.chain(spread).map(u32::to_ne_bytes).collect()
}

#[test]
fn functions_of_one_operand_are_within_their_bounds() {
    let from = numbers(4099);
    // Without fused multiplication these functions are not offered.
    if !is_fused() {
        return;
    }
    for (op, f) in maps() {
        let mut to = vec![Cell::default(); from.len()];
        f(&from, &mut to);
        let worst = agree(op, &[&from], &to);
        let stated = if op == "sigmoid" { 2 } else { 1 };
        assert!(worst <= stated, "{op}: {worst} ulp");
    }
}

/// What the kernel gives that others are compared with, of operands of any type.
fn plain(op: &str, operands: &[(DType, &[u8])], to: DType) -> Vec<Cell> {
    let of = |(dtype, bytes): &(DType, &[u8])| bytes.len() as u64 / dtype.size();
    let shape = [operands.iter().map(of).max().unwrap()];
    let views = operands.iter().map(|&(dtype, bytes)| View {
        dtype,
        shape: &shape,
        strides: &[1],
        offset: 0,
        bytes,
    });
    let mut cells = vec![Cell::default(); shape[0] as usize];
    let mut out = [Out {
        dtype: to,
        shape: &shape,
        bytes: cells.as_flattened_mut(),
    }];
    run(op, &views.collect::<Vec<_>>(), &mut out, &[]).unwrap();
    cells
}

#[test]
fn casts_and_choices_are_those_of_the_other_kernels() {
    let cells = numbers(4099);
    let mut casts = 0;
    for (from, to) in [DType::F32, DType::S32, DType::U32]
        .into_iter()
        .flat_map(|from| [DType::F32, DType::S32, DType::U32].map(|to| (from, to)))
    {
        let Some(f) = cast::find(from, to) else {
            continue;
        };
        let mut got = vec![Cell::default(); cells.len()];
        f(cells.as_flattened(), got.as_flattened_mut());
        let want = plain("as_type", &[(from, cells.as_flattened())], to);
        assert!(got == want, "{from} to {to}");
        casts += 1;
    }
    assert_eq!(casts, 7);
    let pred: Vec<u8> = (0..cells.len()).map(|i| (i % 3 * 100) as u8).collect();
    let other: Vec<Cell> = cells.iter().rev().copied().collect();
    let mut got = vec![Cell::default(); cells.len()];
    select(pred.as_chunks().0, &cells, &other, &mut got);
    let operands = [
        (DType::U8, &pred[..]),
        (DType::F32, cells.as_flattened()),
        (DType::F32, other.as_flattened()),
    ];
    assert!(got == plain("select", &operands, DType::F32));
}

#[test]
fn functions_of_two_operands_are_within_their_bounds() {
    let few = numbers(40_000_003);
    // Where powers are neither 0 nor infinite.
    let near = (-30..30).map(|n| (n as f32 * 0.37).to_ne_bytes());
    let whole = (-9..9).map(|n| (n as f32).to_ne_bytes());
    let few: Vec<Cell> = few.into_iter().chain(near).chain(whole).collect();
    let a: Vec<Cell> = few.iter().flat_map(|x| vec![*x; few.len()]).collect();
    let b: Vec<Cell> = few.iter().flat_map(|_| few.clone()).collect();
    // Without fused multiplication these functions are not offered.
    if !is_fused() {
        return;
    }
    for (op, f) in zips() {
        let mut to = vec![Cell::default(); a.len()];
        f(&a, &b, &mut to);
        agree(op, &[&a, &b], &to);
    }
}

#[test]
fn frequent_powers_are_rounded_once() {
    let x = numbers(4099);
    // Without fused multiplication this function is not offered.
    if !is_fused() {
        return;
    }
    for exponent in [2.0f32, 3.0, 0.5, -1.0] {
        let exponents = vec![exponent.to_ne_bytes(); x.len()];
        let mut to = vec![Cell::default(); x.len()];
        pow(&x, &exponents, &mut to);
        assert_eq!(agree("pow", &[&x, &exponents], &to), 0, "{exponent}");
    }
}

#[test]
#[ignore = "all 2^32 numbers take minutes; the test above takes one in 4099"]
fn functions_of_one_operand_are_within_their_bounds_everywhere() {
    // Without fused multiplication these functions are not offered.
    if !is_fused() {
        return;
    }
    for (op, f) in maps() {
        let worst = (0..1u32 << 12).map(|part| {
            let from: Vec<Cell> = (0..1u32 << 20)
                .map(|i| (part << 20 | i).to_ne_bytes())
                .collect();
            let mut to = vec![Cell::default(); from.len()];
            f(&from, &mut to);
            agree(op, &[&from], &to)
        });
        println!("{op}: {} ulp", worst.max().unwrap());
    }
}

#[test]
fn floats_of_16_bits_become_f32_and_are_rounded_as_one_by_one() {
    use half::{bf16, f16};
    let shorts: Vec<Short> = (0..=u16::MAX).map(u16::to_ne_bytes).collect();
    let cells = numbers(4099);
    for dtype in [DType::F16, DType::BF16] {
        let mut wide = vec![Cell::default(); shorts.len()];
        widen(dtype, &shorts, &mut wide);
        let mut narrowed = vec![Short::default(); cells.len()];
        narrow(dtype, &cells, &mut narrowed);
        let is_same = |x: f32, y: f32| x.to_bits() == y.to_bits() || x.is_nan() && y.is_nan();
        for (x, got) in shorts.iter().zip(wide) {
            let want = match dtype {
                DType::F16 => f16::from_ne_bytes(*x).to_f32(),
                _ => bf16::from_ne_bytes(*x).to_f32(),
            };
            assert_eq!(u32::from_ne_bytes(got), want.to_bits(), "{dtype} {x:?}");
        }
        for (x, got) in cells.iter().zip(narrowed) {
            let x = f32::from_ne_bytes(*x);
            let (got, want) = match dtype {
                DType::F16 => (f16::from_ne_bytes(got).to_f32(), f16::from_f32(x).to_f32()),
                _ => (
                    bf16::from_ne_bytes(got).to_f32(),
                    bf16::from_f32(x).to_f32(),
                ),
            };
            assert!(is_same(got, want), "{x:e} as {dtype}: {got:e}");
        }
    }
}

#[test]
fn floats_of_16_bits_take_the_loops_of_f32() {
    let other = |x: &[u8]| x.iter().rev().copied().collect::<Vec<u8>>();
    for dtype in [DType::F16, DType::BF16] {
        // From the denormal ones to half of the largest, of both signs.
        let bits =
            (0..2u16).flat_map(|sign| (0x70..0x7800).step_by(37).map(move |x| x | sign << 15));
        let a: Vec<u8> = bits.flat_map(u16::to_ne_bytes).collect();
        let b = other(&a);
        for (op, operands, to) in [
            ("exp", vec![&a], dtype),
            ("log", vec![&a], dtype),
            ("tanh", vec![&a], dtype),
            ("add", vec![&a, &b], dtype),
            ("divide", vec![&a, &b], dtype),
            ("clip", vec![&a, &b, &a], dtype),
            ("less", vec![&a, &b], DType::U8),
            ("as_type", vec![&a], DType::F32),
            ("as_type", vec![&a], DType::S32),
        ] {
            let shape = [a.len() as u64 / 2];
            let views: Vec<View> = operands
                .iter()
                .map(|bytes| View {
                    dtype,
                    shape: &shape,
                    strides: &[1],
                    offset: 0,
                    bytes,
                })
                .collect();
            let [want, got] = [run, run_fast].map(|kernel| {
                let mut bytes = vec![0; (shape[0] * to.size()) as usize];
                let mut out = [Out {
                    dtype: to,
                    shape: &shape,
                    bytes: &mut bytes,
                }];
                kernel(op, &views, &mut out, &[]).unwrap();
                bytes
            });
            let infinity = if dtype == DType::F16 { 0x7c00 } else { 0x7f80 };
            let apart = |(x, y): (&Short, &Short)| {
                let [x, y] = [x, y].map(|x| u16::from_ne_bytes(*x));
                match [x, y].iter().all(|x| x & 0x7fff > infinity) {
                    true => 0,
                    false => i32::from(x.abs_diff(y)),
                }
            };
            let [want, got] = [&want, &got].map(|bytes| bytes.as_chunks::<2>().0);
            let exact = !["exp", "log", "tanh"].contains(&op);
            let most = want.iter().zip(got).map(apart).max().unwrap();
            assert!(most <= i32::from(!exact), "{op} of {dtype} to {to}: {most}");
        }
    }
}
