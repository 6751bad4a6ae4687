//! Linear algebra of device and host beside what faer says, which shares no code with either: `oracle/faer` writes the table.
//! On random, ill-conditioned, rank-deficient and graded matrices, alone and in batches.

mod matrices;

use crate::{folder::Folder, packs::copied};
use matrices::{KINDS, Kind, Matrix, Problem, RIGHT};
use nx_vulkan_host::{Attr, Config, DType, DeviceChoice, Request, Runtime, Spec};
use std::{collections::HashMap, sync::Arc};

const TABLE: &str = include_str!("../../oracle/faer.txt");
/// How often a matrix stands in a batch.
const BATCH: usize = 3;

/// Who computes, in which type.
struct Runner {
    runtime: Arc<Runtime>,
    dtype: DType,
    server: &'static str,
}

impl Runner {
    /// The results of an op on a batch of the same operands.
    fn run(
        &self,
        op: &'static str,
        operands: &[&Matrix],
        outs: &[&[u64]],
        attrs: &[Attr],
    ) -> Vec<Vec<f64>> {
        let tensors = operands.iter().map(|operand| {
            let bytes: Vec<u8> = operand
                .cells
                .iter()
                .flat_map(|&cell| self.bytes(cell))
                .collect();
            let shape = [BATCH as u64, operand.rows as u64, operand.columns as u64];
            self.runtime
                .upload(self.dtype, &shape, &bytes.repeat(BATCH))
                .unwrap()
        });
        let tensors: Vec<_> = tensors.collect();
        let tensors: Vec<_> = tensors.iter().collect();
        let batched = |shape: &&[u64]| (self.dtype, [&[BATCH as u64], *shape].concat());
        let specs: Vec<Spec> = outs.iter().map(batched).collect();
        let ran = self
            .runtime
            .run_reported(&Request::new(op, &tensors, &specs, attrs));
        let ran = ran.unwrap_or_else(|error| panic!("{op}: {error}"));
        assert!(
            ran.served_by.starts_with(self.server),
            "{op} by {}",
            ran.served_by
        );
        let download = |tensor| self.runtime.download(tensor, None).unwrap();
        let results = ran.outputs.iter().map(download);
        results.map(|bytes| self.numbers(&bytes)).collect()
    }

    fn bytes(&self, cell: f64) -> Vec<u8> {
        match self.dtype {
            DType::F32 => (cell as f32).to_le_bytes().to_vec(),
            _ => cell.to_le_bytes().to_vec(),
        }
    }

    fn numbers(&self, bytes: &[u8]) -> Vec<f64> {
        let number = |bytes: &[u8]| match self.dtype {
            DType::F32 => f64::from(f32::from_le_bytes(bytes.try_into().unwrap())),
            _ => f64::from_le_bytes(bytes.try_into().unwrap()),
        };
        let size = self.dtype.size() as usize;
        bytes.chunks_exact(size).map(number).collect()
    }

    fn judge(&self, problem: Problem, table: &HashMap<String, Vec<f64>>) {
        let Problem { kind, n, .. } = problem;
        let what = |name: &str| format!("{} {kind:?} {n} {name}", self.dtype);
        let epsilon = match self.dtype {
            DType::F32 => f64::from(f32::EPSILON),
            _ => f64::EPSILON,
        };
        let slack = 10.0 * n as f64 * epsilon;
        // All of a batch have to be as near as that.
        let near = |name: &str, got: &[f64], expected: &[f64], most: f64| {
            assert_eq!(got.len(), BATCH * expected.len(), "{}", what(name));
            for (at, (got, expected)) in got.iter().zip(expected.iter().cycle()).enumerate() {
                // A device may give 0 for a denormal.
                let flushed = self.dtype == DType::F32
                    && *got == 0.0
                    && expected.abs() < f64::from(f32::MIN_POSITIVE);
                let is_near = flushed || (got - expected).abs() <= most;
                let (what, server) = (what(name), self.server);
                assert!(
                    is_near,
                    "{what} by {server}, {at}: {got:e} for {expected:e} within {most:e}"
                );
            }
        };
        let shape = [n as u64; 2];
        let a = problem.square();

        for (name, a) in [
            ("square", &a),
            ("tall", &problem.tall()),
            ("wide", &problem.wide()),
        ] {
            let (m, n, few) = (
                a.rows as u64,
                a.columns as u64,
                a.rows.min(a.columns) as u64,
            );
            let attrs = [Attr::ints("full_matrices?", [0])];
            let shapes: [&[u64]; 3] = [&[m, few], &[few], &[few, n]];
            let results = self.run("Nx.Block.LinAlg.SVD", &[a], &shapes, &attrs);
            let expected = &table[&what(name)];
            let most = 10.0 * m.max(n) as f64 * epsilon * expected[0];
            near(name, &results[1], expected, most);
        }

        let symmetric = problem.symmetric();
        let shapes: [&[u64]; 2] = [&shape[..1], &shape];
        let mut results = self.run("Nx.Block.LinAlg.Eigh", &[&symmetric], &shapes, &[]);
        results[0]
            .chunks_mut(n)
            .for_each(|values| values.sort_by(f64::total_cmp));
        let expected = &table[&what("symmetric")];
        let norm = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
        near("symmetric", &results[0], expected, slack * norm);

        // What digits a determinant loses is bounded by Hadamard's bound of it.
        let results = self.run("Nx.Block.LinAlg.Determinant", &[&a], &[&[]], &[]);
        let rows = a.cells.chunks(n);
        let bound: f64 = rows
            .map(|row| row.iter().map(|x| x * x).sum::<f64>().sqrt())
            .product();
        let expected = &table[&what("determinant")];
        // Beyond what a type holds it is a product that may have overflowed on the way.
        if self.numbers(&self.bytes(bound))[0].is_finite() {
            near("determinant", &results[0], expected, slack * bound);
        }

        let values = &table[&what("square")];
        let condition = values[0] / values[n - 1];
        if condition * slack < 0.01 {
            let right = problem.right();
            let shapes: [&[u64]; 1] = [&[n as u64, RIGHT as u64]];
            let results = self.run("Nx.Block.LinAlg.Solve", &[&a, &right], &shapes, &[]);
            let expected = &table[&what("solve")];
            let largest = expected.iter().fold(0.0, |most: f64, x| most.max(x.abs()));
            near("solve", &results[0], expected, slack * condition * largest);

            let attrs = [Attr::text("mode", "reduced")];
            let results = self.run("Nx.Block.LinAlg.QR", &[&a], &[&shape, &shape], &attrs);
            let diagonals = results[1].chunks(n * n);
            let diagonals: Vec<f64> = diagonals
                .flat_map(|r| (0..n).map(|i| r[i * (n + 1)].abs()))
                .collect();
            near("qr", &diagonals, &table[&what("qr")], slack * values[0]);
        }

        let positive = problem.positive();
        let results = self.run("Nx.Block.LinAlg.Cholesky", &[&positive], &[&shape], &[]);
        let rows = results[0].chunks(n * n);
        let last: Vec<f64> = rows.flat_map(|l| l[n * (n - 1)..].to_vec()).collect();
        let expected = &table[&what("cholesky")];
        let norm = expected.iter().map(|x| x * x).sum::<f64>().sqrt();
        // The least eigenvalue is 1.
        near("cholesky", &last, expected, slack * norm * norm.max(1.0));
    }
}

fn open(folder: &Folder, packs: &[&str]) -> Arc<Runtime> {
    let device = std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned());
    Runtime::open(&Config {
        device: DeviceChoice::parse(&device),
        packs: vec![copied(folder, packs)],
        registry: Some(folder.write("registry.toml", "schema = 1\n")),
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

fn table() -> HashMap<String, Vec<f64>> {
    let row = |line: &str| {
        let words: Vec<&str> = line.split_whitespace().collect();
        let numbers = words[4..].iter().map(|word| word.parse().unwrap());
        (words[..4].join(" "), numbers.collect())
    };
    TABLE.lines().map(row).collect()
}

/// Runs what `server` computes of all problems of these sizes.
fn judged(runtime: &Arc<Runtime>, server: &'static str, sizes: impl Fn(usize) -> bool) {
    let table = table();
    let mut kinds: Vec<Kind> = Vec::new();
    for problem in Problem::all().filter(|problem| sizes(problem.n)) {
        let dtype = match problem.is_single {
            true => DType::F32,
            false => DType::F64,
        };
        let runner = Runner {
            runtime: runtime.clone(),
            dtype,
            server,
        };
        runner.judge(problem, &table);
        kinds.push(problem.kind);
    }
    assert!(KINDS.iter().all(|kind| kinds.contains(kind)));
}

/// Determinants that a type holds, of factors that together, in their order, are more than it holds or less.
fn judge_scaled(runtime: &Arc<Runtime>, server: &'static str) {
    let runner = Runner {
        runtime: runtime.clone(),
        dtype: DType::F32,
        server,
    };
    for (powers, expected) in [
        (&[-100, -100, 100][..], -100),
        (&[100, 100, -100], 100),
        (&[100, 100, -100, -100], 0),
        (&[-100, -100, -60, 100, 60, 100], 0),
        (&[120, 120, -140, -100], 0),
    ] {
        let n = powers.len();
        let cell = |at: usize| match at % (n + 1) {
            0 => 2f64.powi(powers[at / n]),
            _ => 0.0,
        };
        let a = Matrix {
            rows: n,
            columns: n,
            cells: (0..n * n).map(cell).collect(),
        };
        let results = runner.run("Nx.Block.LinAlg.Determinant", &[&a], &[&[]], &[]);
        assert_eq!(results[0], vec![2f64.powi(expected); BATCH], "{powers:?}");
    }
}

#[test]
fn linear_algebra_of_the_host_is_faers() {
    let folder = Folder::new();
    let runtime = open(&folder, &["scan"]);
    judge_scaled(&runtime, "host");
    judged(&runtime, "host", |_| true);
}

#[test]
fn linear_algebra_of_the_device_is_faers() {
    let folder = Folder::new();
    let runtime = open(&folder, &["linalg"]);
    judge_scaled(&runtime, "linalg/");
    // Each size is shaders of its own, which a CPU compiles for longer than it runs.
    let is_cpu = runtime.device().summary().kind == "cpu";
    judged(&runtime, "linalg/", |n| !is_cpu || [1, 5, 33].contains(&n));
}
