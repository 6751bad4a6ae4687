//! Convolution: against its definition, term by term, and values of numpy and PyTorch.

use half::bf16;

use super::window::{indices, place};
use super::{DType, Random, Tensor, bytes_of, refusal, run, tensor};
use crate::attrs::{Attr, ints};
use crate::contracts::find;
use crate::epilogue;
use crate::infer::infer;
use crate::layout::LAYOUTS;
use crate::split::product;
use crate::values::Rng;
use crate::{
    Step::{self, View},
    View::Reshape,
};

/// Every attribute, those that are not given with its default.
fn complete(x: &[u64], kernel: &[u64], attrs: &[Attr]) -> (Vec<u64>, Vec<Attr>) {
    let specs = [x, kernel].map(|shape| (DType::F64, shape.to_vec()));
    let request = infer(find("conv").unwrap(), &specs, None, attrs).unwrap();
    (request.outputs[0].1.clone(), request.attrs.into_owned())
}

/// The definition: the dilated and padded x, at each position the sum over channels and kernel elements.
fn defined(
    (xs, x): (&[u64], &[f64]),
    (ks, kernel): (&[u64], &[f64]),
    out: &[u64],
    attrs: &[Attr],
) -> Vec<f64> {
    let list = |name: &str| ints(attrs, name);
    let ordered = |name: &str, index: &[i64]| -> Vec<i64> {
        let mut own = vec![0; index.len()];
        list(name)
            .iter()
            .zip(index)
            .for_each(|(axis, at)| own[*axis as usize] = *at);
        own
    };
    let order = |name: &str, shape: &[u64]| -> Vec<u64> {
        list(name)
            .iter()
            .map(|axis| shape[*axis as usize])
            .collect()
    };
    let k = order("kernel_permutation", ks);
    let batch = order("input_permutation", xs)[0] as i64;
    let batches = list("batch_group_size")[0];
    let groups = batches.max(list("feature_group_size")[0]);
    let mut results = vec![f64::NAN; out.iter().product::<u64>() as usize];
    for index in indices(&order("output_permutation", out)) {
        let group = index[1] / (k[0] as i64 / groups);
        let mut sum = 0.0;
        for tap in indices(&k[1..]) {
            let mut from = vec![index[0], tap[0]];
            if batches > 1 {
                from[0] += group * (batch / batches);
            } else {
                from[1] += group * k[1] as i64;
            }
            let mut exists = true;
            for s in 0..index.len() - 2 {
                let at = index[s + 2] * list("strides")[s]
                    + tap[s + 1] * list("kernel_dilation")[s]
                    - list("padding")[2 * s];
                let holes = list("input_dilation")[s];
                exists &= at.rem_euclid(holes) == 0;
                from.push(at.div_euclid(holes));
            }
            let weight = [&[index[1]], tap.as_slice()].concat();
            let weight = kernel[place(ks, &ordered("kernel_permutation", &weight)).unwrap()];
            if let (true, Some(at)) = (exists, place(xs, &ordered("input_permutation", &from))) {
                sum += x[at] * weight;
            }
        }
        results[place(out, &ordered("output_permutation", &index)).unwrap()] = sum;
    }
    results
}

fn integers(shape: &[u64], random: &mut Random) -> (Tensor, Vec<f64>) {
    let count = shape.iter().product::<u64>() as usize;
    let values: Vec<f64> = (0..count).map(|_| random.below(15) as f64 - 7.0).collect();
    (tensor(shape, &values), values)
}

/// With small integers every sum is exact, whatever its order.
#[test]
fn every_option_is_what_the_definition_says() {
    let mut random = Random(11);
    let op = find("conv").unwrap();
    let problems = LAYOUTS
        .into_iter()
        .flat_map(|layout| op.problems(layout, DType::F64, true, &mut Rng(3)))
        .filter(|problem| !epilogue::has(&problem.attrs));
    let mut tried = 0;
    for problem in problems {
        let [xs, ks] = [&problem.inputs[0], &problem.inputs[1]];
        let (out, attrs) = complete(xs, ks, &problem.attrs);
        let terms = op.terms(&[xs, ks], &out, &attrs) * out.iter().product::<u64>();
        if terms > 1 << 20 {
            continue;
        }
        let ((x, x_values), (kernel, k_values)) =
            (integers(xs, &mut random), integers(ks, &mut random));
        assert_eq!(
            run::<f64>("conv", &[&x, &kernel], &out, &attrs),
            defined((xs, &x_values), (ks, &k_values), &out, &attrs),
            "{problem:?}"
        );
        tried += 1;
    }
    assert!(tried > 15, "{tried}");
}

/// `torch.nn.functional.conv2d(arange(16).reshape(1, 1, 4, 4), [[[[1, 2], [3, 4]]]], stride=2, padding=1)`, and
/// `numpy.convolve([1, 2, 3], [0, 1, 0.5], "full")` by a reversed kernel. PyTorch 2.11.0, numpy 2.4.6.
#[test]
fn values_of_torch_and_numpy() {
    let x: Vec<f32> = (0..16).map(|n| n as f32).collect();
    let (x, kernel) = (
        tensor(&[1, 1, 4, 4], &x),
        tensor(&[1, 1, 2, 2], &[1.0f32, 2.0, 3.0, 4.0]),
    );
    let given = [Attr::ints("padding", [1; 4]), Attr::ints("strides", [2, 2])];
    let (out, attrs) = complete(&[1, 1, 4, 4], &[1, 1, 2, 2], &given);
    assert_eq!(out, [1, 1, 3, 3]);
    assert_eq!(
        run::<f32>("conv", &[&x, &kernel], &out, &attrs),
        [0.0, 11.0, 9.0, 40.0, 84.0, 40.0, 24.0, 41.0, 15.0]
    );
    let (x, kernel) = (
        tensor(&[1, 1, 3], &[1.0f64, 2.0, 3.0]),
        tensor(&[1, 1, 3], &[0.5, 1.0, 0.0]),
    );
    let (out, attrs) = complete(&[1, 1, 3], &[1, 1, 3], &[Attr::ints("padding", [2, 2])]);
    assert_eq!(
        run::<f64>("conv", &[&x, &kernel], &out, &attrs),
        [0.0, 1.0, 2.5, 4.0, 1.5]
    );
}

#[test]
fn integers_and_narrow_floats_are_summed_as_floats() {
    let (out, attrs) = complete(&[1, 1, 3], &[1, 1, 2], &[]);
    let (x, kernel) = (
        tensor(&[1, 1, 3], &[200u8, 100, 50]),
        tensor(&[1, 1, 2], &[-2i16, 3]),
    );
    assert_eq!(
        run::<f32>("conv", &[&x, &kernel], &out, &attrs),
        [-100.0, -50.0]
    );
    let ones = vec![bf16::ONE; 1024];
    let x = tensor(&[1, 1024, 1], &ones);
    let (out, attrs) = complete(&[1, 1024, 1], &[1, 1024, 1], &[]);
    assert_eq!(
        run::<bf16>("conv", &[&x, &x], &out, &attrs),
        [bf16::from_f32(1024.0)]
    );
}

#[test]
fn bad_convolutions_are_refused() {
    let x = tensor(&[2, 4, 5], &[0.0f32; 40]);
    let kernel = tensor(&[6, 4, 2], &[0.0f32; 48]);
    let (out, attrs) = complete(&[2, 4, 5], &[6, 4, 2], &[]);
    let refuse = |name: &str, list: &[i64]| {
        let mut attrs = attrs.clone();
        attrs.retain(|attr| attr.name != name);
        attrs.push(Attr::ints(name, list));
        refusal(bytes_of("conv", &[&x, &kernel], DType::F32, &out, &attrs))
    };
    let why = refuse("strides", &[0]);
    assert!(
        why.contains("conv of (f32[2, 4, 5], f32[6, 4, 2])") && why.contains("strides"),
        "{why}"
    );
    assert!(refuse("padding", &[0]).contains("padding"));
    assert!(refuse("input_permutation", &[0, 1, 1]).contains("input_permutation"));
    assert!(refuse("output_permutation", &[0, 1]).contains("output_permutation"));
    assert!(refuse("feature_group_size", &[2]).contains("channels"));
    assert!(refuse("batch_group_size", &[4]).contains("do not divide"));
    assert!(refuse("batch_group_size", &[0]).contains("batch_group_size"));
    assert!(refuse("strides", &[2]).contains("the result has the shape [2, 6, 2]"));
    let flat = tensor(&[2, 4], &[0.0f32; 8]);
    let why = refusal(bytes_of("conv", &[&x, &flat], DType::F32, &out, &attrs));
    assert!(why.contains("same number of axes"), "{why}");
}

#[test]
fn extents_of_a_dilated_x_end_at_both_ends() {
    let options = |low: i64, dilation: i64| {
        [
            Attr::ints("padding", [low, 1]),
            Attr::ints("input_dilation", [dilation]),
            Attr::ints("strides", [dilation]),
        ]
    };
    // Nothing with holes between is nothing.
    for dilation in [1, 2, 5] {
        let attrs = &options(2 * dilation - 1, dilation)[..];
        assert_eq!(complete(&[1, 1, 0], &[1, 1, 1], attrs).0, [1, 1, 2]);
        assert_eq!(complete(&[1, 1, 1], &[1, 1, 1], attrs).0, [1, 1, 3]);
    }
    let specs = [[1, 1, 1 << 50], [1, 1, 1]].map(|shape| (DType::F32, shape.to_vec()));
    let huge = infer(
        find("conv").unwrap(),
        &specs,
        None,
        &options(0, (1 << 31) - 1),
    );
    let why = huge.unwrap_err().to_string();
    assert!(
        why.contains("too many elements once it is dilated"),
        "{why}"
    );
}

#[test]
fn kernels_of_one_element_with_channels_last_are_products() {
    let last = |name: &str| Attr::ints(name, [0, 3, 1, 2]);
    let of = |order: [i64; 4], kernel: [u64; 4], further: &[Attr]| {
        let orders = [
            last("input_permutation"),
            Attr::ints("kernel_permutation", order),
            last("output_permutation"),
        ];
        let given = |attr: &Attr| further.iter().any(|other| other.name == attr.name);
        let orders = orders.into_iter().filter(|attr| !given(attr));
        let attrs: Vec<Attr> = orders.chain(further.iter().cloned()).collect();
        let specs = [[2, 3, 5, 4], kernel].map(|shape| (DType::F64, shape.to_vec()));
        infer(find("conv").unwrap(), &specs, None, &attrs).unwrap()
    };
    let precision = [Attr::text("precision", "high")];
    for (order, kernel, contract) in [
        ([3, 2, 0, 1], [1, 1, 4, 6], 0),
        ([1, 3, 0, 2], [1, 6, 1, 4], 1),
    ] {
        let request = of(order, kernel, &precision);
        let program = product(&request).unwrap().unwrap();
        let [
            View(0, Reshape(rows)),
            View(1, Reshape(matrix)),
            Step::Request(dot),
            View(4, Reshape(shape)),
        ] = program.steps()
        else {
            panic!("{program:?}")
        };
        assert_eq!((&**rows, &*dot.op), (&[30, 4][..], "dot"));
        assert_eq!(*shape, request.outputs[0].1);
        let specs = [rows, matrix].map(|shape| (DType::F64, shape.clone()));
        dot.over(specs.to_vec()).check().unwrap();
        assert_eq!(ints(&dot.attrs, "contract_b"), [contract]);
        assert!(dot.attrs.contains(&precision[0]));

        // Whole numbers: sums in any order are the same.
        let mut random = Random(7);
        let [x, k] = [120, 24]
            .map(|n| -> Vec<f64> { (0..n).map(|_| random.below(9) as f64 - 4.0).collect() });
        let conv: Vec<f64> = run(
            "conv",
            &[&tensor(&[2, 3, 5, 4], &x), &tensor(&kernel, &k)],
            shape,
            &request.attrs,
        );
        let (x, k) = (tensor(rows, &x), tensor(matrix, &k));
        let product: Vec<f64> = run("dot", &[&x, &k], &[30, 6], &dot.attrs);
        assert_eq!(conv, product);
    }
    let is_one = |kernel, further: &[Attr]| {
        let request = of([3, 2, 0, 1], kernel, further);
        product(&request).unwrap().is_some()
    };
    let one = [1, 1, 4, 6];
    assert!(is_one(one, &[]));
    for attr in [
        Attr::ints("strides", [2, 1]),
        Attr::ints("padding", [0, 0, 1, 0]),
        Attr::ints("input_dilation", [1, 2]),
        Attr::ints("batch_group_size", [2]),
        Attr::ints("output_permutation", [0, 1, 2, 3]),
    ] {
        assert!(!is_one(one, std::slice::from_ref(&attr)), "{attr:?}");
    }
    assert!(!is_one([1, 2, 4, 6], &[]));
    assert!(!is_one(
        [1, 1, 2, 6],
        &[Attr::ints("feature_group_size", [2])]
    ));
    let spec = |dtype: DType, shape: &[u64]| (dtype, shape.to_vec());

    // Factors of other types are converted.
    let mut mixed = of([3, 2, 0, 1], one, &[]);
    mixed.inputs.to_mut()[1].0 = DType::F32;
    let program = product(&mixed).unwrap().unwrap();
    let Step::Request(convert) = &program.steps()[2] else {
        panic!("{program:?}")
    };
    assert_eq!(
        (&*convert.op, &convert.outputs[0]),
        ("as_type", &spec(DType::F64, &[4, 6]))
    );

    // An epilogue goes along where its operands are a number, a row, a column or everything.
    let finished = |operands: &[&[u64]], types: [DType; 3]| {
        let adds = (0..operands.len()).map(|n| format!("; add(%{n}, i{})", n + 2));
        let text = "max(x, 0)".to_owned() + &adds.collect::<String>();
        let mut request = of([3, 2, 0, 1], one, &[]);
        request.attrs.to_mut().push(Attr::text("epilogue", &text));
        let inputs = request.inputs.to_mut();
        inputs[0].0 = types[0];
        inputs[1].0 = types[1];
        inputs.extend(operands.iter().map(|shape| spec(DType::F32, shape)));
        request.outputs.to_mut()[0].0 = types[2];
        product(&request).unwrap()
    };
    let floats = [DType::BF16, DType::BF16, DType::F32];
    let all: [&[u64]; 5] = [&[], &[6], &[1, 1, 1, 6], &[2, 3, 5, 6], &[2, 3, 5, 1]];
    let program = finished(&all, floats).unwrap();
    let [.., Step::Request(dot), View(_, Reshape(_))] = program.steps() else {
        panic!("{program:?}")
    };
    let shapes = program.steps()[2..7].iter().map(|step| match step {
        View(_, Reshape(shape)) => shape.clone(),
        other => panic!("{other:?}"),
    });
    let shapes: Vec<Vec<u64>> = shapes.collect();
    assert_eq!(
        shapes,
        [vec![1], vec![6], vec![6], vec![30, 6], vec![30, 1]]
    );
    let mut specs = vec![spec(DType::BF16, &[30, 4]), spec(DType::BF16, &[4, 6])];
    specs.extend(shapes.iter().map(|shape| spec(DType::F32, shape)));
    dot.over(specs).check().unwrap();
    assert_eq!(dot.outputs[0], spec(DType::F32, &[30, 6]));
    assert!(finished(&[&[3, 1, 6]], floats).is_none());
    assert!(finished(&[], [DType::BF16, DType::F32, DType::F32]).is_none());
}
