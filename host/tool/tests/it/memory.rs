//! The memory a runtime takes: its budget, who holds what of it, and that nobody who must not wait does.

use crate::{folder::Folder, packs::copied};
use nx_vulkan_host::{
    Config, DType, Kind, MemoryBudget, Request, Runtime,
    module::{Binding, Launch},
};
use std::sync::Arc;

const MIB: u64 = 1 << 20;

fn open(memory: MemoryBudget) -> Arc<Runtime> {
    Runtime::open(&Config {
        cache_dir: Some(env!("CARGO_TARGET_TMPDIR").into()),
        memory,
        ..Config::from_env()
    })
    .unwrap()
}

#[test]
fn an_allocation_beyond_the_budget_is_an_error_that_says_who_holds_what() {
    let runtime = open(MemoryBudget::Bytes(200 * MIB));
    let zeros = |mib: u64| runtime.zeros(DType::U8, &[mib * MIB]);
    let kept = zeros(100).unwrap();
    let error = zeros(120).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory);
    let text = error.to_string();
    for part in [
        "that is beyond the budget",
        "in use by 1 buffers for tensors",
        "the budget is 209715200 bytes",
        &format!("{} bytes", 120 * MIB),
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let stats = runtime.stats();
    assert_eq!(stats.budget.limit, 200 * MIB);
    assert!((100 * MIB..=200 * MIB).contains(&stats.budget.taken));
    drop(kept);
    let others = [zeros(90).unwrap(), zeros(90).unwrap()];
    assert!(zeros(90).is_err());
    drop(others);
    zeros(190).unwrap();
    runtime.trim().unwrap();
    assert_eq!(runtime.stats().budget.taken, 0);
}

#[test]
fn what_a_cpu_takes_stays_below_what_the_system_has() {
    let runtime = open(MemoryBudget::Auto);
    if runtime.device().summary().kind != "cpu" {
        eprintln!("not tested: this device has memory of its own");
        return;
    }
    let meminfo = std::fs::read_to_string("/proc/meminfo").unwrap();
    let total = meminfo.split_whitespace().nth(1).unwrap();
    let total: u64 = total.parse::<u64>().unwrap() * 1024;
    let limit = runtime.stats().budget.limit;
    assert!(limit > 0 && limit <= total / 4 * 3, "{limit} of {total}");
    let error = runtime.zeros(DType::U8, &[limit + MIB]).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory, "{error}");
    let text = error.to_string();
    assert!(
        text.contains(&format!("the budget is {limit} bytes")),
        "{text}"
    );
}

#[test]
fn whoever_must_not_wait_is_told_instead() {
    let runtime = open(MemoryBudget::Bytes(80 * MIB));
    let upload = |bytes: &[u8]| runtime.try_upload(DType::U8, &[bytes.len() as u64], bytes);
    assert!(
        upload(&[1]).unwrap().is_none(),
        "the driver has to be asked"
    );
    let mut kept = vec![runtime.upload(DType::U8, &[1], &[1]).unwrap()];
    let large = vec![7; MIB as usize];
    while let Some(tensor) = upload(&large).unwrap() {
        kept.push(tensor);
        assert!(kept.len() < 80, "80 MiB are the budget");
    }
    assert!(kept.len() > 50, "{}", kept.len());
    let error = runtime
        .upload(DType::U8, &[32 * MIB], &vec![0; 32 * MIB as usize])
        .unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory, "{error}");
    kept.clear();
    assert!(upload(&large).unwrap().is_some());
}

#[test]
fn lengths_that_overflow_are_refused() {
    let runtime = open(MemoryBudget::Auto);
    for (shape, kind) in [
        (vec![u64::MAX], Kind::BadInput),
        (vec![1 << 58], Kind::OutOfMemory),
        (vec![1 << 61], Kind::BadInput),
        (vec![1 << 32, 1 << 32], Kind::BadInput),
    ] {
        let error = runtime.zeros(DType::F32, &shape).unwrap_err();
        assert_eq!(error.kind(), kind, "{shape:?}: {error}");
    }
}

/// A specialization constant makes each of them another pipeline.
const SCALE: &str = "#version 450
layout(local_size_x = 1) in;
layout(constant_id = 0) const uint factor = 1u;
layout(set = 0, binding = 0) buffer Data { uint x[]; };
void main() { x[0] = factor; }";

#[test]
fn pipelines_of_callers_modules_are_freed() {
    let runtime = open(MemoryBudget::Auto);
    let module = runtime.module_of(SCALE).unwrap();
    let tensor = runtime.upload(DType::U32, &[1], &[0; 4]).unwrap();
    let scale = |factor: u32| {
        let launch = Launch {
            bindings: &[Binding::write(&tensor)],
            constants: &[(0, factor)],
            push: &[],
            groups: [1, 1, 1],
        };
        runtime.launch(&module, &launch).unwrap();
    };
    for factor in 0..600 {
        scale(factor);
    }
    runtime.sync().unwrap();
    let kept = runtime.stats().pipelines;
    assert!((100..=330).contains(&kept), "{kept} pipelines are kept");
    for factor in [3, 599, 3] {
        scale(factor);
        let bytes = runtime.download(&tensor, None).unwrap();
        assert_eq!(bytes, factor.to_ne_bytes());
    }
}

/// A kernel whose scratch buffers there is no room for makes way, and who ran in its place is counted.
#[test]
fn what_runs_in_less_memory_is_counted() {
    let folder = Folder::new();
    let packs = copied(&folder, &["elementwise"]);
    folder.write(
        "packs/greedy/pack.toml",
        "[pack]\nid = \"greedy\"\nversion = \"1.0.0\"\nabi = \"1\"\n[[kernel]]\nid = \"negate\"\nop = \"negate\"\n\
         inputs = [\"f32\"]\noutputs = [\"f32\"]\nrank = 255\nshader = \"a.comp\"\nscratch = [1000000000000]\ngroups = [1]\n",
    );
    folder.write(
        "packs/greedy/a.comp",
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
         layout(set = 0, binding = 1) writeonly buffer R { float r[]; };\nvoid main() { r[0] = a[0]; }\n",
    );
    let runtime = Runtime::open(&Config {
        packs: vec![packs],
        registry: Some(folder.write(
            "registry.toml",
            "schema = 1\n[defaults]\nmeasure = \"never\"\n",
        )),
        cache_dir: Some(folder.join("cache")),
        ..Config::from_env()
    });
    let runtime = runtime.unwrap();
    let x = runtime
        .upload(DType::F32, &[1], &3f32.to_ne_bytes())
        .unwrap();
    let results = [(DType::F32, vec![1])];
    for _ in 0..3 {
        let ran = runtime
            .run(&Request::new("negate", &[&x], &results, &[]))
            .unwrap();
        let bytes = runtime.download(&ran[0], None).unwrap();
        assert_eq!(bytes, (-3f32).to_ne_bytes());
    }
    let served = runtime.stats().served;
    let own = ("negate".to_owned(), "elementwise/negate".to_owned(), 3);
    assert_eq!(served, [own]);
}

/// Buffers that are gone hide none that lies where they lay.
#[test]
fn an_address_is_found_among_those_of_freed_tensors() {
    let runtime = open(MemoryBudget::Bytes(400 * MIB));
    let small: Vec<_> = (0..64)
        .map(|_| runtime.zeros(DType::U8, &[MIB]).unwrap())
        .collect();
    let lent: Vec<_> = small
        .iter()
        .take(50)
        .map(|tensor| runtime.expose(tensor).unwrap())
        .collect();
    let addresses: Vec<usize> = lent.iter().map(|(_, address)| *address).collect();
    drop((small, lent));
    runtime.sync().unwrap();
    let large = runtime.zeros(DType::U8, &[40 * MIB]).unwrap();
    let (large, start) = runtime.expose(&large).unwrap();
    let inside = start..start + 40 * MIB as usize;
    // Where the memory of those is used again.
    let hiding = addresses
        .iter()
        .filter(|address| inside.contains(address))
        .count();
    let places = [0, 3, 39].map(|mib| start + mib * MIB as usize + 4096);
    for place in places {
        let found = runtime.tensor_at(place, DType::U8, &[100]);
        assert!(found.is_ok(), "{hiding} hide {place:#x}: {found:?}");
    }
    drop(large);
}
