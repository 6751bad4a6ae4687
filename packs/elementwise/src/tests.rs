//! Plans, without a device.

use super::*;
use nx_vulkan_abi::{
    Attr, AttrKind, DType, DTypeSet, DeviceInfo, DeviceKind, Dispatch, Features, RSlice, Slot,
    TensorDesc, layout::contiguous_strides,
};

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::DISCRETE,
        subgroup_size: 32,
        shared_bytes: 32 << 10,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_groups: [65535; 3],
        max_buffer_range: u64::from(u32::MAX),
        buffer_align: 16,
        features: Features(u64::MAX),
        ..DeviceInfo::default()
    }
}

#[derive(Clone)]
struct Operand {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
}

impl Operand {
    fn new(dtype: DType, shape: &[u64]) -> Operand {
        Operand {
            dtype,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
        }
    }

    fn at(self, offset: u64) -> Operand {
        Operand { offset, ..self }
    }

    fn with_strides(self, strides: &[i64]) -> Operand {
        Operand {
            strides: strides.to_vec(),
            ..self
        }
    }

    fn desc(&self) -> TensorDesc<'_> {
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: RSlice::from_slice(&self.shape),
            strides: RSlice::from_slice(&self.strides),
            offset: self.offset,
            storage_len: u64::MAX >> 1,
            reserved: [0; 2],
        }
    }
}

/// Plans row `id` for those operands, a result of that type and shape, and one integer attribute.
fn ask_on(
    device: &DeviceInfo<'_>,
    id: &str,
    inputs: &[Operand],
    result: (DType, &[u64]),
    attr: Option<(&str, &[i64])>,
) -> Result<Plan, Refusal> {
    let rows = &Table::get().unwrap().rows;
    let row = rows.iter().position(|row| row.op.op == id).unwrap();
    let inputs: Vec<TensorDesc<'_>> = inputs.iter().map(Operand::desc).collect();
    let output = Operand::new(result.0, result.1);
    let outputs = [output.desc()];
    let attrs: Vec<Attr<'_>> = attr
        .into_iter()
        .map(|(name, ints)| Attr {
            name: name.into(),
            kind: AttrKind::INTS,
            spare: 0,
            ints: RSlice::from_slice(ints),
            floats: RSlice::EMPTY,
            text: "".into(),
        })
        .collect();
    let request = Request {
        op: rows[row].op.op.as_str().into(),
        inputs: RSlice::from_slice(&inputs),
        outputs: RSlice::from_slice(&outputs),
        attrs: RSlice::from_slice(&attrs),
        device,
        spare: [0; 4],
    };
    plan(row as u32, &request)
}

fn ask(id: &str, inputs: &[Operand], result: (DType, &[u64])) -> Result<Plan, Refusal> {
    ask_on(&device(), id, inputs, result, None)
}

fn define<'a>(plan: &'a Plan, step: &Dispatch, name: &str) -> Option<&'a str> {
    let defines = &plan.shaders[step.shader as usize].defines;
    defines
        .iter()
        .find(|d| d.name == name)
        .map(|d| d.value.as_str())
}

fn files(plan: &Plan) -> Vec<&str> {
    plan.steps
        .iter()
        .map(|step| plan.shaders[step.shader as usize].file.as_str())
        .collect()
}

/// Panics unless the steps together store every byte of a result of `len` bytes once, and each has the groups,
/// arguments and parameters that its shader needs.
fn check(plan: &Plan, device: &DeviceInfo<'_>, len: u64) {
    let mut stored = Vec::new();
    for step in &plan.steps {
        let shader = &plan.shaders[step.shader as usize];
        assert_eq!(shader.bindings as usize, step.args.len());
        assert_eq!(shader.push_bytes as usize, step.push.len());
        assert!(step.push.len() <= device.push_bytes as usize);
        assert!(
            step.groups
                .iter()
                .zip(device.max_groups)
                .all(|(n, max)| (1..=max).contains(n))
        );
        for arg in &step.args {
            assert!(
                arg.offset % 256 == 0 && arg.len > 0 && arg.len <= device.max_buffer_range,
                "{arg:?}"
            );
        }
        let params: &[u8] = match step.args.iter().find(|arg| arg.slot == Slot::PARAMS) {
            Some(arg) => &plan.params[arg.offset as usize..(arg.offset + arg.len) as usize],
            None => &step.push,
        };
        let wide = define(plan, step, "INDEX") == Some("uint64_t");
        let word = |i: usize| match wide {
            true => u64::from_le_bytes(params[8 * i..8 * i + 8].try_into().unwrap()),
            false => u64::from(u32::from_le_bytes(
                params[4 * i..4 * i + 4].try_into().unwrap(),
            )),
        };
        let output = step
            .args
            .iter()
            .find(|arg| arg.slot == Slot::OUTPUT)
            .unwrap();
        let number =
            |name| define(plan, step, name).map_or(1, |value| value.parse::<u64>().unwrap());
        let size = output.len / (word(0) + word(1));
        assert_eq!(
            output.len,
            (word(0) + word(1)) * size,
            "elements reach beyond the range"
        );
        stored.push((output.offset + word(1) * size, word(0) * size));
        if shader.file != "transpose.comp" {
            let threads = u64::from(step.groups[0]) * u64::from(step.groups[1]) * 256;
            assert!(
                threads * number("WIDTH") * number("VECTORS") >= word(0),
                "too few groups"
            );
            assert!(word(1) % number("WIDTH") == 0, "unaligned vectors");
        }
    }
    stored.sort_unstable();
    let end = stored.iter().fold(0, |end, &(start, len)| {
        assert_eq!(start, end, "bytes are stored twice or never");
        start + len
    });
    assert_eq!(end, len);
}

#[test]
fn the_table_has_every_op_once() {
    let kernels = describe().unwrap().kernels;
    let ids: std::collections::HashSet<&str> = kernels.iter().map(|row| row.id.as_str()).collect();
    let ops: std::collections::HashSet<&str> = kernels.iter().map(|row| row.op.as_str()).collect();
    assert_eq!(ids.len(), kernels.len());
    let (unary, binary, others, creation) = (37, 24, 3, 3);
    assert_eq!(
        ops.len(),
        unary + binary + others + creation,
        "docs/ops.md lists them"
    );
}

#[test]
fn every_row_plans_every_type_it_accepts() {
    let all: Vec<DType> = DType::all()
        .filter(|dtype| DTypeSet::REAL.has(*dtype))
        .collect();
    for row in Table::get()
        .unwrap()
        .rows
        .iter()
        .filter(|row| row.family == Family::Map)
    {
        let arity = row.takes.len();
        // Operand types count through all tuples; a third operand takes the types of the first two in turn.
        for tuple in 0..all.len().pow(arity.min(2) as u32) {
            let (first, second) = (all[tuple % all.len()], all[tuple / all.len() % all.len()]);
            let types = [first, second, if tuple % 2 == 0 { first } else { second }];
            let taken = types
                .iter()
                .zip(&row.takes)
                .all(|(dtype, takes)| takes.has(*dtype));
            for result in all.iter().filter(|dtype| row.gives.has(**dtype)) {
                let inputs: Vec<Operand> = types[..arity]
                    .iter()
                    .map(|dtype| Operand::new(*dtype, &[5, 7]))
                    .collect();
                match ask(&row.op.op, &inputs, (*result, &[5, 7])) {
                    Ok(plan) => check(&plan, &device(), 35 * result.size()),
                    Err(refusal) => assert!(
                        !taken && matches!(refusal, Refusal::Decline(_)),
                        "{refusal:?}"
                    ),
                }
            }
        }
    }
}

#[test]
fn contiguous_and_scalar_operands_take_the_flat_path() {
    let (a, scalar) = (
        Operand::new(DType::F32, &[64, 64, 3]),
        Operand::new(DType::F32, &[]),
    );
    let plan = ask("add", &[a.clone(), scalar], (DType::F32, &[64, 64, 3])).unwrap();
    assert_eq!(files(&plan), ["contiguous.comp"]);
    assert_eq!(define(&plan, &plan.steps[0], "A_READ"), Some("READ_VECTOR"));
    assert_eq!(define(&plan, &plan.steps[0], "B_READ"), Some("READ_SCALAR"));
    let plan = ask("exp", &[a.at(2)], (DType::F32, &[64, 64, 3])).unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "A_READ"), Some("READ_STEPS"));
}

#[test]
fn rows_and_columns_broadcast_in_vectors() {
    let all = Operand::new(DType::F32, &[8192, 8192]);
    for (other, read) in [(&[8192][..], "READ_VECTOR"), (&[8192, 1], "READ_SCALAR")] {
        let inputs = [all.clone(), Operand::new(DType::F32, other)];
        let plan = ask("add", &inputs, (DType::F32, &[8192, 8192])).unwrap();
        let step = &plan.steps[0];
        assert_eq!(files(&plan), ["strided.comp"]);
        assert_eq!(define(&plan, step, "RANK"), Some("2"));
        assert_eq!(define(&plan, step, "WIDTH"), Some("4"));
        assert_eq!(define(&plan, step, "A_READ"), Some("READ_VECTOR"));
        assert_eq!(define(&plan, step, "B_READ"), Some(read));
    }
}

#[test]
fn threads_take_more_where_an_invocation_is_dear() {
    let gpu = device();
    let cpu = DeviceInfo {
        kind: DeviceKind::CPU,
        ..device()
    };
    let vectors = |device, op: &str, count: u64, inputs: usize| {
        let a = Operand::new(DType::F32, &[count]);
        let plan = ask_on(device, op, &vec![a; inputs], (DType::F32, &[count]), None).unwrap();
        check(&plan, device, count * 4);
        let vectors = define(&plan, &plan.steps[0], "VECTORS");
        vectors.unwrap().parse::<u64>().unwrap()
    };
    assert_eq!(vectors(&cpu, "exp", 1_000_003, 1), 4);
    assert_eq!(vectors(&cpu, "add", 1_000_003, 2), 2);
    assert_eq!(vectors(&cpu, "exp", 1000, 1), 1);
    assert_eq!(vectors(&gpu, "exp", 1_000_003, 1), 1);
    assert_eq!(vectors(&gpu, "exp", 1 << 22, 1), 2);
}

#[test]
fn many_axes_move_their_parameters_into_the_params_buffer() {
    let shape = [2, 3, 2, 3, 2, 3, 2, 3];
    let reversed: Vec<i64> = contiguous_strides(&shape)
        .iter()
        .map(|stride| -stride)
        .collect();
    let mixed: Vec<i64> = [0, 1, 0, 4, 0, 16, 0, 64].to_vec();
    let a = Operand::new(DType::F32, &shape)
        .with_strides(&reversed)
        .at(1295);
    let b = Operand::new(DType::F32, &shape).with_strides(&mixed);
    let plan = ask("multiply", &[a, b], (DType::F32, &shape)).unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "RANK"), Some("8"));
    assert_eq!(define(&plan, &plan.steps[0], "PARAMS_BINDING"), Some("3"));
    assert!(plan.steps[0].push.is_empty() && plan.params.len() > 128);
    check(&plan, &device(), 1296 * 4);
}

#[test]
fn tensors_beyond_the_buffer_range_are_cut_into_steps() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        max_groups: [16, 1000, 1],
        ..device()
    };
    for (count, offset) in [(1_000_003, 0), (262_144, 3), (262_145, 0), (999, 0)] {
        let a = Operand::new(DType::F32, &[count]).at(offset);
        let b = Operand::new(DType::U8, &[count]).at(1);
        let plan = ask_on(&device, "add", &[a, b], (DType::F32, &[count]), None).unwrap();
        assert_eq!(
            plan.steps.len() > 1,
            count > 262_144 || offset > 0 && count > 999,
            "{count}"
        );
        check(&plan, &device, count * 4);
    }
    let row = Operand::new(DType::F32, &[1000]);
    let plan = ask_on(
        &device,
        "add",
        &[Operand::new(DType::F32, &[3000, 1000]), row],
        (DType::F32, &[3000, 1000]),
        None,
    );
    check(&plan.unwrap(), &device, 12_000_000);
}

#[test]
fn one_index_beyond_the_buffer_range_declines() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        ..device()
    };
    let spread = Operand::new(DType::F32, &[300, 300]).with_strides(&[2, 4000]);
    let refusal = ask_on(&device, "exp", &[spread], (DType::F32, &[300, 300]), None).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Decline(why) if why.contains("1048576 bytes")),
        "{refusal:?}"
    );
}

#[test]
fn more_steps_than_a_plan_may_have_decline() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 16,
        ..device()
    };
    let long = Operand::new(DType::F32, &[2_000_000]);
    let refusal = ask_on(&device, "exp", &[long], (DType::F32, &[2_000_000]), None).unwrap_err();
    assert!(
        matches!(&refusal, Refusal::Decline(why) if why.contains("steps")),
        "{refusal:?}"
    );
}

#[test]
fn more_than_two_to_the_31_elements_take_wide_indices() {
    let count = 3 << 30;
    let even = Operand::new(DType::U8, &[count]).with_strides(&[2]);
    let device = DeviceInfo {
        max_buffer_range: u64::MAX,
        ..device()
    };
    let plan = ask_on(&device, "negate", &[even], (DType::U8, &[count]), None).unwrap();
    check(&plan, &device, count);
    let crossed = Operand::new(DType::U8, &[2, count]).with_strides(&[2, 3]);
    let plan = ask_on(
        &device,
        "negate",
        &[crossed],
        (DType::U8, &[2, count]),
        None,
    )
    .unwrap();
    assert_eq!(define(&plan, &plan.steps[0], "INDEX"), Some("uint64_t"));
    check(&plan, &device, 2 * count);
}

#[test]
fn zero_elements_need_no_steps() {
    let none = Operand::new(DType::F32, &[0, 3]);
    assert_eq!(
        ask("exp", std::slice::from_ref(&none), (DType::F32, &[0, 3])).unwrap(),
        Plan::default()
    );
    assert_eq!(
        ask("as_type", &[none], (DType::F32, &[0, 3])).unwrap(),
        Plan::default()
    );
    assert_eq!(
        ask("iota", &[], (DType::F32, &[0])).unwrap(),
        Plan::default()
    );
}

#[test]
fn missing_features_are_named() {
    let device = DeviceInfo {
        features: Features::NONE,
        ..device()
    };
    for (dtype, feature) in [
        (DType::F64, "fp64"),
        (DType::U8, "storage8"),
        (DType::BF16, "storage16"),
        (DType::S64, "int64"),
    ] {
        let operand = Operand::new(dtype, &[4]);
        let refusal = ask_on(
            &device,
            "add",
            &[operand.clone(), operand],
            (dtype, &[4]),
            None,
        )
        .unwrap_err();
        assert!(
            matches!(&refusal, Refusal::Decline(why) if why.contains(feature)),
            "{refusal:?}"
        );
    }
    let pairs = Operand::new(DType::C64, &[4]);
    check(
        &ask_on(&device, "as_type", &[pairs], (DType::C64, &[4]), None).unwrap(),
        &device,
        32,
    );
}

#[test]
fn large_transposed_operands_are_asked_for_contiguous() {
    let a = Operand::new(DType::BF16, &[1024, 1024]);
    let b = a.clone().with_strides(&[1, 1024]);
    let refusal = ask("add", &[a, b], (DType::BF16, &[1024, 1024])).unwrap_err();
    let wanted = nx_vulkan_abi::InputAs::new(1, DType::BF16);
    assert_eq!(refusal, Refusal::InputsAs(vec![wanted]));
}

#[test]
fn copies_move_the_largest_elements_that_fit() {
    for (dtype, count, offset, storage) in [
        (DType::U8, 64, 16, "uvec4"),
        (DType::U8, 64, 4, "uint"),
        (DType::F8, 63, 0, "uint8_t"),
        (DType::BF16, 30, 0, "uint"),
        (DType::C64, 31, 0, "uvec2"),
        (DType::C128, 31, 1, "uvec4"),
    ] {
        let plan = ask(
            "as_type",
            &[Operand::new(dtype, &[count]).at(offset)],
            (dtype, &[count]),
        )
        .unwrap();
        assert_eq!(
            define(&plan, &plan.steps[0], "A_STORAGE"),
            Some(storage),
            "{dtype}"
        );
        check(&plan, &device(), count * dtype.size());
    }
    let refusal = ask(
        "as_type",
        &[Operand::new(DType::C128, &[2])],
        (DType::F64, &[2]),
    )
    .unwrap_err();
    assert!(matches!(refusal, Refusal::Decline(_)));
}

#[test]
fn permutations_pass_through_tiles() {
    for dtype in DType::all() {
        let flipped = Operand::new(dtype, &[100, 70]).with_strides(&[1, 100]);
        let plan = ask("as_type", &[flipped], (dtype, &[100, 70])).unwrap();
        assert_eq!(files(&plan), ["transpose.comp"], "{dtype}");
        check(&plan, &device(), 7000 * dtype.size());
    }
    let channels_last = Operand::new(DType::F32, &[2, 3, 64, 63]).with_strides(&[12096, 1, 189, 3]);
    let plan = ask("as_type", &[channels_last], (DType::F32, &[2, 3, 64, 63])).unwrap();
    assert_eq!(
        files(&plan),
        ["strided.comp"],
        "three channels are too few for a tile"
    );
    let heads = Operand::new(DType::F32, &[2, 16, 64, 32]).with_strides(&[32768, 1, 16, 1024]);
    let plan = ask("as_type", &[heads], (DType::F32, &[2, 16, 64, 32])).unwrap();
    assert_eq!(files(&plan), ["transpose.comp"]);
    check(&plan, &device(), 65536 * 4);
}

#[test]
fn creation_covers_its_result() {
    for dtype in DType::all() {
        let bits: &[i64] = if dtype.size() == 16 { &[1, 2] } else { &[1] };
        for count in [1, 2, 63, 4096] {
            let plan = ask_on(
                &device(),
                "fill",
                &[],
                (dtype, &[count]),
                Some(("bits", bits)),
            )
            .unwrap();
            check(&plan, &device(), count * dtype.size());
        }
        if DTypeSet::REAL.has(dtype) {
            let plan = ask_on(
                &device(),
                "iota",
                &[],
                (dtype, &[3, 5, 7]),
                Some(("axis", &[1])),
            )
            .unwrap();
            check(&plan, &device(), 105 * dtype.size());
            check(
                &ask("eye", &[], (dtype, &[2, 9, 7])).unwrap(),
                &device(),
                126 * dtype.size(),
            );
        }
    }
    let refusal = ask_on(
        &device(),
        "iota",
        &[],
        (DType::F32, &[3]),
        Some(("axis", &[1])),
    )
    .unwrap_err();
    assert!(matches!(refusal, Refusal::BadRequest(_)));
}
