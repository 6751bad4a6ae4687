//! Linear algebra of complex numbers against LAPACK's values (numpy 2.4.6, scipy 1.17.1) and against what factors have to
//! satisfy.

use super::{Tensor, bytes_of, tensor};
use nx_vulkan_abi::dtype::DType;
use nx_vulkan_ops::{attrs::Attr, kernels, view::Out};

const N: usize = 7;

/// A complex number.
pub(super) type C = (f64, f64);

pub(super) fn times((a, b): C, (c, d): C) -> C {
    (a * c - b * d, a * d + b * c)
}

fn plus(x: C, y: C) -> C {
    (x.0 + y.0, x.1 + y.1)
}

fn cell(i: usize, j: usize) -> f64 {
    (((7 * i + 13 * j + (i * j) % 5 + i * i) % 11) as f64 - 5.0) / 3.0
}

fn matrix(m: usize, n: usize) -> Vec<C> {
    let cells = (0..m * n).map(|at| (at / n, at % n));
    cells
        .map(|(i, j)| (cell(i, j), cell(j + 1, 2 * i + 3)))
        .collect()
}

pub(super) fn product(a: &[C], b: &[C], m: usize, k: usize, n: usize) -> Vec<C> {
    let sum = |i: usize, j: usize| {
        let terms = (0..k).map(|l| times(a[i * k + l], b[l * n + j]));
        terms.fold((0.0, 0.0), plus)
    };
    (0..m * n).map(|at| sum(at / n, at % n)).collect()
}

pub(super) fn adjoint(a: &[C], m: usize, n: usize) -> Vec<C> {
    let cells = (0..m * n).map(|at| a[at % m * n + at / m]);
    cells.map(|(re, im)| (re, -im)).collect()
}

pub(super) fn unit(n: usize) -> Vec<C> {
    let cells = (0..n * n).map(|at| at / n == at % n);
    cells
        .map(|is_one| (f64::from(u8::from(is_one)), 0.0))
        .collect()
}

fn complex(shape: &[u64], values: &[C]) -> Tensor {
    let parts: Vec<f64> = values.iter().flat_map(|x| [x.0, x.1]).collect();
    Tensor {
        dtype: DType::C128,
        ..tensor(shape, &parts)
    }
}

fn square(values: &[C]) -> Tensor {
    let n = (values.len() as f64).sqrt() as u64;
    complex(&[n, n], values)
}

/// The right side 1, 2 - i, 3 - 2i and so on.
fn right() -> Tensor {
    let right: Vec<C> = (0..N).map(|i| (i as f64 + 1.0, -(i as f64))).collect();
    complex(&[N as u64], &right)
}

fn values(bytes: &[u8]) -> Vec<C> {
    let part = |bytes: &[u8]| f64::from_ne_bytes(bytes.try_into().unwrap());
    let cells = bytes.chunks(16).map(|x| (part(&x[..8]), part(&x[8..])));
    cells.collect()
}

fn run(op: &str, inputs: &[&Tensor], shape: &[u64], attrs: &[Attr]) -> Vec<C> {
    let bytes = bytes_of(op, inputs, DType::C128, shape, attrs);
    values(&bytes.unwrap_or_else(|error| panic!("{error}")))
}

/// Results of several shapes.
fn all(op: &str, x: &Tensor, shapes: &[&[u64]], attrs: &[Attr]) -> Vec<Vec<C>> {
    let size = |shape: &&[u64]| 16 * shape.iter().product::<u64>() as usize;
    let mut bytes: Vec<Vec<u8>> = shapes.iter().map(|shape| vec![0xa5; size(shape)]).collect();
    let outs = shapes.iter().zip(&mut bytes).map(|(shape, bytes)| Out {
        dtype: DType::C128,
        shape,
        bytes,
    });
    let mut outs: Vec<Out<'_>> = outs.collect();
    kernels::run(op, &[x.view()], &mut outs, attrs).unwrap_or_else(|error| panic!("{error}"));
    bytes.iter().map(|bytes| values(bytes)).collect()
}

#[track_caller]
fn assert_near(got: &[C], expected: &[C], units: f64) {
    assert_eq!(got.len(), expected.len());
    let most = |x: f64, y: &C| x.max(y.0.hypot(y.1));
    let largest = expected.iter().fold(f64::MIN_POSITIVE, most);
    for (got, expected) in got.iter().zip(expected) {
        let apart = (got.0 - expected.0).hypot(got.1 - expected.1);
        assert!(
            apart <= units * f64::EPSILON * largest,
            "{got:?} for {expected:?}"
        );
    }
}

/// The matrix times its adjoint, plus 1.
fn positive(a: &[C]) -> Vec<C> {
    let mut positive = product(a, &adjoint(a, N, N), N, N, N);
    (0..N).for_each(|i| positive[i * (N + 1)].0 += 1.0);
    positive
}

#[test]
fn systems_and_determinants_are_lapacks() {
    let a = matrix(N, N);
    let x = run(
        "Nx.Block.LinAlg.Solve",
        &[&square(&a), &right()],
        &[N as u64],
        &[],
    );
    let expected = [
        (-0.1471447528067311, -7.094072610417845),
        (-9.184365237981838, -14.259867475483508),
        (11.22516813269858, 3.6965709937910893),
        (-14.781956911415897, 1.368638197947755),
        (5.434182585944811, 4.421710066110326),
        (-9.588663954854946, -5.106874022864969),
        (-3.26047738562971, -4.59896651715488),
    ];
    // The condition number is 19.
    assert_near(&x, &expected, 200.0);
    let d = run("Nx.Block.LinAlg.Determinant", &[&square(&a)], &[], &[]);
    assert_near(&d, &[(143.58847736625503, 233.0772748056696)], 200.0);

    let mut lower = a;
    (0..N).for_each(|i| lower[i * (N + 1)].0 += 5.0);
    let solved = |way: &str| {
        let operands = [&square(&lower), &right()];
        let attrs = [Attr::text("transform_a", way)];
        run("triangular_solve", &operands, &[N as u64], &attrs)
    };
    let expected = [
        (0.29702970297029707, -0.02970297029702971),
        (0.4652485050485247, -0.39701990000980303),
        (0.8822220537017272, -0.18394423040286473),
        (0.6963228607335222, -0.8812536311887424),
        (0.6452931906407724, -0.3516592263124483),
        (0.9555088124098774, -1.6369591036151314),
        (0.9246940942606838, -2.18005479268093),
    ];
    assert_near(&solved("none"), &expected, 70.0);
    let expected = [
        (0.29702970297029707, 0.02970297029702971),
        (0.5246544456425841, -0.19703950593079111),
        (0.538676378379478, -0.7956933559972847),
        (0.9690658625251537, -0.4238641162451119),
        (0.43383994585147345, -0.48248303904343026),
        (1.7540384429635192, -0.6727874123731543),
        (2.32083349637217, -0.4953894185801334),
    ];
    assert_near(&solved("conjugate"), &expected, 70.0);
}

#[test]
fn factors_are_lapacks() {
    let a = matrix(N, N);
    let shape = [N as u64; 2];
    let [p, l, u] = &all("Nx.Block.LinAlg.LU", &square(&a), &[&shape[..]; 3], &[])[..] else {
        unreachable!()
    };
    let rows: Vec<usize> = (0..N)
        .map(|j| (0..N).find(|i| p[i * N + j] == (1.0, 0.0)).unwrap())
        .collect();
    assert_eq!(rows, [4, 1, 2, 6, 0, 5, 3]);
    assert_near(&product(&product(p, l, N, N, N), u, N, N, N), &a, 70.0);
    let diagonal: Vec<C> = (0..N).map(|i| u[i * (N + 1)]).collect();
    let expected = [
        (-1.6666666666666667, 1.3333333333333333),
        (-2.3252032520325203, 0.7398373983739837),
        (-0.30966469428007903, -2.7593688362919133),
        (2.0419897234065814, 0.5748813818738384),
        (1.8340313099946004, -2.134846672412868),
        (-0.3882222653805177, 1.6499057694994623),
        (-1.4629173227545063, 1.1658379136868788),
    ];
    assert_near(&diagonal, &expected, 100.0);

    let positive = positive(&a);
    let op = "Nx.Block.LinAlg.Cholesky";
    let l = run(op, &[&square(&positive)], &shape, &[]);
    let expected = [
        (1.2493900951088486, 0.10411584125907081),
        (-0.9341698690148668, -1.2154976825942725),
        (-0.17584548631716934, 1.3210649942577002),
        (0.08582877770422194, -0.7731713761623968),
        (0.0010219361354777965, 0.5855615696292403),
        (-0.10450625882061766, -1.0993866783260033),
        (2.6078711730141926, 0.0),
    ];
    assert_near(&l[N * (N - 1)..], &expected, 70.0);
    assert_near(&product(&l, &adjoint(&l, N, N), N, N, N), &positive, 70.0);
    // Imaginary parts on the diagonal are not read.
    let mut skewed = positive;
    (0..N).for_each(|i| skewed[i * (N + 1)].1 = 3.0);
    assert_eq!(run(op, &[&square(&skewed)], &shape, &[]), l);
}

#[test]
fn what_is_not_positive_definite_has_no_factor() {
    let mut a = unit(3);
    a[4].0 = -1.0;
    let l = run("Nx.Block.LinAlg.Cholesky", &[&square(&a)], &[3, 3], &[]);
    assert_eq!(l[0], (1.0, 0.0));
    assert!(l[4].0.is_nan(), "{l:?}");
}

#[test]
fn singular_systems_are_refused() {
    let a = square(&[(1.0, 1.0), (2.0, 0.0), (2.0, 2.0), (4.0, 0.0)]);
    let b = complex(&[2], &[(1.0, 0.0), (0.0, 2.0)]);
    let bad = bytes_of("Nx.Block.LinAlg.Solve", &[&a, &b], DType::C128, &[2], &[]);
    let why = bad.unwrap_err().to_string();
    assert!(why.ends_with("can't solve for singular matrix"), "{why}");
}

#[test]
fn results_are_all_complex_or_none_is() {
    let x = unit(2);
    for (op, shapes) in [
        (
            "Nx.Block.LinAlg.LU",
            [&[2u64, 2][..], &[2, 2], &[2, 2]].as_slice(),
        ),
        ("Nx.Block.LinAlg.QR", &[&[2, 2], &[2, 2]]),
        ("Nx.Block.LinAlg.Eigh", &[&[2], &[2, 2]]),
    ] {
        let mut bytes = vec![[0; 64]; shapes.len()];
        let outs = shapes.iter().zip(&mut bytes).enumerate();
        let mut outs: Vec<Out<'_>> = outs
            .map(|(place, (shape, bytes))| {
                let dtype = [DType::C128, DType::F64][usize::from(place > 0)];
                let size = shape.iter().product::<u64>() * dtype.size();
                Out {
                    dtype,
                    shape,
                    bytes: &mut bytes[..size as usize],
                }
            })
            .collect();
        let mode = op.ends_with("QR").then(|| Attr::text("mode", "reduced"));
        let attrs: Vec<Attr> = mode.into_iter().collect();
        let bad = kernels::run(op, &[square(&x).view()], &mut outs, &attrs);
        let why = bad.unwrap_err().to_string();
        assert!(why.contains("results are all complex, or none is"), "{why}");
    }
}

#[test]
fn eigenvalues_are_lapacks() {
    let a = matrix(N, N);
    let b = adjoint(&a, N, N);
    let hermitian: Vec<C> = a.iter().zip(&b).map(|(x, y)| plus(*x, *y)).collect();
    let shape = [N as u64; 2];
    let shapes: [&[u64]; 2] = [&shape[1..], &shape];
    let op = "Nx.Block.LinAlg.Eigh";
    let results = all(op, &square(&hermitian), &shapes, &[]);
    let [values, vectors] = &results[..] else {
        unreachable!()
    };
    let expected = [
        -8.748297033787697,
        7.959166684102502,
        -7.753901179293223,
        2.871705099550551,
        -2.0022185792289444,
        1.5796481296953304,
        0.760563545628145,
    ];
    assert_near(values, &expected.map(|x| (x, 0.0)), 70.0);
    let scaled = (0..N * N).map(|at| times(vectors[at], values[at % N]));
    let scaled: Vec<C> = scaled.collect();
    assert_near(&product(&hermitian, vectors, N, N, N), &scaled, 70.0);
    let gram = product(&adjoint(vectors, N, N), vectors, N, N, N);
    assert_near(&gram, &unit(N), 70.0);
    // What is above the diagonal is not read, nor are imaginary parts on it.
    let junk = |at: usize| match (at / N).cmp(&(at % N)) {
        std::cmp::Ordering::Less => (f64::NAN, 0.0),
        std::cmp::Ordering::Equal => (hermitian[at].0, 9.0),
        std::cmp::Ordering::Greater => hermitian[at],
    };
    let junk: Vec<C> = (0..N * N).map(junk).collect();
    assert_eq!(all(op, &square(&junk), &shapes, &[]), results);
}

/// Well and ill conditioned, of low rank, graded, 0, tall and wide.
fn matrices() -> Vec<(usize, usize, Vec<C>)> {
    let mut all = vec![(1, 1, vec![(-3.0, 4.0)]), (5, 3, vec![(0.0, 0.0); 15])];
    for (m, n) in [
        (2, 2),
        (7, 7),
        (9, 7),
        (7, 9),
        (1, 6),
        (6, 1),
        (20, 20),
        (40, 40),
    ] {
        let a = matrix(m, n);
        let graded = |at: usize| times(a[at], (10f64.powi(-2 * (at % n) as i32), 0.0));
        let of_rank_1 = |at: usize| times(a[at / n * n], a[at % n]);
        all.push((m, n, (0..m * n).map(graded).collect()));
        all.push((m, n, (0..m * n).map(of_rank_1).collect()));
        for scale in [1e-200, 1.0, 1e200] {
            let scaled = a.iter().map(|x| times(*x, (scale, 0.0)));
            all.push((m, n, scaled.collect()));
        }
    }
    all
}

#[test]
fn qr_is_unitary_and_gives_its_matrix_back() {
    for (m, n, a) in matrices() {
        let (rows, columns) = (m as u64, n as u64);
        for (mode, wide) in [("reduced", m.min(n)), ("complete", m)] {
            let shapes: [&[u64]; 2] = [&[rows, wide as u64], &[wide as u64, columns]];
            let x = complex(&[rows, columns], &a);
            let op = "Nx.Block.LinAlg.QR";
            let results = all(op, &x, &shapes, &[Attr::text("mode", mode)]);
            let units = 10.0 * m.max(n) as f64;
            let [q, r] = &results[..] else { unreachable!() };
            assert_near(&product(q, r, m, wide, n), &a, units);
            let gram = product(&adjoint(q, m, wide), q, wide, m, wide);
            assert_near(&gram, &unit(wide), units);
            assert!((0..wide * n).all(|at| at / n <= at % n || r[at] == (0.0, 0.0)));
        }
    }
}

#[test]
fn the_diagonal_of_r_is_lapacks_turned_by_180_degrees() {
    let a = matrix(N, N);
    let shape = [N as u64; 2];
    let reduced = [Attr::text("mode", "reduced")];
    let results = all(
        "Nx.Block.LinAlg.QR",
        &square(&a),
        &[&shape[..]; 2],
        &reduced,
    );
    let diagonal: Vec<C> = (0..N).map(|i| results[1][i * (N + 1)]).collect();
    let lengths: Vec<C> = diagonal.iter().map(|x| (x.0.hypot(x.1), 0.0)).collect();
    let expected = [
        3.771236166328253,
        3.5956667593708462,
        2.8514332467215637,
        2.313326876635991,
        1.9062246993762069,
        1.2090360927791282,
        1.3279686896767702,
    ];
    assert_near(&lengths, &expected.map(|x| (x, 0.0)), 70.0);
    let (x, y) = (a[0], diagonal[0]);
    assert!(
        (x.0 * y.1 - x.1 * y.0).abs() < 1e-14 && x.0 * y.0 < 0.0,
        "{x:?} {y:?}"
    );
}

#[test]
fn eigh_is_unitary_and_gives_its_matrix_back() {
    for (m, n, a) in matrices() {
        if m != n {
            continue;
        }
        let b = adjoint(&a, n, n);
        let hermitian: Vec<C> = a.iter().zip(&b).map(|(x, y)| plus(*x, *y)).collect();
        let shape = [n as u64; 2];
        let op = "Nx.Block.LinAlg.Eigh";
        let results = all(op, &square(&hermitian), &[&shape[1..], &shape], &[]);
        let [values, v] = &results[..] else {
            unreachable!()
        };
        let units = 10.0 * n as f64;
        let scaled: Vec<C> = (0..n * n).map(|at| times(v[at], values[at % n])).collect();
        assert_near(&product(&hermitian, v, n, n, n), &scaled, 4.0 * units);
        assert_near(&product(&adjoint(v, n, n), v, n, n, n), &unit(n), units);
        assert!(values.is_sorted_by(|x, y| x.0.abs() >= y.0.abs()));
        // Of larger matrices the first components are real.
        let first = v[..n].iter();
        assert!(n <= 32 || first.fold(0f64, |most, x| most.max(x.1.abs()).max(-x.0)) < 1e-15);
    }
}
