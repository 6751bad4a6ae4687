//! Convolutions that are products of matrices.

use super::{DType, Random, run, tensor};
use nx_vulkan_ops::attrs::{Attr, ints};
use nx_vulkan_ops::find;
use nx_vulkan_ops::infer::infer;
use nx_vulkan_ops::split::product;
use nx_vulkan_ops::{
    Step::{self, View},
    View::{Broadcast, Reshape, Slice},
};

/// Whole numbers: sums of their products are the same in any order.
fn numbers(random: &mut Random, count: usize) -> Vec<f64> {
    let numbers = (0..count).map(|_| random.below(9) as f64 - 4.0);
    numbers.collect()
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

        let mut random = Random(7);
        let [x, k] = [120, 24].map(|n| numbers(&mut random, n));
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
        Attr::ints("padding", [0, 0, 1, 0]),
        Attr::ints("padding", [0, 0, 0, 1]),
        Attr::ints("padding", [0, 0, 0, -1]),
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
        [vec![1, 1], vec![1, 6], vec![1, 6], vec![30, 6], vec![30, 1]]
    );
    let mut specs = vec![spec(DType::BF16, &[30, 4]), spec(DType::BF16, &[4, 6])];
    specs.extend(shapes.iter().map(|shape| spec(DType::F32, shape)));
    dot.over(specs).check().unwrap();
    assert_eq!(dot.outputs[0], spec(DType::F32, &[30, 6]));
    assert!(finished(&[&[3, 1, 6]], floats).is_none());
    // Factors of other types are multiplied in that of the sums.
    for (factors, sum) in [
        ([DType::BF16, DType::F32], DType::F32),
        ([DType::S8, DType::U8], DType::F32),
        ([DType::F64, DType::F32], DType::F64),
    ] {
        let program = finished(&[], [factors[0], factors[1], DType::F32]).unwrap();
        let casts = program.steps().iter().filter_map(|step| match step {
            Step::Request(request) if &*request.op == "as_type" => Some(request.outputs[0].0),
            _ => None,
        });
        let other = factors.iter().filter(|factor| **factor != sum).count();
        assert_eq!(casts.collect::<Vec<_>>(), vec![sum; other]);
        let [.., Step::Request(dot), _] = program.steps() else {
            panic!("{program:?}")
        };
        let specs = [spec(sum, &[30, 4]), spec(sum, &[4, 6])];
        dot.over(specs.to_vec()).check().unwrap();
    }
}

#[test]
fn kernels_of_one_element_with_channels_first_are_products_with_planes() {
    let mut random = Random(11);
    for batches in [1, 3] {
        for (order, kernel, axis) in [
            ([0, 1, 2, 3], [6, 4, 1, 1], 1),
            ([3, 1, 0, 2], [1, 4, 1, 6], 0),
        ] {
            let attrs = [Attr::ints("kernel_permutation", order)];
            let x_shape = [batches, 4, 2, 5];
            let specs = [x_shape, kernel].map(|shape| (DType::F64, shape.to_vec()));
            let request = infer(find("conv").unwrap(), &specs, None, &attrs).unwrap();
            let program = product(&request).unwrap().unwrap();
            let (x, k) = (
                numbers(&mut random, 40 * batches as usize),
                numbers(&mut random, 24),
            );
            let conv: Vec<f64> = run(
                "conv",
                &[&tensor(&x_shape, &x), &tensor(&kernel, &k)],
                &request.outputs[0].1,
                &request.attrs,
            );
            let [
                View(0, Reshape(planes)),
                View(1, Reshape(matrix)),
                repeated @ ..,
                Step::Request(dot),
                View(_, Reshape(shape)),
            ] = program.steps()
            else {
                panic!("{program:?}")
            };
            assert_eq!(*shape, request.outputs[0].1);
            let (factor, k, sums) = match repeated {
                [] => (matrix.clone(), k, vec![6, 10]),
                [View(3, Broadcast(all, axes))] => {
                    assert_eq!((&all[1..], &axes[..]), (&matrix[..], &[1, 2][..]));
                    let repeated = k.repeat(batches as usize);
                    (all.clone(), repeated, vec![batches, 6, 10])
                }
                other => panic!("{other:?}"),
            };
            let batch: &[i64] = if batches > 1 { &[0] } else { &[] };
            assert_eq!(ints(&dot.attrs, "batch_a"), batch);
            let contracted = ints(&dot.attrs, "contract_a");
            assert_eq!(contracted, [axis + batch.len() as i64]);
            assert_eq!(dot.outputs[0].1, sums);
            let (x, k) = (tensor(planes, &x), tensor(&factor, &k));
            let found: Vec<f64> = run("dot", &[&k, &x], &sums, &dot.attrs);
            assert_eq!(conv, found, "{batches} {order:?}");
        }
    }
}

#[test]
fn positions_that_are_left_out_are_left_out_of_the_product() {
    let mut random = Random(13);
    let last = |name: &str| Attr::ints(name, [0, 3, 1, 2]);
    let strides = Attr::ints("strides", [3, 2]);
    let channels_last = vec![
        last("input_permutation"),
        Attr::ints("kernel_permutation", [3, 2, 0, 1]),
        last("output_permutation"),
        strides.clone(),
    ];
    for (attrs, x_shape, kernel, steps) in [
        (
            vec![strides],
            [2u64, 4, 7, 5],
            [6, 4, 1, 1],
            [1u64, 1, 3, 2],
        ),
        (channels_last, [2, 7, 5, 4], [1, 1, 4, 6], [1, 3, 2, 1]),
    ] {
        let specs = [x_shape, kernel].map(|shape| (DType::F64, shape.to_vec()));
        let request = infer(find("conv").unwrap(), &specs, None, &attrs).unwrap();
        let program = product(&request).unwrap().unwrap();
        let (x, k) = (numbers(&mut random, 280), numbers(&mut random, 24));
        let conv: Vec<f64> = run(
            "conv",
            &[&tensor(&x_shape, &x), &tensor(&kernel, &k)],
            &request.outputs[0].1,
            &request.attrs,
        );
        let [
            View(0, Slice(starts, met, strides)),
            View(2, Reshape(_)),
            ..,
            View(_, Reshape(shape)),
        ] = program.steps()
        else {
            panic!("{program:?}")
        };
        assert_eq!((&starts[..], &strides[..]), (&[0; 4][..], &steps[..]));
        assert_eq!(*shape, request.outputs[0].1);
        // The same convolution of what is met, without strides.
        let indices = (0..280u64).filter(|index| {
            let mut rest = *index;
            let axes = x_shape.iter().zip(steps).rev();
            axes.fold(true, |is_met, (extent, step)| {
                let at = rest % extent;
                rest /= extent;
                is_met && at % step == 0
            })
        });
        let rows: Vec<f64> = indices.map(|index| x[index as usize]).collect();
        let whole: Vec<Attr> = attrs
            .into_iter()
            .filter(|attr| attr.name != "strides")
            .collect();
        let specs = [met.clone(), kernel.to_vec()].map(|shape| (DType::F64, shape));
        let without = infer(find("conv").unwrap(), &specs, None, &whole).unwrap();
        let found: Vec<f64> = run(
            "conv",
            &[&tensor(met, &rows), &tensor(&kernel, &k)],
            shape,
            &without.attrs,
        );
        assert_eq!(conv, found);
        assert_eq!(
            program.steps()[1..].len(),
            product(&without).unwrap().unwrap().steps().len()
        );
    }
}

#[test]
fn a_single_position_is_a_row() {
    let of = |shapes: [&[u64]; 2]| {
        let specs = shapes.map(|shape| (DType::F32, shape.to_vec()));
        let request = infer(find("conv").unwrap(), &specs, None, &[]).unwrap();
        let program = product(&request).unwrap().unwrap();
        let [
            View(0, Reshape(rows)),
            View(1, Reshape(matrix)),
            Step::Request(dot),
            View(4, Reshape(_)),
        ] = program.steps()
        else {
            panic!("{program:?}")
        };
        let specs = [rows, matrix].map(|shape| (DType::F32, shape.clone()));
        dot.over(specs.to_vec()).check().unwrap();
        dot.outputs[0].1.clone()
    };
    assert_eq!(of([&[8, 4, 1, 1], &[6, 4, 1, 1]]), [8, 6]);
    assert_eq!(of([&[1, 4, 1], &[6, 4, 1]]), [1, 6]);
    assert_eq!(of([&[2, 1, 1, 1, 1], &[1, 1, 1, 1, 1]]), [2, 1]);
}

#[test]
fn what_follows_a_product_with_planes_has_all_positions_or_none() {
    let attrs = [Attr::text(
        "epilogue",
        "max(x, 0); add(%0, i2); multiply(%1, i3)",
    )];
    let of = |x: [u64; 4], further: [&[u64]; 2]| {
        let [b, _, h, w] = x;
        let shapes = [&x[..], &[6, 4, 1, 1], further[0], further[1]];
        let specs = shapes.map(|shape| (DType::F32, shape.to_vec()));
        let out = (DType::F32, vec![b, 6, h, w]);
        let request = infer(find("conv").unwrap(), &specs, Some(out), &attrs).unwrap();
        let program = product(&request).unwrap()?;
        let shapes = program.steps()[2..4].iter().map(|step| match step {
            View(_, Reshape(shape)) => shape.clone(),
            other => panic!("{other:?}"),
        });
        let further: Vec<Vec<u64>> = shapes.collect();
        let dot = program.steps().iter().find_map(|step| match step {
            Step::Request(dot) => Some(dot),
            View(..) => None,
        });
        let batch: &[u64] = if b > 1 { &[b] } else { &[] };
        let factors = [[batch, &[6, 4]].concat(), [batch, &[4, h * w]].concat()];
        let specs = [&factors[..], &further[..]].concat();
        let specs: Vec<_> = specs.into_iter().map(|shape| (DType::F32, shape)).collect();
        dot.unwrap().over(specs).check().unwrap();
        Some(further)
    };
    let (one, three) = ([1, 4, 2, 5], [3, 4, 2, 5]);
    let bias: &[u64] = &[6, 1, 1];
    assert_eq!(of(one, [bias, &[]]), Some(vec![vec![6, 1], vec![1, 1]]));
    assert_eq!(
        of(three, [bias, &[3, 6, 2, 5]]),
        Some(vec![vec![1, 6, 1], vec![3, 6, 10]])
    );
    assert_eq!(
        of(three, [&[3, 6, 1, 1], &[2, 5]]),
        Some(vec![vec![3, 6, 1], vec![1, 1, 10]])
    );
    assert_eq!(of(one, [bias, &[5]]), None);
    assert_eq!(of(three, [&[3, 1, 2, 1], bias]), None);
}
