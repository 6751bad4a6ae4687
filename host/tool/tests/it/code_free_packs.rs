//! Code-free packs: the shipped example on a device, how they are found and pinned, and what is refused.

use crate::folder::Folder;
use nx_vulkan_host::{Attr, Config, DType, Kind, Request, Runtime, Tensor, device};
use nx_vulkan_registry::{Options, Table, load};
use std::{
    fs,
    os::unix::fs::symlink,
    path::{Path, PathBuf},
    process::Command,
    sync::Arc,
};

const EXAMPLES: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/packs");

const TABLE: &str = "[pack]\nid = \"twice\"\nversion = \"1.2.3\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"twice\"\nop = \"twice\"\ninputs = [\"f32\"]\noutputs = [\"f32\"]\n\
    shader = \"twice.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n";
const SHADER: &str = "#version 450\nlayout(local_size_x = 64) in;\n\
    layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
    layout(set = 0, binding = 1) writeonly buffer R { float r[]; };\n\
    layout(push_constant) uniform P { uint count; };\n\
    void main() {\n    uint i = gl_GlobalInvocationID.x;\n    if (i < count) r[i] = 2.0 * a[i];\n}\n";

pub(crate) fn open(cache: &Folder, packs: &[&Path]) -> Arc<Runtime> {
    Runtime::open(&Config {
        packs: packs.iter().map(|path| path.to_path_buf()).collect(),
        cache_dir: Some(cache.join("cache")),
        validation: true,
        ..Config::from_env()
    })
    .unwrap()
}

/// A folder with the pack `twice` in `packs/twice`.
pub(crate) fn with_pack() -> Folder {
    let folder = Folder::new();
    folder.write("packs/twice/pack.toml", TABLE);
    folder.write("packs/twice/twice.comp", SHADER);
    folder
}

fn search(folder: &Folder) -> Table {
    load(&Options {
        packs: vec![folder.join("packs")],
        store: folder.join("store"),
        ..Options::default()
    })
    .unwrap()
}

pub(crate) fn floats(runtime: &Runtime, tensor: &Tensor) -> Vec<f32> {
    let bytes = runtime.download(tensor, None).unwrap();
    let words = bytes.as_chunks::<4>().0.iter();
    words.map(|word| f32::from_ne_bytes(*word)).collect()
}

pub(crate) fn upload(runtime: &Runtime, shape: &[u64], values: &[f32]) -> Tensor {
    let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_ne_bytes()).collect();
    runtime.upload(DType::F32, shape, &bytes).unwrap()
}

fn ramp(count: usize) -> Vec<f32> {
    (0..count).map(|i| i as f32 * 0.37 - 20.0).collect()
}

#[test]
fn the_example_adds_an_op_of_its_own() {
    let cache = Folder::new();
    let runtime = open(&cache, &[Path::new(EXAMPLES)]);
    let values = ramp(1000);
    let x = upload(&runtime, &[10, 100], &values);
    let ran = runtime
        .run_reported(&Request::new(
            "swish",
            &[&x],
            &[(DType::F32, vec![10, 100])],
            &[],
        ))
        .unwrap();
    assert_eq!(&*ran.served_by, "swish/swish");
    for (x, y) in values.iter().zip(floats(&runtime, &ran.outputs[0])) {
        let expected = f64::from(*x) / (1.0 + (-f64::from(*x)).exp());
        let error = (f64::from(y) - expected).abs();
        assert!(
            error <= 1e-6 * expected.abs().max(1e-3),
            "swish({x}) = {y}, not {expected}"
        );
    }
    // A type of 16 bits goes through the operand's own loads and stores.
    let half = runtime
        .run(&Request::new(
            "as_type",
            &[&x],
            &[(DType::BF16, vec![10, 100])],
            &[],
        ))
        .unwrap();
    let y = runtime
        .run(&Request::new(
            "swish",
            &[&half[0]],
            &[(DType::BF16, vec![10, 100])],
            &[],
        ))
        .unwrap();
    let back = runtime
        .run(&Request::new(
            "as_type",
            &[&y[0]],
            &[(DType::F32, vec![10, 100])],
            &[],
        ))
        .unwrap();
    for (x, y) in values.iter().zip(floats(&runtime, &back[0])) {
        assert!(
            (y - x / (1.0 + (-x).exp())).abs() <= 0.02 * x.abs().max(0.1),
            "{x}: {y}"
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn the_examples_add_is_the_hosts_add() {
    let cache = Folder::new();
    let packed = open(&cache, &[Path::new(EXAMPLES)]);
    let plain = open(&cache, &[]);
    let (many, one) = (ramp(5000), [2.5f32]);
    let run = |runtime: &Runtime, first: fn(Tensor) -> Tensor, second: &[f32], shape: &[u64]| {
        let a = first(upload(runtime, &[50, 100], &many));
        let b = upload(runtime, shape, second);
        let out = a.shape().to_vec();
        let ran = runtime
            .run_reported(&Request::new("add", &[&a, &b], &[(DType::F32, out)], &[]))
            .unwrap();
        (ran.served_by.to_string(), floats(runtime, &ran.outputs[0]))
    };
    let views: [fn(Tensor) -> Tensor; 3] = [
        |tensor| tensor,
        |tensor| tensor.slice(&[3, 0], &[20, 100], &[1, 1]).unwrap(),
        |tensor| tensor.transpose(&[1, 0]).unwrap(),
    ];
    for view in views {
        for (second, shape) in [(&many[..], None), (&one[..], Some(vec![]))] {
            let a = view(upload(&plain, &[50, 100], &many));
            let shape = shape.unwrap_or_else(|| a.shape().to_vec());
            let second = &second[..shape.iter().product::<u64>() as usize];
            let (by, sum) = run(&packed, view, second, &shape);
            let (host, expected) = run(&plain, view, second, &shape);
            assert_eq!((by.as_str(), host.as_str()), ("swish/add", "host"));
            assert_eq!(sum, expected, "{:?} + {shape:?}", a.shape());
        }
    }
    // A request that `when` declines goes to the next kernel, and the reason is kept.
    let row = [(DType::F32, vec![50, 100]), (DType::F32, vec![100])];
    let why = packed
        .explain(&Request::new("add", &row, &row[..1], &[]))
        .unwrap();
    assert_eq!(why.picked.as_deref(), Some("host"));
    assert_eq!(
        why.candidates[0].reason,
        "the second operand is broadcast along some axes"
    );
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn the_example_with_two_steps_and_scratch() {
    let cache = Folder::new();
    let runtime = open(&cache, &[Path::new(EXAMPLES)]);
    for count in [1, 255, 1024, 300_000] {
        let values: Vec<f32> = (0..count).map(|i| (i % 17) as f32).collect();
        let x = upload(&runtime, &[count as u64], &values);
        let mean = runtime
            .run(&Request::new(
                "mean_square",
                &[&x],
                &[(DType::F32, vec![])],
                &[Attr::ints("axes", [0])],
            ))
            .unwrap();
        let expected: f64 = values.iter().map(|&v| f64::from(v * v)).sum::<f64>() / count as f64;
        let got = f64::from(floats(&runtime, &mean[0])[0]);
        assert!(
            (got - expected).abs() <= 1e-6 * expected,
            "{count}: {got}, not {expected}"
        );
    }
    assert_eq!(device::validation_messages(), [""; 0]);
}

#[test]
fn the_compiler_names_the_file_on_disk() {
    let folder = with_pack();
    let path = folder.write(
        "packs/twice/twice.comp",
        SHADER.replace("2.0 * a[i]", "b[i]"),
    );
    let runtime = open(&folder, &[&folder.join("packs")]);
    let x = upload(&runtime, &[3], &[1.0, 2.0, 3.0]);
    let error = runtime
        .run(&Request::new("twice", &[&x], &[(DType::F32, vec![3])], &[]))
        .unwrap_err();
    let place = format!("{}:8: 'b' : undeclared identifier", path.display());
    assert!(error.to_string().contains(&place), "{error}");
}

#[test]
fn a_view_is_copied_for_a_kernel_that_reads_no_offset() {
    let folder = with_pack();
    let runtime = open(&folder, &[&folder.join("packs")]);
    let x = upload(&runtime, &[5], &[1.0, 2.0, 3.0, 4.0, 5.0]);
    let tail = x.slice(&[2], &[3], &[1]).unwrap();
    let twice = runtime
        .run(&Request::new(
            "twice",
            &[&tail],
            &[(DType::F32, vec![3])],
            &[],
        ))
        .unwrap();
    assert_eq!(floats(&runtime, &twice[0]), [6.0, 8.0, 10.0]);
}

#[test]
fn a_folder_with_a_table_is_found_and_others_are_left_alone() {
    let folder = with_pack();
    folder.write("packs/notes/readme.md", "no table");
    folder.write("packs/crate/pack.toml", "map = []");
    folder.write("packs/crate/Cargo.toml", "[package]");
    folder.write(&format!("packs/built/{}", "x.so"), "");
    folder.write("packs/built/pack.toml", "map = []");
    folder.write("packs/.hidden/pack.toml", "map = []");
    let table = search(&folder);
    assert_eq!(table.rejected, []);
    let pack = &table.packs[0];
    assert_eq!(
        (pack.id.as_str(), pack.version.to_string().as_str()),
        ("twice", "1.2.3")
    );
    assert_eq!(pack.path, folder.join("packs/twice"));
    let glsl = pack.glsl("twice.comp").unwrap();
    let file = folder.join("packs/twice/twice.comp");
    assert_eq!((glsl.text, glsl.path), (SHADER, Some(&*file)));
    assert_eq!(table.packs.len(), 1);
    // A search folder may be the pack itself.
    let own = load(&Options {
        packs: vec![folder.join("packs/twice")],
        store: folder.join("store"),
        ..Options::default()
    });
    assert_eq!(own.unwrap().packs[0].sha256, pack.sha256);
}

#[test]
fn the_hash_is_that_of_names_and_contents_whatever_their_order() {
    let hash = |change: fn(&Folder)| {
        let folder = with_pack();
        change(&folder);
        search(&folder).packs[0].sha256.clone()
    };
    let plain = hash(|_| {});
    assert_eq!(plain.len(), 64);
    assert_eq!(
        plain,
        hash(|folder| {
            folder.write("packs/twice/twice.comp~", "an editor's backup");
            folder.write("packs/twice/.swp", "hidden");
        })
    );
    let changed = [
        hash(|folder| drop(folder.write("packs/twice/twice.comp", format!("{SHADER} ")))),
        hash(|folder| drop(folder.write("packs/twice/more.glsl", ""))),
        hash(|folder| drop(folder.write("packs/twice/sub/more.glsl", ""))),
        hash(|folder| drop(folder.write("packs/twice/notes.md", ""))),
    ];
    for (index, hash) in changed.iter().enumerate() {
        assert!(*hash != plain && !changed[..index].contains(hash));
    }
}

#[test]
fn pins_and_locked_mode_hold_for_folders() {
    let folder = with_pack();
    let sha = search(&folder).packs[0].sha256.clone();
    let locked = |pin: &str, file: &str| {
        let text = format!(
            "schema = 1\nmode = \"locked\"\n[search]\npaths = [\"packs\"]\n[pack.twice]\n{file}sha256 = \"{pin}\"\n"
        );
        load(&Options {
            registry: Some(folder.write("registry.toml", text)),
            store: folder.join("store"),
            ..Options::default()
        })
    };
    for file in ["", "file = \"twice\"\n"] {
        assert_eq!(locked(&sha, file).unwrap().packs[0].id, "twice");
    }
    let other = "0".repeat(64);
    let error = locked(&other, "file = \"twice\"\n").unwrap_err();
    assert_eq!(error.kind(), Kind::Pack);
    let text = error.to_string();
    assert!(
        text.contains(&format!("has {sha}, the registry pins {other}")),
        "{text}"
    );
    // Changed after it was pinned.
    folder.write("packs/twice/twice.comp", format!("{SHADER}\n"));
    assert_eq!(locked(&sha, "").unwrap_err().kind(), Kind::Pack);
}

/// Why the pack `twice` is rejected after `change`.
#[track_caller]
fn rejected(change: impl FnOnce(&Folder, &Path)) -> String {
    let folder = with_pack();
    let pack: PathBuf = folder.join("packs/twice");
    change(&folder, &pack);
    let table = search(&folder);
    assert_eq!(table.packs.len(), 0);
    table.rejected[0]
        .reason
        .replace(&format!("{}/", pack.display()), "")
}

#[test]
fn what_is_no_plain_file_or_too_much_is_refused() {
    let link = "it is a symbolic link, or not a regular file";
    let reason = rejected(|folder, pack| {
        folder.write("elsewhere.glsl", "");
        symlink(folder.join("elsewhere.glsl"), pack.join("h.glsl")).unwrap();
    });
    assert_eq!(reason, format!("read: h.glsl: {link}"));
    let reason = rejected(|_, pack| {
        let fifo = pack.join("pipe.glsl");
        assert!(Command::new("mkfifo").arg(fifo).status().unwrap().success());
    });
    assert_eq!(reason, format!("read: pipe.glsl: {link}"));
    let reason = rejected(|folder, pack| {
        fs::rename(pack, folder.join("moved")).unwrap();
        symlink(folder.join("moved"), pack).unwrap();
    });
    assert_eq!(
        reason,
        "read: it is a symbolic link; name the folder itself"
    );
    let reason = rejected(|_, pack| fs::write(pack.join("twice.comp"), [0xff, 0xfe]).unwrap());
    assert_eq!(reason, "describe: twice.comp is not UTF-8");
    let large = vec![b' '; (1 << 20) + 1];
    let reason = rejected(|_, pack| fs::write(pack.join("twice.comp"), &large).unwrap());
    assert_eq!(
        reason,
        "read: twice.comp: it has 1048577 bytes; at most 1048576 are read"
    );
    let reason = rejected(|folder, _| {
        for number in 0..256 {
            folder.write(&format!("packs/twice/{number}.glsl"), "");
        }
    });
    assert_eq!(
        reason,
        "read: a code-free pack has at most 256 files and 16777216 bytes"
    );
    let reason = rejected(|folder, _| drop(folder.write("packs/twice/1/2/3/4/5/x.glsl", "")));
    assert_eq!(reason, "read: 1/2/3/4/5: folders lie more than 4 deep");
    let reason = rejected(|_, pack| fs::write(pack.join("pack.toml"), "[pack]\nid = 1").unwrap());
    assert!(
        reason.starts_with("describe: the table is wrong\npack.toml:"),
        "{reason}"
    );
}

#[test]
fn a_pack_that_is_there_twice_is_loaded_once() {
    let folder = with_pack();
    folder.write("packs/z/pack.toml", TABLE.replace("1.2.3", "1.2.4"));
    folder.write("packs/z/twice.comp", SHADER);
    let table = search(&folder);
    assert_eq!(table.packs[0].version.to_string(), "1.2.3");
    let reason = &table.rejected[0].reason;
    assert!(
        reason.contains("pack `twice` is already loaded from"),
        "{reason}"
    );
}
