//! Elementwise ops whose elements are computed where they lie, beside one number after the other.

use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels::{Out, View, run_fast, writes_all};
use nx_vulkan_ops::values::Rng;

/// Rows and columns: nothing, one, fewer than fill a vector, and more than fill a block and a core's part.
const EXTENTS: [[usize; 2]; 9] = [
    [0, 3],
    [1, 1],
    [1, 7],
    [3, 5],
    [1, 64],
    [2, 515],
    [1, 1025],
    [700, 1],
    [5, 4099],
];

/// How an operand lies.
#[derive(Debug, Clone, Copy)]
enum Lies {
    /// One element after the other, so many elements and so many bytes into memory.
    Straight(usize, usize),
    /// The last first.
    Reversed,
    /// One element for all, of no axes.
    Scalar,
    /// One element for all, of axes of one.
    One,
    /// One element for each row.
    Column,
    /// One row for all.
    Row,
}

const LAYOUTS: [Lies; 8] = [
    Lies::Straight(0, 0),
    Lies::Straight(3, 0),
    Lies::Straight(1, 1),
    Lies::Reversed,
    Lies::Scalar,
    Lies::One,
    Lies::Column,
    Lies::Row,
];

/// An operand, and the bits of its elements in the order of the result.
#[derive(Debug)]
struct Given {
    dtype: DType,
    shape: [u64; 2],
    strides: [i64; 2],
    rank: usize,
    offset: u64,
    lead: usize,
    bytes: Vec<u8>,
    each: Vec<u32>,
}

impl Given {
    fn new(dtype: DType, [rows, columns]: [usize; 2], lies: Lies, rng: &mut Rng) -> Given {
        let (count, r, c) = (rows * columns, rows as u64, columns as u64);
        let (shape, strides, offset, stored) = match lies {
            Lies::Straight(skip, _) => ([r, c], [c as i64, 1], skip, count + skip),
            Lies::Reversed => (
                [r, c],
                [-(c as i64), -1],
                count.saturating_sub(1),
                count.max(1),
            ),
            Lies::Scalar => ([1, 1], [0, 0], 0, 1),
            Lies::One => ([1, 1], [1, 1], 2, 3),
            Lies::Column => ([r, 1], [1, 1], 0, rows.max(1)),
            Lies::Row => ([1, c], [c as i64, 1], 0, columns),
        };
        let numbers: Vec<u32> = (0..stored).map(|_| number(dtype, rng)).collect();
        let at = |i: usize| match lies {
            Lies::Straight(skip, _) => i + skip,
            Lies::Reversed => count - 1 - i,
            Lies::Scalar | Lies::One => offset,
            Lies::Column => i / columns,
            Lies::Row => i % columns,
        };
        let lead = match lies {
            Lies::Straight(_, lead) => lead,
            _ => 0,
        };
        let size = dtype.size() as usize;
        let stored = numbers
            .iter()
            .flat_map(|x| x.to_le_bytes()[..size].to_vec());
        Given {
            dtype,
            shape,
            strides,
            rank: if matches!(lies, Lies::Scalar) { 0 } else { 2 },
            offset: offset as u64,
            lead,
            bytes: std::iter::repeat_n(0xa5, lead).chain(stored).collect(),
            each: (0..count).map(|i| numbers[at(i)]).collect(),
        }
    }

    fn view(&self) -> View<'_> {
        View {
            dtype: self.dtype,
            shape: &self.shape[..self.rank],
            strides: &self.strides[..self.rank],
            offset: self.offset,
            bytes: &self.bytes[self.lead..],
        }
    }
}

/// NaN, infinities, zeros of both signs, denormals, halves; and numbers so few that they are equal now and then.
fn number(dtype: DType, rng: &mut Rng) -> u32 {
    let special = [
        0.0,
        -0.0,
        f32::NAN,
        -f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        1e-40,
        -1e-45,
        f32::MIN_POSITIVE,
        f32::MAX,
        f32::MIN,
        0.499_999_97,
        8_388_607.5,
        -8_388_609.0,
    ];
    match (dtype, rng.below(3)) {
        (DType::U8, _) => rng.pick(&[0, 1, 2, 255]),
        (DType::S32, 0) => rng.pick(&[i32::MIN, i32::MAX, 0x7fc0_0000]) as u32,
        (DType::S32, _) => (rng.below(9) as i32 - 4) as u32,
        (_, 0) => rng.pick(&special).to_bits(),
        _ => ((rng.below(41) as f32 - 20.0) / 4.0).to_bits(),
    }
}

/// Whether operands of these shapes make a result of that one.
fn make(shape: [u64; 2], given: &[Given]) -> bool {
    given.iter().any(|x| x.rank == 2)
        && (0..2).all(|axis| shape[axis] == 1 || given.iter().any(|x| x.shape[axis] == shape[axis]))
}

/// Holds `op` of these types to `want`, with every operand in every layout. Bits of NaN are not compared.
fn check<const K: usize>(op: &str, types: [DType; K], to: DType, want: &dyn Fn([u32; K]) -> u32) {
    let (mut rng, size) = (Rng(11), to.size() as usize);
    assert!(writes_all(op));
    let choices =
        (0..LAYOUTS.len().pow(K as u32)).flat_map(|i| EXTENTS.map(|extents| (i, extents)));
    for (choice, extents) in choices {
        let mut rest = choice;
        let given = types.map(|dtype| {
            let lies = LAYOUTS[rest % LAYOUTS.len()];
            rest /= LAYOUTS.len();
            Given::new(dtype, extents, lies, &mut rng)
        });
        let shape = extents.map(|extent| extent as u64);
        if !make(shape, &given) {
            continue;
        }
        let mut bytes = vec![0x5a; extents[0] * extents[1] * size];
        let mut outs = [Out {
            dtype: to,
            shape: &shape,
            bytes: &mut bytes,
        }];
        let views = given.each_ref().map(Given::view);
        run_fast(op, &views, &mut outs, &[]).unwrap();
        for (i, bytes) in bytes.chunks(size).enumerate() {
            let operands = given.each_ref().map(|x| x.each[i]);
            let mut got = [0; 4];
            got[..size].copy_from_slice(bytes);
            let (got, want) = (u32::from_le_bytes(got), want(operands));
            let is_nan = |bits: u32| to == DType::F32 && f32::from_bits(bits).is_nan();
            assert!(
                got == want || is_nan(got) && is_nan(want),
                "{op} of {operands:x?} at {i} of {extents:?}: {got:x} for {want:x}"
            );
        }
    }
}

/// As [`check`], of f32 numbers.
fn check_floats<const K: usize>(op: &str, want: impl Fn([f32; K]) -> f32) {
    check(op, [DType::F32; K], DType::F32, &|x| {
        want(x.map(f32::from_bits)).to_bits()
    });
}

/// As [`check`], of f32 numbers to 0 or 1.
fn check_facts<const K: usize>(op: &str, want: impl Fn([f32; K]) -> bool) {
    check(op, [DType::F32; K], DType::U8, &|x| {
        u32::from(want(x.map(f32::from_bits)))
    });
}

#[test]
fn numbers_compare_by_value() {
    check_facts("equal", |[x, y]| x == y);
    check_facts("not_equal", |[x, y]| x != y);
    check_facts("less", |[x, y]| x < y);
    check_facts("less_equal", |[x, y]| x <= y);
    check_facts("greater", |[x, y]| x > y);
    check_facts("greater_equal", |[x, y]| x >= y);
    let integers = |op, want: fn(&i32, &i32) -> bool| {
        check(op, [DType::S32; 2], DType::U8, &|[x, y]| {
            u32::from(want(&(x as i32), &(y as i32)))
        });
    };
    integers("equal", i32::eq);
    integers("not_equal", i32::ne);
    integers("less", i32::lt);
    integers("less_equal", i32::le);
    integers("greater", i32::gt);
    integers("greater_equal", i32::ge);
}

#[test]
fn one_element_stands_for_all_on_either_side() {
    check_floats("add", |[x, y]| x + y);
    check_floats("subtract", |[x, y]| x - y);
    check_floats("multiply", |[x, y]| x * y);
    check_floats("divide", |[x, y]| x / y);
    check_floats("negate", |[x]| -x);
    check_floats("max", |[x, y]| larger(x, y));
    check_floats("min", |[x, y]| -larger(-x, -y));
}

#[test]
fn predicates_choose_bits() {
    for dtype in [DType::F32, DType::S32] {
        check("select", [DType::U8, dtype, dtype], dtype, &|[
            pred,
            x,
            y,
        ]| {
            [x, y][usize::from(pred == 0)]
        });
    }
}

/// The first of equal ones.
fn larger(x: f32, y: f32) -> f32 {
    match x.partial_cmp(&y) {
        None => f32::NAN,
        Some(order) => [y, x][usize::from(order.is_ge())],
    }
}

#[test]
fn numbers_round_and_keep_their_signs() {
    check_floats("sign", |[x]| match x == 0.0 || x.is_nan() {
        true => x,
        false => 1.0f32.copysign(x),
    });
    check_floats("round", |[x]| {
        let half_up = (f64::from(x).abs() + 0.5).floor() as f32;
        half_up.copysign(x)
    });
    check_facts("is_nan", |[x]| x.to_bits() << 1 > 0xff00_0000);
    check_facts("is_infinity", |[x]| x.to_bits() << 1 == 0xff00_0000);
}

#[test]
fn numbers_clip_to_bounds_in_either_order() {
    check_floats("clip", |[x, low, high]| -larger(-larger(x, low), -high));
}

#[test]
fn one_integer_is_the_float_of_its_value() {
    let floats = [0.0f32, -0.0, 1.5, -7.0, 1e9, f32::INFINITY, f32::NAN];
    let bytes = floats.map(f32::to_ne_bytes);
    let x = View {
        dtype: DType::F32,
        shape: &[7],
        strides: &[1],
        offset: 0,
        bytes: bytes.as_flattened(),
    };
    let given = |op, integer: i32, dtype: DType| {
        let own = [0x55, integer].map(i32::to_ne_bytes);
        let one = View {
            dtype: DType::S32,
            shape: &[],
            strides: &[],
            offset: 1,
            bytes: own.as_flattened(),
        };
        let mut bytes = vec![0xa5; 7 * dtype.size() as usize];
        let out = Out {
            dtype,
            shape: &[7],
            bytes: &mut bytes,
        };
        run_fast(op, &[x, one], &mut [out], &[]).unwrap();
        bytes
    };
    for integer in [2, -7, 3, 0, 1 << 24, (1 << 24) + 1, i32::MIN, i32::MAX] {
        let sums =
            floats.map(|x| ((f64::from(x) + f64::from(integer as f32)) as f32).to_ne_bytes());
        let same = |a: &[u8], b: &[u8]| {
            let number = |x: &[u8]| f32::from_ne_bytes(x.try_into().unwrap());
            let pairs = a.chunks(4).zip(b.chunks(4));
            pairs
                .map(|(a, b)| (number(a), number(b)))
                .all(|(a, b)| a == b || a.is_nan() && b.is_nan())
        };
        assert!(
            same(&given("add", integer, DType::F32), sums.as_flattened()),
            "{integer}"
        );
        let less = floats.map(|x| u8::from(f64::from(x) < f64::from(integer)));
        assert_eq!(given("less", integer, DType::U8), less, "{integer}");
    }
    let squares = floats.map(|x| (x * x).to_ne_bytes());
    assert_eq!(
        given("pow", 2, DType::F32)[..24],
        squares.as_flattened()[..24]
    );
}
