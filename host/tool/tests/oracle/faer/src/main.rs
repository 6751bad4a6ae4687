//! What faer says of the matrices by which linear algebra is judged, in f64, as lines of names and numbers.

#[path = "../../../it/linear_algebra/matrices.rs"]
mod matrices;

use faer::{Mat, Side, linalg::solvers::Solve};
use matrices::{Matrix, Problem};

fn mat(a: &Matrix) -> Mat<f64> {
    Mat::from_fn(a.rows, a.columns, |i, j| a.at(i, j))
}

fn main() {
    for problem in Problem::all() {
        let dtype = if problem.is_single { "f32" } else { "f64" };
        let line = |name: &str, numbers: &[f64]| {
            // f32 is judged by fewer digits.
            let text = |number: &f64| match problem.is_single {
                true => format!("{number:.9e}"),
                false => format!("{number:e}"),
            };
            let numbers: Vec<String> = numbers.iter().map(text).collect();
            let Problem { kind, n, .. } = problem;
            println!("{dtype} {kind:?} {n} {name} {}", numbers.join(" "));
        };
        let a = mat(&problem.square());
        let values = |a: &Mat<f64>| a.singular_values().expect("singular values converge");
        let own = values(&a);
        let condition = own[0] / own[own.len() - 1];
        line("square", &own);
        line("tall", &values(&mat(&problem.tall())));
        line("wide", &values(&mat(&problem.wide())));
        let symmetric = mat(&problem.symmetric());
        let eigenvalues = symmetric.self_adjoint_eigenvalues(Side::Lower);
        line("symmetric", &eigenvalues.expect("eigenvalues converge"));
        line("determinant", &[a.determinant()]);
        // Beyond, every digit of what follows is one of rounding.
        if condition < 1e12 {
            let x = a.partial_piv_lu().solve(mat(&problem.right()));
            let x: Vec<f64> = (0..x.nrows() * x.ncols())
                .map(|at| x[(at / x.ncols(), at % x.ncols())])
                .collect();
            line("solve", &x);
            let r = a.qr().thin_R().to_owned();
            let diagonal: Vec<f64> = (0..problem.n).map(|i| r[(i, i)].abs()).collect();
            line("qr", &diagonal);
        }
        let positive = mat(&problem.positive());
        let l = positive.llt(Side::Lower).expect("it is positive definite");
        let l = l.L().to_owned();
        let last: Vec<f64> = (0..problem.n).map(|j| l[(problem.n - 1, j)]).collect();
        line("cholesky", &last);
    }
}
