//! Products of integers and of floats of 16 bits, of every layout, beside sums that are taken term by term.

use super::Sample;
use half::{bf16, f16};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::with_cores;
use nx_vulkan_ops::kernels::{Out, View, run, run_fast};
use nx_vulkan_ops::{Attr, values::Rng};

type Kernel = fn(&str, &[View], &mut [Out], &[Attr]) -> nx_vulkan_ops::error::Result<()>;

/// Rows, depth and columns: around the widths of tiles, and of what is added at a time.
const EXTENTS: &[[usize; 3]] = &[
    [1, 1, 1],
    [3, 5, 2],
    [4, 4, 4],
    [5, 1030, 7],
    [9, 17, 260],
    [130, 6, 3],
    [37, 64, 65],
];

/// The same of vectors, and of many rows, that are large enough to have ways of their own.
const LARGE: &[[usize; 3]] = &[
    [1, 301, 1111],
    [1030, 303, 1],
    [1, 70_000, 5],
    [1500, 20, 13],
];

/// How far elements of `[rows, columns]` lie apart, by rows or by columns, with an element between them or none.
fn layout(rows: usize, columns: usize, turned: bool, step: i64) -> Vec<i64> {
    match turned {
        true => vec![step, step * rows as i64],
        false => vec![step * columns as i64, step],
    }
}

/// The attributes of a product of two matrices.
fn of_matrices() -> [Attr; 4] {
    [
        Attr::ints("batch_a", []),
        Attr::ints("batch_b", []),
        Attr::ints("contract_a", [1]),
        Attr::ints("contract_b", [0]),
    ]
}

/// Every layout of the product of random elements: `check` is given the extents, terms of both factors by row, depth and
/// column, and what the kernels give.
fn each_product<T: Sample>(
    element: impl Fn(&mut Rng) -> T,
    check: impl Fn([usize; 3], &dyn Fn(usize, usize) -> T, &dyn Fn(usize, usize) -> T, [Vec<T>; 2]),
) {
    let mut rng = Rng(9);
    for &[m, k, n] in EXTENTS.iter().chain(LARGE) {
        for way in 0..8 {
            let (step, first) = (1 + way / 4, 3);
            let (x, y) = (
                layout(m, k, way & 1 > 0, step),
                layout(k, n, way & 2 > 0, step),
            );
            let mut of = |count: usize| {
                let count = first + step as usize * count;
                (0..count).map(|_| element(&mut rng)).collect::<Vec<T>>()
            };
            let (a, b) = (of(m * k), of(k * n));
            let bytes = |cells: &[T]| {
                let mut bytes = Vec::new();
                cells.iter().for_each(|cell| cell.push(&mut bytes));
                bytes
            };
            let (left, right) = (bytes(&a), bytes(&b));
            let shapes = [[m, k], [k, n], [m, n]].map(|shape| shape.map(|extent| extent as u64));
            let view = |at: usize, strides, bytes| View {
                dtype: T::DTYPE,
                shape: &shapes[at],
                strides,
                offset: first as u64,
                bytes,
            };
            let attrs = of_matrices();
            let got = [run, run_fast].map(|kernel| {
                let size = T::DTYPE.size() as usize;
                let mut bytes = vec![0xa5; m * n * size];
                let out = Out {
                    dtype: T::DTYPE,
                    shape: &shapes[2],
                    bytes: &mut bytes,
                };
                kernel(
                    "dot",
                    &[view(0, &x, &left), view(1, &y, &right)],
                    &mut [out],
                    &attrs,
                )
                .unwrap();
                bytes.chunks(size).map(T::pop).collect()
            });
            let at = |i: usize, j: usize, strides: &[i64]| {
                first + i * strides[0] as usize + j * strides[1] as usize
            };
            check(
                [m, k, n],
                &|i, l| a[at(i, l, &x)],
                &|l, j| b[at(l, j, &y)],
                got,
            );
        }
    }
}

macro_rules! integers {
    ($($t:ty),*) => { $(
        each_product(
            |rng| rng.bits() as $t,
            |[m, k, n], a, b, got: [Vec<$t>; 2]| {
                for at in 0..m * n {
                    let terms = (0..k).map(|l| a(at / n, l).wrapping_mul(b(l, at % n)));
                    let sum = terms.fold(0, <$t>::wrapping_add);
                    assert_eq!([got[0][at], got[1][at]], [sum; 2], "{m}x{k}x{n}, element {at}");
                }
            },
        );
    )* };
}

#[test]
fn those_of_integers_wrap() {
    integers!(u8, i8, i16, u32, i32, u64, i64);
}

/// Both kernels beside sums in f64, to within half a unit of a type of so many bits and what sums lose.
fn near<T: Sample>(of: fn(f64) -> T, number: fn(T) -> f64, bits: i32) {
    each_product(
        |rng| of(rng.between(-2.0, 2.0)),
        |[m, k, n], a, b, got: [Vec<T>; 2]| {
            for at in 0..m * n {
                let terms = (0..k).map(|l| number(a(at / n, l)) * number(b(l, at % n)));
                let (sum, size) =
                    terms.fold((0.0, 0.0), |(sum, size), x| (sum + x, size + x.abs()));
                let allowed = 0.51 * f64::abs(sum) * 2f64.powi(1 - bits)
                    + size * k as f64 * 2f64.powi(-bits.max(24));
                for got in [got[0][at], got[1][at]] {
                    let apart = (number(got) - sum).abs();
                    assert!(apart <= allowed, "{m}x{k}x{n}: {got:?} for {sum}");
                }
            }
        },
    );
}

#[test]
fn those_of_16_bits_are_rounded_once() {
    near(f16::from_f64, f16::to_f64, 11);
    near(bf16::from_f64, bf16::to_f64, 8);
}

#[test]
fn those_of_wider_floats_are_near_too() {
    near(|x| x as f32, f64::from, 24);
    near(|x| x, |x| x, 53);
}

#[test]
fn what_is_not_finite_spreads_through_16_bits() {
    let list = [
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1.0,
        -1.0,
        2.0,
        0.5,
    ];
    each_product(
        |rng| bf16::from_f32(list[rng.below(40).min(6) as usize]),
        |_, _, _, [exact, fast]| {
            let bits = |x: &bf16| if x.is_nan() { u16::MAX } else { x.to_bits() };
            let all = |cells: &[bf16]| cells.iter().map(bits).collect::<Vec<_>>();
            // Sums of quarters are exact in f32.
            assert_eq!(all(&exact), all(&fast));
        },
    );
}

macro_rules! complex {
    ($($t:ty, $dtype:ident;)*) => { $(
        impl Sample for [$t; 2] {
            const DTYPE: DType = DType::$dtype;

            fn push(self, bytes: &mut Vec<u8>) {
                self.iter().for_each(|part| part.push(bytes));
            }

            fn pop(bytes: &[u8]) -> [$t; 2] {
                let (re, im) = bytes.split_at(size_of::<$t>());
                [re, im].map(<$t>::pop)
            }
        }
    )* };
}
complex! { f32, C64; f64, C128; }

macro_rules! of_complex {
    ($($t:ty),*) => { $(
        each_product(
            // Their sums are integers that f32 has too.
            |rng| [(); 2].map(|()| rng.below(15) as $t - 7.0),
            |[m, k, n], a, b, got: [Vec<[$t; 2]>; 2]| {
                for at in 0..m * n {
                    let terms = (0..k).map(|l| (a(at / n, l), b(l, at % n)));
                    let sum = terms.fold([0.0; 2], |[re, im], (x, y)| {
                        [re + x[0] * y[0] - x[1] * y[1], im + x[0] * y[1] + x[1] * y[0]]
                    });
                    assert_eq!([got[0][at], got[1][at]], [sum; 2], "{m}x{k}x{n}, element {at}");
                }
            },
        );
    )* };
}

#[test]
fn those_of_complex_numbers_have_both_parts() {
    of_complex!(f32, f64);
}

#[test]
fn those_of_complex_numbers_have_batches_that_may_be_repeated() {
    let mut rng = Rng(11);
    let mut of = |count: usize| -> Vec<u8> {
        let cells = (0..2 * count).map(|_| rng.below(15) as f32 - 7.0);
        cells.flat_map(f32::to_ne_bytes).collect()
    };
    let (left, right) = (of(2 + 3 * 40 * 33), of(33 * 21));
    let view = |shape, strides, offset, bytes| View {
        dtype: DType::C64,
        shape,
        strides,
        offset,
        bytes,
    };
    let operands = [
        view(&[3, 40, 33], &[1320, 33, 1], 2, &left),
        view(&[3, 33, 21], &[0, 1, 33], 0, &right),
    ];
    let attrs = [
        Attr::ints("batch_a", [0]),
        Attr::ints("batch_b", [0]),
        Attr::ints("contract_a", [2]),
        Attr::ints("contract_b", [1]),
    ];
    // The last one at an address that no number of four bytes has.
    let [exact, fast, odd] =
        [(run as Kernel, 0), (run_fast, 0), (run_fast, 1)].map(|(kernel, at)| {
            let mut bytes = vec![0xa5; 8 * 3 * 40 * 21 + 8];
            let first = bytes.as_ptr().align_offset(8) + at;
            let out = Out {
                dtype: DType::C64,
                shape: &[3, 40, 21],
                bytes: &mut bytes[first..][..8 * 3 * 40 * 21],
            };
            kernel("dot", &operands, &mut [out], &attrs).unwrap();
            bytes[first..][..8 * 3 * 40 * 21].to_vec()
        });
    assert!(exact == fast && exact == odd);
}

#[test]
fn they_do_not_depend_on_the_number_of_cores() {
    let mut rng = Rng(10);
    let extents = [
        [77, 1000, 333],
        [500, 300, 70],
        [300, 2000, 300],
        [3, 4000, 300],
        [200, 3000, 2],
    ];
    for [m, k, n] in extents {
        let mut of = |count: usize| -> Vec<u8> {
            let cells = (0..count).map(|_| rng.between(-2.0, 2.0) as f32);
            cells.flat_map(f32::to_ne_bytes).collect()
        };
        let (left, right) = (of(m * k), of(k * n));
        let shapes = [[m, k], [k, n], [m, n]].map(|shape| shape.map(|extent| extent as u64));
        let strides = [k, n].map(|width| vec![width as i64, 1]);
        let view = |at: usize, bytes| View {
            dtype: DType::F32,
            shape: &shapes[at],
            strides: &strides[at],
            offset: 0,
            bytes,
        };
        let attrs = of_matrices();
        let product = || {
            let mut bytes = vec![0xa5; 4 * m * n];
            let out = Out {
                dtype: DType::F32,
                shape: &shapes[2],
                bytes: &mut bytes,
            };
            run_fast(
                "dot",
                &[view(0, &left), view(1, &right)],
                &mut [out],
                &attrs,
            )
            .unwrap();
            bytes
        };
        let alone = with_cores(1, product);
        for cores in [2, 3, 7] {
            assert!(
                with_cores(cores, product) == alone,
                "{m}x{k}x{n}, {cores} cores"
            );
        }
    }
}
