//! The functions of f32 numbers, beside the exact ones rounded once.

use super::{DType, Out, View};
use nx_vulkan_ops::{
    Attr, Op, Result, find,
    kernels::{run, run_fast},
    op::Gives,
    ops,
};

/// An f32 in memory.
type Cell = [u8; 4];
/// A float of 16 bits in memory.
type Short = [u8; 2];
type Kernel = fn(&str, &[View], &mut [Out], &[Attr]) -> Result<()>;

/// The ops of one f32 whose result is one.
fn maps() -> Vec<&'static str> {
    let gives = |op: &&Op| matches!(op.gives, Gives::Operand | Gives::OwnPart | Gives::Float);
    let maps: Vec<_> = of_floats(1).filter(gives).map(|op| op.name).collect();
    assert_eq!(maps.len(), 29);
    maps
}

/// The ops of two f32 whose result is one, but the remainder, which is exact everywhere.
fn zips() -> Vec<&'static str> {
    let gives = |op: &&Op| matches!(op.gives, Gives::Real | Gives::Float) && op.name != "remainder";
    let zips: Vec<_> = of_floats(2).filter(gives).map(|op| op.name).collect();
    assert_eq!(zips.len(), 8);
    zips
}

fn of_floats(operands: usize) -> impl Iterator<Item = &'static Op> {
    let fits = move |op: &&Op| op.arity() == operands && op.types().has(DType::F32);
    ops().filter(|op| op.is_elementwise()).filter(fits)
}

/// What a kernel gives, of operands and a result of cells.
fn result(kernel: Kernel, op: &str, operands: &[(DType, &[u8])], to: DType) -> Vec<Cell> {
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
    kernel(op, &views.collect::<Vec<_>>(), &mut out, &[]).unwrap();
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

/// The most units in the last place between what both kernels give, which the op's bound allows.
fn agree(op: &str, operands: &[&[Cell]]) -> u64 {
    let floats = operands.iter().map(|x| (DType::F32, x.as_flattened()));
    let floats: Vec<_> = floats.collect();
    let [exact, fast] = [run, run_fast].map(|kernel| result(kernel, op, &floats, DType::F32));
    let allowed = find(op).unwrap().bound.ulp.0;
    let zeros_equal = find(op).unwrap().bound.zeros_equal;
    let mut worst = 0;
    for (i, (got, want)) in fast.iter().zip(exact).enumerate() {
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
    for op in maps() {
        let worst = agree(op, &[&from]);
        let stated = if op == "sigmoid" { 2 } else { 1 };
        assert!(worst <= stated, "{op}: {worst} ulp");
    }
}

#[test]
fn casts_and_choices_are_those_of_the_other_kernels() {
    let cells = numbers(4099);
    for (from, to) in [DType::F32, DType::S32, DType::U32]
        .into_iter()
        .flat_map(|from| [DType::F32, DType::S32, DType::U32].map(|to| (from, to)))
    {
        let operands = [(from, cells.as_flattened())];
        let [want, got] = [run, run_fast].map(|kernel| result(kernel, "as_type", &operands, to));
        assert!(got == want, "{from} to {to}");
    }
    let pred: Vec<u8> = (0..cells.len()).map(|i| (i % 3 * 100) as u8).collect();
    let other: Vec<Cell> = cells.iter().rev().copied().collect();
    let operands = [
        (DType::U8, &pred[..]),
        (DType::F32, cells.as_flattened()),
        (DType::F32, other.as_flattened()),
    ];
    let [want, got] = [run, run_fast].map(|kernel| result(kernel, "select", &operands, DType::F32));
    assert!(got == want);
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
    for op in zips() {
        agree(op, &[&a, &b]);
    }
}

#[test]
fn frequent_powers_are_rounded_once() {
    let x = numbers(4099);
    for exponent in [2.0f32, 3.0, 0.5, -1.0] {
        let exponents = vec![exponent.to_ne_bytes(); x.len()];
        assert_eq!(agree("pow", &[&x, &exponents]), 0, "{exponent}");
    }
}

#[test]
#[ignore = "all 2^32 numbers take minutes; the test above takes one in 4099"]
fn functions_of_one_operand_are_within_their_bounds_everywhere() {
    for op in maps() {
        let worst = (0..1u32 << 12).map(|part| {
            let from: Vec<Cell> = (0..1u32 << 20)
                .map(|i| (part << 20 | i).to_ne_bytes())
                .collect();
            agree(op, &[&from])
        });
        println!("{op}: {} ulp", worst.max().unwrap());
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
