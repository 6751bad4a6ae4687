//! Loading packs: every kind of damaged, foreign or misbehaving file is refused with its reason, and nothing crashes.

mod refused;

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_abi::{DType, DeviceInfo, DeviceKind, Fault, Features, Outcome, Request, TensorDesc};
use nx_vulkan_registry::{Options, SourceContent, Table, load};
use std::{
    fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
};

/// Loads the packs of a folder in dev mode.
fn load_from(folder: &Path, store: &Path) -> Table {
    let options = Options {
        packs: vec![folder.to_owned()],
        store: store.to_owned(),
        ..Options::default()
    };
    load(&options).unwrap()
}

fn only(table: &Table) -> Result<String, String> {
    match (table.packs.as_slice(), table.rejected.as_slice()) {
        ([pack], []) => Ok(format!("{} {}", pack.id, pack.version)),
        ([], [rejected]) => Err(rejected.reason.clone()),
        _ => panic!("{table:?}"),
    }
}

#[test]
fn the_template_loads_and_plans() {
    let folder = Folder::new();
    fs::copy(built("template"), folder.join("template.so")).unwrap();
    let table = load_from(&folder, &folder.join("store"));
    assert_eq!(only(&table), Ok("template 0.1.0".to_owned()));
    let pack = &table.packs[0];
    assert_eq!(pack.path, folder.join("template.so"));
    assert!(
        matches!(&pack.sources[0].content, SourceContent::Text(text) if text.contains("void main"))
    );
    assert_eq!(
        pack.glsl("unary.comp")
            .map(|file| file.text.contains("void main")),
        Some(true)
    );
    let kernel = &pack.kernels[0];
    assert_eq!(
        (kernel.id.as_str(), kernel.op.as_str(), kernel.rank),
        ("square_f32", "square", 128)
    );
    assert!(
        table
            .notes
            .iter()
            .any(|note| note.contains("the host knows no op `square`")),
        "{table:?}"
    );
    // An op of its own is nothing to warn of.
    assert_eq!(table.warnings, [""; 0]);

    let reply = ask(&table, "square", DType::F32);
    assert_eq!(
        (reply.outcome, reply.plan.steps[0].groups),
        (Outcome::PLAN, [1, 1, 1])
    );
}

/// Asks the only kernel of `op` about eight contiguous elements.
fn ask(table: &Table, op: &str, dtype: DType) -> nx_vulkan_abi::Reply {
    let kernels = table.packs.iter().flat_map(|pack| &pack.kernels);
    let kernel = kernels.into_iter().find(|kernel| kernel.op == op).unwrap();
    let (shape, strides) = ([8u64], [1i64]);
    let operand = [TensorDesc {
        dtype,
        spare: 0,
        shape: shape[..].into(),
        strides: strides[..].into(),
        offset: 0,
        storage_len: 32,
        reserved: [0; 2],
    }];
    kernel.plan(&Request {
        op: op.into(),
        inputs: operand[..].into(),
        outputs: operand[..].into(),
        attrs: [][..].into(),
        device: &device(),
        spare: [0; 4],
    })
}

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: DeviceKind::CPU,
        subgroup_size: 8,
        shared_bytes: 32768,
        push_bytes: 128,
        max_invocations: 1024,
        compute_units: 0,
        max_workgroup_size: [1024; 3],
        max_groups: [65535; 3],
        max_buffer_range: 1 << 27,
        buffer_align: 16,
        features: Features::NONE,
        ..DeviceInfo::default()
    }
}

#[test]
fn the_same_content_is_mapped_once() {
    let folder = Folder::new();
    let bytes = [&fs::read(built("template")).unwrap()[..], b"mapped once"].concat();
    folder.write("a/one.so", &bytes);
    folder.write("b/two.so", &bytes);
    let tables = ["a", "b", "a"].map(|name| load_from(&folder.join(name), &folder.join("store")));
    assert!(tables[0].generation < tables[1].generation);
    for table in &tables {
        assert_eq!(only(table), Ok("template 0.1.0".to_owned()));
        assert_eq!(table.packs[0].sha256, tables[0].packs[0].sha256);
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let mapped =
        |line: &&str| line.contains(&tables[0].packs[0].sha256) && line.contains(" 00000000 ");
    assert_eq!(maps.lines().filter(mapped).count(), 1, "{maps}");
    assert!(!maps.contains("one.so") && !maps.contains("two.so"));
}

#[test]
fn going_back_and_forth_maps_two_images() {
    let folder = Folder::new();
    let template = fs::read(built("template")).unwrap();
    let mut hashes = Vec::new();
    for turn in 0..10u8 {
        let content = [&template[..], b"toggled", &[turn % 2]].concat();
        folder.write("packs/x.so", content);
        let table = load_from(&folder.join("packs"), &folder.join("store"));
        assert_eq!(only(&table), Ok("template 0.1.0".to_owned()));
        assert_eq!(
            ask(&table, "square", DType::F32).outcome,
            Outcome::PLAN,
            "turn {turn}"
        );
        table.packs[0].retire();
        hashes.push(table.packs[0].sha256.clone());
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let count = |sha256: &String| {
        let first = |line: &&str| line.contains(sha256) && line.contains(" 00000000 ");
        maps.lines().filter(first).count()
    };
    assert_ne!(hashes[0], hashes[1]);
    assert_eq!((count(&hashes[0]), count(&hashes[1])), (1, 1));
}

#[test]
fn files_are_taken_by_name_and_the_first_of_an_id_wins() {
    let folder = Folder::new();
    let bytes = fs::read(built("template")).unwrap();
    for name in ["c", "b", "a"] {
        folder.write(
            &format!("packs/{name}.so"),
            [&bytes[..], name.as_bytes()].concat(),
        );
    }
    folder.write("packs/.a.so", &bytes);
    folder.write("packs/README", b"");
    let table = load_from(&folder.join("packs"), &folder.join("store"));
    assert_eq!(table.packs[0].path, folder.join("packs/a.so"));
    let first = folder.join("packs/a.so");
    let reasons: Vec<String> = table.rejected.iter().map(ToString::to_string).collect();
    let expected = ["b", "c"].map(|name| {
        let path = folder.join(format!("packs/{name}.so"));
        let first = first.display();
        format!(
            "{}: metadata: pack `template` is already loaded from {first}",
            path.display()
        )
    });
    assert_eq!(reasons, expected);
}

#[test]
fn a_missing_search_folder_is_a_warning() {
    let folder = Folder::new();
    let table = load_from(&folder.join("absent"), &folder.join("store"));
    assert_eq!(table.packs.len(), 0);
    assert!(
        table.warnings[0].contains("absent: No such file"),
        "{:?}",
        table.warnings
    );
}

#[test]
fn an_empty_path_is_no_search_folder() {
    let folder = Folder::new();
    let table = load_from(Path::new(""), &folder.join("store"));
    assert_eq!(table.warnings, ["an empty path names no search folder"]);
}

#[test]
fn an_unusable_store_is_named() {
    let folder = Folder::new();
    folder.write(
        "packs/x.so",
        [&fs::read(built("template")).unwrap()[..], b"store"].concat(),
    );
    let file = folder.write("file", "");
    let open = folder.join("open");
    fs::create_dir(&open).unwrap();
    fs::set_permissions(&open, fs::Permissions::from_mode(0o777)).unwrap();
    let nowhere = PathBuf::from("/proc/nxv/store");
    for store in [file.join("store"), file, nowhere, open.clone()] {
        // The pack needs none, but what a store is for is lost.
        let table = load_from(&folder.join("packs"), &store);
        assert_eq!(only(&table), Ok("template 0.1.0".to_owned()));
        let expected = format!("the store {} is unusable: ", store.display());
        let said = table.warnings.iter().find(|w| w.starts_with(&expected));
        assert!(
            said.unwrap().contains("is loaded again by the next"),
            "{table:?}"
        );
    }
    assert_eq!(fs::read_dir(&open).unwrap().count(), 0);
    // A locked registry that names a store gets that one or nothing.
    let text = "schema = 1\nmode = \"locked\"\n[search]\nstore = \"open\"\n";
    let locked = Options {
        registry: Some(folder.write("registry.toml", text)),
        ..Options::default()
    };
    let error = load(&locked).unwrap_err().to_string();
    assert!(
        error.contains("open is writable for everyone (mode 777)"),
        "{error}"
    );
    // None is named, and none is made up.
    let table = load_from(&folder.join("packs"), Path::new(""));
    assert_eq!(only(&table), Ok("template 0.1.0".to_owned()));
    let none = "there is no folder for a store; ";
    assert!(
        table.warnings.iter().any(|w| w.starts_with(none)),
        "{table:?}"
    );
}

#[test]
fn a_panic_in_plan_is_a_reply() {
    let folder = Folder::new();
    fs::copy(built("bad"), folder.join("bad.so")).unwrap();
    let table = load_from(&folder, &folder.join("store"));
    let reply = ask(&table, "bad_panic", DType::F32);
    assert_eq!((reply.outcome, reply.fault), (Outcome::ERROR, Fault::PANIC));
    assert_eq!(
        reply.message.as_str(),
        "this kernel panics\u{1b}[31m when it is asked"
    );
    assert_eq!(
        ask(&table, "bad_nothing", DType::F32).outcome,
        Outcome::PLAN
    );
}
