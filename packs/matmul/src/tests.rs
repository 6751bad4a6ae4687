//! Plans without a device: layouts, types, degenerate sizes, limits, reasons to decline.

use crate::{Table, plan, plan_from};
use nx_vulkan_abi::{
    Attr, AttrKind, BufArg, DType, DTypeSet, DeviceInfo, Features, InputAs, Plan, RSlice, RStr,
    Refusal, Request, Slot, TensorDesc, layout::contiguous_strides,
};

const SKINNY: u32 = 0;
const CPU: u32 = 1;
const TILED: u32 = 2;
const DIRECT: u32 = 3;

fn gpu() -> DeviceInfo<'static> {
    DeviceInfo {
        name: RStr::from_str("test"),
        vendor: 0,
        driver: 0,
        kind: 2,
        subgroup_size: 32,
        shared_bytes: 48 << 10,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 132,
        max_workgroup_size: [1024, 1024, 64],
        max_groups: [65535; 3],
        max_buffer_range: 1 << 30,
        buffer_align: 64,
        features: Features(u64::MAX),
        spare: [0; 4],
    }
}

fn cpu() -> DeviceInfo<'static> {
    DeviceInfo {
        kind: 4,
        subgroup_size: 8,
        shared_bytes: 32 << 10,
        compute_units: 0,
        ..gpu()
    }
}

/// One operand: layout, and its batch and contracted axes.
#[derive(Clone)]
struct Side {
    dtype: DType,
    shape: Vec<u64>,
    strides: Vec<i64>,
    offset: u64,
    storage: u64,
    batch: Vec<i64>,
    contract: Vec<i64>,
}

impl Side {
    fn new(shape: &[u64], batch: &[i64], contract: &[i64]) -> Side {
        Side {
            dtype: DType::F32,
            shape: shape.to_vec(),
            strides: contiguous_strides(shape),
            offset: 0,
            storage: u64::MAX,
            batch: batch.to_vec(),
            contract: contract.to_vec(),
        }
    }

    fn strided(self, strides: &[i64], offset: u64) -> Side {
        Side {
            strides: strides.to_vec(),
            offset,
            ..self
        }
    }

    fn of(self, dtype: DType) -> Side {
        Side { dtype, ..self }
    }

    fn desc(&self) -> TensorDesc<'_> {
        let bytes = self.shape.iter().product::<u64>() * self.dtype.size()
            + self.offset * self.dtype.size();
        TensorDesc {
            dtype: self.dtype,
            spare: 0,
            shape: RSlice::from_slice(&self.shape),
            strides: RSlice::from_slice(&self.strides),
            offset: self.offset,
            storage_len: if self.storage == u64::MAX {
                bytes
            } else {
                self.storage
            },
            reserved: [0; 2],
        }
    }
}

fn ask_of(
    table: &Table,
    row: u32,
    device: &DeviceInfo<'_>,
    a: &Side,
    b: &Side,
    out: DType,
) -> Result<Plan, Refusal> {
    let free = |side: &Side| -> Vec<u64> {
        let kept = |axis: &i64| !side.batch.contains(axis) && !side.contract.contains(axis);
        (0..side.shape.len() as i64)
            .filter(kept)
            .map(|axis| side.shape[axis as usize])
            .collect()
    };
    let batch = a
        .batch
        .iter()
        .filter_map(|&axis| a.shape.get(axis as usize).copied())
        .collect();
    let shape = [batch, free(a), free(b)].concat();
    let result = Side {
        dtype: out,
        ..Side::new(&shape, &[], &[])
    };
    let ints = |name, values| Attr {
        name: RStr::from_str(name),
        kind: AttrKind::INTS,
        spare: 0,
        ints: RSlice::from_slice(values),
        floats: RSlice::EMPTY,
        text: RStr::from_str(""),
    };
    let attrs = [
        ints("batch_a", &a.batch),
        ints("batch_b", &b.batch),
        ints("contract_a", &a.contract),
        ints("contract_b", &b.contract),
    ];
    let (inputs, outputs) = ([a.desc(), b.desc()], [result.desc()]);
    let request = Request {
        op: RStr::from_str("dot"),
        inputs: RSlice::from_slice(&inputs),
        outputs: RSlice::from_slice(&outputs),
        attrs: RSlice::from_slice(&attrs),
        device,
        spare: [0; 4],
    };
    let answer = plan_from(table, row, &request);
    assert_eq!(
        answer,
        plan_from(table, row, &request),
        "the same request gives the same answer"
    );
    if let Ok(plan) = &answer {
        check(plan, &request);
    }
    answer
}

fn ask(row: u32, device: &DeviceInfo<'_>, a: &Side, b: &Side) -> Result<Plan, Refusal> {
    ask_of(Table::get().unwrap(), row, device, a, b, a.dtype)
}

/// A product of matrices in row-major order.
fn matrices(
    row: u32,
    device: &DeviceInfo<'_>,
    [m, n, k]: [u64; 3],
    dtype: DType,
) -> Result<Plan, Refusal> {
    ask(
        row,
        device,
        &Side::new(&[m, k], &[], &[1]).of(dtype),
        &Side::new(&[k, n], &[], &[0]).of(dtype),
    )
}

/// What every plan must keep to, whatever it is for.
fn check(plan: &Plan, request: &Request<'_>) {
    let mut written = vec![false; plan.scratch.len()];
    for step in plan.steps.iter() {
        let shader = &plan.shaders[step.shader as usize];
        assert!(
            crate::SOURCES
                .iter()
                .any(|source| source.name == shader.file.as_str())
        );
        assert_eq!(step.args.len() as u32, shader.bindings);
        assert_eq!(step.push.len() as u32, shader.push_bytes);
        assert!(shader.push_bytes <= request.device.push_bytes);
        assert!((0..3).all(|i| (1..=request.device.max_groups[i]).contains(&step.groups[i])));
        for arg in step.args.iter() {
            let index = arg.index as usize;
            let len = match arg.slot {
                Slot::INPUT => request.inputs[index].storage_len,
                Slot::OUTPUT => request.outputs[index].storage_len,
                _ => plan.scratch[index],
            };
            assert!(
                arg.offset.is_multiple_of(256) && arg.offset + arg.len <= len,
                "{arg:?} of {len}"
            );
            let bound = if arg.len == 0 {
                len - arg.offset
            } else {
                arg.len
            };
            assert!(bound <= request.device.max_buffer_range, "{bound}");
            if arg.slot == Slot::SCRATCH {
                let writes = arg.access == nx_vulkan_abi::Access::WRITE;
                assert!(
                    writes || written[index],
                    "scratch {index} is read before it is written"
                );
                written[index] |= writes;
            }
        }
    }
    let stores = |arg: &BufArg| arg.slot == Slot::OUTPUT;
    let stored = plan
        .steps
        .last()
        .is_some_and(|step| step.args.iter().any(stores));
    assert_eq!(
        stored,
        request.outputs[0].elements() > 0,
        "the last step stores the result"
    );
}

fn defined<'a>(plan: &'a Plan, step: usize, name: &str) -> &'a str {
    let shader = &plan.shaders[plan.steps[step].shader as usize];
    shader
        .defines
        .iter()
        .find(|define| define.name == name)
        .map_or("", |define| define.value.as_str())
}

fn files(plan: &Plan) -> Vec<&str> {
    plan.steps
        .iter()
        .map(|step| plan.shaders[step.shader as usize].file.as_str())
        .collect()
}

fn word(plan: &Plan, step: usize, index: usize) -> u32 {
    let bytes = &plan.steps[step].push[index * 4..index * 4 + 4];
    u32::from_ne_bytes(bytes.try_into().unwrap())
}

fn reason(answer: Result<Plan, Refusal>) -> String {
    match answer {
        Err(Refusal::Decline(why) | Refusal::BadRequest(why)) => why,
        other => panic!("expected a refusal with a reason, got {other:?}"),
    }
}

#[test]
fn layouts_are_read_along_their_fast_axis() {
    let a = Side::new(&[256, 512], &[], &[1]);
    let b = Side::new(&[512, 384], &[], &[0]);
    let (at, bt) = (
        a.clone().strided(&[1, 256], 0),
        b.clone().strided(&[1, 512], 0),
    );
    for (a, b, along) in [
        (&a, &b, "10"),
        (&at, &b, "00"),
        (&a, &bt, "11"),
        (&at, &bt, "01"),
    ] {
        let plan = ask(TILED, &gpu(), a, b).unwrap();
        assert_eq!(
            defined(&plan, 0, "A_ALONG_K").to_owned() + defined(&plan, 0, "B_ALONG_K"),
            along
        );
        assert_eq!(
            (defined(&plan, 0, "A_WIDE"), defined(&plan, 0, "B_WIDE")),
            ("1", "1")
        );
    }
}

#[test]
fn packs_need_alignment_in_every_direction() {
    let b = Side::new(&[64, 64], &[], &[0]);
    for (shape, strides, offset, wide) in [
        ([64, 64], [64, 1], 0, "1"),
        ([64, 64], [64, 1], 4, "1"),
        ([64, 64], [64, 1], 2, "0"),
        ([64, 64], [68, 1], 0, "1"),
        ([64, 64], [66, 1], 0, "0"),
        ([64, 64], [128, 2], 0, "0"),
        ([64, 64], [-64, 1], 63 * 64, "1"),
        ([64, 64], [64, -1], 63, "0"),
        ([64, 64], [0, 1], 0, "1"),
    ] {
        let a = Side {
            storage: 1 << 20,
            ..Side::new(&shape, &[], &[1]).strided(&strides, offset)
        };
        let plan = ask(TILED, &gpu(), &a, &b).unwrap();
        assert_eq!(defined(&plan, 0, "A_WIDE"), wide, "{strides:?} at {offset}");
    }
    let odd = matrices(TILED, &gpu(), [65, 67, 129], DType::F32).unwrap();
    assert_eq!(
        ["A_WIDE", "B_WIDE", "C_WIDE"].map(|name| defined(&odd, 0, name)),
        ["0"; 3]
    );
}

#[test]
fn every_type_plans_in_every_way() {
    for dtype in DType::all().filter(|dtype| DTypeSet::REAL.has(*dtype)) {
        for (row, size, file) in [
            (SKINNY, [4096, 1, 512], "skinny.comp"),
            (TILED, [512, 512, 512], "tile.comp"),
            (DIRECT, [33, 9, 5], "direct.comp"),
        ] {
            let plan = matrices(row, &gpu(), size, dtype).unwrap();
            assert_eq!(files(&plan)[0], file, "{dtype}");
            assert_eq!(
                defined(&plan, 0, "WIDTH"),
                if dtype.size() == 8 { "2" } else { "4" }
            );
            matrices(DIRECT, &cpu(), size, dtype).unwrap();
        }
    }
}

#[test]
fn the_last_resort_takes_every_degenerate_size() {
    for size in [0, 1, 2].iter().flat_map(|m| [0, 1, 2].map(|n| (*m, n))) {
        for (k, device) in [0, 1, 2].iter().flat_map(|k| [(*k, gpu()), (*k, cpu())]) {
            let plan = matrices(DIRECT, &device, [size.0, size.1, k], DType::F32).unwrap();
            assert_eq!(
                plan.steps.len(),
                usize::from(size.0 * size.1 > 0),
                "{size:?} {k}"
            );
        }
    }
    let scalars = ask(
        DIRECT,
        &gpu(),
        &Side::new(&[], &[], &[]),
        &Side::new(&[], &[], &[]),
    )
    .unwrap();
    assert_eq!(files(&scalars), ["direct.comp"]);
}

#[test]
fn axes_that_collapse_are_read_in_place() {
    let a = Side::new(&[2, 3, 40, 5, 8], &[0, 1], &[3, 4]);
    let b = Side::new(&[2, 3, 5, 8, 7, 10], &[0, 1], &[2, 3]);
    let plan = ask(TILED, &gpu(), &a, &b).unwrap();
    assert_eq!(files(&plan), ["tile.comp"]);
    assert_eq!([0, 1, 2, 3].map(|i| word(&plan, 0, i)), [40, 70, 40, 6]);
    // The order of the pairs does not matter when another one collapses.
    let turned = [
        Side {
            contract: vec![4, 3],
            ..a
        },
        Side {
            contract: vec![3, 2],
            ..b
        },
    ];
    let other = ask(TILED, &gpu(), &turned[0], &turned[1]).unwrap();
    assert_eq!(plan, other);
}

#[test]
fn axes_that_do_not_collapse_are_gathered_first() {
    let a = Side::new(&[8, 30, 8], &[], &[0, 2]);
    let b = Side::new(&[8, 40, 8], &[], &[0, 2]);
    let plan = ask(TILED, &gpu(), &a, &b).unwrap();
    assert_eq!(files(&plan), ["gather.comp", "gather.comp", "tile.comp"]);
    assert_eq!(plan.scratch.as_slice(), [4 * 8 * 30 * 8, 4 * 8 * 40 * 8]);
    for contract in [[0, 1], [1, 0]] {
        let b = Side::new(&[8, 8, 40], &[], &contract);
        let plan = ask(TILED, &gpu(), &a, &b).unwrap();
        assert_eq!(files(&plan), ["gather.comp", "tile.comp"]);
    }
}

#[test]
fn other_types_are_asked_for_in_the_result_type() {
    let a = Side::new(&[4, 4], &[], &[1]).of(DType::U8);
    let b = Side::new(&[4, 4], &[], &[0]);
    let table = Table::get().unwrap();
    let answer = ask_of(table, DIRECT, &gpu(), &a, &b, DType::F32);
    assert_eq!(
        answer,
        Err(Refusal::InputsAs(vec![InputAs {
            index: 0,
            dtype: DType::F32
        }]))
    );
    let answer = ask_of(table, DIRECT, &gpu(), &a, &a, DType::S32);
    let both = [0, 1].map(|index| InputAs {
        index,
        dtype: DType::S32,
    });
    assert_eq!(answer, Err(Refusal::InputsAs(both.to_vec())));
}

#[test]
fn small_sides_are_skinny_whichever_they_are() {
    for (size, columns) in [
        ([4096, 1, 4096], "1"),
        ([1, 4096, 4096], "1"),
        ([5, 3000, 999], "5"),
    ] {
        let plan = matrices(SKINNY, &gpu(), size, DType::F32).unwrap();
        assert_eq!(defined(&plan, 0, "COLUMNS"), columns);
        let m = size[0].max(size[1]) as u32;
        assert_eq!(word(&plan, 0, 0), m);
        let c_strides = if size[0] > size[1] {
            [size[1] as u32, 1]
        } else {
            [1, m]
        };
        assert_eq!([12, 13].map(|i| word(&plan, 0, i)), c_strides);
    }
    let inner = matrices(SKINNY, &gpu(), [1, 1, 1 << 24], DType::F32).unwrap();
    assert_eq!(files(&inner), ["skinny.comp", "splits.comp"]);
    assert!(reason(matrices(SKINNY, &gpu(), [9, 9, 4096], DType::F32)).contains("more than 8"));
    assert!(reason(matrices(SKINNY, &gpu(), [1, 9, 9], DType::F32)).contains("too little"));
}

#[test]
fn tiles_are_chosen_to_fill_the_device() {
    let block = |size| {
        defined(
            &matrices(TILED, &gpu(), size, DType::F32).unwrap(),
            0,
            "BLOCK_M",
        )
        .to_owned()
    };
    assert_eq!(block([4096, 4096, 4096]), "128");
    assert_eq!(block([256, 256, 256]), "32");
    let deep = matrices(TILED, &gpu(), [256, 256, 65536], DType::F32).unwrap();
    assert_eq!(files(&deep), ["tile.comp", "splits.comp"]);
    let splits = deep.scratch[0] / (256 * 256 * 4);
    assert!((2..=8).contains(&splits), "{splits}");
    assert_eq!(defined(&deep, 0, "PARTIAL"), "1");
    let batched = ask(
        TILED,
        &gpu(),
        &Side::new(&[64, 256, 256], &[0], &[2]),
        &Side::new(&[64, 256, 256], &[0], &[1]),
    );
    assert_eq!(defined(&batched.unwrap(), 0, "BLOCK_M"), "128");
}

#[test]
fn each_way_says_why_it_declines() {
    assert!(reason(matrices(CPU, &gpu(), [512; 3], DType::F32)).contains("not a CPU"));
    assert!(matrices(CPU, &cpu(), [512; 3], DType::F32).is_ok());
    assert!(
        reason(matrices(TILED, &gpu(), [512, 512, 3], DType::F32)).contains("smaller than a tile")
    );
    let small = DeviceInfo {
        shared_bytes: 1024,
        ..gpu()
    };
    assert!(reason(matrices(TILED, &small, [512; 3], DType::F32)).contains("no tile fits"));
    let plain = DeviceInfo {
        features: Features::NONE,
        ..gpu()
    };
    assert!(reason(matrices(DIRECT, &plain, [4; 3], DType::F64)).contains("fp64"));
    assert!(reason(matrices(DIRECT, &plain, [4; 3], DType::U8)).contains("storage8"));
    assert!(matrices(DIRECT, &plain, [4; 3], DType::F32).is_ok());
}

#[test]
fn buffers_beyond_the_range_are_windowed_or_declined() {
    let device = DeviceInfo {
        max_buffer_range: 1 << 20,
        ..gpu()
    };
    let b = Side::new(&[64, 64], &[], &[0]);
    let a = Side {
        storage: 1 << 30,
        ..Side::new(&[64, 64], &[], &[1]).strided(&[64, 1], 100_000_003)
    };
    let plan = ask(DIRECT, &device, &a, &b).unwrap();
    let arg = plan.steps[0].args[0];
    assert_eq!((arg.offset, arg.len), (400_000_000, 12 + 64 * 64 * 4 + 4));
    assert_eq!(word(&plan, 0, 4), 3);
    let spread = Side {
        storage: 1 << 30,
        ..Side::new(&[64, 64], &[], &[1]).strided(&[1 << 20, 1], 0)
    };
    assert!(reason(ask(DIRECT, &device, &spread, &b)).contains("binds at most 1048576"));
    assert!(reason(matrices(DIRECT, &device, [1024, 1024, 1], DType::F32)).contains("the result"));
    let outside = Side {
        storage: 16,
        ..b.clone()
    };
    assert!(reason(ask(DIRECT, &device, &outside, &b)).contains("reaches outside"));
}

#[test]
fn many_workgroups_wrap_into_the_second_dimension() {
    let a = Side::new(&[100_000, 32, 32], &[0], &[2]);
    let b = Side::new(&[100_000, 32, 32], &[0], &[1]);
    let plan = ask(TILED, &gpu(), &a, &b).unwrap();
    assert_eq!(plan.steps[0].groups, [65535, 2, 1]);
    assert_eq!(word(&plan, 0, 16), 100_000);
    let narrow = DeviceInfo {
        max_groups: [100; 3],
        ..gpu()
    };
    assert!(reason(ask(TILED, &narrow, &a, &b)).contains("workgroups"));
}

#[test]
fn broken_requests_are_the_hosts_fault() {
    let b = Side::new(&[4, 4], &[], &[0]);
    for (a, part) in [
        (Side::new(&[4, 5], &[], &[1]), "differ in extent"),
        (Side::new(&[4, 4], &[], &[7]), "no axis 7"),
        (Side::new(&[4, 4], &[], &[1, 1]), "two roles"),
    ] {
        let answer = ask(DIRECT, &gpu(), &a, &b);
        assert!(
            matches!(&answer, Err(Refusal::BadRequest(why)) if why.contains(part)),
            "{answer:?}"
        );
    }
}

#[test]
fn a_wrong_table_is_refused() {
    let text = include_str!("../pack.toml");
    assert_eq!(Table::parse(text).unwrap().rows().unwrap().len(), 4);
    assert!(
        Table::parse(&text.replace("[128, 128, 8]", "[128, 100, 8]"))
            .unwrap_err()
            .contains("100")
    );
    assert!(
        Table::parse(&text.replace("speed", "sped"))
            .unwrap_err()
            .contains("sped")
    );
    let unknown = Table::parse(&text.replacen("\"real\"", "\"f17\"", 1)).unwrap();
    assert!(unknown.rows().unwrap_err().contains("dot_skinny"));
    let request_row = matrices(9, &gpu(), [1; 3], DType::F32);
    assert!(matches!(request_row, Err(Refusal::Internal(_))));
}

#[test]
fn the_exported_plan_is_that_of_the_own_table() {
    let request = Request {
        op: RStr::from_str("dot"),
        inputs: RSlice::EMPTY,
        outputs: RSlice::EMPTY,
        attrs: RSlice::EMPTY,
        device: &gpu(),
        spare: [0; 4],
    };
    assert!(matches!(plan(0, &request), Err(Refusal::BadRequest(_))));
}
