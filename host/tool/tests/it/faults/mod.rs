//! Broken packs, exhausted memory, full disks, lost devices: each is an error, and everything works afterwards.

mod processes;

use crate::folder::Folder;
use nx_vulkan_host::{Attr, Config, DType, Kind, Request, Result, Runtime, Tensor, device};
use std::{fs, sync::Arc};

fn open(cache: &Folder, packs: &[&str]) -> Arc<Runtime> {
    Runtime::open(&config(cache, packs)).unwrap()
}

fn config(cache: &Folder, names: &[&str]) -> Config {
    let folder = cache.join("given");
    fs::create_dir_all(&folder).unwrap();
    for name in names {
        fs::copy(crate::packs::built(name), folder.join(format!("{name}.so"))).unwrap();
    }
    Config {
        packs: vec![folder],
        cache_dir: Some(cache.join("cache")),
        validation: true,
        ..Config::from_env()
    }
}

fn words(count: u32) -> Vec<u8> {
    (0..count).flat_map(|i| (i * 7 + 1).to_ne_bytes()).collect()
}

fn tensor(runtime: &Runtime, count: u32) -> Tensor {
    runtime
        .upload(DType::U32, &[count.into()], &words(count))
        .unwrap()
}

fn run(runtime: &Runtime, op: &str, input: &Tensor) -> Result<Tensor> {
    let outputs = [(input.dtype(), input.shape().to_vec())];
    Ok(runtime
        .run(&Request::new(op, &[input], &outputs, &[]))?
        .remove(0))
}

#[test]
fn every_broken_plan_is_refused_with_its_reason_and_nothing_is_lost() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let input = tensor(&runtime, 1000);
    let expected = [
        (
            "bad_panic",
            "the pack panicked in plan: this kernel panics\u{fffd}[31m when it is asked",
        ),
        (
            "bad_shader_name",
            "there is no shader source named \"missing.comp\"",
        ),
        (
            "bad_glsl",
            "broken.comp:5: 'undeclared' : undeclared identifier",
        ),
        ("bad_bindings", "uses bindings [0, 1]"),
        ("bad_shader_index", "shader 7 of 1"),
        ("bad_writes_input", "it writes to input 0"),
        (
            "bad_scribble",
            "scribble.comp writes to binding 0, which the plan only reads: input 0",
        ),
        ("bad_groups", "workgroups, and the device allows"),
        (
            "bad_uncovered",
            "output 0 has 4000 bytes, and those from 4 on are not written",
        ),
        ("bad_range", "of output 0, which has 4000"),
        ("bad_offset", "of input 0, which has 4000"),
        ("bad_alignment", "offsets are multiples of"),
        ("bad_slot", "an unknown buffer slot 99"),
        ("bad_index", "input 1 does not exist"),
        ("bad_access", "an unknown access 99"),
        (
            "bad_arg_count",
            "1 buffer arguments, and copy.comp declares 2",
        ),
        (
            "bad_push",
            "5 bytes of push constants, and copy.comp declares 4",
        ),
        ("bad_push_size", "65536 bytes of push constants"),
        ("bad_scratch", "scratch sizes"),
        ("bad_room", "1099511627776 bytes, and the device"),
        (
            "bad_form",
            "it asks for inputs in another form and names none",
        ),
        ("bad_steps", "65 steps, and the limit is 64"),
        (
            "bad_spare",
            "it sets a field that this ABI has no meaning for",
        ),
        (
            "bad_subgroup",
            "a subgroup size of 3, and the device promises powers of two",
        ),
    ];
    for (op, reason) in expected {
        let error = run(&runtime, op, &input).unwrap_err();
        let text = error.to_string();
        assert!(text.contains(reason), "{op}: {text}");
        assert!(
            text.contains("u32[1000]"),
            "{op} names types and shapes: {text}"
        );
        assert_eq!(error.kind(), Kind::Unsupported, "{op}");
        let good = run(&runtime, "bad_nothing", &input).unwrap();
        assert_eq!(
            runtime.download(&good, None).unwrap(),
            words(1000),
            "after {op}"
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn a_kernel_that_fails_again_and_again_is_asked_no_more() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let input = tensor(&runtime, 1000);
    for _ in 0..3 {
        let error = run(&runtime, "bad_uncovered", &input).unwrap_err();
        assert!(error.to_string().contains("are not written"), "{error}");
    }
    let error = run(&runtime, "bad_uncovered", &input).unwrap_err();
    let given_up = "it failed 3 times and is not asked until something is reloaded";
    assert!(error.to_string().contains(given_up), "{error}");
    let good = run(&runtime, "bad_nothing", &input).unwrap();
    assert_eq!(runtime.download(&good, None).unwrap(), words(1000));
}

#[test]
fn the_registry_may_make_a_failure_an_error() {
    let cache = Folder::new();
    let text = "schema = 1\n[defaults]\non_error = \"error\"\n";
    let config = Config {
        registry: Some(cache.write("registry.toml", text)),
        ..config(&cache, &["bad"])
    };
    let runtime = Runtime::open(&config).unwrap();
    let error = run(&runtime, "bad_range", &tensor(&runtime, 1000)).unwrap_err();
    assert_eq!(error.kind(), Kind::Pack, "{error}");
    assert!(error.to_string().contains("bad/bad_range"), "{error}");
}

#[test]
fn a_shader_that_stores_beyond_its_output_reaches_no_other_tensor() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let input = tensor(&runtime, 1000);
    let neighbours: Vec<_> = (0..64).map(|_| tensor(&runtime, 1000)).collect();
    for _ in 0..8 {
        let result = run(&runtime, "bad_overrun", &input).unwrap();
        assert_eq!(runtime.download(&result, None).unwrap(), words(1000));
    }
    for neighbour in neighbours.iter().chain([&input]) {
        assert_eq!(runtime.download(neighbour, None).unwrap(), words(1000));
    }
}

#[test]
fn an_allocation_beyond_the_device_names_the_size_and_leaves_everything_working() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let before = tensor(&runtime, 1000);
    let error = runtime.zeros(DType::F32, &[1 << 42]).unwrap_err();
    assert_eq!(error.kind(), Kind::OutOfMemory);
    let text = error.to_string();
    assert!(
        text.contains(&format!("{}", 4u64 << 42)) && text.contains("in use by 1 buffers"),
        "{text}"
    );
    let error = runtime.zeros(DType::F32, &[u64::MAX, 3]).unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    let copy = run(&runtime, "bad_nothing", &before).unwrap();
    assert_eq!(runtime.download(&copy, None).unwrap(), words(1000));
}

#[test]
fn memory_comes_back_when_tensors_go() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let input = tensor(&runtime, 1000);
    let idle = runtime.stats().memory;
    for _ in 0..2000 {
        run(&runtime, "bad_nothing", &input).unwrap();
    }
    runtime.sync().unwrap();
    let after = runtime.stats().memory;
    assert_eq!((after.in_use, after.buffers), (idle.in_use, idle.buffers));
    assert_eq!(after.allocated, idle.allocated, "the pool does not grow");
    drop(input);
    runtime.trim().unwrap();
    let trimmed = runtime.stats().memory;
    assert_eq!(
        (trimmed.in_use, trimmed.buffers, trimmed.allocated),
        (0, 0, 0)
    );
}

#[test]
fn a_tensor_beyond_one_binding_is_refused_by_name_or_runs_on_the_host() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let limit = runtime.device_info().max_buffer_range;
    if limit > 1 << 30 {
        eprintln!(
            "not tested: {} binds up to {limit} bytes",
            runtime.device().summary().name
        );
        return;
    }
    let count = limit / 4 + 1;
    let big = runtime.zeros(DType::F32, &[count]).unwrap();
    let words = big.bitcast(DType::U32).unwrap();
    let error = run(&runtime, "bad_nothing", &words).unwrap_err();
    assert!(
        error.to_string().contains("maxStorageBufferRange"),
        "{error}"
    );
    let ran = runtime
        .run_reported(&Request::new(
            "negate",
            &[&big],
            &[(DType::F32, vec![count])],
            &[],
        ))
        .unwrap();
    assert_eq!(&*ran.served_by, "host");
    assert_eq!(
        runtime.download(&ran.outputs[0], Some(1)).unwrap(),
        (-0.0f32).to_ne_bytes()
    );
}

#[test]
fn wrong_sizes_and_empty_tensors_are_handled() {
    let cache = Folder::new();
    let runtime = open(&cache, &["bad"]);
    let error = runtime.upload(DType::F32, &[3], &[0; 8]).unwrap_err();
    assert_eq!(error.to_string(), "a tensor f32[3] has 12 bytes, got: 8");
    let empty = runtime.upload(DType::U32, &[0, 5], &[]).unwrap();
    let result = run(&runtime, "bad_nothing", &empty).unwrap();
    assert!(runtime.download(&result, None).unwrap().is_empty());
    let sum = [Attr::ints("axes", [0])];
    let result = runtime
        .run(&Request::new(
            "sum",
            &[&empty],
            &[(DType::U32, vec![5])],
            &sum,
        ))
        .unwrap();
    assert_eq!(runtime.download(&result[0], None).unwrap(), [0; 20]);
    let one = tensor(&runtime, 4);
    let error = runtime
        .run(&Request::new(
            "add",
            &[&one, &empty],
            &[(DType::U32, vec![4])],
            &[],
        ))
        .unwrap_err();
    assert_eq!(error.kind(), Kind::BadInput);
    assert!(error.to_string().contains("u32[4]"), "{error}");
}

#[test]
fn a_forbidden_fallback_names_op_and_types() {
    let cache = Folder::new();
    let registry = cache.write(
        "registry.toml",
        "schema = 1\n[defaults]\nfallback = \"error\"\n",
    );
    let runtime = Runtime::open(&Config {
        registry: Some(registry),
        ..config(&cache, &["bad"])
    })
    .unwrap();
    let input = tensor(&runtime, 8);
    let error = run(&runtime, "bitwise_not", &input).unwrap_err();
    assert_eq!(error.kind(), Kind::FallbackForbidden);
    assert!(
        error.to_string().contains("bitwise_not(u32[8]) -> u32[8]"),
        "{error}"
    );
}
