//! Plans of convolutions with an epilogue: where its operands are bound, how they lie, in which types, and what is declined.

use super::*;
use nx_vulkan_abi::{BufArg, Slot};

const LARGE: [&[u64]; 3] = [&[32, 64, 58, 58], &[64, 64, 3, 3], &[32, 64, 56, 56]];
const SMALL: [&[u64]; 3] = [&[2, 8, 9, 9], &[16, 8, 3, 3], &[2, 16, 7, 7]];
const TILED: [&[u64]; 3] = [&[32, 6, 34, 34], &[64, 6, 3, 3], &[32, 64, 32, 32]];

fn finished(mut ask: Ask, further: &[Tensor], text: &'static str) -> Ask {
    ask.inputs.extend_from_slice(further);
    ask.text("epilogue", text)
}

fn bias(dtype: DType, filters: u64) -> Tensor {
    Tensor::new(dtype, &[filters, 1, 1])
}

#[test]
fn operands_follow_the_result_with_their_strides() {
    let rest = Tensor::new(DType::BF16, TILED[2]);
    let operands = [bias(DType::F32, 64), rest];
    let ask = conv("conv_tiled", DType::F32, TILED);
    let plan = finished(ask, &operands, "add(x, i2); multiply(%0, i3)").plan();
    let plan = plan.unwrap();
    assert_eq!(files(&plan), ["tile.comp"]);
    let args = plan.steps[0].args.iter();
    let slots = Vec::from_iter(args.map(|arg| (arg.slot, arg.index)));
    let own = [(Slot::INPUT, 0), (Slot::INPUT, 1), (Slot::OUTPUT, 0)];
    assert_eq!(slots[1..4], own);
    assert_eq!(slots[4..], [(Slot::INPUT, 2), (Slot::INPUT, 3)]);
    assert_eq!(defined(&plan, 0, "E_FIRST"), "4");
    // Steps of a filter and of an index of the batch, then each operand's first element and steps.
    let push = words(&plan, 0);
    assert_eq!(push[..2], [1024, 64 * 1024]);
    assert_eq!(push[4..], [0, 0, 1, 0, 0, 64 * 1024, 1024, 1]);
}

#[test]
fn filters_are_where_the_result_has_them() {
    let last = [
        ("input_permutation", [0, 3, 1, 2]),
        ("kernel_permutation", [3, 2, 0, 1]),
        ("output_permutation", [0, 3, 1, 2]),
    ];
    let shapes: [&[u64]; 3] = [&[2, 9, 9, 8], &[3, 3, 8, 16], &[2, 7, 7, 16]];
    let ask = conv("conv_direct", DType::F32, shapes);
    let ask = last
        .into_iter()
        .fold(ask, |ask, (name, axes)| with(ask, name, &axes));
    let plan = finished(ask, &[Tensor::new(DType::F32, &[16])], "add(x, i2)")
        .plan()
        .unwrap();
    let push = words(&plan, 0);
    assert_eq!((&push[..2], &push[4..]), (&[1, 16][..], &[0, 0, 1, 0][..]));
}

#[test]
fn sums_stay_wide_and_factors_as_they_are() {
    for (factors, result, multiplied) in [
        ([DType::F16; 2], DType::F16, Some(DType::F16)),
        ([DType::BF16; 2], DType::F32, Some(DType::BF16)),
        ([DType::F32; 2], DType::F16, Some(DType::F32)),
        ([DType::F16; 2], DType::F64, None),
        ([DType::F16, DType::F32], DType::F16, None),
        ([DType::S8; 2], DType::F16, None),
    ] {
        let mut ask = conv("conv_tiled", result, TILED);
        for (input, dtype) in ask.inputs.iter_mut().zip(factors) {
            input.dtype = dtype;
        }
        let plan = finished(ask, &[bias(DType::F16, 64)], "add(x, i2)").plan();
        match (plan, multiplied) {
            (Ok(plan), Some(dtype)) => {
                let is = |name: &str, dtype: DType| {
                    let name = format!("{name}_IS_{}", dtype.name().to_uppercase());
                    assert_eq!(defined(&plan, 0, &name), "1", "{factors:?} {result}");
                };
                is("T", dtype);
                is("R", result);
                assert_eq!(defined(&plan, 0, "T_VALUE"), "float");
            }
            (Err(Refusal::InputsAs(wanted)), None) => {
                assert!(wanted.iter().all(|wanted| wanted.index < 2), "{wanted:?}");
            }
            other => panic!("{other:?}"),
        }
    }
}

#[test]
fn matrix_units_store_what_becomes_of_their_sums() {
    for (factors, result, stored, width) in [
        (DType::F16, DType::F16, "uvec4", "8"),
        (DType::BF16, DType::F16, "uvec4", "8"),
        (DType::F32, DType::F16, "uvec4", "8"),
        (DType::F16, DType::F32, "vec4", "4"),
        (DType::F32, DType::F32, "vec4", "4"),
        (DType::F32, DType::BF16, "uvec4", "8"),
    ] {
        let kernel = match (factors, result) {
            (_, DType::F32) => "conv_parts",
            (DType::F16, _) => "conv_matrix",
            _ => "conv_matrix_bf16",
        };
        let ask = |kernel| {
            let mut ask = conv(kernel, result, LARGE).on(nvidia());
            ask.inputs.iter_mut().for_each(|x| x.dtype = factors);
            finished(ask, &[bias(DType::F32, 64)], "add(x, i2); max(%0, 0)")
        };
        // Matrices of bf16 are for kernels that declare them.
        if result == DType::F16 && factors != DType::F16 {
            assert!(ask("conv_matrix").reason().contains("declare"));
        }
        let ask = ask(kernel);
        let plan = ask.plan().unwrap();
        let names = ["RESULT", "WIDTH", "BF16_RESULT"].map(|name| defined(&plan, 2, name));
        let is_bf16 = ["0", "1"][usize::from(result == DType::BF16)];
        assert_eq!(names, [stored, width, is_bf16], "{factors} {result}");
        // Behind the results, and the counts where f32 may be computed anew; what does that finishes its sums too.
        let parts = usize::from(factors == DType::F32);
        assert_eq!(plan.steps[2].args[5 + parts], BufArg::input(2));
        for step in [2, 3][..=parts].iter() {
            assert_eq!(defined(&plan, *step, "E_OPERANDS"), "1");
        }
    }
}

#[test]
fn units_convert_f16_where_they_are_known_to_be_exact() {
    let load = |device| {
        let ask = conv("conv_direct", DType::F16, SMALL).on(device);
        let plan = finished(ask, &[bias(DType::F16, 16)], "add(x, i2)").plan();
        let plan = plan.unwrap();
        let loads = ["T_LOAD(x)", "E0_LOAD(x)"].map(|name| defined(&plan, 0, name).to_owned());
        assert_eq!(loads[0], loads[1]);
        loads[0].clone()
    };
    assert_eq!(load(gpu()), "nxv_load_f16(x)");
    assert_eq!(load(nvidia()), "float(uint16BitsToHalf(x))");
    let lacking = without(nvidia(), Features::FP16);
    assert_eq!(load(lacking), "nxv_load_f16(x)");
}

#[test]
fn splits_are_finished_when_they_are_added_up() {
    let shapes: [&[u64]; 3] = [&[64, 32, 58, 58], &[64, 32, 56, 56], &[64, 64, 3, 3]];
    let ask = conv("conv_tiled", DType::F32, shapes);
    let plan = finished(ask, &[bias(DType::F32, 64)], "add(x, i2)")
        .plan()
        .unwrap();
    assert_eq!(files(&plan), ["tile.comp", "splits.comp"]);
    assert_eq!(
        ["EPILOGUE", "RESULT"].map(|name| defined(&plan, 0, name)),
        ["", "T_VALUE"]
    );
    assert_eq!(words(&plan, 1)[2..4], [9, 64 * 9]);
}

#[test]
fn long_code_for_many_sums_is_a_dispatch_of_its_own() {
    let of = |batch, text| {
        let (x, out) = ([batch, 64, 58, 58], [batch, 64, 56, 56]);
        let ask = matrix(DType::F16, [&x, &[64, 64, 3, 3], &out]);
        let plan = finished(ask, &[], text).plan().unwrap();
        files(&plan)[2..].join(" ")
    };
    assert_eq!(of(32, "erf(x)"), "product.comp splits.comp");
    assert_eq!(of(32, "max(x, 0)"), "product.comp");
}

#[test]
fn what_a_kernel_cannot_finish_is_declined_or_refused() {
    let ask = || conv("conv_direct", DType::F32, SMALL);
    let declined = |ask: Ask, told: &str| match ask.plan() {
        Err(Refusal::Decline(why)) => assert!(why.contains(told), "{why}"),
        other => panic!("{other:?}"),
    };
    let many = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5); add(%3, i6)";
    let scalar = Tensor::new(DType::F32, &[]);
    declined(
        finished(ask(), &vec![scalar.clone(); 5], many),
        "kernels take 4",
    );
    let four = "add(x, i2); add(%0, i3); add(%1, i4); add(%2, i5)";
    assert!(
        finished(ask(), &vec![scalar.clone(); 4], four)
            .plan()
            .is_ok()
    );
    let rows = Tensor::new(DType::F32, &[16, 1, 7]);
    let plan = finished(ask(), std::slice::from_ref(&rows), "add(x, i2)")
        .plan()
        .unwrap();
    assert_eq!(defined(&plan, 0, "E0_INNER2"), "4");
    // The extent and the step of the inner axis come last.
    assert_eq!(words(&plan, 0)[4..], [0, 0, 7, 0, 7, 1]);
    declined(
        finished(ask(), &vec![rows; 4], four),
        "24 words of push constants",
    );
    let nothing = conv(
        "conv_direct",
        DType::F32,
        [&[2, 0, 9, 9], &[16, 0, 3, 3], &[2, 16, 7, 7]],
    );
    declined(finished(nothing, &[], "exp(x)"), "sums of nothing");
    let refused = |ask: Ask| assert!(matches!(ask.plan(), Err(Refusal::BadRequest(_))));
    refused(finished(ask(), &[], "exp(x, x)"));
    refused(finished(ask(), std::slice::from_ref(&scalar), "exp(x)"));
    refused(finished(
        ask(),
        &[Tensor::new(DType::F32, &[3])],
        "add(x, i2)",
    ));
    let mut further = ask();
    further.inputs.push(scalar);
    refused(further);
    let complex = conv("conv_direct", DType::C64, SMALL);
    refused(finished(complex, &[], "exp(x)"));
}
