//! What is accepted of ill-conditioned matrices, and what is not of any.

use super::*;
use crate::sweep::{
    cases::request,
    judge::{Expected, judge},
    numbers::largest,
};
use nx_vulkan_abi::layout::contiguous_strides;
use nx_vulkan_ops::{
    find,
    layout::Layout,
    op::Types,
    problems::Problem,
    tolerance::{Growth, Tolerance},
    values::Values,
};

/// What an elimination leaves of a number when a product of two is taken from it.
type Step = fn(f32, f32, f32) -> f32;

const FUSED: Step = |x, factor, above| (-factor).mul_add(above, x);
const ROUNDED_TWICE: Step = |x, factor, above| x - factor * above;

/// Its pivot of the fourth column is a difference of nearly equal numbers (seed 61).
const NEARLY_EQUAL: [u64; 25] = [
    20, 6575, 18609, 21961, 8900, //
    4365, 25421, 22503, 27629, 16705, //
    605, 7964, 10209, 12393, 11662, //
    27717, 27803, 12980, 12637, 20660, //
    28096, 17995, 16584, 15615, 27905,
];

const ORDINARY: [u64; 25] = [
    8914, 22457, 23712, 6617, 25228, //
    12614, 14393, 11492, 11328, 23158, //
    6724, 26596, 29201, 19526, 22310, //
    6066, 15462, 29823, 2416, 12980, //
    8091, 1658, 26141, 3967, 1638,
];

/// A nearly singular system, and its right sides (seed 12).
const NEARLY_SINGULAR: [[u64; 36]; 2] = [
    [
        3479, 13003, 7000, 3630, 7881, 4874, //
        29679, 6491, 1993, 13028, 29442, 26110, //
        7778, 16663, 11276, 25804, 28851, 18243, //
        7972, 27868, 8648, 24385, 6715, 26697, //
        17292, 16167, 14141, 6997, 8889, 14683, //
        16169, 2106, 23894, 8075, 6125, 5502,
    ],
    [
        14293, 19467, 24384, 21535, 27456, 5890, //
        8979, 2720, 8104, 19484, 10923, 10478, //
        26192, 3004, 26441, 13170, 20679, 21386, //
        24795, 12715, 26355, 14225, 3390, 27403, //
        21397, 13662, 13417, 22816, 12502, 576, //
        3390, 16593, 14838, 23953, 17646, 13893,
    ],
];

/// Matrices for an op, with what the host makes of them.
struct Trial {
    case: Case,
    results: Vec<Vec<u8>>,
    sensitivities: Vec<Vec<f64>>,
}

impl Trial {
    fn new(op: &str, matrices: &[&[u64]]) -> Trial {
        let op = find(op).unwrap();
        let n = matrices[0].len().isqrt() as u64;
        let types = Types {
            inputs: vec![DType::U64; matrices.len()],
            output: None,
        };
        let problem = Problem {
            inputs: vec![vec![n, n]; matrices.len()],
            output: Vec::new(),
            attrs: Vec::new(),
        };
        let outputs = request(op, &types, &problem).unwrap().1.outputs.to_vec();
        let case = Case {
            op,
            inputs: Vec::new(),
            outputs,
            attrs: Vec::new(),
            layout: Layout::Contiguous,
            values: Values::Finite,
            seed: 1,
        };
        let bytes = matrices.iter().map(|matrix| {
            let bytes = matrix.iter().flat_map(|x| x.to_le_bytes());
            bytes.collect::<Vec<u8>>()
        });
        let bytes: Vec<Vec<u8>> = bytes.collect();
        let shape = [n, n];
        let strides = contiguous_strides(&shape);
        let view = |bytes| View {
            dtype: DType::U64,
            shape: &shape,
            strides: &strides,
            offset: 0,
            bytes,
        };
        let inputs: Vec<View<'_>> = bytes.iter().map(|bytes| view(bytes)).collect();
        let zeros = |(dtype, shape): &Spec| {
            vec![0; (dtype.size() * shape.iter().product::<u64>()) as usize]
        };
        let mut results: Vec<Vec<u8>> = case.outputs.iter().map(zeros).collect();
        let outs = case.outputs.iter().zip(&mut results);
        let outs = outs.map(|((dtype, shape), bytes)| Out {
            dtype: *dtype,
            shape,
            bytes,
        });
        kernels::run(op.name, &inputs, &mut outs.collect::<Vec<_>>(), &[]).unwrap();
        let sensitivities = sensitivities(&case, &inputs);
        Trial {
            case,
            results,
            sensitivities,
        }
    }

    /// Whether numbers are accepted as the result of that index, by the op's row and by one that knows no condition.
    fn accepts(&self, index: usize, got: &[f32]) -> [bool; 2] {
        let (op, shape) = (self.case.op, &self.case.outputs[index].1[..]);
        let own = &self.results[index];
        let expected = Expected {
            dtype: DType::F32,
            bytes: own,
            others: &[],
            magnitudes: Some(&vec![largest(DType::F32, own); got.len()]),
            terms: op.terms(&[shape], shape, &[]),
            sensitivities: Some(&self.sensitivities[index]),
            slack: None,
        };
        let knowing = op.tolerance(&[DType::U64], DType::F32);
        let blind = Tolerance {
            growth: Growth::Steps,
            ..knowing
        };
        let got: Vec<u8> = got.iter().flat_map(|x| x.to_le_bytes()).collect();
        [knowing, blind].map(|tolerance| judge(&expected, &got, &tolerance).wrong.is_none())
    }

    fn numbers(&self, index: usize) -> Vec<f32> {
        let (all, _) = self.results[index].as_chunks();
        all.iter().map(|bytes| f32::from_le_bytes(*bytes)).collect()
    }
}

/// The factors in f32, one over the other, and the order of the rows. A quotient is a product with the reciprocal of the
/// pivot, as some devices divide.
fn eliminated(matrix: &[u64], step: Step) -> (Vec<f32>, Vec<usize>) {
    let n = matrix.len().isqrt();
    let mut a: Vec<f32> = matrix.iter().map(|x| *x as f32).collect();
    let mut rows: Vec<usize> = (0..n).collect();
    for k in 0..n {
        let better = |best: usize, i: usize| match a[i * n + k].abs() > a[best * n + k].abs() {
            true => i,
            false => best,
        };
        let pivot = (k..n).fold(k, better);
        rows.swap(k, pivot);
        (0..n).for_each(|j| a.swap(k * n + j, pivot * n + j));
        for i in k + 1..n {
            a[i * n + k] *= 1.0 / a[k * n + k];
            for j in k + 1..n {
                a[i * n + j] = step(a[i * n + j], a[i * n + k], a[k * n + j]);
            }
        }
    }
    (a, rows)
}

fn lower(factors: &[f32]) -> Vec<f32> {
    let n = factors.len().isqrt();
    let cell = |at: usize| match (at / n).cmp(&(at % n)) {
        std::cmp::Ordering::Less => 0.0,
        std::cmp::Ordering::Equal => 1.0,
        std::cmp::Ordering::Greater => factors[at],
    };
    (0..n * n).map(cell).collect()
}

fn upper(factors: &[f32]) -> Vec<f32> {
    let n = factors.len().isqrt();
    let cell = |at: usize| if at / n > at % n { 0.0 } else { factors[at] };
    (0..n * n).map(cell).collect()
}

fn solved([a, b]: &[[u64; 36]; 2], step: Step) -> Vec<f32> {
    let n = a.len().isqrt();
    let (factors, rows) = eliminated(a, step);
    let mut x: Vec<f32> = (0..n * n)
        .map(|at| b[rows[at / n] * n + at % n] as f32)
        .collect();
    for side in 0..n {
        for i in 0..n {
            for k in 0..i {
                x[i * n + side] = step(x[i * n + side], factors[i * n + k], x[k * n + side]);
            }
        }
        for i in (0..n).rev() {
            for k in i + 1..n {
                x[i * n + side] = step(x[i * n + side], factors[i * n + k], x[k * n + side]);
            }
            x[i * n + side] /= factors[i * n + i];
        }
    }
    x
}

fn system() -> Trial {
    let [a, b] = &NEARLY_SINGULAR;
    Trial::new("Nx.Block.LinAlg.Solve", &[a, b])
}

#[test]
fn results_may_be_as_far_off_as_an_ill_conditioned_matrix_makes_them() {
    let trial = Trial::new("Nx.Block.LinAlg.LU", &[&NEARLY_EQUAL]);
    let mut refused = false;
    for step in [FUSED, ROUNDED_TWICE] {
        let (factors, _) = eliminated(&NEARLY_EQUAL, step);
        let lower = trial.accepts(1, &lower(&factors));
        assert!(lower[0] && trial.accepts(2, &upper(&factors))[0]);
        refused |= !lower[1];
        assert_eq!(
            system().accepts(0, &solved(&NEARLY_SINGULAR, step)),
            [true, false]
        );
    }
    assert!(refused);
}

#[test]
fn one_wrong_element_of_a_well_conditioned_problem_is_refused() {
    let trial = Trial::new("Nx.Block.LinAlg.LU", &[&ORDINARY]);
    let (factors, _) = eliminated(&ORDINARY, FUSED);
    assert!(trial.accepts(1, &lower(&factors))[0] && trial.accepts(2, &upper(&factors))[0]);
    for index in [1, 2] {
        let own = trial.numbers(index);
        let largest = own.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        for at in 0..own.len() {
            let mut wrong = own.clone();
            wrong[at] += 1e-4 * largest;
            assert_eq!(trial.accepts(index, &wrong), [false; 2], "{index} {at}");
        }
    }
}

#[test]
fn a_broken_kernel_is_refused_on_ill_conditioned_matrices_too() {
    let trial = Trial::new("Nx.Block.LinAlg.LU", &[&NEARLY_EQUAL]);
    let narrow: Step = |x, factor, above| x - half::f16::from_f32(factor).to_f32() * above;
    let (factors, _) = eliminated(&NEARLY_EQUAL, narrow);
    assert!(!trial.accepts(1, &lower(&factors))[0]);
    assert!(!system().accepts(0, &solved(&NEARLY_SINGULAR, narrow))[0]);
    for index in [1, 2] {
        // What the pivot of few digits does not reach is held to what it was.
        let mut wrong = trial.numbers(index);
        wrong[6] += 1e-4 * wrong.iter().fold(0.0f32, |most, x| most.max(x.abs()));
        assert!(!trial.accepts(index, &wrong)[0]);
    }
}

#[test]
fn of_equal_candidates_none_becomes_the_pivot_by_chance() {
    let ties = [7, 3, 5, 7, 1, 2, 7, 9, 4];
    let trial = Trial::new("Nx.Block.LinAlg.LU", &[&ties]);
    let most = trial.sensitivities.iter().flatten();
    assert!(most.fold(0.0f64, |most, x| most.max(*x)) < 100.0);
}
