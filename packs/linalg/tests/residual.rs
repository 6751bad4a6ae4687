//! What factors have to satisfy, at sizes of several blocks: matrices of all conditions, whose products are computed in f64.

use nx_vulkan_abi::DType;
use nx_vulkan_conformance::session::Session;
use nx_vulkan_host::{Runtime, Tensor};
use nx_vulkan_ops::{Attr, Request, Spec, values::Rng};

const SIZES: [usize; 5] = [65, 200, 128, 100, 321];
/// So many of them on a CPU device, which takes seconds to compile the shaders of one size.
const CPU_SIZES: usize = 2;
const KINDS: [&str; 6] = ["random", "graded", "steep", "close", "low", "equal rows"];

/// A matrix, row after row.
#[derive(Debug, Clone)]
struct Matrix {
    rows: usize,
    columns: usize,
    cells: Vec<f64>,
}

impl Matrix {
    fn from(rows: usize, columns: usize, mut cell: impl FnMut(usize, usize) -> f64) -> Matrix {
        let cells = (0..rows * columns).map(|at| cell(at / columns, at % columns));
        Matrix {
            rows,
            columns,
            cells: cells.collect(),
        }
    }

    fn at(&self, i: usize, j: usize) -> f64 {
        self.cells[i * self.columns + j]
    }

    fn times(&self, other: &Matrix) -> Matrix {
        let mut product = Matrix::from(self.rows, other.columns, |_, _| 0.0);
        for (row, own) in product
            .cells
            .chunks_mut(other.columns)
            .zip(self.cells.chunks(self.columns))
        {
            for (x, others) in own.iter().zip(other.cells.chunks(other.columns)) {
                row.iter_mut()
                    .zip(others)
                    .for_each(|(sum, y)| *sum += x * y);
            }
        }
        product
    }

    fn turned(&self) -> Matrix {
        Matrix::from(self.columns, self.rows, |i, j| self.at(j, i))
    }

    fn largest(&self) -> f64 {
        self.cells.iter().fold(0.0, |most, x| {
            if x.is_nan() {
                f64::NAN
            } else {
                x.abs().max(most)
            }
        })
    }

    fn minus(&self, other: &Matrix) -> Matrix {
        Matrix::from(self.rows, self.columns, |i, j| {
            self.at(i, j) - other.at(i, j)
        })
    }

    /// As elements of that type have it.
    fn rounded(self, dtype: DType) -> Matrix {
        match dtype {
            DType::F32 => Matrix::from(self.rows, self.columns, |i, j| {
                f64::from(self.at(i, j) as f32)
            }),
            _ => self,
        }
    }
}

fn random(rows: usize, columns: usize, rng: &mut Rng) -> Matrix {
    Matrix::from(rows, columns, |_, _| {
        (rng.bits() % 2_000_001) as f64 / 1e6 - 1.0
    })
}

/// A square matrix of a kind.
fn of_kind(kind: &str, n: usize, rng: &mut Rng) -> Matrix {
    let a = random(n, n, rng);
    let share = |i: usize| i as f64 / n as f64;
    match kind {
        "graded" => Matrix::from(n, n, |i, j| a.at(i, j) * 10f64.powf(-6.0 * share(j))),
        "steep" => Matrix::from(n, n, |i, j| {
            a.at(i, j) * 10f64.powf(-8.0 * share(i) + 5.0 * share(j))
        }),
        "close" => Matrix::from(n, n, |i, j| 1.0 / (1 + i + j) as f64),
        "low" => random(n, 7, rng).times(&random(7, n, rng)),
        "equal rows" => Matrix::from(n, n, |i, j| a.at(i / 3, j)),
        _ => a,
    }
}

struct Device {
    runtime: std::sync::Arc<Runtime>,
}

impl Device {
    fn new() -> Device {
        let session = Session::of_test("linalg").expect("cargo has built the pack");
        let runtime = session.runtime().expect("the pack loads");
        Device { runtime }
    }

    fn upload(&self, x: &Matrix, dtype: DType) -> Tensor {
        let bytes: Vec<u8> = match dtype {
            DType::F32 => x
                .cells
                .iter()
                .flat_map(|x| (*x as f32).to_le_bytes())
                .collect(),
            _ => x.cells.iter().flat_map(|x| x.to_le_bytes()).collect(),
        };
        let shape = [x.rows as u64, x.columns as u64];
        self.runtime.upload(dtype, &shape, &bytes).unwrap()
    }

    fn run(
        &self,
        op: &'static str,
        dtype: DType,
        inputs: &[&Matrix],
        shapes: &[[usize; 2]],
        attrs: &[Attr],
    ) -> Vec<Matrix> {
        let tensors: Vec<Tensor> = inputs.iter().map(|x| self.upload(x, dtype)).collect();
        let operands: Vec<&Tensor> = tensors.iter().collect();
        let outputs: Vec<Spec> = shapes
            .iter()
            .map(|[m, n]| (dtype, vec![*m as u64, *n as u64]))
            .collect();
        let request = Request::new(op, &operands, &outputs, attrs);
        let results = self.runtime.run(&request).unwrap();
        let again = self.runtime.run(&request).unwrap();
        let read = |x: &Tensor| self.runtime.download(x, None).unwrap();
        let values = |(x, [rows, columns]): (&Tensor, &[usize; 2])| {
            let cells = match dtype {
                DType::F32 => read(x)
                    .chunks(4)
                    .map(|x| f64::from(f32::from_le_bytes(x.try_into().unwrap())))
                    .collect(),
                _ => read(x)
                    .chunks(8)
                    .map(|x| f64::from_le_bytes(x.try_into().unwrap()))
                    .collect(),
            };
            Matrix {
                rows: *rows,
                columns: *columns,
                cells,
            }
        };
        for (x, y) in results.iter().zip(&again) {
            assert!(read(x) == read(y), "{op}: two runs differ");
        }
        results.iter().zip(shapes).map(values).collect()
    }
}

/// Ten units of the number of rows times the type's precision, relative to `scale`.
#[track_caller]
fn assert_small(what: &str, rest: &Matrix, scale: f64, dtype: DType) {
    let precision = if dtype == DType::F32 {
        f64::from(f32::EPSILON)
    } else {
        f64::EPSILON
    };
    let units = rest.largest()
        / (rest.rows.max(rest.columns) as f64 * precision * scale.max(f64::MIN_POSITIVE));
    assert!(units <= 10.0, "{what} {dtype}: {units} units");
}

fn every(mut run: impl FnMut(&Device, DType, usize, &str, Matrix, &mut Rng)) {
    let (device, mut rng) = (Device::new(), Rng(5));
    let is_cpu = device.runtime.device().summary().kind == "cpu";
    let sizes = if is_cpu { CPU_SIZES } else { SIZES.len() };
    for n in SIZES.into_iter().take(sizes) {
        for kind in KINDS {
            // A CPU takes minutes for all kinds of the large ones.
            if is_cpu && n > 128 && kind != "steep" {
                continue;
            }
            for dtype in [DType::F32, DType::F64] {
                let a = of_kind(kind, n, &mut rng).rounded(dtype);
                run(&device, dtype, n, &format!("{kind} {n}"), a, &mut rng);
            }
        }
    }
}

#[test]
fn cholesky_gives_the_matrix() {
    every(|device, dtype, n, what, a, _| {
        // Far enough from singular for its type to have a factor.
        let square = a.times(&a.turned());
        let ridge = square.largest() * if dtype == DType::F32 { 1e-4 } else { 1e-12 };
        let a = Matrix::from(n, n, |i, j| {
            square.at(i, j) + if i == j { ridge } else { 0.0 }
        })
        .rounded(dtype);
        let l = device
            .run("Nx.Block.LinAlg.Cholesky", dtype, &[&a], &[[n, n]], &[])
            .remove(0);
        assert_small(what, &l.times(&l.turned()).minus(&a), a.largest(), dtype);
        assert!(
            (0..n * n).all(|at| at % n <= at / n || l.cells[at] == 0.0),
            "{what}"
        );
    });
}

#[test]
fn lu_gives_the_matrix() {
    every(|device, dtype, n, what, a, _| {
        let factors = device.run("Nx.Block.LinAlg.LU", dtype, &[&a], &[[n, n]; 3], &[]);
        let [p, l, u] = &factors[..] else {
            unreachable!()
        };
        assert!(l.largest() <= 1.0, "{what} {dtype}: {}", l.largest());
        assert!(
            (0..n).all(|j| (0..n).map(|i| p.at(i, j)).sum::<f64>() == 1.0),
            "{what}"
        );
        assert!(
            (0..n * n).all(|at| at % n >= at / n || u.cells[at] == 0.0),
            "{what}"
        );
        assert_small(what, &p.times(&l.times(u)).minus(&a), u.largest(), dtype);
    });
}

#[test]
fn solve_gives_the_right_sides() {
    every(|device, dtype, n, what, a, rng| {
        if what.starts_with("low") || what.starts_with("equal") || what.starts_with("close") {
            return;
        }
        for count in [1, 70] {
            let b = random(n, count, rng).rounded(dtype);
            let x = device
                .run(
                    "Nx.Block.LinAlg.Solve",
                    dtype,
                    &[&a, &b],
                    &[[n, count]],
                    &[],
                )
                .remove(0);
            // Relative to what is summed up, and to how pivots grow.
            let scale = 10.0 * a.largest() * x.largest();
            assert_small(what, &a.times(&x).minus(&b), scale, dtype);
        }
    });
}

#[test]
fn qr_gives_the_matrix_and_is_orthogonal() {
    every(|device, dtype, n, what, a, _| {
        for rows in [n, n / 2] {
            let a = Matrix::from(rows, n, |i, j| a.at(i, j));
            let mode = [Attr::float("eps", 1e-10), Attr::text("mode", "reduced")];
            for a in [a.turned(), a] {
                let (m, n) = (a.rows, a.columns);
                let k = m.min(n);
                let factors =
                    device.run("Nx.Block.LinAlg.QR", dtype, &[&a], &[[m, k], [k, n]], &mode);
                let [q, r] = &factors[..] else { unreachable!() };
                assert_small(what, &q.times(r).minus(&a), a.largest(), dtype);
                let one = Matrix::from(k, k, |i, j| if i == j { 1.0 } else { 0.0 });
                assert_small(what, &q.turned().times(q).minus(&one), 1.0, dtype);
                assert!(
                    (0..k).all(|i| (0..i.min(n)).all(|j| r.at(i, j) == 0.0)),
                    "{what}"
                );
            }
        }
    });
}

#[test]
fn qr_of_blocks_of_rows_keeps_columns_that_are_short() {
    let (device, mut rng) = (Device::new(), Rng(5));
    for (scale, dtype) in [(1.6e-17, DType::F32), (1e-147, DType::F64)] {
        let (m, n) = (2051, 4);
        let a = random(m, n, &mut rng);
        let a = Matrix::from(m, n, |i, j| scale * a.at(i, j)).rounded(dtype);
        let mode = [Attr::float("eps", 1e-10), Attr::text("mode", "reduced")];
        let factors = device.run("Nx.Block.LinAlg.QR", dtype, &[&a], &[[m, n], [n, n]], &mode);
        let [q, r] = &factors[..] else { unreachable!() };
        assert_small("short", &q.times(r).minus(&a), a.largest(), dtype);
    }
}

#[test]
fn singular_systems_are_errors_when_read() {
    let (device, mut rng) = (Device::new(), Rng(3));
    for n in [3, SIZES[0]] {
        for dtype in [DType::F32, DType::F64] {
            let b = random(n, 2, &mut rng).rounded(dtype);
            let fails = |op: &'static str, a: &Matrix, attrs: &[Attr]| {
                let tensors = [device.upload(a, dtype), device.upload(&b, dtype)];
                let outputs: [Spec; 1] = [(dtype, vec![n as u64, 2])];
                let operands = [&tensors[0], &tensors[1]];
                let request = Request::new(op, &operands, &outputs, attrs);
                let results = device.runtime.run(&request).unwrap();
                let read = device.runtime.download(&results[0], None);
                read.err().map(|error| error.to_string())
            };
            let words = "can't solve for singular matrix";
            let a = random(n, n, &mut rng);
            let zero = Matrix::from(n, n, |i, j| if j == n - 1 { 0.0 } else { a.at(i, j) });
            let why = fails("Nx.Block.LinAlg.Solve", &zero, &[]);
            assert!(why.is_some_and(|why| why.contains(words)), "{n} {dtype}");
            assert_eq!(fails("Nx.Block.LinAlg.Solve", &a, &[]), None);
            let attrs = [
                Attr::ints("left_side", [1]),
                Attr::ints("lower", [1]),
                Attr::text("transform_a", "none"),
            ];
            let why = fails("triangular_solve", &zero, &attrs);
            assert!(why.is_some_and(|why| why.contains(words)), "{n} {dtype}");
        }
    }
}
