//! Discrete Fourier transforms.

use super::shared::{ELEMENTWISE, NUMBER, REAL, complex, default, floating, in_range};
use crate::{
    attrs::{Attr, ints, number},
    kernels::{fourier, kernel::Kernel},
    layout::Layout,
    op::{Attribute, AttributeKind, Contract, Gives, Op},
    problems::Problem,
    tolerance::{Bound, Growth},
    values::{Domain, Rng},
    view::Desc,
};
use nx_vulkan_abi::{DType, DTypeSet};

const EPS: f64 = 1e-10;

const ALL: DTypeSet = DTypeSet(NUMBER.0 | DTypeSet::of(&[DType::C128]).0);

const FOURIER: Contract = Contract {
    title: "Fourier transforms",
    attributes: &[
        ints_of("axis", "the axis to transform; the last one by default"),
        EPS_ATTRIBUTE,
        ints_of(
            "length",
            "how many elements of the axis count: it is cut, or goes on with zeros; for `Nx.Block.IRFFT` the extent of the \
             result. The axis' extent by default",
        ),
    ],
    copies: |inputs, outputs| {
        let computed = |dtype: &DType| ALL.has(*dtype);
        inputs.iter().chain(outputs).all(computed)
    },
    complete: |inputs, _, attrs| {
        let last = inputs[0].1.len() as i64 - 1;
        default(attrs, Attr::ints("axis", [last]));
        default(attrs, Attr::float("eps", EPS));
        let axis = ints(attrs, "axis").first().copied().unwrap_or(last);
        let extent = usize::try_from(axis).map(|axis| inputs[0].1.get(axis));
        let extent = extent.ok().flatten().copied().unwrap_or(1);
        default(attrs, Attr::ints("length", [extent as i64]));
    },
    infer: |op, inputs, attrs| {
        let dtype = match op.gives {
            Gives::Part => floating(inputs[0].0.part()),
            _ => complex(inputs[0].0),
        };
        Ok((dtype, shape(op, &inputs[0].1, attrs)?))
    },
    check: |op, inputs, outputs, attrs| check(op, &inputs[0], &outputs[0], attrs),
    problems: |op, layout, _, rng| {
        let half = op.name == "Nx.Block.IRFFT";
        let problem = |&(shape, axis, length): &Line| {
            let mut shape = shape.to_vec();
            if half {
                shape[axis] = shape[axis] / 2 + 1;
            }
            let axis = Attr::ints("axis", [axis as i64]);
            made(shape, vec![axis, Attr::ints("length", [length])])
        };
        chosen(lines(layout), layout, rng)
            .iter()
            .map(problem)
            .collect()
    },
    terms: |_, _, attrs| ints(attrs, "length").iter().product::<i64>() as u64,
    ..ELEMENTWISE
};

const LINE: Contract = FOURIER;

const PLANE: Contract = Contract {
    attributes: &[
        ints_of(
            "axes",
            "the two axes to transform; the last ones by default",
        ),
        EPS_ATTRIBUTE,
        ints_of("lengths", "as `length`, of both axes"),
    ],
    complete: |inputs, _, attrs| {
        let last = inputs[0].1.len() as i64 - 1;
        default(attrs, Attr::ints("axes", [last - 1, last]));
        default(attrs, Attr::float("eps", EPS));
        let extent = |axis: &i64| inputs[0].1.get(usize::try_from(*axis).ok()?).copied();
        let extents = ints(attrs, "axes")
            .iter()
            .map(|axis| extent(axis).unwrap_or(1) as i64);
        let extents: Vec<i64> = extents.collect();
        default(attrs, Attr::ints("lengths", extents));
    },
    problems: |_, layout, _, rng| {
        let problem = |&(shape, axes, lengths): &Plane| {
            let axes = Attr::ints("axes", axes);
            made(shape.to_vec(), vec![axes, Attr::ints("lengths", lengths)])
        };
        chosen(planes(layout), layout, rng)
            .iter()
            .map(problem)
            .collect()
    },
    terms: |_, _, attrs| ints(attrs, "lengths").iter().product::<i64>() as u64,
    ..FOURIER
};

const EPS_ATTRIBUTE: Attribute = Attribute {
    name: "eps",
    kind: AttributeKind::Number,
    doc: "parts of the result whose magnitude is at most this are 0; 1e-10 by default",
};

const fn ints_of(name: &'static str, doc: &'static str) -> Attribute {
    Attribute {
        name,
        kind: AttributeKind::Ints,
        doc,
    }
}

/// Axes to transform and their lengths.
fn axes(op: &Op, attrs: &[Attr]) -> Result<Vec<(usize, u64)>, String> {
    let (axes, lengths, count) = match op.contract.attributes[0].name {
        "axes" => (ints(attrs, "axes"), ints(attrs, "lengths"), 2),
        _ => (ints(attrs, "axis"), ints(attrs, "length"), 1),
    };
    if axes.len() != count || lengths.len() != count || count == 2 && axes[0] == axes[1] {
        let axes = format!("{count} different axes and as many lengths, got {axes:?}");
        return Err(format!("it needs {axes} and {lengths:?}"));
    }
    let pairs = axes.iter().zip(lengths);
    let pair = |(&axis, &length): (&i64, &i64)| {
        let length = u64::try_from(length).ok().filter(|length| *length > 0);
        let length = length.ok_or_else(|| format!("a length must be positive, got {lengths:?}"))?;
        let axis = usize::try_from(axis).map_err(|_| format!("axis {axis} is negative"))?;
        Ok((axis, length))
    };
    pairs.map(pair).collect()
}

fn shape(op: &Op, operand: &[u64], attrs: &[Attr]) -> Result<Vec<u64>, String> {
    let mut shape = operand.to_vec();
    for (axis, length) in axes(op, attrs)? {
        let extent = shape
            .get_mut(axis)
            .ok_or_else(|| format!("there is no axis {axis}"))?;
        *extent = if op.name == "Nx.Block.RFFT" {
            length / 2 + 1
        } else {
            length
        };
    }
    Ok(shape)
}

fn check(op: &Op, x: &Desc<'_>, out: &Desc<'_>, attrs: &[Attr]) -> Result<(), String> {
    for name in ["axis", "axes"] {
        in_range(name, ints(attrs, name), x)?;
    }
    if number(attrs, "eps").is_none() {
        return Err("attribute eps must be a number, got none".to_owned());
    }
    let shape = shape(op, x.shape, attrs)?;
    if shape != out.shape {
        return Err(format!("the result's shape must be {shape:?}"));
    }
    let is_part = op.gives == Gives::Part;
    if op.gives.allows(out.dtype, Some(x.dtype)) && (!is_part || out.dtype.is_float()) {
        return Ok(());
    }
    let kind = if is_part { "a float" } else { "complex" };
    Err(format!("the result must be {kind}, not {}", out.dtype))
}

/// Shape, axis and length.
type Line = (&'static [u64], usize, i64);
/// Shape, axes and lengths.
type Plane = (&'static [u64], [i64; 2], [i64; 2]);

const LINES: &[Line] = &[
    (&[1], 0, 1),
    (&[5], 0, 2),
    (&[8], 0, 8),
    (&[3, 16], 1, 16),
    (&[4, 21], 1, 32),
    (&[5, 37], 1, 20),
    (&[12, 5], 0, 12),
    (&[2, 30, 4], 1, 30),
    (&[3, 17], 1, 17),
    (&[97, 3], 0, 97),
    (&[2, 210], 1, 210),
    (&[3, 1024], 1, 1024),
    (&[2, 1001], 1, 1001),
    (&[40, 49], 1, 49),
    (&[17, 64, 3], 1, 64),
];
const DEEP: &[Line] = &[(&[2, 3, 2, 5, 3], 3, 5), (&[2, 4, 2, 2, 3, 5], 1, 8)];
const EMPTY: &[Line] = &[(&[0, 4], 1, 4), (&[0, 5, 2], 1, 3)];
const SCALAR: &[Line] = &[(&[1], 0, 1)];
const LARGE: &[Line] = &[
    (&[3, 8192], 1, 8192),
    (&[1 << 16], 0, 1 << 16),
    (&[2, 6000, 3], 1, 6000),
    (&[4099], 0, 4099),
    (&[70_001], 0, 70_001),
    (&[5000, 20], 1, 20),
    (&[1 << 20], 0, 1 << 20),
];

fn lines(layout: Layout) -> &'static [Line] {
    match layout {
        Layout::Contiguous => LINES,
        Layout::Deep => DEEP,
        Layout::Empty => EMPTY,
        Layout::Scalar => SCALAR,
        Layout::Large => LARGE,
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => &LINES[3..9],
    }
}

const PLANES: &[Plane] = &[
    (&[1, 1], [0, 1], [1, 1]),
    (&[4, 8], [0, 1], [4, 8]),
    (&[3, 5, 12], [1, 2], [8, 10]),
    (&[6, 2, 7], [2, 0], [7, 6]),
    (&[11, 13], [1, 0], [13, 16]),
];

fn planes(layout: Layout) -> &'static [Plane] {
    match layout {
        Layout::Contiguous => PLANES,
        Layout::Deep => &[(&[2, 3, 2, 5, 3], [1, 3], [3, 5])],
        Layout::Empty => &[(&[0, 4, 4], [1, 2], [4, 4])],
        Layout::Scalar => &PLANES[..1],
        Layout::Large => &[
            (&[300, 260], [0, 1], [300, 260]),
            (&[2, 64, 8192], [1, 2], [64, 8192]),
        ],
        Layout::Transposed | Layout::Broadcast | Layout::Sliced | Layout::Reversed => &PLANES[1..4],
    }
}

fn chosen<T: Copy>(all: &[T], layout: Layout, rng: &mut Rng) -> Vec<T> {
    let count = match layout {
        Layout::Contiguous | Layout::Empty => all.len(),
        Layout::Large => 2,
        Layout::Transposed
        | Layout::Broadcast
        | Layout::Sliced
        | Layout::Reversed
        | Layout::Scalar
        | Layout::Deep => 1,
    };
    super::shared::some(all, count, rng)
}

fn made(shape: Vec<u64>, attrs: Vec<Attr>) -> Problem {
    Problem {
        inputs: vec![shape],
        output: Vec::new(),
        attrs,
    }
}

const fn row(
    name: &'static str,
    contract: &'static Contract,
    takes: &'static [DTypeSet],
    gives: Gives,
    doc: &'static str,
) -> Op {
    Op {
        name,
        doc,
        contract,
        takes,
        gives,
        bound: Bound::reduces(Growth::Spectrum),
        domains: &[Domain::Sample],
        partial: None,
        lane: None,
        kernel: Kernel::Whole(fourier::run),
    }
}

pub(super) const OPS: &[Op] = &[
    row(
        "fft",
        &LINE,
        &[ALL],
        Gives::Complex,
        "sums of x[j] exp(-2πi jk/n) over the n elements of the axis",
    ),
    row(
        "ifft",
        &LINE,
        &[ALL],
        Gives::Complex,
        "sums of x[j] exp(2πi jk/n) / n",
    ),
    row(
        "Nx.Block.FFT2",
        &PLANE,
        &[ALL],
        Gives::Complex,
        "`fft` along the second of the axes, then along the first",
    ),
    row(
        "Nx.Block.IFFT2",
        &PLANE,
        &[ALL],
        Gives::Complex,
        "`ifft` along the second of the axes, then along the first",
    ),
    row(
        "Nx.Block.RFFT",
        &LINE,
        &[REAL],
        Gives::Complex,
        "the first n / 2 + 1 elements of `fft`",
    ),
    row(
        "Nx.Block.IRFFT",
        &LINE,
        &[ALL],
        Gives::Part,
        "the real part of `ifft` of n elements, the first n / 2 + 1 of which are x, cut or gone on with zeros, and the rest \
         their conjugates in reverse",
    ),
];
