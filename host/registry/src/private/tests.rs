//! Folders that others own, can write to, or lead astray: each case needs root, to be somebody else for a moment.

use super::*;
use std::{
    fs, io,
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::Command,
    time::{Duration, SystemTime},
};

const NOBODY: u32 = 65534;

/// A folder of this user's and, inside, one like /tmp.
struct Case {
    _folder: Temporary,
    root: PathBuf,
    shared: PathBuf,
}

impl Case {
    /// `None`, loudly, for users who cannot become others.
    fn new() -> Option<Case> {
        if user() != 0 {
            eprintln!("SKIPPED: only root can try what other users could do");
            return None;
        }
        let folder = Temporary::new().unwrap();
        let root = folder.path().to_owned();
        let shared = root.join("shared");
        fs::create_dir(&shared).unwrap();
        mode(&root, 0o755);
        mode(&shared, 0o1777);
        Some(Case {
            _folder: folder,
            root,
            shared,
        })
    }

    fn refused(&self, path: &Path, rule: Rule) -> String {
        open_folder(path, rule, true).unwrap_err().to_string()
    }
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// Whether a command works for somebody else.
fn as_nobody(program: &str, words: &[&Path]) -> bool {
    let mut command = Command::new(program);
    let output = command.args(words).uid(NOBODY).gid(NOBODY).output();
    output.unwrap().status.success()
}

#[test]
fn a_folder_below_one_like_tmp_is_for_development_only() {
    let Some(case) = Case::new() else { return };
    let own = case.shared.join("own");
    let folder = open_folder(&own, Rule::Sticky, true).unwrap().unwrap();
    assert_eq!(folder.path(), own.canonicalize().unwrap());
    assert_eq!(
        fs::metadata(&own).unwrap().permissions().mode() & 0o7777,
        0o700
    );
    assert!(!as_nobody("mv", &[&own, &case.shared.join("moved")]));
    let why = case.refused(&own, Rule::Private);
    assert!(
        why.contains("is writable for everyone (mode 1777)"),
        "{why}"
    );
    // The shared folder itself is nobody's own.
    let why = case.refused(&case.shared, Rule::Sticky);
    assert!(
        why.ends_with("shared is writable for everyone (mode 1777)"),
        "{why}"
    );
    let private = open_folder(Path::new("/usr/lib"), Rule::Private, false);
    assert!(private.unwrap().is_some());
}

#[test]
fn a_folder_that_somebody_else_made_first_is_refused() {
    let Some(case) = Case::new() else { return };
    let taken = case.shared.join("nx_vulkan");
    assert!(as_nobody("mkdir", &[&taken]));
    for path in [taken.clone(), taken.join("packs")] {
        let why = case.refused(&path, Rule::Sticky);
        assert!(
            why.contains("nx_vulkan belongs to user 65534, not 0"),
            "{why}"
        );
    }
    assert!(!taken.join("packs").exists());
}

#[test]
fn a_group_or_everybody_above_is_refused_in_either_mode() {
    let Some(case) = Case::new() else { return };
    let inner = case.root.join("a/b");
    for (bits, why) in [
        (0o775, "its group (mode 775)"),
        (0o777, "everyone (mode 777)"),
    ] {
        fs::create_dir_all(&inner).unwrap();
        mode(&case.root.join("a"), bits);
        let refused = case.refused(&inner, Rule::Sticky);
        assert!(
            refused.contains(&format!("a is writable for {why}")),
            "{refused}"
        );
    }
}

#[test]
fn symbolic_links_count_by_where_they_lie_and_where_they_lead() {
    let Some(case) = Case::new() else { return };
    let real = case.root.join("real");
    fs::create_dir(&real).unwrap();
    // One that only root can have put there.
    symlink("real", case.root.join("ours")).unwrap();
    let folder = open_folder(&case.root.join("ours/in"), Rule::Sticky, true);
    let folder = folder.unwrap().unwrap();
    assert_eq!(folder.path(), real.join("in").canonicalize().unwrap());
    // One that somebody else put there, to a folder that is fine in itself.
    let planted = case.shared.join("planted");
    assert!(as_nobody("ln", &[Path::new("-s"), &real, &planted]));
    let why = case.refused(&planted.join("in"), Rule::Sticky);
    assert!(why.contains("planted is a symbolic link, and "), "{why}");
    symlink("round", case.root.join("round")).unwrap();
    let error = open_folder(&case.root.join("round"), Rule::Sticky, true).unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
    // Up and down again.
    let path = case.root.join("real/../ours/./in/../in");
    let folder = open_folder(&path, Rule::Sticky, false).unwrap().unwrap();
    assert!(folder.path().ends_with("real/in"));
}

#[test]
fn what_is_written_goes_to_the_folder_that_was_looked_at() {
    let Some(case) = Case::new() else { return };
    let path = case.root.join("cache");
    let folder = open_folder(&path, Rule::Sticky, true).unwrap().unwrap();
    // Somebody with the right to do so puts another in its place.
    fs::rename(&path, case.root.join("away")).unwrap();
    fs::create_dir(&path).unwrap();
    give(&path);
    folder.write("x", &[b"a", b"b"], true).unwrap();
    assert_eq!(fs::read(case.root.join("away/x")).unwrap(), b"ab");
    assert_eq!(fs::read_dir(&path).unwrap().count(), 0);
    assert_eq!(folder.read("x", 2).unwrap().unwrap(), b"ab");
    assert_eq!(folder.names(), ["x"]);
    assert!(
        folder
            .read("x", 1)
            .unwrap_err()
            .to_string()
            .contains("at most 1")
    );
    assert!(folder.read("y", 1).unwrap().is_none());
}

#[test]
fn files_of_others_do_not_count() {
    let Some(case) = Case::new() else { return };
    let folder = open_folder(&case.root.join("cache"), Rule::Sticky, true);
    let folder = folder.unwrap().unwrap();
    let path = folder.path().join("x");
    let why = || folder.read("x", 9).unwrap_err().to_string();
    fs::write(&path, "x").unwrap();
    assert!(folder.read("x", 9).unwrap().is_some());
    mode(&path, 0o666);
    assert_eq!(why(), "it is writable for everyone (mode 666)");
    mode(&path, 0o600);
    give(&path);
    assert_eq!(why(), "it belongs to user 65534, not 0");
    fs::remove_file(&path).unwrap();
    symlink("/etc/passwd", &path).unwrap();
    assert_eq!(
        folder.read("x", 1 << 20).unwrap_err().raw_os_error(),
        Some(libc::ELOOP)
    );
    fs::remove_file(&path).unwrap();
    assert!(
        Command::new("mkfifo")
            .arg(&path)
            .status()
            .unwrap()
            .success()
    );
    assert_eq!(why(), "it is not a regular file");
}

#[test]
fn what_a_killed_process_left_is_removed() {
    let Some(case) = Case::new() else { return };
    for name in ["cache", "other"] {
        let folder = open_folder(&case.root.join(name), Rule::Sticky, true);
        let folder = folder.unwrap().unwrap();
        for left in [".dead.tmp", ".busy.tmp", ".dead", "dead.tmp"] {
            folder.create(left).unwrap();
        }
        for old in [".dead.tmp", ".dead", "dead.tmp"] {
            let file = fs::File::options()
                .write(true)
                .open(folder.path().join(old));
            let then = SystemTime::now() - Duration::from_secs(7200);
            file.unwrap().set_modified(then).unwrap();
        }
        folder.write("x", &[b"new"], false).unwrap();
        let mut names = folder.names();
        names.sort();
        assert_eq!(names, [".busy.tmp", ".dead", "dead.tmp", "x"], "{name}");
    }
}

#[test]
fn a_planted_link_is_not_written_through() {
    let Some(case) = Case::new() else { return };
    let folder = open_folder(&case.root.join("cache"), Rule::Sticky, true);
    let folder = folder.unwrap().unwrap();
    let victim = case.root.join("victim");
    fs::write(&victim, "precious").unwrap();
    for name in ["x", "y"] {
        symlink(&victim, folder.path().join(name)).unwrap();
    }
    symlink(&victim, folder.path().join("lock")).unwrap();
    folder.write("x", &[b"new"], false).unwrap();
    assert_eq!(folder.read("x", 9).unwrap().unwrap(), b"new");
    io::Write::write(&mut folder.create("y").unwrap(), b"new").unwrap();
    let error = folder.keep("lock").unwrap_err();
    assert_eq!(error.raw_os_error(), Some(libc::ELOOP));
    assert_eq!(fs::read(victim).unwrap(), b"precious");
}

#[test]
fn sealed_memory_cannot_be_changed_by_anybody() {
    let bytes = vec![7; 10_000];
    let sealed = match Sealed::in_memory("test", &bytes) {
        Err(error) if cfg!(not(target_os = "linux")) => {
            assert_eq!(error.kind(), io::ErrorKind::Unsupported);
            return;
        }
        sealed => sealed.unwrap(),
    };
    let before = sealed.sha256(1 << 20).unwrap();
    let open = |options: &mut fs::OpenOptions| options.open(sealed.path());
    let mut written = open(fs::File::options().write(true)).unwrap();
    let error = io::Write::write(&mut written, b"x").unwrap_err();
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    assert!(written.set_len(1).is_err() && written.set_len(1 << 20).is_err());
    assert_eq!(sealed.sha256(1 << 20).unwrap(), before);
    assert_eq!(fs::read(sealed.path()).unwrap(), bytes);
}

#[test]
fn a_file_is_told_with_everybody_who_could_have_put_it_there() {
    let Some(case) = Case::new() else { return };
    let folder = case.shared.join("folder");
    fs::create_dir(&folder).unwrap();
    fs::write(folder.join("x"), "x").unwrap();
    give(&folder);
    let weak = |path: &Path| open_file(path, false).unwrap().weaknesses;
    let found = weak(&folder.join("x"));
    assert!(
        found[0].ends_with("folder belongs to user 65534, not 0"),
        "{found:?}"
    );
    assert!(
        found[1].ends_with("shared is writable for everyone (mode 1777)"),
        "{found:?}"
    );
    // A link of somebody else's to what is fine.
    fs::write(case.root.join("y"), "y").unwrap();
    let link = case.shared.join("link");
    assert!(as_nobody("ln", &[Path::new("-s"), &case.root, &link]));
    let found = weak(&link.join("y"));
    assert!(
        found[0].ends_with("shared is writable for everyone (mode 1777)"),
        "{found:?}"
    );
}
