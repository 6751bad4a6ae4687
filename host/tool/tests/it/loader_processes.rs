//! Loading packs in processes of their own: shared stores, full disks, descriptions that break.

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_registry::{Options, load};
use std::{
    env, fs,
    io::Read as _,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::{Command, Stdio},
};

/// Loads a folder in a process of its own, behind a shell prefix; gives what [`child`] prints.
fn in_child(prefix: &str, folder: &Path, store: &Path, variables: &[(&str, &str)]) -> Child {
    let script =
        format!("{prefix} exec \"$0\" loader_processes::child --exact --ignored --nocapture");
    let mut command = Command::new("bash");
    command
        .arg("-c")
        .arg(script)
        .arg(env::current_exe().unwrap());
    command
        .env("NXV_CHILD_PACKS", folder)
        .env("NXV_CHILD_STORE", store)
        .envs(variables.iter().copied());
    Child(
        command
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap(),
    )
}

struct Child(std::process::Child);

impl Child {
    fn lines(mut self) -> Vec<String> {
        let mut text = String::new();
        self.0
            .stdout
            .take()
            .unwrap()
            .read_to_string(&mut text)
            .unwrap();
        let status = self.0.wait().unwrap();
        assert!(status.success(), "{status}: {text}");
        text.lines()
            .filter_map(|line| line.strip_prefix("child: "))
            .map(str::to_owned)
            .collect()
    }
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    let path = |name| PathBuf::from(env::var_os(name).expect("run by another test"));
    let (packs, store) = (vec![path("NXV_CHILD_PACKS")], path("NXV_CHILD_STORE"));
    let table = load(&Options {
        packs,
        store,
        ..Options::default()
    })
    .unwrap();
    println!();
    for pack in &table.packs {
        println!("child: loaded {}", pack.id);
    }
    for rejected in &table.rejected {
        println!("child: {}", rejected.reason);
    }
    for warning in table
        .warnings
        .iter()
        .filter(|warning| !warning.contains("knows no op") && !warning.contains("asked on trial"))
    {
        println!("child: {warning}");
    }
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn child_of_many_images() {
    let path = |name| PathBuf::from(env::var_os(name).expect("run by another test"));
    let (packs, store) = (path("NXV_CHILD_PACKS"), path("NXV_CHILD_STORE"));
    let options = Options {
        packs: vec![packs.clone()],
        store,
        ..Options::default()
    };
    let template = fs::read(built("template")).unwrap();
    println!();
    for version in 1..=502u32 {
        fs::write(
            packs.join("x.so"),
            [&template[..], &version.to_le_bytes()].concat(),
        )
        .unwrap();
        let table = load(&options).unwrap();
        for warning in table.warnings.iter().filter(|w| w.contains("are mapped")) {
            println!("child: {version}: {warning}");
        }
        for rejected in &table.rejected {
            println!("child: {version}: {}", rejected.reason);
        }
    }
    fs::write(
        packs.join("x.so"),
        [&template[..], &7u32.to_le_bytes()].concat(),
    )
    .unwrap();
    println!("child: again {}", load(&options).unwrap().packs.len());
}

#[test]
fn images_are_counted_and_limited() {
    let folder = Folder::new();
    fs::create_dir_all(folder.join("packs")).unwrap();
    let output = Command::new(env::current_exe().unwrap())
        .args([
            "loader_processes::child_of_many_images",
            "--exact",
            "--ignored",
            "--nocapture",
        ])
        .env("NXV_CHILD_PACKS", folder.join("packs"))
        .env("NXV_CHILD_STORE", folder.join("store"))
        .output()
        .unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text
        .lines()
        .filter_map(|line| line.strip_prefix("child: "))
        .collect();
    let warned: Vec<&str> = lines
        .iter()
        .filter(|line| line.contains("mode dev stops at 500"))
        .filter_map(|line| line.split_once(':'))
        .map(|(version, _)| version)
        .collect();
    let expected: Vec<String> = (2..=10).map(|n| (n * 50).to_string()).collect();
    assert_eq!(warned, expected);
    let refused =
        "map: 500 versions of packs are mapped, and none is ever unmapped; restart the VM";
    let refused = [501, 502].map(|version| format!("{version}: {refused}"));
    assert_eq!(lines[lines.len() - 3..lines.len() - 1], refused);
    assert_eq!(lines[lines.len() - 1], "again 1");
}

#[test]
fn a_full_disk_is_named_and_leaves_nothing_behind() {
    let folder = Folder::new();
    folder.write("packs/x.so", fs::read(built("template")).unwrap());
    let store = folder.join("store");
    // A file may grow to 64 KiB, and exceeding that is an error instead of a signal.
    let lines = in_child(
        "trap '' XFSZ; ulimit -f 64;",
        &folder.join("packs"),
        &store,
        &[],
    )
    .lines();
    assert_eq!(lines.len(), 1, "{lines:?}");
    // Memory counts as a file here.
    let expected = format!("store: writing {}/", store.display());
    assert!(
        lines[0].starts_with(&expected) && lines[0].contains("File too large"),
        "{lines:?}"
    );
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
}

#[test]
fn a_pack_is_mapped_from_memory_and_not_from_a_file() {
    let folder = Folder::new();
    folder.write("packs/x.so", fs::read(built("template")).unwrap());
    let store = folder.join("store");
    let lines = in_child("", &folder.join("packs"), &store, &[]).lines();
    assert_eq!(lines, ["loaded template"]);
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
}

/// A prefix for a process in which no memory may be run, where that can be had.
fn without_memory() -> Option<&'static str> {
    const PREFIX: &str = "unshare -p -f bash -c 'echo 2 > /proc/sys/vm/memfd_noexec && \
        exec \"$0\" loader_processes::child --exact --ignored --nocapture' \"$0\"; exit $?;";
    let trial = "unshare -p -f bash -c 'echo 2 > /proc/sys/vm/memfd_noexec'";
    let mut bash = Command::new("bash");
    let status = bash.args(["-c", trial]).stderr(Stdio::null()).status();
    if !status.unwrap().success() {
        eprintln!("SKIPPED: memory that may not be run needs root and Linux 6.3");
        return None;
    }
    Some(PREFIX)
}

#[test]
fn without_memory_to_map_from_a_copy_in_the_store_is_mapped_and_a_damaged_one_replaced() {
    let Some(prefix) = without_memory() else {
        return;
    };
    let folder = Folder::new();
    folder.write("packs/x.so", fs::read(built("template")).unwrap());
    let store = folder.join("store");
    let load = || in_child(prefix, &folder.join("packs"), &store, &[]).lines();
    assert_eq!(load(), ["loaded template"]);
    let copy = fs::read_dir(&store)
        .unwrap()
        .next()
        .unwrap()
        .unwrap()
        .path();
    let mode = |path: &Path| fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!((mode(&store), mode(&copy)), (0o700, 0o600));
    fs::remove_file(&copy).unwrap();
    fs::write(&copy, b"\x7fELF").unwrap();
    assert_eq!(load(), ["loaded template"]);
    assert_eq!(
        fs::read(&copy).unwrap(),
        fs::read(built("template")).unwrap()
    );
}

#[test]
fn processes_share_a_store() {
    let folder = Folder::new();
    folder.write("packs/a.so", fs::read(built("template")).unwrap());
    folder.write("packs/b.so", fs::read(built("bad")).unwrap());
    let store = folder.join("store");
    let children: Vec<Child> = (0..6)
        .map(|_| in_child("", &folder.join("packs"), &store, &[]))
        .collect();
    for child in children {
        assert_eq!(child.lines(), ["loaded bad", "loaded template"]);
    }
    assert_eq!(fs::read_dir(&store).unwrap().count(), 0);
}

#[test]
fn a_broken_description_is_refused() {
    let folder = Folder::new();
    folder.write("packs/x.so", fs::read(built("bad")).unwrap());
    let describe = |how| {
        let variables = [("NXV_BAD_DESCRIBE", how)];
        in_child("", &folder.join("packs"), &folder.join("store"), &variables).lines()
    };
    let cases = [
        (
            "panic",
            "describe: the pack panicked: this pack panics when it is described",
        ),
        (
            "error",
            "describe: the pack reports: this pack\u{fffd}[31m cannot describe itself",
        ),
        (
            "same_id",
            "describe: two kernels are called `bad_nothing_32`",
        ),
        (
            "same_source",
            "describe: two source files are called `copy.comp`",
        ),
        (
            "rank",
            "describe: kernel `bad_nothing_32` has rank 256; the highest is 255",
        ),
        (
            "name",
            "describe: kernel `bad_nothing_32` names no op in 1 to 128 printable characters without spaces",
        ),
        ("spirv", "describe: source file `odd.spv` is not SPIR-V"),
    ];
    for (how, expected) in cases {
        assert_eq!(describe(how), [expected]);
    }
    let newer = "pack bad: source file `broken.comp` is of kind 77, which this host does not know";
    assert_eq!(describe("kind"), ["loaded bad", newer]);
}
