//! What a pack must show before it is loaded: pins, signatures, who can write to it, and in mode dev a trial.

use crate::folder::Folder;
use crate::packs::built;
use minisign::KeyPair;
use nx_vulkan_abi::ABI_VERSION;
use nx_vulkan_host::Kind;
use nx_vulkan_registry::{Options, Table, load, probe::Prober, signed_comment};
use std::{
    env, fs,
    io::Cursor,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A folder with a pack in `packs/x.so`, and the text of a registry.
struct Case {
    folder: Folder,
    pack: PathBuf,
}

impl Case {
    /// The content is the template and `salt`, so that no two cases share an image.
    fn new(salt: &str) -> Case {
        let folder = Folder::new();
        let template = fs::read(built("template")).unwrap();
        let pack = folder.write("packs/x.so", [&template[..], salt.as_bytes()].concat());
        Case { folder, pack }
    }

    fn sign(&self, keys: &KeyPair, comment: &str) {
        let content = Cursor::new(fs::read(&self.pack).unwrap());
        let signature = minisign::sign(None, &keys.sk, content, Some(comment), None).unwrap();
        fs::write(self.signature(), signature.into_string()).unwrap();
    }

    fn signature(&self) -> PathBuf {
        PathBuf::from(format!("{}.minisig", self.pack.display()))
    }

    fn options(&self, registry: &str) -> Options {
        Options {
            registry: Some(self.folder.write("registry.toml", registry)),
            store: self.folder.join("store"),
            ..Options::default()
        }
    }

    /// Ids of the packs that load under a registry, or the whole error.
    fn load(&self, registry: &str) -> Result<Vec<String>, String> {
        let table = load(&self.options(registry)).map_err(|error| {
            assert_eq!(error.kind(), Kind::Pack, "{error}");
            error.to_string()
        })?;
        assert_eq!(table.rejected, []);
        Ok(table.packs.into_iter().map(|pack| pack.id).collect())
    }

    fn sha256(&self) -> String {
        let output = Command::new("sha256sum").arg(&self.pack).output().unwrap();
        String::from_utf8(output.stdout).unwrap()[..64].to_owned()
    }

    fn pinned(&self) -> String {
        let sha256 = self.sha256();
        format!(
            "schema = 1\nmode = \"locked\"\n[search]\npaths = [\"packs\"]\n[pack.template]\nsha256 = \"{sha256}\"\n"
        )
    }
}

fn loaded() -> Result<Vec<String>, String> {
    Ok(vec!["template".to_owned()])
}

#[track_caller]
fn assert_refused(result: Result<Vec<String>, String>, expected: &str) {
    let error = result.unwrap_err();
    assert!(error.contains(expected), "{error}");
}

fn signing(keys: &KeyPair, require: &str, pack: &str) -> String {
    let key = keys.pk.to_base64();
    format!(
        "schema = 1\nmode = \"locked\"\n[search]\npaths = [\"packs\"]\n[trust]\nrequire = \"{require}\"\n\
         minisign = [{{ name = \"acme\", key = \"{key}\" }}]\n[pack.template]\nsigner = \"acme\"\n{pack}"
    )
}

#[test]
fn a_signed_pack_needs_no_pin_and_the_signature_is_of_this_file_and_this_version() {
    let keys = KeyPair::generate_unencrypted_keypair().unwrap();
    let case = Case::new("signed");
    let registry = signing(&keys, "signature", "file = \"x.so\"\n");
    let load = || case.load(&registry);
    let comment = signed_comment("template", "0.1.0", ABI_VERSION);

    let missing = format!(
        "x.so: signature: {}: No such file",
        case.signature().display()
    );
    assert_refused(load(), &missing);
    case.sign(&keys, &comment);
    assert_eq!(load(), loaded());
    case.sign(&keys, &format!("timestamp:1 file:x.so {comment}"));
    assert_eq!(load(), loaded());
    // Without a file name it is found by what it calls itself.
    assert_eq!(case.load(&signing(&keys, "signature", "")), loaded());

    for (comment, lacks) in [
        (
            signed_comment("template", "0.1.1", ABI_VERSION),
            "version=0.1.0",
        ),
        (signed_comment("other", "0.1.0", ABI_VERSION), "id=template"),
        (signed_comment("template", "0.1.0", "1.0.9"), "abi=1.1.0"),
        ("timestamp:1\tfile:x.so".to_owned(), "id=template"),
    ] {
        case.sign(&keys, &comment);
        assert_refused(load(), &format!("which lacks {lacks}"));
    }
    let others = KeyPair::generate_unencrypted_keypair().unwrap();
    case.sign(&others, &comment);
    assert_refused(load(), "signature: it is not signed by `acme`");
    fs::write(case.signature(), "nonsense\u{1b}[31m").unwrap();
    assert_refused(load(), "x.so.minisig is not a minisign signature");

    case.sign(&keys, &comment);
    let mut content = fs::read(&case.pack).unwrap();
    *content.last_mut().unwrap() ^= 1;
    fs::write(&case.pack, content).unwrap();
    assert_refused(
        load(),
        "signature: the signature by `acme` is not one of this file",
    );
    let text = fs::read_to_string(case.signature()).unwrap();
    fs::write(
        case.signature(),
        text.replace("version=0.1.0", "version=0.1.1"),
    )
    .unwrap();
    assert_refused(
        load(),
        "signature: the signature by `acme` is not one of this file",
    );
}

#[test]
fn both_means_both() {
    let keys = KeyPair::generate_unencrypted_keypair().unwrap();
    let case = Case::new("both");
    let pin = format!("sha256 = \"{}\"\n", case.sha256());
    let registry = signing(&keys, "both", &pin);
    assert_refused(case.load(&registry), "x.so.minisig: No such file");
    case.sign(&keys, &signed_comment("template", "0.1.0", ABI_VERSION));
    assert_eq!(case.load(&registry), loaded());
    let other = signing(
        &keys,
        "both",
        &format!("file = \"x.so\"\nsha256 = \"{:064}\"\n", 0),
    );
    assert_refused(case.load(&other), "sha256: the file has ");
}

#[test]
fn mode_dev_may_require_as_much() {
    let case = Case::new("strict dev");
    let registry = "schema = 1\n[search]\npaths = [\"packs\"]\n[trust]\nrequire = \"sha256\"\n";
    let table = load(&case.options(registry)).unwrap();
    let expected = format!(
        "sha256: the registry requires one and pins none; the file has {}",
        case.sha256()
    );
    assert_eq!(table.rejected[0].reason, expected);
}

#[test]
fn a_locked_registry_loads_nothing_that_others_could_have_changed() {
    let case = Case::new("permissions");
    let chmod = |path: &Path, mode| {
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
    };
    let registry = case.pinned();
    assert_eq!(case.load(&registry), loaded());
    let open = "schema = 1\n[search]\npaths = [\"packs\"]\n";
    let folder = case.folder.join("packs");
    for (path, mode, why, usual) in [
        (
            &case.pack,
            0o664,
            "is writable for its group (mode 664)",
            0o644,
        ),
        (
            &case.pack,
            0o646,
            "is writable for everyone (mode 646)",
            0o644,
        ),
        (
            &folder,
            0o775,
            "is writable for its group (mode 775)",
            0o755,
        ),
        // The sticky bit is not enough.
        (
            &folder,
            0o1777,
            "is writable for everyone (mode 1777)",
            0o755,
        ),
    ] {
        chmod(path, mode);
        let why = format!("{} {why}", path.display());
        assert_refused(case.load(&registry), &format!("x.so: permissions: {why}"));
        let table = load(&case.options(open)).unwrap();
        assert_eq!(table.packs.len(), 1);
        let warned = table.warnings.iter().filter(|w| w.starts_with(&why));
        assert_eq!(warned.count(), 1, "{table:?}");
        chmod(path, usual);
    }
    let above = case.folder.join(".");
    chmod(&above, 0o757);
    // The registry lies there too.
    let error = load(&case.options(&registry)).unwrap_err().to_string();
    assert!(
        error.contains("is writable for everyone (mode 757)"),
        "{error}"
    );
    chmod(&above, 0o755);
    assert_eq!(case.load(&registry), loaded());
}

#[test]
fn a_locked_registry_fails_with_every_reason_at_once() {
    let case = Case::new("every reason");
    case.folder.write("packs/y.so", "text");
    let registry = format!(
        "schema = 1\nmode = \"locked\"\n[search]\npaths = [\"packs\", \"absent\"]\n\
         [pack.one]\nfile = \"x.so\"\nsha256 = \"{0:064}\"\n[pack.two]\nfile = \"y.so\"\nsha256 = \"{1}\"\n\
         [pack.three]\nsha256 = \"{0:064}\"\n",
        0, "982d9e3eb996f559e633f4d194def3761d909f5a3b647d1a851fead67c32c9d1",
    );
    let error = case.load(&registry).unwrap_err();
    for expected in [
        "pack `one` did not load",
        "pack `two` did not load",
        "pack `three` did not load",
        "x.so: sha256: the file has ",
        "y.so: format: it is not an ELF, Mach-O or PE file",
        "absent: No such file",
    ] {
        assert!(error.contains(expected), "{expected}: {error}");
    }
}

#[test]
fn a_locked_registry_takes_no_folders_from_the_environment() {
    let case = Case::new("environment");
    case.folder.write("packs/registry.toml", "");
    let registry = case.pinned().replace("paths = [\"packs\"]", "paths = []");
    let registry = registry.replace("sha256 =", "file = \"x.so\"\nsha256 =");
    let registry = case.folder.write("registry.toml", registry);
    let lines = |packs: &str| {
        let output = Command::new(env::current_exe().unwrap())
            .args(["trust::child", "--exact", "--ignored", "--nocapture"])
            .env("NX_VULKAN_PACKS", packs)
            .env("NXV_CHILD_REGISTRY", &registry)
            .env("NXV_CHILD_STORE", case.folder.join("store"))
            .env("NXV_CHILD_OWN", case.folder.join("packs"))
            .output()
            .unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let lines = text.lines().filter_map(|line| line.strip_prefix("child: "));
        lines.map(str::to_owned).collect::<Vec<_>>()
    };
    let ignored = "mode \"locked\" ignores $NX_VULKAN_PACKS";
    // What the application names counts, what stands in the environment does not, even if it is the same.
    let own = case.folder.join("packs").display().to_string();
    assert_eq!(lines(&own), ["template", ignored]);
    // A file of the same name and another content, which is looked at first where the folder counts.
    case.folder.write("theirs/x.so", "not this one");
    let theirs = case.folder.join("theirs").display().to_string();
    for list in [
        theirs.clone(),
        format!(":{theirs}"),
        format!("{theirs}:"),
        format!("::{theirs}::{own}:"),
        format!("{own}:{theirs}"),
    ] {
        assert_eq!(lines(&list), ["template", ignored], "{list}");
    }
    fs::remove_file(&case.pack).unwrap();
    assert!(lines(&theirs)[0].contains("pack `template` did not load"));
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    let path = |name| PathBuf::from(env::var_os(name).expect("run by another test"));
    // As the NIF does: what the environment says, then what the application says.
    let environment = nx_vulkan_host::Config::from_env()
        .registry_options()
        .environment;
    let result = load(&Options {
        registry: Some(path("NXV_CHILD_REGISTRY")),
        packs: vec![path("NXV_CHILD_OWN")],
        store: path("NXV_CHILD_STORE"),
        environment,
        ..Options::default()
    });
    println!();
    match result {
        Ok(table) => {
            let ids = table.packs.iter().map(|pack| pack.id.clone());
            let warnings = table
                .warnings
                .iter()
                .filter(|w| w.contains("ignores"))
                .cloned();
            ids.chain(warnings)
                .for_each(|line| println!("child: {line}"));
        }
        Err(error) => println!("child: {}", error.to_string().replace('\n', " ")),
    }
}

/// Loads the case's pack in mode dev with that prober.
fn tried(case: &Case, prober: &str, rest: &str) -> Table {
    let registry = format!("schema = 1\n[search]\npaths = [\"packs\"]\n{rest}");
    let options = Options {
        prober: Some(prober.into()),
        ..case.options(&registry)
    };
    load(&options).unwrap()
}

#[test]
fn a_trial_is_for_mode_dev_and_can_be_turned_off() {
    let case = Case::new("no trial");
    let reason = "probe: the prober /nowhere/nxv does not start: ";
    let table = tried(&case, "/nowhere/nxv", "");
    assert!(table.rejected[0].reason.starts_with(reason), "{table:?}");
    assert_eq!(
        tried(&case, "/nowhere/nxv", "[dev]\nprobe = false\n")
            .packs
            .len(),
        1
    );
    let options = Options {
        prober: Some("/nowhere/nxv".into()),
        ..case.options(&case.pinned())
    };
    assert_eq!(load(&options).unwrap().packs.len(), 1);
}

#[test]
fn a_content_that_went_well_is_not_tried_again_by_the_next_process() {
    let case = Case::new("noted");
    let nxv = env!("CARGO_BIN_EXE_nxv");
    let note = case.folder.join(format!("store/{}.probed", case.sha256()));
    assert_eq!(tried(&case, nxv, "").packs.len(), 1);
    assert!(fs::read_to_string(&note).unwrap().ends_with(" is sound\n"));
    // Nothing starts here, so only the note can let it in.
    assert_eq!(tried(&case, "/nowhere/nxv", "").packs.len(), 1);

    let chmod = |mode| fs::set_permissions(&note, fs::Permissions::from_mode(mode)).unwrap();
    chmod(0o666);
    let refused = |table: Table| assert_eq!(table.rejected.len(), 1, "{table:?}");
    refused(tried(&case, "/nowhere/nxv", ""));
    chmod(0o600);
    let text = fs::read_to_string(&note).unwrap();
    fs::write(&note, text.replace("nxv ", "nxv 0.")).unwrap();
    fs::remove_file(&note).unwrap();
    fs::write(&note, "").unwrap();
    refused(tried(&case, "/nowhere/nxv", ""));
}

#[test]
fn a_trial_tells_what_the_pack_is() {
    let case = Case::new("told");
    let pack = Prober::new(env!("CARGO_BIN_EXE_nxv"))
        .run(&case.pack)
        .unwrap();
    assert_eq!(
        (pack.id.as_str(), pack.version.as_str()),
        ("template", "0.1.0")
    );
    assert_eq!(pack.kernels[0], "square_f32");
    let unknown = "kernel `square_f32`: the host knows no op `square`";
    assert!(
        pack.warnings.iter().any(|warning| warning == unknown),
        "{pack:?}"
    );
}
