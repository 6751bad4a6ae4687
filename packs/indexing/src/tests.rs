//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{DType, DeviceInfo, Features};
use nx_vulkan_pack_kit::testing::{Ask, Pack, Tensor, cpu, defined, files};

const PACK: Pack = Pack { describe, plan };
const F32: DType = DType::F32;
const S32: DType = DType::S32;

fn gather(tensor: Tensor, indices: Tensor, shape: &[u64]) -> Ask {
    let result = Tensor::new(tensor.dtype, shape);
    PACK.ask("gather", &[tensor, indices], &[result])
        .ints("axes", &[0])
}

#[test]
fn rows_are_moved_in_the_widest_elements_that_are_aligned() {
    let moved = |columns: u64, dtype: DType| {
        let tensor = Tensor::new(dtype, &[100, columns]);
        let ask = gather(tensor, Tensor::new(S32, &[7, 1]), &[7, columns]);
        defined(&ask.plan().unwrap(), 0, "MOVED").to_owned()
    };
    assert_eq!(moved(64, F32), "uvec4");
    assert_eq!(moved(6, F32), "uvec2");
    assert_eq!(moved(5, F32), "uint");
    assert_eq!(moved(16, DType::F8), "uvec4");
    assert_eq!(moved(3, DType::BF16), "uint16_t");
}

#[test]
fn narrow_indices_are_wanted_wider() {
    let ask = |dtype| {
        gather(
            Tensor::new(F32, &[9, 4]),
            Tensor::new(dtype, &[5, 1]),
            &[5, 4],
        )
    };
    for dtype in [DType::S32, DType::U32, DType::S64, DType::U64] {
        assert_eq!(files(&ask(dtype).plan().unwrap()), ["move.comp"]);
    }
    for dtype in [DType::U4, DType::S8, DType::U8, DType::S16, DType::U16] {
        assert!(matches!(ask(dtype).plan(), Err(Refusal::InputsAs(_))));
    }
    assert_eq!(ask(F32).reason(), "indices of f32 are not read");
}

#[test]
fn padding_far_beyond_a_tensor_is_declined() {
    let ask = |low: i64| {
        let x = Tensor::new(S32, &[300_001]);
        let result = Tensor::new(S32, &[300_001]);
        let ask = PACK.ask("pad", &[x, Tensor::new(S32, &[])], &[result]);
        ask.ints("low", &[low])
            .ints("high", &[-low])
            .ints("interior", &[0])
    };
    for low in [1 << 32, -(1 << 32), (1 << 32) - 5] {
        assert!(ask(low).reason().contains("32-bit indices"), "{low}");
    }
    assert_eq!(files(&ask(7).plan().unwrap()), ["pad.comp"]);
}

#[test]
fn a_device_without_small_types_moves_what_is_aligned() {
    let device = DeviceInfo {
        features: Features::NONE,
        ..cpu()
    };
    let ask = |dtype, columns| {
        let tensor = Tensor::new(dtype, &[9, columns]);
        gather(tensor, Tensor::new(S32, &[5, 1]), &[5, columns]).on(device)
    };
    for dtype in DType::all() {
        assert!(ask(dtype, 16).plan().is_ok(), "{dtype}");
        let odd = ask(dtype, 3).plan();
        assert_eq!(odd.is_ok(), dtype.size() >= 4, "{dtype}: {odd:?}");
    }
    let why = ask(DType::BF16, 3).reason();
    assert!(why.starts_with("moving elements on u16 needs"), "{why}");
    let add = |dtype| {
        let (tensor, updates) = (Tensor::new(dtype, &[9]), Tensor::new(dtype, &[5]));
        let operands = [tensor.clone(), Tensor::new(S32, &[5, 1]), updates];
        let ask = PACK.ask("indexed_add", &operands, &[tensor]);
        ask.ints("axes", &[0]).on(device)
    };
    assert!(add(F32).plan().is_ok());
    assert_eq!(
        add(DType::F64).reason(),
        "indexed_add on f64 needs fp64 and int64"
    );
}

#[test]
fn joins_take_a_step_for_eight_operands() {
    let join = |count: usize| {
        let parts = vec![Tensor::new(F32, &[2, 3]); count];
        let result = Tensor::new(F32, &[2 * count as u64, 3]);
        PACK.ask("concatenate", &parts, &[result])
            .ints("axis", &[0])
    };
    let files = |count| {
        let plan = join(count).plan().unwrap();
        files(&plan).join(" ")
    };
    assert_eq!([files(1), files(8)], ["move.comp", "join.comp"]);
    assert_eq!(files(9), "join.comp move.comp");
    assert_eq!(join(512).plan().unwrap().steps.len(), 64);
    assert!(join(513).reason().starts_with("513 operands"));
    let mut mixed = join(3);
    mixed.inputs[1].dtype = S32;
    let wish = vec![nx_vulkan_abi::InputAs::new(1, F32)];
    assert_eq!(mixed.plan(), Err(Refusal::InputsAs(wish)));
    mixed.inputs[1].dtype = DType::F8;
    let why = mixed.plan();
    assert!(matches!(
        why,
        Err(Refusal::Decline(_) | Refusal::InputsAs(_))
    ));
}

#[test]
fn a_slice_is_put_over_a_copy() {
    let operands = [
        Tensor::new(F32, &[64, 128]),
        Tensor::new(F32, &[1, 128]),
        Tensor::new(S32, &[]),
    ];
    let ask = PACK.ask("put_slice", &operands, &[operands[0].clone()]);
    let plan = ask
        .ints("axes", &[0])
        .ints("starts", &[0, 0])
        .plan()
        .unwrap();
    assert_eq!(files(&plan), ["move.comp", "move.comp"]);
    assert_eq!(
        [0, 1].map(|step| defined(&plan, step, "COMPONENTS")),
        ["0", "1"]
    );
    assert_eq!(
        [0, 1].map(|step| defined(&plan, step, "MOVED")),
        ["uvec4"; 2]
    );
}

fn add(shape: &[u64], rows: u64) -> Ask {
    let updates = [&[rows], &shape[1..]].concat();
    let tensor = Tensor::new(F32, shape);
    let operands = [
        tensor.clone(),
        Tensor::new(S32, &[rows, 1]),
        Tensor::new(F32, &updates),
    ];
    PACK.ask("indexed_add", &operands, &[tensor])
        .ints("axes", &[0])
}

#[test]
fn few_updates_take_one_dispatch() {
    let few = |op: &str, shape: &[u64], rows: u64| {
        let mut ask = add(shape, rows);
        ask.kernel = format!("{op}_few");
        ask
    };
    for op in ["indexed_add", "indexed_put"] {
        let plan = few(op, &[4096, 128], 500).plan().unwrap();
        assert_eq!(files(&plan), ["few.comp"]);
        assert_eq!(
            ["MOST", "WIDTH"].map(|of| defined(&plan, 0, of)),
            ["512", "4"]
        );
        assert!(
            few(op, &[4096, 128], 513)
                .reason()
                .contains("too many updates")
        );
        // Too many workgroups would look at all of them.
        let large = few(op, &[1 << 14, 4096], 500).reason();
        assert!(large.contains("for so large a tensor"), "{large}");
    }
    // Those of narrow places wait for each other.
    assert!(few("indexed_add", &[4096, 31], 64).plan().is_ok());
    assert!(few("indexed_add", &[4096, 31], 65).plan().is_err());
    assert!(few("indexed_put", &[4096, 31], 65).plan().is_ok());
    // On a GPU the others leave them to it, on a CPU they come first.
    let mut lists = add(&[4096, 128], 500);
    assert!(lists.reason().contains("all workgroups look"));
    lists.kernel = "indexed_add_dealt".into();
    assert!(lists.reason().contains("all workgroups look"));
    assert!(add(&[4096, 128], 500).on(cpu()).plan().is_ok());
    // More elements than numbers of 32 bits divide.
    let mut large = few("indexed_put", &[1 << 21, 1025], 1);
    for place in [0, 2] {
        large.inputs[place] = Tensor::new(DType::U8, &large.inputs[place].shape.clone());
    }
    large.outputs[0] = large.inputs[0].clone();
    assert!(matches!(large.plan(), Err(Refusal::Decline(_))));
}

#[test]
fn updates_of_narrow_places_are_dealt_to_buckets_on_a_gpu() {
    let plan = |kernel: &str, places: u64, rows: u64| {
        let mut ask = add(&[places], rows);
        ask.kernel = kernel.into();
        ask.plan()
    };
    let many = plan("indexed_add_dealt", 1 << 22, 1 << 20).unwrap();
    assert_eq!(files(&many), ["deal.comp", "take.comp"]);
    let of = |name| defined(&many, 0, name);
    assert_eq!(
        [of("CHUNK"), of("BUCKETS"), of("PLACES")],
        ["4096", "2048", "2048"]
    );
    assert_eq!([0, 1].map(|step| many.steps[step].groups[0]), [256, 2048]);
    let few = plan("indexed_add_dealt", 100, 70).unwrap();
    assert_eq!(
        [defined(&few, 0, "BUCKETS"), defined(&few, 0, "PLACES")],
        ["1", "128"]
    );
    for (places, rows) in [(1 << 22, 1 << 20), (100, 70)] {
        assert!(plan("indexed_add", places, rows).is_err());
    }
    for (places, rows) in [(1 << 20, (1 << 20) + 1), (1 << 23, 70)] {
        let other = plan("indexed_add_dealt", places, rows);
        assert!(matches!(other, Err(Refusal::Decline(_))), "{other:?}");
        assert!(plan("indexed_add", places, rows).is_ok());
    }
}

#[test]
fn updates_along_inner_axes_are_sorted_by_as_many_digits_as_places_have() {
    let steps = |places: u64, rows: u64| {
        let [tensor, index, updates] = [vec![3, places], vec![rows, 1], vec![rows, 3]];
        let operands = [(F32, tensor), (S32, index), (F32, updates)];
        let operands = operands.map(|(dtype, shape)| Tensor::new(dtype, &shape));
        let ask = PACK.ask("indexed_add", &operands, &operands[..1]);
        let plan = ask.ints("axes", &[1]).plan().unwrap();
        let count = |file: &str| files(&plan).iter().filter(|own| **own == file).count();
        [count("order.comp"), count("sum.comp")]
    };
    assert_eq!(steps(1, 9), [0, 1]);
    assert_eq!(steps(256, 3000), [1, 2]);
    assert_eq!(steps(257, 3000), [2, 2]);
    assert_eq!(steps(1 << 18, 3 << 20), [3, 2]);
}

#[test]
fn updates_are_listed_by_groups_of_places() {
    let group = |shape: &[u64], rows: u64| {
        let plan = add(shape, rows).on(cpu()).plan().unwrap();
        let files = files(&plan);
        let steps = [
            "zeros.comp",
            "rows.comp",
            "lists.comp",
            "chunks.comp",
            "places.comp",
        ];
        (files == steps).then(|| defined(&plan, 2, "GROUP").to_owned())
    };
    let of = |group: &str| Some(group.to_owned());
    assert_eq!(group(&[1 << 22], 1 << 20), of("8"));
    assert_eq!(group(&[1 << 20], 1 << 20), of("2"));
    assert_eq!(group(&[1 << 20], 3 << 20), of("1"));
    assert_eq!(group(&[300, 7], 30), of("1"));
    assert_eq!(group(&[300, 7], 2400), of("1"));
    assert_eq!(group(&[300, 7], 2401), None);
    assert_eq!(group(&[300, 257], 7200), of("1"));
    assert_eq!(group(&[300, 257], 7201), None);
}

#[test]
fn a_tensor_of_one_element_is_read_where_it_lies() {
    let of_one = |kernel: &str, shape: &[u64], rows: u64| {
        let mut ask = add(shape, rows);
        ask.kernel = kernel.into();
        ask.inputs[0].strides = vec![0; shape.len()];
        ask.inputs[0].offset = 3;
        ask.plan().unwrap()
    };
    for (kernel, shape, rows, step, storage) in [
        ("indexed_add", &[10_000, 64][..], 2048, 2, "float"),
        ("indexed_add", &[10_000, 64], 2048, 4, "R_STORAGE"),
        ("indexed_add_few", &[300, 8], 30, 0, "float"),
        ("indexed_add_dealt", &[4000], 2000, 1, "float"),
    ] {
        let plan = of_one(kernel, shape, rows);
        assert_eq!(defined(&plan, step, "SAME"), storage);
        assert!(!files(&plan).contains(&"move.comp"));
    }
    // What is put is moved as it is.
    let [tensor, index, updates] = [vec![300, 8], vec![30, 1], vec![30, 8]];
    let operands = [(DType::F64, tensor), (S32, index), (DType::F64, updates)];
    let operands = operands.map(|(dtype, shape)| Tensor::new(dtype, &shape));
    let mut put = PACK
        .ask("indexed_put", &operands, &operands[..1])
        .ints("axes", &[0]);
    put.kernel = "indexed_put_few".into();
    put.inputs[0].strides = vec![0, 0];
    assert_eq!(defined(&put.plan().unwrap(), 0, "SAME"), "uvec2");
    // Some elements are others.
    let mut rows = add(&[10_000, 64], 2048);
    rows.inputs[0].strides = vec![0, 1];
    assert_eq!(files(&rows.plan().unwrap())[0], "move.comp");
}

#[test]
fn wide_places_are_taken_in_vectors_and_tiles() {
    let of = |shape: &[u64], rows: u64, step: usize, name: &str| {
        defined(&add(shape, rows).plan().unwrap(), step, name).to_owned()
    };
    assert_eq!(of(&[300, 768], 600, 2, "R_VECTOR"), "vec4");
    assert_eq!(of(&[300, 33], 600, 2, "R_VECTOR"), "float");
    assert_eq!(of(&[300, 768], 600, 2, "VECTORS"), "1");
    assert_eq!(of(&[30_000, 768], 600, 2, "VECTORS"), "4");
    assert_eq!(of(&[300, 768], 9000, 0, "CHUNK"), "256");
    assert_eq!(of(&[300, 7], 9000, 0, "CHUNK"), "1024");
    let groups =
        |shape: &[u64], step: usize| add(shape, 9000).plan().unwrap().steps[step].groups[0];
    assert_eq!(groups(&[20, 768], 0), 36 * 12);
    assert_eq!(groups(&[20, 768], 1), 20 * 24);
    assert_eq!(groups(&[3, 4096], 0), 36 * 16);
}

#[test]
fn updates_of_few_places_go_in_chunks() {
    let plan = |places: u64, rows: u64| add(&[places], rows).plan().unwrap();
    assert_eq!(files(&plan(1000, 1 << 20)), ["chunks.comp", "places.comp"]);
    let few = plan(3, 2000);
    assert_eq!([0, 1].map(|step| few.steps[step].groups[0]), [2, 3]);
    // Looking for each place in each chunk would take longer than sorting all.
    assert!(files(&plan(1 << 20, 9 << 20)).contains(&"order.comp"));
}

#[test]
fn what_32_bits_do_not_reach_is_declined() {
    let big = Tensor::new(DType::U8, &[1 << 31, 3]).within(3 << 31);
    let ask = gather(big, Tensor::new(S32, &[5, 1]), &[5, 3]);
    assert_eq!(ask.reason(), "an axis is too long for 32-bit indices");
    let wide = Tensor::new(F32, &[1 << 30, 3]);
    let ask = gather(wide, Tensor::new(S32, &[5, 1]), &[5, 3]);
    assert_eq!(
        ask.reason(),
        "a tensor is too large for one buffer argument"
    );
}
