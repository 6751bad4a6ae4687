//! Steps that repeat, and workgroup counts that the device decides on.

use crate::folder::Folder;
use nx_vulkan_host::{Config, DType, Kind, Request, Result, Runtime, device};
use std::{fs, path::Path, sync::Arc};

const COUNT: u32 = 1000;

fn open(folder: &Folder) -> Arc<Runtime> {
    folder.write(
        "given/bad.so",
        fs::read(crate::packs::built("bad")).unwrap(),
    );
    Runtime::open(&Config {
        packs: vec![folder.join("given")],
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

fn run(runtime: &Runtime, op: &str, values: &[u32]) -> Result<Vec<u32>> {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    let shape = vec![values.len() as u64];
    let input = runtime.upload(DType::U32, &shape, &bytes)?;
    let outputs = [(DType::U32, shape)];
    let results = runtime.run(&Request::new(op, &[&input], &outputs, &[]))?;
    let bytes = runtime.download(&results[0], None)?;
    let words = bytes.as_chunks::<4>().0.iter();
    Ok(words.map(|word| u32::from_ne_bytes(*word)).collect())
}

#[test]
fn steps_repeat_until_the_device_asks_for_no_workgroups() {
    let folder = Folder::new();
    let runtime = open(&folder);
    for offset in [0, 5] {
        let values: Vec<u32> = (0..COUNT).map(|i| 3 * i + offset).collect();
        let expected: Vec<u32> = values.iter().map(|v| v + 1 + 2 + 3).collect();
        assert_eq!(run(&runtime, "repeats", &values).unwrap(), expected);
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

/// The pack without code that does the same.
const TABLE: &str = r#"
[pack]
id = "grows"
version = "1.0.0"
abi = "1"
[[kernel]]
id = "grows"
op = "grows"
types = ["u32->u32"]
scratch = [12]
[[kernel.step]]
shader = "copy.comp"
push = ["elems"]
groups = ["ceil(elems / 64)"]
[[kernel.step]]
shader = "decide.comp"
bindings = ["write scratch"]
push = [{ from = 1, by = 1 }]
groups = [1]
repeat = { steps = 2, times = 6 }
[[kernel.step]]
shader = "grow.comp"
bindings = ["counts scratch", "update out"]
push = ["elems", { from = 1, by = 1 }]
groups = ["ceil(elems / 64)"]
"#;

#[test]
fn a_pack_without_code_repeats_steps_too() {
    let folder = Folder::new();
    let shaders = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/bad_pack/shaders");
    folder.write("packs/grows/pack.toml", TABLE);
    for name in ["copy.comp", "decide.comp", "grow.comp"] {
        let text = fs::read(shaders.join(name)).unwrap();
        folder.write(&format!("packs/grows/{name}"), text);
    }
    let runtime = Runtime::open(&Config {
        packs: vec![folder.join("packs")],
        cache_dir: Some(folder.join("cache")),
        validation: true,
        ..Config::from_env()
    });
    let values: Vec<u32> = (0..COUNT).collect();
    let expected: Vec<u32> = values.iter().map(|v| v + 1 + 2 + 3).collect();
    assert_eq!(run(&runtime.unwrap(), "grows", &values).unwrap(), expected);
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn repetitions_that_make_no_sense_are_refused() {
    let folder = Folder::new();
    let runtime = open(&folder);
    let values: Vec<u32> = (0..COUNT).collect();
    for (op, why) in [
        (
            "bad_repeat",
            "step 0: 2 steps repeat 3 times, and there are 1",
        ),
        (
            "bad_repeat_nested",
            "step 1: 1 steps repeat 2 times, inside of others that do",
        ),
        (
            "bad_repeat_many",
            "20000 dispatches, and the limit is 16384",
        ),
        (
            "bad_counter",
            "grow with repetitions, and it does not repeat",
        ),
        (
            "bad_counter_word",
            "word 9 of its push constants grows, and it has 1",
        ),
        (
            "bad_counts",
            "workgroup counts are three words of one argument, which is only read",
        ),
        ("bad_spare", "the pack needs a newer host"),
    ] {
        let error = run(&runtime, op, &values).unwrap_err();
        assert_eq!(error.kind(), Kind::Unsupported, "{error}");
        assert!(error.to_string().contains(why), "{op}: {error}");
    }
    assert_eq!(run(&runtime, "bad_nothing", &values).unwrap(), values);
}
