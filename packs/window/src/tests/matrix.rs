//! Plans on matrix units.

use super::{pointwise::pointwise, *};
use nx_vulkan_abi::{BufArg, Slot};

const LARGE: [&[u64]; 3] = [&[32, 64, 58, 58], &[64, 64, 3, 3], &[32, 64, 56, 56]];

#[test]
fn matrix_units_multiply_what_is_packed() {
    let plan = matrix(DType::F16, LARGE).plan().unwrap();
    let packed = ["matrix_lines.comp", "matrix_kernel.comp"];
    assert_eq!(files(&plan), [packed[0], packed[1], "product.comp"]);
    assert_eq!(
        ["BLOCK", "PIECE", "WIDTH", "ALONG_FILTERS"].map(|name| defined(&plan, 2, name)),
        ["32", "8", "8", "0"]
    );
    // Two bytes of 64 channels of 58 x 58 pixels, and a piece of zeros.
    assert_eq!(plan.scratch[0], 32 * 64 * 58 * 58 * 2 + 16);
    // Channels that are next to each other, but no whole pieces of them.
    let last = [&[32, 58, 58, 62][..], &[3, 3, 62, 64], &[32, 56, 56, 64]];
    let plan = channels_last(DType::BF16, last).plan().unwrap();
    assert_eq!(files(&plan)[0], "matrix_x.comp");
    assert_eq!(defined(&plan, 2, "ALONG_FILTERS"), "1");
}

pub(super) fn channels_last(dtype: DType, shapes: [&[u64]; 3]) -> Ask {
    let mut ask = matrix(dtype, shapes);
    let is_order = |name: &str| name.ends_with("_permutation");
    ask.ints.retain(|(name, _)| !is_order(name));
    ask.ints("input_permutation", &[0, 3, 1, 2])
        .ints("kernel_permutation", &[3, 2, 0, 1])
        .ints("output_permutation", &[0, 3, 1, 2])
}

#[test]
fn whole_pieces_of_channels_are_taken_from_where_they_lie() {
    let shapes = [
        &[32, 57, 56, 128][..],
        &[1, 1, 128, 256],
        &[32, 29, 28, 256],
    ];
    let of = |dtype| with(channels_last(dtype, shapes), "strides", &[2, 2]);
    let strided = |ask: &mut Ask, [row, pixel]: [i64; 2], first| {
        let steps = [57 * row, row, pixel, 1];
        ask.inputs[0] = Tensor::new(DType::F16, shapes[0]).strided(&steps, first);
    };
    let mut ask = of(DType::F16);
    strided(&mut ask, [60 * 128, 128], 16);
    let plan = ask.plan().unwrap();
    assert_eq!(files(&plan), ["matrix_kernel.comp", "product.comp"]);
    assert_eq!(defined(&plan, 1, "WHOLE_PIECES"), "1");
    assert_eq!(plan.steps[1].args[1], BufArg::input(0));
    let words = plan.params.as_chunks().0.iter();
    let words: Vec<u32> = words.map(|word| u32::from_le_bytes(*word)).collect();
    // In pieces of eight channels: none is packed; those of a group, an image and a block; the first one.
    assert_eq!(words[..4], [0, 16, 57 * 60 * 16, 4]);
    assert_eq!(words[37], 2);
    // From one position to the next, along both axes.
    assert_eq!([words[38 + 18], words[38 + 20 + 18]], [2 * 60 * 16, 2 * 16]);

    let packs = |ask: Ask| files(&ask.plan().unwrap())[0] == "matrix_x.comp";
    assert!(!packs(of(DType::F16)));
    assert!(packs(with(of(DType::F32), "padding", &[1, 0, 0, 0])));
    assert!(packs(with(of(DType::F16), "padding", &[1, 0, 0, 0])));
    for (steps, first) in [([57 * 128, 128], 4), ([-57 * 128, 128], 56 * 57 * 128)] {
        let mut ask = of(DType::F16);
        strided(&mut ask, steps, first);
        assert!(packs(ask));
    }
}

#[test]
fn f32_is_packed_as_three_parts_and_computed_anew_where_they_do_not_hold_it() {
    let deep: [&[u64]; 3] = [&[64, 512, 9, 9], &[128, 512, 3, 3], &[64, 128, 7, 7]];
    // More than one dispatch of the general units does.
    let long: [&[u64]; 3] = [&[32, 512, 66, 66], &[512, 512, 3, 3], &[32, 512, 64, 64]];
    let narrow = DeviceInfo {
        max_invocations: 64,
        ..nvidia()
    };
    for (shapes, device, parts, anew) in [
        (
            LARGE,
            nvidia(),
            &["product_parts.comp"][..],
            &["tile.comp"][..],
        ),
        (
            deep,
            nvidia(),
            &["product_parts.comp", "splits.comp"],
            &["tile.comp", "splits.comp"],
        ),
        (LARGE, narrow, &["product_parts.comp"], &["direct.comp"]),
        (
            long,
            nvidia(),
            &["product_parts.comp"],
            &["tile.comp", "tile.comp"],
        ),
    ] {
        let plan = matrix(DType::F32, shapes).on(device).plan().unwrap();
        let files = files(&plan);
        assert_eq!(files[..2], ["matrix_lines.comp", "matrix_kernel.comp"]);
        assert_eq!(files[2..], [parts, anew].concat());
        // The step of x clears the counts, the product's and the splits' set them, those that compute anew read them.
        let counts = plan.steps[0].args[3];
        assert_eq!(plan.scratch[counts.index as usize], 12);
        for step in &plan.steps[2..2 + parts.len()] {
            assert_eq!(step.args.last(), Some(&counts));
        }
        let plain = ["conv_tiled", "conv_direct"][usize::from(anew[0] == "direct.comp")];
        let plain = conv(plain, DType::F32, shapes).on(device).plan().unwrap();
        for (step, own) in plan.steps[2 + parts.len()..].iter().zip(&plain.steps) {
            let last = step.args.last().unwrap();
            assert_eq!((last.spare, last.index), (1, counts.index));
            assert_eq!((step.groups, &step.push), (own.groups, &own.push));
            let shader = &plan.shaders[step.shader as usize];
            let defines = &plain.shaders[own.shader as usize].defines;
            assert_eq!(
                (&shader.defines, shader.bindings as usize),
                (defines, step.args.len())
            );
            for (arg, own) in step.args.iter().zip(&own.args) {
                assert_eq!((arg.slot, arg.access), (own.slot, own.access));
            }
            let of = |plan: &Plan, arg: BufArg| {
                let len = arg.len as usize;
                plan.params[arg.offset as usize..][..len].to_vec()
            };
            if own.args[0].slot == Slot::PARAMS {
                assert_eq!(of(&plan, step.args[0]), of(&plain, own.args[0]));
            }
        }
    }
    let plan = matrix(DType::F32, LARGE).plan().unwrap();
    assert_eq!(plan.scratch[0], (32 * 64 * 58 * 58 * 2 + 16) * 3);
    let types = Matrix::FACT;
    let without = with_fact(nvidia(), types, &[]);
    let reason = matrix(DType::F32, LARGE).on(without).reason();
    assert!(
        reason.starts_with("the driver lists no product of bf16"),
        "{reason}"
    );
}

#[test]
fn f32_is_packed_as_two_parts_where_that_is_allowed() {
    for (ask, others) in [
        (matrix(DType::F32, LARGE), [0, 1]),
        (pointwise(DType::F32, [32, 100, 200], [56, 56]), [0, 0]),
    ] {
        let of = |word| ask.clone().text("precision", word).plan().unwrap();
        let plan = of("high");
        for step in others.into_iter().chain([2]) {
            assert_eq!(defined(&plan, step, "PLANES"), "2");
        }
        // What two parts do not hold is computed anew all the same.
        assert_eq!(files(&plan).last(), Some(&"tile.comp"));
        assert_eq!(of("highest"), ask.plan().unwrap());
        assert_eq!(defined(&of("default"), 2, "PLANES"), "3");
    }
    let plan = matrix(DType::F32, LARGE).text("precision", "high").plan();
    assert_eq!(plan.unwrap().scratch[0], (32 * 64 * 58 * 58 * 2 + 16) * 2);
    let narrow = |dtype| matrix(dtype, LARGE).text("precision", "high").plan();
    assert_eq!(
        narrow(DType::F16).unwrap(),
        matrix(DType::F16, LARGE).plan().unwrap()
    );
    let rows = table::rows()
        .unwrap()
        .iter()
        .map(table::TableRow::described);
    let offers = rows.filter(|row| row.offers.has(nx_vulkan_abi::Offers::PRECISION));
    assert_eq!(Vec::from_iter(offers.map(|row| row.id)), ["conv_parts"]);
}

#[test]
fn what_is_packed_of_the_kernel_depends_on_it_alone() {
    for dtype in [DType::F16, DType::F32] {
        for (ask, packed, step) in [
            (matrix(dtype, LARGE), 1, 1),
            (pointwise(dtype, [32, 100, 200], [56, 56]), 0, 0),
        ] {
            let plan = ask.plan().unwrap();
            assert_eq!(Vec::from_iter(plan.derived()), [Some((packed, 1))]);
            let [kernel, places] = [2, 3].map(|arg| plan.steps[step].args[arg]);
            assert_eq!([kernel.index, places.index], [packed; 2]);
            assert_eq!(kernel.len, places.offset);
            assert_eq!(
                places.offset + places.len,
                plan.scratch[packed as usize],
                "the places are behind the kernel"
            );
        }
    }
}

#[test]
fn packed_is_what_positions_and_kernel_meet() {
    let first: [&[u64]; 3] = [&[32, 3, 224, 224], &[64, 3, 7, 7], &[32, 64, 112, 112]];
    let ask = with(matrix(DType::F16, first), "strides", &[2, 2]);
    let plan = with(ask, "padding", &[3; 4]).plan().unwrap();
    let names = ["BLOCK", "PIECE", "WHOLE", "PHASES"];
    let defined_by = |plan: &Plan| names.map(|name| defined(plan, 2, name).to_owned());
    // Every other column of 229 in one run.
    assert_eq!(defined_by(&plan), ["4", "4", "0", "2"]);
    assert_eq!(plan.scratch[0], (32 * 229 * 230 + 1) * 8);
    // With one element of a kernel, those between the positions are left out.
    let strided: [&[u64]; 3] = [&[32, 256, 56, 56], &[512, 256, 1, 1], &[32, 512, 28, 28]];
    let plan = with(matrix(DType::F16, strided), "strides", &[2, 2])
        .plan()
        .unwrap();
    assert_eq!(defined_by(&plan), ["32", "8", "1", "1"]);
    assert_eq!(plan.scratch[0], 32 * 256 * 28 * 28 * 2 + 16);
}

#[test]
fn what_positions_apart_read_lies_in_runs() {
    for (channels, rows, stride, dilation, phases) in [
        (12, 4, 4, 3, "4"),
        (32, 3, 4, 6, "2"),
        (32, 3, 3, 2, "3"),
        (32, 3, 1, 1, "1"),
        // Four neighbours at a time as it is.
        (40, 3, 2, 1, "1"),
    ] {
        let positions = (161 - 3 * dilation - 1) / stride + 1;
        let x = [16, channels, 40, 161];
        let results = [16, 64, 41 - rows, positions];
        let ask = matrix(DType::F16, [&x, &[64, channels, rows, 4], &results]);
        let ask = with(ask, "strides", &[1, stride as i64]);
        let plan = with(ask, "kernel_dilation", &[1, dilation as i64]).plan();
        let plan = plan.unwrap();
        assert_eq!(defined(&plan, 2, "PHASES"), phases, "{channels} {stride}");
    }
}

#[test]
fn gradients_of_kernels_are_packed_along_their_axes_and_split() {
    let exchanged = [1, 0, 2, 3];
    let mut ask = matrix(
        DType::F16,
        [&[32, 64, 56, 56], &[32, 64, 56, 56], &[64, 64, 3, 3]],
    );
    for name in [
        "input_permutation",
        "kernel_permutation",
        "output_permutation",
    ] {
        ask = with(ask, name, &exchanged);
    }
    let plan = with(ask, "padding", &[1; 4]).plan().unwrap();
    assert_eq!(
        files(&plan),
        [
            "matrix_lines.comp",
            "matrix_taps.comp",
            "product.comp",
            "splits.comp"
        ]
    );
}

#[test]
fn matrix_units_decline_what_gains_nothing() {
    let depthwise: [&[u64]; 3] = [&[32, 128, 58, 58], &[128, 1, 3, 3], &[32, 128, 56, 56]];
    let depthwise = with(matrix(DType::F16, depthwise), "feature_group_size", &[128]);
    assert_eq!(
        depthwise.reason(),
        "too few filters, positions or elements for matrix units"
    );
    let small = matrix(DType::F16, [&[1, 8, 9, 9], &[16, 8, 3, 3], &[1, 16, 7, 7]]);
    assert_eq!(small.reason(), "the general units take less");
    let unknown = without(nvidia(), Features::COOPMAT_ORDER);
    let reason = matrix(DType::F16, LARGE).on(unknown).reason();
    assert!(
        reason.contains("order of elements in fragments"),
        "{reason}"
    );
    let unlisted = with_fact(nvidia(), Matrix::FACT, &[]);
    for dtype in [DType::F16, DType::BF16] {
        let reason = matrix(dtype, LARGE).on(unlisted).reason();
        let expected = format!("the driver lists no product of {dtype} with sums of f32");
        assert!(reason.starts_with(&expected), "{reason}");
    }
    let narrow = DeviceInfo {
        min_subgroup_size: 64,
        max_subgroup_size: 64,
        ..nvidia()
    };
    assert!(matrix(DType::F16, LARGE).on(narrow).reason().contains("32"));
}

#[test]
fn one_kernel_of_those_for_f16_searches_for_a_plan() {
    let other = conv("conv_matrix_bf16", DType::F16, LARGE).on(nvidia());
    assert!(other.reason().starts_with("it is multiplied as f16"));
    // Factors of bf16 are its own, whatever their results are.
    let finished = |kernel| {
        let mut ask = conv(kernel, DType::F16, LARGE).on(nvidia());
        ask.inputs = [0, 1].map(|at| Tensor::new(DType::BF16, LARGE[at])).into();
        ask.text("epilogue", "max(x, 0)")
    };
    assert!(finished("conv_matrix_bf16").plan().is_ok());
    let reason = finished("conv_matrix").reason();
    assert!(reason.starts_with("it is multiplied as bf16"), "{reason}");
}

#[test]
fn matrix_units_take_an_eighth_of_the_memory_at_most() {
    let having = |bytes: u64| with_fact(nvidia(), "memory_bytes", &[bytes as i64]);
    let whole: u64 = matrix(DType::F16, LARGE)
        .plan()
        .unwrap()
        .scratch
        .iter()
        .sum();
    assert!(
        matrix(DType::F16, LARGE)
            .on(having(8 * whole))
            .plan()
            .is_ok()
    );
    let reason = matrix(DType::F16, LARGE).on(having(4 * whole)).reason();
    assert!(reason.contains(&(whole / 2).to_string()), "{reason}");
    assert!(
        reason.contains("packed operands and partial results take"),
        "{reason}"
    );
    // Parts are left out before the whole is declined.
    let deep: [&[u64]; 3] = [&[64, 512, 9, 9], &[128, 512, 3, 3], &[64, 128, 7, 7]];
    let split = matrix(DType::F16, deep).plan().unwrap().scratch;
    assert_eq!(split.len(), 3);
    let packed: u64 = split[..2].iter().sum();
    let fewer = matrix(DType::F16, deep).on(having(8 * packed + 8)).plan();
    assert!(fewer.is_ok_and(|plan| plan.scratch.len() == 2));
}
