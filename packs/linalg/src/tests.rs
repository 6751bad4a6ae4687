//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo, Features};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files, gpu};

/// A request of f32 that is planned at once, or of another type that has to be cast.
fn ask(kernel: &str, dtype: DType, batch: &[u64], m: u64, n: u64) -> Ask {
    let result = if dtype.is_integer() {
        DType::F32
    } else {
        dtype
    };
    let tensor = |dtype: DType, matrix: &[u64]| Tensor::new(dtype, &[batch, matrix].concat());
    let (a, k) = (tensor(dtype, &[m, n]), m.min(n));
    let outs = |shapes: &[&[u64]]| -> Vec<Tensor> {
        shapes.iter().map(|shape| tensor(result, shape)).collect()
    };
    let (inputs, outputs) = match kernel {
        "triangular_solve" | "solve" => (vec![a, tensor(dtype, &[n, 5])], outs(&[&[n, 5]])),
        "lu" => {
            let [l, u] = [tensor(result, &[n, n]), tensor(result, &[n, n])];
            (vec![a.clone()], vec![a, l, u])
        }
        "determinant" => (vec![a], outs(&[&[]])),
        "qr" => (vec![a], outs(&[&[m, k], &[k, n]])),
        "eigh" => (vec![a], outs(&[&[n], &[n, n]])),
        "svd" => (vec![a], outs(&[&[m, m], &[k], &[n, n]])),
        _ => (vec![a], outs(&[&[n, n]])),
    };
    Pack { describe, plan }.ask(kernel, &inputs, &outputs)
}

#[test]
fn every_kernel_plans_small_and_large_matrices() {
    for kernel in KERNELS {
        for dtype in [DType::F32, DType::F64] {
            for n in [1, 2, 3, 4, 31, 32, 33, 64, 65, 300] {
                let answer = ask(kernel.id, dtype, &[2, 3], n, n).plan();
                let casts = dtype == DType::F32 && ["eigh", "svd"].contains(&kernel.id);
                assert_eq!(casts, answer.is_err(), "{} {n} {answer:?}", kernel.id);
                let narrow = DeviceInfo {
                    features: Features(!Features::FP64.0),
                    ..gpu()
                };
                let answer = ask(kernel.id, dtype, &[], n, n).on(narrow).plan();
                assert_eq!(
                    dtype == DType::F32,
                    answer.is_ok(),
                    "{} {n} {answer:?}",
                    kernel.id
                );
            }
        }
    }
    for (kernel, m, n) in [
        ("qr", 9, 70),
        ("qr", 70, 9),
        ("svd", 90, 40),
        ("svd", 70, 300),
    ] {
        ask(kernel, DType::F64, &[2], m, n).plan().unwrap();
    }
}

#[test]
fn tall_matrices_need_no_more_buffers_than_a_plan_has() {
    for (m, n) in [(90_000, 100), (100, 90_000), (500_000, 16), (3_000, 700)] {
        let tensor = |shape: &[u64]| Tensor::new(DType::F64, shape);
        let (a, k) = (tensor(&[m, n]), m.min(n));
        let outputs = [tensor(&[m, k]), tensor(&[k]), tensor(&[k, n])];
        let pack = Pack { describe, plan };
        let svd = pack.ask("svd", &[a], &outputs);
        let plan = svd.ints("full_matrices?", &[0]).plan().unwrap();
        assert!(files(&plan).contains(&"reflect.comp"), "{m} {n}");
    }
}

#[test]
fn complex_matrices_go_in_smaller_blocks() {
    let kernels = KERNELS.iter().filter(|kernel| kernel.id != "svd");
    for kernel in kernels {
        for dtype in [DType::C64, DType::C128] {
            for n in [1, 2, 3, 4, 32, 33, 65, 300] {
                let answer = ask(kernel.id, dtype, &[2, 3], n, n).plan();
                let casts = dtype == DType::C64 && kernel.id == "eigh";
                assert_eq!(casts, answer.is_err(), "{} {n} {answer:?}", kernel.id);
                let narrow = DeviceInfo {
                    features: Features(!Features::FP64.0),
                    ..gpu()
                };
                let answer = ask(kernel.id, dtype, &[], n, n).on(narrow).plan();
                assert_eq!(dtype == DType::C64, answer.is_ok(), "{} {n}", kernel.id);
            }
        }
    }
    let plan = ask("cholesky", DType::C64, &[7], 70, 70).plan().unwrap();
    let steps = ["update.comp", "substitute.comp", "update.comp"];
    assert_eq!(files(&plan), steps);
    assert_eq!(plan.steps[1].repetition(), Some((2, 2)));
    assert_eq!(plan.steps[2].counter(), Some((2, 32)));
    assert_eq!(defined(&plan, 1, "CONJUGATED"), "1");
    // A workgroup may factor 64 rows, but what is substituted in one step is a block.
    for (n, one) in [(32, true), (33, false), (64, false)] {
        let plan = ask("solve", DType::C64, &[], n, n).plan().unwrap();
        assert_eq!(files(&plan).contains(&"panel.comp"), one, "{n}");
        let lu = ask("lu", DType::C64, &[], n, n).plan().unwrap();
        assert_eq!(files(&lu), ["panel.comp", "factors.comp"], "{n}");
    }
    // Eigenvectors of what reflections leave are real.
    let plan = ask("eigh", DType::C128, &[], 100, 100).plan().unwrap();
    let types: Vec<(&str, &str)> = files(&plan)
        .into_iter()
        .zip((0..).map(|step| defined(&plan, step, "WORK")))
        .collect();
    for (file, work) in [
        ("tridiagonal.comp", "dvec2"),
        ("leaf.comp", "double"),
        ("product.comp", "double"),
        ("restore.comp", "dvec2"),
    ] {
        assert!(types.contains(&(file, work)), "{types:?}");
    }
}

#[test]
fn what_is_no_contiguous_tensor_from_the_start_is_asked_for() {
    let wants = |ask: Ask| match ask.plan() {
        Err(Refusal::InputsAs(wanted)) => wanted.iter().map(|input| input.dtype).collect(),
        other => panic!("{other:?}"),
    };
    let wanted: Vec<DType> = wants(ask("solve", DType::U8, &[], 4, 4));
    assert_eq!(wanted, [DType::F32; 2]);
    let mut shifted = ask("cholesky", DType::F32, &[], 4, 4);
    shifted.inputs[0] = shifted.inputs[0].clone().strided(&[4, 1], 4);
    assert_eq!(wants(shifted), [DType::F32]);
    assert_eq!(wants(ask("eigh", DType::F32, &[], 4, 4)), [DType::F64]);
}

#[test]
fn small_matrices_are_one_workgroups() {
    let plan = |kernel, n| ask(kernel, DType::F64, &[7], n, n).plan().unwrap();
    assert_eq!(files(&plan("cholesky", 60)), ["cholesky.comp"]);
    assert_eq!(files(&plan("lu", 64)), ["panel.comp", "factors.comp"]);
    assert_eq!(files(&plan("eigh", 32)), ["eigh.comp"]);
    assert_eq!(plan("eigh", 32).steps[0].groups, [7, 1, 1]);
    assert_eq!(
        files(&plan("eigh", 60))[..2],
        ["largest.comp", "scaled.comp"]
    );
    assert_eq!(files(&plan("determinant", 3)), ["determinant.comp"]);
    let few = DeviceInfo {
        shared_bytes: 16 << 10,
        ..cpu()
    };
    let plan = ask("eigh", DType::F64, &[], 60, 60).on(few).plan().unwrap();
    assert_eq!(files(&plan)[..2], ["largest.comp", "scaled.comp"]);
}

#[test]
fn larger_matrices_go_in_blocks() {
    let plan = |kernel, n| ask(kernel, DType::F64, &[7], n, n).plan().unwrap();
    let large = plan("cholesky", 130);
    let steps = ["update.comp", "substitute.comp", "update.comp"];
    assert_eq!(files(&large), steps);
    assert_eq!(defined(&large, 0, "FROM"), "1");
    assert_eq!(large.steps[1].repetition(), Some((2, 2)));
    assert_eq!(large.steps[2].counter(), Some((2, 64)));
    assert_eq!(files(&plan("cholesky", 64)), ["cholesky.comp"]);

    let large = plan("lu", 130);
    let steps = [
        "transpose.comp",
        "pivot.comp",
        "substitute.comp",
        "update.comp",
        "factors.comp",
        "transpose.comp",
    ];
    assert_eq!(files(&large), steps);
    assert_eq!(large.steps[1].repetition(), Some((3, 3)));
    // A pivot's row is chosen by fewer invocations where columns are short.
    assert_eq!(
        (defined(&large, 1, "TILE"), defined(&large, 1, "ROWS")),
        ("256", "1")
    );
    let tall = plan("lu", 3000);
    assert_eq!(
        (defined(&tall, 1, "TILE"), defined(&tall, 1, "ROWS")),
        ("512", "6")
    );
    assert_eq!(
        (defined(&large, 1, "WIDTH"), defined(&tall, 1, "WIDTH")),
        ("16", "4")
    );
    let solve = plan("solve", 130);
    assert_eq!(files(&solve)[1], "transpose.comp");
    assert_eq!(
        solve.steps.last().and_then(|step| step.counter()),
        Some((2, 64u32.wrapping_neg()))
    );

    let large = plan("qr", 300);
    assert_eq!(large.steps[2].repetition().map(|(steps, _)| steps), Some(2));
    assert_eq!(defined(&large, 2, "WIDTH"), defined(&large, 3, "WIDTH"));
    let bare = DeviceInfo {
        features: Features(
            gpu().features.0 & !Features::SUBGROUP_SHUFFLE.0 & !Features::SUBGROUP_ARITHMETIC.0,
        ),
        ..gpu()
    };
    let plan = |kernel| {
        ask(kernel, DType::F64, &[], 300, 300)
            .on(bare)
            .plan()
            .unwrap()
    };
    // Who knows their size asks for subgroups of it.
    let size = gpu().subgroup_size;
    assert_eq!(defined(&large, 2, "SUBGROUP"), size.to_string());
    let asked = |plan: &Plan| {
        plan.shaders
            .iter()
            .any(|shader| shader.subgroup_size == size)
    };
    assert!(asked(&large));
    assert!(!asked(&plan("qr")));
    assert_eq!(defined(&plan("qr"), 2, "SUBGROUP"), "1");
    assert_eq!(defined(&plan("lu"), 1, "SOLO"), "1");
}

/// Bytes of shared memory of a step that sums by `totals.glsl`; 0 for others.
fn shared_bytes(plan: &Plan, step: usize) -> u64 {
    let number = |name| defined(plan, step, name).parse::<u64>().unwrap();
    let elements = match files(plan)[step] {
        "triangles.comp" => number("COUNT"),
        "restore.comp" => 5 * (number("TILE") + 16) + 2 * number("COUNT") + 4,
        "apply.comp" => 2 * number("COUNT"),
        "reflect.comp" => number("WIDTH") * (number("WIDTH") + 3) + 5,
        _ => return 0,
    };
    let sums = number("TILE") / number("SUBGROUP") * number("COUNT");
    let size = match defined(plan, step, "WORK") {
        "float" => 4,
        _ => 8,
    };
    size * (elements + sums)
}

#[test]
fn sums_of_invocations_that_exchange_nothing_fit_into_shared_memory() {
    let cases = [
        ("eigh", 64, 64),
        ("eigh", 300, 300),
        ("qr", 300, 200),
        ("svd", 100, 100),
        ("svd", 300, 200),
    ];
    for kib in [16, 32, 64] {
        for (kernel, m, n) in cases {
            for dtype in [DType::F32, DType::F64] {
                let without = match dtype {
                    DType::F32 => Features::SUBGROUP_SIZE_CONTROL.with(Features::FP64),
                    _ => Features::SUBGROUP_SIZE_CONTROL,
                };
                let device = DeviceInfo {
                    features: Features(!without.0),
                    shared_bytes: kib << 10,
                    ..gpu()
                };
                let plan = ask(kernel, dtype, &[], m, n).on(device).plan().unwrap();
                for step in 0..plan.steps.len() {
                    let (bytes, file) = (shared_bytes(&plan, step), files(&plan)[step]);
                    let most = u64::from(device.shared_bytes);
                    assert!(
                        bytes <= most,
                        "{kernel} {m} {dtype:?} {file}: {bytes} of {most}"
                    );
                }
            }
        }
    }
    // Full subgroups share less.
    for (kernel, file) in [
        ("eigh", "triangles.comp"),
        ("eigh", "restore.comp"),
        ("qr", "apply.comp"),
    ] {
        let plan = ask(kernel, DType::F64, &[], 300, 300).plan().unwrap();
        let step = files(&plan)
            .iter()
            .position(|other| *other == file)
            .unwrap();
        assert_eq!(defined(&plan, step, "TILE"), "256", "{file}");
    }
}

#[test]
fn steps_are_as_many_as_a_plan_may_have() {
    let times = |plan: &Plan, file: &str| -> u32 {
        let steps = plan.steps.iter().zip(files(plan));
        let own = steps.filter(|(_, other)| *other == file);
        own.map(|(step, _)| step.repetition().map_or(1, |(_, times)| times))
            .sum()
    };
    for (n, merges) in [(65, 3), (500, 5), (1700, 6), (4000, 7)] {
        let plan = ask("eigh", DType::F64, &[], n, n).plan().unwrap();
        assert_eq!(
            times(&plan, "tridiagonal.comp"),
            (n as u32).saturating_sub(128)
        );
        assert_eq!(times(&plan, "rest.comp"), 1);
        assert_eq!(times(&plan, "roots.comp"), merges);
        assert!(plan.steps.len() <= nx_vulkan_abi::plan::MAX_STEPS);
    }
    for n in [65, 500, 2100] {
        let plan = ask("svd", DType::F64, &[], n, n).plan().unwrap();
        let rounds = times(&plan, "columns.comp");
        assert!(
            rounds >= 5 * (n as u32 - 1) && rounds < 16_384,
            "{n} {rounds}"
        );
    }
    let why = ask("svd", DType::F64, &[], 3000, 3000).reason();
    assert_eq!(
        why,
        "2999 rounds in a sweep are more than a plan has dispatches for"
    );
}

#[test]
fn what_reduced_factors_lack_is_found_for_those_matrices_alone() {
    let tensor = |matrix: &[u64]| Tensor::new(DType::F64, &[&[7], matrix].concat());
    let (a, s) = (tensor(&[9, 8]), tensor(&[8]));
    let outputs = [a.clone(), s, tensor(&[8, 8])];
    let svd = Pack { describe, plan }.ask("svd", &[a], &outputs);
    let plan = svd.ints("full_matrices?", &[0]).plan().unwrap();
    let steps = ["arrange.comp", "reflect.comp", "apply.comp", "turn.comp"];
    let first = plan.steps.len() - steps.len();
    assert_eq!(files(&plan)[first..], steps);
    assert_eq!(defined(&plan, first, "SCALED"), "1");
    assert!((1..4).all(|step| defined(&plan, first + step, "SOME") == "1"));
}

#[test]
fn requests_that_break_the_contract_are_refused() {
    let bad = |ask: Ask| matches!(ask.plan(), Err(Refusal::BadRequest(_)));
    for kernel in [
        "triangular_solve",
        "cholesky",
        "lu",
        "solve",
        "determinant",
        "eigh",
    ] {
        assert!(bad(ask(kernel, DType::F32, &[], 4, 3)), "{kernel}");
    }
    let mut lacks = ask("solve", DType::F32, &[], 4, 4);
    lacks.inputs.pop();
    assert!(bad(lacks));
    let mut vector = ask("qr", DType::F64, &[], 4, 4);
    vector.inputs[0] = Tensor::new(DType::F64, &[4]);
    assert!(bad(vector));
}
