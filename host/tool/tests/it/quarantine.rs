//! Packs that ended a process: the next process goes on without them and says so, and nobody is blamed too early.

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_registry::{Options, Table, load, quarantine, sha256_of};
use std::{
    env, fs,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    thread,
    time::{Duration, Instant},
};

/// The hostile pack with a misdeed.
fn hostile(misdeed: &str) -> Vec<u8> {
    let mut bytes = fs::read(built("hostile")).unwrap();
    let key = b"misdeed=none      ";
    let at = bytes.windows(key.len()).position(|text| text == key);
    let text = format!("misdeed={misdeed:32}");
    bytes[at.unwrap()..][..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn options(folder: &Path) -> Options {
    Options {
        packs: vec![folder.join("packs")],
        store: folder.join("store"),
        ..Options::default()
    }
}

/// Loads `packs/` in mode dev without a prober, as where none is installed.
fn load_here(folder: &Path) -> Table {
    load(&options(folder)).unwrap()
}

/// Loads `packs/` with a prober, under `registry.toml` where there is one.
fn try_here(folder: &Path) -> Table {
    load(&trying(folder)).unwrap()
}

fn trying(folder: &Path) -> Options {
    Options {
        registry: Some(folder.join("registry.toml")).filter(|file| file.exists()),
        prober: Some(env!("CARGO_BIN_EXE_nxv").into()),
        ..options(folder)
    }
}

/// Does what a child below does in a process of its own.
fn there(child: &str, folder: &Path) -> Child {
    Command::new(env::current_exe().unwrap())
        .args([&format!("quarantine::{child}"), "--exact", "--ignored"])
        .env("NXV_CHILD", folder)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .unwrap()
}

fn load_there(folder: &Path) -> Child {
    there("child", folder)
}

fn folder_of_child() -> PathBuf {
    env::var_os("NXV_CHILD")
        .expect("run by another test")
        .into()
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    load_here(&folder_of_child());
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child_that_tries() {
    try_here(&folder_of_child());
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child_that_ends() {
    let folder = folder_of_child();
    let loads = folder.clone();
    thread::spawn(move || load_here(&loads));
    wait_for(|| markers(&folder) == 1);
    std::process::exit(0);
}

fn wait_for(holds: impl Fn() -> bool) {
    let start = Instant::now();
    while !holds() {
        assert!(start.elapsed() < Duration::from_secs(120));
        thread::sleep(Duration::from_millis(5));
    }
}

fn markers(folder: &Path) -> usize {
    named(folder, "").len()
}

/// The markers whose names end so.
fn named(folder: &Path, end: &str) -> Vec<String> {
    let names = fs::read_dir(folder.join("store")).into_iter().flatten();
    let names = names.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    names
        .filter(|name| name.starts_with("loading-") && name.ends_with(end))
        .collect()
}

fn ids(table: &Table) -> Vec<&str> {
    table.packs.iter().map(|pack| pack.id.as_str()).collect()
}

/// Kills a process that tries and loads, once there is a marker whose name ends so.
fn kill_with(folder: &Path, end: &str) {
    let mut slow = there("child_that_tries", folder);
    wait_for(|| !named(folder, end).is_empty());
    slow.kill().unwrap();
    slow.wait().unwrap();
}

#[test]
fn a_pack_that_ended_a_process_is_left_out_by_the_next_until_it_is_released() {
    for misdeed in ["constructor_aborts", "init_exits", "plan_writes"] {
        let folder = Folder::new();
        let bad = folder.write("packs/a.so", hostile(misdeed));
        let template = fs::read(built("template")).unwrap();
        folder.write("packs/b.so", &template);
        load_there(&folder).wait().unwrap();
        assert_eq!(markers(&folder), 1, "{misdeed}");

        let table = load_here(&folder);
        assert_eq!(ids(&table), ["template"], "{misdeed}");
        let said = format!("ended while it loaded {}; ", bad.display());
        assert!(
            table.warnings.iter().any(|w| w.contains(&said)),
            "{table:?}"
        );
        let reason = &table.rejected[0].reason;
        assert!(reason.starts_with("quarantine: since 2"), "{reason}");
        assert!(
            reason.contains("store/quarantine.toml to load it again"),
            "{reason}"
        );
        assert!(reason.contains("`nxv pack release "), "{reason}");
        assert_eq!(markers(&folder), 0);

        let store = folder.join("store");
        let list = quarantine::list(&store).unwrap();
        assert_eq!(list.len(), 1);
        let text = fs::read_to_string(store.join("quarantine.toml")).unwrap();
        assert!(text.contains(&format!("[{}]", list[0].sha256)), "{text}");
        assert!(quarantine::release(&store, &list[0].sha256).unwrap());
        assert!(!quarantine::release(&store, &list[0].sha256).unwrap());
        assert_eq!(quarantine::list(&store).unwrap(), []);
    }
}

#[test]
fn the_tool_lists_what_is_in_quarantine_and_releases_it() {
    let folder = Folder::new();
    let nxv = |words: &[&str]| {
        let mut command = Command::new(env!("CARGO_BIN_EXE_nxv"));
        let output = command.arg("pack").args(words).arg("--cache").arg(&*folder);
        let output = output.output().unwrap();
        let text = [output.stdout, output.stderr].concat();
        (output.status.code(), String::from_utf8(text).unwrap())
    };
    let sha256 = "0123456789abcdef".repeat(4);
    quarantine::add(&folder.join("packs"), &sha256, "it ended a process").unwrap();

    let (code, text) = nxv(&["quarantine"]);
    assert!(text.contains(&sha256) && text.contains("it ended a process"));
    assert_eq!(code, Some(0));
    let (code, text) = nxv(&["release", "deadbeef"]);
    assert!(text.contains("no pack deadbeef is in quarantine"), "{text}");
    assert_eq!(code, Some(1));
    let (code, text) = nxv(&["release", &sha256[..8]]);
    assert!(text.contains(&sha256), "{text}");
    assert_eq!(code, Some(0));
    assert_eq!(quarantine::list(&folder.join("packs")).unwrap(), []);
    let (_, text) = nxv(&["quarantine"]);
    assert!(text.contains("nothing is in quarantine"), "{text}");
}

#[test]
fn a_process_that_is_still_loading_is_not_taken_for_dead() {
    let folder = Folder::new();
    folder.write("packs/a.so", hostile("init_waits"));
    let mut slow = load_there(&folder);
    wait_for(|| markers(&folder) > 0);
    // Both load the same content at once, and neither blames it.
    let table = load_here(&folder);
    assert_eq!(ids(&table), ["hostile"]);
    assert!(slow.wait().unwrap().success());
    assert_eq!(markers(&folder), 0);
    assert_eq!(quarantine::list(&folder.join("store")).unwrap(), []);

    folder.write("packs/a.so", [hostile("init_waits"), vec![0]].concat());
    let mut slow = load_there(&folder);
    wait_for(|| markers(&folder) > 0);
    slow.kill().unwrap();
    slow.wait().unwrap();
    assert_eq!(ids(&load_here(&folder)), [""; 0]);
}

#[test]
fn a_process_that_ends_in_order_proves_nothing() {
    for tries in [false, true] {
        let folder = Folder::new();
        let content = [hostile("init_waits"), vec![1, tries as u8]].concat();
        folder.write("packs/a.so", content);
        let ended = there("child_that_ends", &folder).wait().unwrap();
        assert!(ended.success());
        assert_eq!(named(&folder, "-ended").len(), 1);
        let table = match tries {
            true => try_here(&folder),
            false => load_here(&folder),
        };
        assert_eq!(ids(&table), ["hostile"]);
        assert_eq!(markers(&folder), 0);
    }
}

#[test]
fn a_sound_pack_whose_process_was_killed_has_a_second_chance() {
    for mode in ["dev", "locked"] {
        let folder = Folder::new();
        let content = [hostile("init_waits"), mode.into()].concat();
        let sha256 = sha256_of(&folder.write("packs/a.so", &content)).unwrap();
        let pin = format!("[pack.hostile]\nsha256 = \"{sha256}\"\n");
        folder.write(
            "registry.toml",
            format!("schema = 1\nmode = \"{mode}\"\n{pin}"),
        );
        kill_with(&folder, "");
        // A second path leads to the same content.
        folder.write("packs/b.so", content);
        let table = try_here(&folder);
        assert_eq!(ids(&table), ["hostile"]);
        let said = "; in a child it is sound, and is loaded once more";
        let news = table.warnings.iter().filter(|w| w.ends_with(said));
        assert_eq!(news.count(), 1, "{table:?}");
        assert_eq!(markers(&folder), 0);
        assert_eq!(quarantine::list(&folder.join("store")).unwrap(), []);
    }
}

#[test]
fn a_process_that_is_killed_on_the_second_chance_proves_it() {
    let folder = Folder::new();
    folder.write("packs/a.so", [hostile("init_waits"), vec![2]].concat());
    kill_with(&folder, "");
    kill_with(&folder, "-again");
    assert_eq!(markers(&folder), 2);
    let table = try_here(&folder);
    assert!(table.rejected[0].reason.starts_with("quarantine: since 2"));
    let store = folder.join("store");
    let list = quarantine::list(&store).unwrap();
    assert_eq!((list.len(), markers(&folder)), (1, 1));
    // The older one goes with the next look, and none is held against it after its release.
    try_here(&folder);
    assert!(quarantine::release(&store, &list[0].sha256).unwrap());
    assert_eq!(ids(&try_here(&folder)), ["hostile"]);
    assert_eq!(markers(&folder), 0);
}

#[test]
fn a_pack_that_ends_a_child_too_has_no_second_chance_by_any_path() {
    let folder = Folder::new();
    let content = [hostile("constructor_aborts"), vec![4]].concat();
    folder.write("packs/a.so", &content);
    load_there(&folder).wait().unwrap();
    folder.write("packs/b.so", content);
    let table = try_here(&folder);
    assert_eq!(table.rejected.len(), 2);
    for rejected in &table.rejected {
        let reason = &rejected.reason;
        assert!(reason.contains("ended its process by SIGABRT"), "{reason}");
    }
    assert_eq!(markers(&folder), 0);
    let list = quarantine::list(&folder.join("store")).unwrap();
    let reason = &list[0].reason;
    assert!(reason.contains("by SIGABRT"), "{reason}");
    assert!(reason.starts_with("process "), "{reason}");
}

#[test]
fn what_a_runtime_sets_aside_is_not_loaded() {
    let folder = Folder::new();
    let bytes = [&fs::read(built("template")).unwrap()[..], b"set aside"].concat();
    folder.write("packs/x.so", &bytes);
    let table = load_here(&folder);
    assert_eq!(ids(&table), ["template"]);
    let sha256 = &table.packs[0].sha256;
    let options = options(&folder);
    let store = table.store(&options).unwrap();
    quarantine::add(store, sha256, "3 wrong\nresults").unwrap();
    quarantine::add(store, sha256, "another reason").unwrap();
    let rejected = load_here(&folder).rejected;
    assert!(
        rejected[0].reason.contains(": 3 wrong\u{fffd}results; "),
        "{rejected:?}"
    );
    assert!(quarantine::release(store, &sha256.to_uppercase()).unwrap());
    assert_eq!(ids(&load_here(&folder)), ["template"]);

    let error = quarantine::add(store, "../../etc/passwd", "x").unwrap_err();
    assert!(error.to_string().contains("is not a sha256"), "{error}");
}

#[test]
fn a_quarantine_that_cannot_be_read_is_named() {
    let folder = Folder::new();
    let content = [&fs::read(built("template")).unwrap()[..], b"unreadable"].concat();
    folder.write("packs/x.so", content);
    load_here(&folder);
    let file = folder.write("store/quarantine.toml", "[1234\n");
    let table = load_here(&folder);
    let expected = format!("the quarantine {}: ", file.display());
    assert!(
        table.warnings.iter().any(|w| w.starts_with(&expected)),
        "{table:?}"
    );
    let error = quarantine::release(&folder.join("store"), &"0".repeat(64)).unwrap_err();
    assert!(error.to_string().starts_with(&expected), "{error}");

    let registry = folder.write("registry.toml", "schema = 1\nmode = \"locked\"\n");
    let locked = Options {
        registry: Some(registry),
        ..options(&folder)
    };
    let error = load(&locked).unwrap_err();
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[test]
fn many_processes_set_packs_aside_at_once() {
    let folder = Folder::new();
    let store = folder.join("store");
    thread::scope(|scope| {
        for worker in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for index in 0..8 {
                    let sha256 = format!("{:064x}", worker * 8 + index);
                    quarantine::add(store, &sha256, "a test").unwrap();
                }
            });
        }
    });
    assert_eq!(quarantine::list(&store).unwrap().len(), 64);
}
