//! Convolution: against its definition, term by term, and values of numpy and PyTorch.

use half::bf16;

use super::window::{indices, place};
use super::{DType, Random, Tensor, bytes_of, refusal, run, tensor};
use nx_vulkan_ops::attrs::{Attr, ints};
use nx_vulkan_ops::epilogue;
use nx_vulkan_ops::find;
use nx_vulkan_ops::infer::infer;
use nx_vulkan_ops::kernels::{Out, run_fast};
use nx_vulkan_ops::layout::LAYOUTS;
use nx_vulkan_ops::values::Rng;

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

/// Kernels that are longer than there are positions, as where the gradient of a kernel is convolved.
#[test]
fn large_kernels_are_what_the_definition_says() {
    let mut random = Random(12);
    let mut tried = 0;
    for round in 0..400 {
        let rank = 3 + round % 2;
        let mut below = |bound: u64| random.below(bound);
        let groups = [1, 2][below(2) as usize];
        let (features, batches) = [(1, 1), (groups, 1), (1, groups)][below(3) as usize];
        let mut xs = vec![batches * (1 + below(3)), features * (1 + below(3))];
        let mut ks = vec![features * batches * (1 + below(3)), xs[1] / features];
        let (mut padding, mut strides, mut holes, mut dilation) = (vec![], vec![], vec![], vec![]);
        for _ in 2..rank {
            let extent = 5 + below(14);
            xs.push(extent);
            ks.push(extent / 2 + 1 + below(extent / 2));
            padding.extend([below(4) as i64 - 1, below(4) as i64 - 1]);
            strides.push(1 + below(2) as i64);
            holes.push(1 + below(5) as i64 / 4);
            dilation.push(1 + below(4) as i64 / 3);
        }
        let mut turned = |shape: &mut Vec<u64>| {
            let mut order: Vec<i64> = (0..rank as i64).collect();
            for k in 0..rank {
                order.swap(k, below(rank as u64) as usize);
            }
            let canonical = shape.clone();
            for (extent, axis) in canonical.iter().zip(&order) {
                shape[*axis as usize] = *extent;
            }
            order
        };
        let attrs = [
            Attr::ints("batch_group_size", [batches as i64]),
            Attr::ints("feature_group_size", [features as i64]),
            Attr::ints("input_dilation", holes),
            Attr::ints("input_permutation", turned(&mut xs)),
            Attr::ints("kernel_dilation", dilation),
            Attr::ints("kernel_permutation", turned(&mut ks)),
            Attr::ints("output_permutation", turned(&mut vec![0; rank])),
            Attr::ints("padding", padding),
            Attr::ints("strides", strides),
        ];
        let specs = [&xs, &ks].map(|shape| (DType::F64, shape.clone()));
        let Ok(request) = infer(find("conv").unwrap(), &specs, None, &attrs) else {
            continue;
        };
        let (out, attrs) = (&request.outputs[0].1, &request.attrs);
        let [(x, x_values), (kernel, k_values)] =
            [&xs, &ks].map(|shape| integers(shape, &mut random));
        let expected = defined((&xs, &x_values), (&ks, &k_values), out, attrs);
        assert_eq!(
            run::<f64>("conv", &[&x, &kernel], out, attrs),
            expected,
            "{request}"
        );
        let single = |values: &[f64]| values.iter().map(|x| *x as f32).collect::<Vec<f32>>();
        let [x, kernel] =
            [(&xs, &x_values), (&ks, &k_values)].map(|(shape, x)| tensor(shape, &single(x)));
        let mut got = vec![0; 4 * expected.len()];
        let result = Out {
            dtype: DType::F32,
            shape: out,
            bytes: &mut got,
        };
        run_fast("conv", &[x.view(), kernel.view()], &mut [result], attrs).unwrap();
        let got = got.as_chunks().0.iter().map(|x| f32::from_ne_bytes(*x));
        assert_eq!(got.collect::<Vec<f32>>(), single(&expected), "{request}");
        tried += 1;
    }
    assert!(tried > 150, "{tried}");
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
