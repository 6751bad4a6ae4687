//! Files that would end the process that maps them: each is refused in mode dev with its reason, and this process,
//! which loads them all itself, lives on.

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_registry::{Options, load, probe::Prober};
use std::{
    fs,
    os::unix::fs::symlink,
    process::Command,
    sync::atomic::{AtomicUsize, Ordering},
    time::{Duration, Instant},
};

const MISDEED_LEN: usize = 32;

/// Loads `content` as the only pack of a folder: the id that loaded, or the reason why it did not.
fn load_bytes(content: &[u8]) -> Result<String, String> {
    let folder = Folder::new();
    folder.write("packs/x.so", content);
    load_from(&folder)
}

/// Loads the only file in `packs/`.
fn load_from(folder: &Folder) -> Result<String, String> {
    let table = load(&Options {
        packs: vec![folder.join("packs")],
        store: folder.join("store"),
        prober: Some(env!("CARGO_BIN_EXE_nxv").into()),
        ..Options::default()
    });
    let table = table.unwrap();
    match (table.packs.as_slice(), table.rejected.as_slice()) {
        ([pack], []) => Ok(pack.id.clone()),
        ([], [rejected]) => Err(rejected.reason.clone()),
        _ => panic!("{table:?}"),
    }
}

#[track_caller]
fn assert_refused(result: Result<String, String>, expected: &str) {
    let reason = result.unwrap_err();
    assert!(reason.starts_with(expected), "{reason}");
    assert!(
        reason.len() < 400 && !reason.contains(['\n', '\u{1b}']),
        "{reason}"
    );
}

fn template() -> Vec<u8> {
    fs::read(built("template")).unwrap()
}

/// The hostile pack with a misdeed.
pub(crate) fn hostile(misdeed: &str) -> Vec<u8> {
    let mut bytes = fs::read(built("hostile")).unwrap();
    let key = b"misdeed=";
    let at = bytes.windows(key.len()).enumerate().find_map(|(at, text)| {
        let value = bytes.get(at + key.len()..at + key.len() + MISDEED_LEN)?;
        (text == key && value.starts_with(b"none ")).then_some(at + key.len())
    });
    let text = format!("{misdeed:MISDEED_LEN$}");
    bytes[at.unwrap()..][..MISDEED_LEN].copy_from_slice(text.as_bytes());
    bytes
}

/// A little generator: the same seed gives the same damage.
struct Rng(u64);

impl Rng {
    /// xorshift64 (Marsaglia 2003).
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end as u64) as usize
    }
}

/// Loads every damaged copy on two threads; gives how many were refused, and of them how many by the probe.
fn load_all(damaged: &[Vec<u8>]) -> (usize, usize) {
    let (next, refused, probed) = (
        AtomicUsize::new(0),
        AtomicUsize::new(0),
        AtomicUsize::new(0),
    );
    let steps = [
        "format: ",
        "ELF: ",
        "metadata: ",
        "probe: ",
        "map: ",
        "layout: ",
        "init: ",
        "describe: ",
    ];
    let work = || {
        while let Some(content) = damaged.get(next.fetch_add(1, Ordering::Relaxed)) {
            if let Err(reason) = load_bytes(content) {
                assert!(
                    steps.iter().any(|step| reason.starts_with(step)),
                    "{reason}"
                );
                refused.fetch_add(1, Ordering::Relaxed);
                probed.fetch_add(
                    usize::from(reason.starts_with("probe: ")),
                    Ordering::Relaxed,
                );
            }
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(work);
        scope.spawn(work);
    });
    (refused.into_inner(), probed.into_inner())
}

#[test]
pub(crate) fn a_pack_that_ends_its_process_ends_only_the_probe() {
    assert_eq!(load_bytes(&hostile("none")), Ok("hostile".to_owned()));
    for step in ["constructor", "root", "init", "describe", "plan", "retire"] {
        for (how, expected) in [
            ("aborts", "probe: it ended its process by SIGABRT"),
            ("exits", "probe: it ended its process with exit status 0"),
            ("writes", "probe: it ended its process by SIGSEGV"),
        ] {
            assert_refused(load_bytes(&hostile(&format!("{step}_{how}"))), expected);
        }
    }
    assert_refused(
        load_bytes(&hostile("destructor_aborts")),
        "probe: it ended its process by SIGABRT when that was about to end well",
    );
}

#[test]
fn a_panic_that_nothing_catches_ends_only_the_probe() {
    assert_refused(
        load_bytes(&hostile("root_panics")),
        "init: the pack panicked while it was set up",
    );
    for step in ["constructor", "init", "describe", "plan", "retire"] {
        let reason = load_bytes(&hostile(&format!("{step}_panics"))).unwrap_err();
        assert!(
            reason.starts_with(
                "probe: it ended its process by SIGABRT; it said: panicked at src/lib.rs:"
            ) && reason.ends_with(&format!(" a panic in {step}")),
            "{reason}"
        );
    }
    let caught = fs::read(built("bad")).unwrap();
    assert_eq!(load_bytes(&caught), Ok("bad".to_owned()));
}

#[test]
fn a_pack_that_does_not_finish_is_given_up() {
    let folder = Folder::new();
    folder.write("packs/x.so", hostile("constructor_hangs"));
    let started = Instant::now();
    let expected = "probe: it did not finish within 5 s in a process of its own";
    assert_refused(load_from(&folder), expected);
    assert!(started.elapsed() < Duration::from_secs(30));
    // It is known by now.
    let started = Instant::now();
    assert_refused(load_from(&folder), expected);
    assert!(started.elapsed() < Duration::from_secs(5));

    let prober = Prober::new(env!("CARGO_BIN_EXE_nxv")).timeout(Duration::from_millis(700));
    for misdeed in ["init_spins", "describe_hangs", "plan_spins", "retire_hangs"] {
        let file = folder.write(&format!("{misdeed}.so"), hostile(misdeed));
        let failure = prober.run(&file).unwrap_err();
        assert!(
            failure.may_pass
                && failure
                    .reason
                    .starts_with("probe: it did not finish within 0.7 s"),
            "{misdeed}: {failure:?}"
        );
    }
}

#[test]
fn a_pack_that_floods_or_forks_does_not_hold_the_host_up() {
    let folder = Folder::new();
    let prober = Prober::new(env!("CARGO_BIN_EXE_nxv"));
    let run = |misdeed: &str| prober.run(&folder.write("x.so", hostile(misdeed)));
    let started = Instant::now();
    assert_eq!(run("constructor_forks").unwrap().id, "hostile");
    assert!(started.elapsed() < Duration::from_secs(15));
    assert_eq!(run("init_lies").unwrap().kernels, ["negate_any"]);
    let eats = run("describe_eats").unwrap_err().reason;
    assert!(
        eats.contains("SIGABRT; it said: memory allocation of"),
        "{eats}"
    );
    // Beyond what is kept the report may be lost; it must neither hang nor grow.
    let flooded = run("init_floods");
    assert!(
        flooded.as_ref().is_ok_and(|pack| pack.id == "hostile")
            || flooded
                .as_ref()
                .is_err_and(|f| f.reason.starts_with("probe: ")),
        "{flooded:?}"
    );
}

#[test]
fn a_prober_that_is_none_is_named() {
    let folder = Folder::new();
    let file = folder.write("x.so", hostile("none"));
    let reason = |program: &str| Prober::new(program).run(&file).unwrap_err().reason;
    assert_eq!(
        reason("/nowhere/nxv"),
        "probe: the prober /nowhere/nxv does not start: No such file or directory (os error 2)"
    );
    assert_eq!(
        reason("/bin/false"),
        "probe: /bin/false is not an nxv-child that can try packs; it ended with exit status 1"
    );
    let other = folder.write("other", "#!/bin/sh\necho '{\"nxv_probe\":\"0.0.9\"}'\n");
    assert!(
        Command::new("chmod")
            .arg("+x")
            .arg(&other)
            .status()
            .unwrap()
            .success()
    );
    let reason = reason(&other.display().to_string());
    assert!(
        reason.contains("is nxv-child 0.0.9, this host is"),
        "{reason}"
    );
}

#[test]
fn a_file_with_a_hole_or_a_flipped_bit_ends_only_the_probe() {
    let (whole, mut rng) = (template(), Rng(0x6e78_7621));
    let page = 4096;
    let hole = |rng: &mut Rng| {
        let mut bytes = whole.clone();
        let start = rng.below(bytes.len() / page) * page;
        let end = (start + page * (1 + rng.below(24))).min(bytes.len());
        bytes[start..end].fill(0);
        bytes
    };
    let holes: Vec<_> = (0..40).map(|_| hole(&mut rng)).collect();
    let (refused, probed) = load_all(&holes);
    assert!(
        refused > 20 && probed > 5,
        "{refused} of 40, {probed} by the probe"
    );

    // Only in what the dynamic loader reads: a bit of code or of a constant computes nonsense that no check of a format
    // sees, and what comes of it may depend on where things lie in a process. From the beginning there are headers, symbols
    // and relocations, elsewhere the dynamic section.
    let value = |tag| word(&whole, dynamic_entry(&whole, tag) + 8);
    let (tables, relocations) = (value(23) + value(2), value(7));
    let dynamic = dynamic_entry(&whole, 1);
    let flip = |rng: &mut Rng, index: usize| {
        let mut bytes = whole.clone();
        for _ in 0..1 + index % 4 {
            let at = match index % 3 {
                0 => rng.below(tables),
                1 => rng.below(relocations),
                _ => dynamic + rng.below(400),
            };
            bytes[at] ^= 1 << rng.below(8);
        }
        bytes
    };
    let flips: Vec<_> = (0..120).map(|index| flip(&mut rng, index)).collect();
    let (refused, probed) = load_all(&flips);
    assert!(refused > 80, "{refused} of 120, {probed} by the probe");
}

#[test]
fn a_file_cut_anywhere_is_refused() {
    let whole = template();
    let cuts = (0..40).map(|cut| whole[..whole.len() * cut / 40].to_vec());
    let edges = [
        1,
        16,
        63,
        64,
        119,
        120,
        4095,
        whole.len() - 64,
        whole.len() - 1,
    ];
    let all: Vec<_> = cuts.chain(edges.map(|len| whole[..len].to_vec())).collect();
    assert_eq!(load_all(&all), (all.len(), 0));
}

#[test]
fn what_is_no_pack_of_this_machine_is_refused_unmapped() {
    for bytes in [&b""[..], b"hello\n", &[0x5a; 9000]] {
        let reason = "format: it is not an ELF, Mach-O or PE file";
        assert_refused(load_bytes(bytes), reason);
    }
    let mut foreign = template();
    foreign[18] ^= 1;
    assert_refused(load_bytes(&foreign), "ELF: it is built for ELF machine");

    let folder = Folder::new();
    fs::create_dir_all(folder.join("packs")).unwrap();
    let entry = folder.join("packs/x.so");
    symlink(built("template"), &entry).unwrap();
    assert_refused(load_from(&folder), "read: it is a symbolic link");
    fs::remove_file(&entry).unwrap();
    symlink("/dev/zero", &entry).unwrap();
    assert_refused(load_from(&folder), "read: it is a symbolic link");
    fs::remove_file(&entry).unwrap();
    fs::create_dir(&entry).unwrap();
    assert_refused(load_from(&folder), "read: it is not a regular file");
    fs::remove_dir(&entry).unwrap();
    for arguments in [&["p"][..], &["c", "1", "5"]] {
        let mut mknod = Command::new("mknod");
        // A device takes root to make.
        if mknod
            .arg(&entry)
            .args(arguments)
            .status()
            .unwrap()
            .success()
        {
            assert_refused(load_from(&folder), "read: it is not a regular file");
            fs::remove_file(&entry).unwrap();
        }
    }
}

#[test]
fn a_pack_that_the_contract_cannot_check_is_refused() {
    let optout = fs::read(built("optout")).unwrap();
    assert_refused(
        load_bytes(&optout),
        "layout: the pack opted out of the layout check",
    );
    let mut aborting = template();
    let from = b"panic=unwind\n";
    let at = aborting.windows(from.len()).position(|text| text == from);
    aborting[at.unwrap()..][..from.len()].copy_from_slice(b"panic=abort\n\0");
    assert_refused(
        load_bytes(&aborting),
        "metadata: it is built with panic = \"abort\"",
    );
}

#[test]
fn a_pack_that_brings_foreign_code_is_refused_unmapped() {
    let mut needs = template();
    let name = b"libgcc_s.so.1\0";
    let at = needs.windows(name.len()).position(|text| text == name);
    needs[at.unwrap()..][..6].copy_from_slice(b"libevl");
    assert_refused(load_bytes(&needs), "ELF: it needs \"libevl_s.so.1\"");

    for (tag, name) in [(29, "RUNPATH"), (15, "RPATH"), (0x7fff_ffff, "FILTER")] {
        let mut bytes = template();
        let entry = dynamic_entry(&bytes, 1);
        bytes[entry..entry + 8].copy_from_slice(&u64::to_le_bytes(tag));
        assert_refused(load_bytes(&bytes), &format!("ELF: it has a {name}, \"lib"));
    }

    let mut stack = template();
    let header = program_header(&stack, 0x6474_e551);
    stack[header + 4] |= 1;
    assert_refused(load_bytes(&stack), "ELF: it asks for executable stacks");
}

fn word(bytes: &[u8], at: usize) -> usize {
    u64::from_le_bytes(bytes[at..at + 8].try_into().unwrap()) as usize
}

/// Where the program header of that type is.
fn program_header(bytes: &[u8], kind: u32) -> usize {
    let headers = (0..).map(|index| word(bytes, 32) + 56 * index);
    let mut headers = headers.take(usize::from(bytes[56]));
    headers
        .find(|&at| bytes[at..at + 4] == kind.to_le_bytes())
        .unwrap()
}

/// Where the first dynamic entry with that tag is.
fn dynamic_entry(bytes: &[u8], tag: usize) -> usize {
    let start = word(bytes, program_header(bytes, 2) + 8);
    (start..)
        .step_by(16)
        .find(|&at| word(bytes, at) == tag)
        .unwrap()
}
