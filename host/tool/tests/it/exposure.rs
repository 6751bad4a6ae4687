//! Folders that other users own or can write to: what they put there is neither run nor believed, and what they lead to is
//! not overwritten. Only root can try it.

use crate::folder::Folder;
use crate::packs::built;
use nx_vulkan_host::{Config, DType, Request, Runtime};
use nx_vulkan_registry::{Options, Table, load};
use sha2::{Digest, Sha256};
use std::{
    env, fs,
    os::unix::{
        fs::{PermissionsExt as _, chown, symlink},
        process::CommandExt as _,
    },
    path::{Path, PathBuf},
    process::{Command, Stdio},
    sync::Arc,
};

const NOBODY: u32 = 65534;

fn is_root() -> bool {
    // SAFETY: geteuid takes nothing and cannot fail.
    let root = unsafe { libc::geteuid() } == 0;
    if !root {
        eprintln!("SKIPPED: only root can try what other users could do");
    }
    root
}

fn mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

fn give(path: &Path) {
    chown(path, Some(NOBODY), Some(NOBODY)).unwrap();
}

/// A folder like /tmp.
fn shared(folder: &Folder) -> PathBuf {
    let shared = folder.join("shared");
    fs::create_dir(&shared).unwrap();
    mode(&shared, 0o1777);
    shared
}

/// A pack that ends its process as soon as it is mapped, in place of one of that hash.
fn hostile() -> Vec<u8> {
    let mut bytes = fs::read(built("hostile")).unwrap();
    let key = b"misdeed=none      ";
    let at = bytes.windows(key.len()).position(|text| text == key);
    let text = format!("misdeed={:32}", "constructor_aborts");
    bytes[at.unwrap()..][..text.len()].copy_from_slice(text.as_bytes());
    bytes
}

fn sha256_of(path: &Path) -> String {
    let output = Command::new("sha256sum").arg(path).output().unwrap();
    String::from_utf8(output.stdout).unwrap()[..64].to_owned()
}

fn load_with(packs: &Path, store: &Path, registry: Option<PathBuf>) -> Table {
    let options = Options {
        registry,
        packs: vec![packs.to_owned()],
        store: store.to_owned(),
        ..Options::default()
    };
    load(&options).unwrap()
}

/// Versions of the template that are loaded while somebody swaps the store.
const VERSIONS: u32 = 30;

#[test]
fn a_store_that_somebody_else_can_swap_is_not_used() {
    if !is_root() {
        return;
    }
    // Where others can go.
    let folder = Folder::below(&env::temp_dir());
    let parent = shared(&folder).join("nx_vulkan");
    fs::create_dir(&parent).unwrap();
    mode(&parent, 0o755);
    // Root's own store, and beside it one whose files have the right names and another content.
    let (store, evil) = (parent.join("packs"), parent.join("evil"));
    for path in [&store, &evil] {
        fs::create_dir(path).unwrap();
        mode(path, 0o700);
    }
    let bad = hostile();
    let template = fs::read(built("template")).unwrap();
    for version in 0..VERSIONS {
        let content = [&template[..], &version.to_le_bytes()].concat();
        let path = folder.write(&format!("versions/{version}.so"), content);
        fs::write(evil.join(format!("{}.so", sha256_of(&path))), &bad).unwrap();
    }
    give(&parent);
    give(&evil);
    // What nobody can read, nobody can run.
    let swapper = folder.join("swapper");
    fs::copy(env::current_exe().unwrap(), &swapper).unwrap();
    mode(&folder, 0o755);
    let mut swapping = Command::new(&swapper)
        .args(["exposure::swap", "--exact", "--ignored"])
        .env("NXV_CHILD", &parent)
        .current_dir("/")
        .uid(NOBODY)
        .gid(NOBODY)
        .stdout(Stdio::null())
        .spawn()
        .unwrap();
    let loaded = Command::new(env::current_exe().unwrap())
        .args(["exposure::load_all", "--exact", "--ignored", "--nocapture"])
        .env("NXV_CHILD", &*folder)
        .output()
        .unwrap();
    assert!(
        swapping.try_wait().unwrap().is_none(),
        "nobody swapped anything"
    );
    swapping.kill().unwrap();
    swapping.wait().unwrap();
    let text = String::from_utf8_lossy(&loaded.stdout);
    assert!(loaded.status.success(), "{}: {text}", loaded.status);
    let expected = format!(
        "unusable: {} belongs to user 65534, not 0",
        parent.display()
    );
    assert!(text.contains(&expected), "{text}");
    let written = [&store, &evil].map(|path| fs::read_dir(path).unwrap().count());
    assert_eq!(written.iter().sum::<usize>(), VERSIONS as usize);
}

#[test]
#[ignore = "another test runs it in a process of its own"]
fn load_all() {
    let folder = PathBuf::from(env::var_os("NXV_CHILD").expect("run by another test"));
    let store = folder.join("shared/nx_vulkan/packs");
    println!();
    for version in 0..VERSIONS {
        let to = folder.join("packs/x.so");
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(folder.join(format!("versions/{version}.so")), &to).unwrap();
        let table = load_with(to.parent().unwrap(), &store, None);
        assert_eq!(table.packs.len(), 1, "{table:?}");
        if version == 0 {
            println!("{:?}", table.warnings);
        }
    }
}

#[test]
#[ignore = "another test runs it as another user"]
fn swap() {
    let parent = PathBuf::from(env::var_os("NXV_CHILD").expect("run by another test"));
    let name = |name| {
        let path = parent.join(name).into_os_string();
        std::ffi::CString::new(path.into_encoded_bytes()).unwrap()
    };
    let (store, evil) = (name("packs"), name("evil"));
    loop {
        // SAFETY: both paths end with a zero.
        let code = unsafe {
            let (from, to) = (store.as_ptr(), evil.as_ptr());
            libc::renameat2(
                libc::AT_FDCWD,
                from,
                libc::AT_FDCWD,
                to,
                libc::RENAME_EXCHANGE,
            )
        };
        assert_eq!(code, 0, "{}", std::io::Error::last_os_error());
    }
}

#[test]
fn a_registry_in_mode_locked_uses_no_store_below_a_folder_like_tmp() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let pack = folder.write("packs/x.so", fs::read(built("template")).unwrap());
    let text = |mode| {
        format!(
            "schema = 1\nmode = \"{mode}\"\n[pack.template]\nsha256 = \"{}\"\n",
            sha256_of(&pack)
        )
    };
    let own = shared(&folder).join("own");
    let packs = pack.parent().unwrap();
    let table = |mode| {
        let registry = folder.write("registry.toml", text(mode));
        load_with(packs, &own, Some(registry))
    };
    let locked = table("locked");
    assert_eq!(locked.packs.len(), 1);
    let why = "shared is writable for everyone (mode 1777)";
    assert!(
        locked.warnings.iter().any(|w| w.contains(why)),
        "{locked:?}"
    );
    assert!(!own.exists());
    let dev = table("dev");
    assert_eq!(dev.packs.len(), 1);
    assert!(!dev.warnings.iter().any(|w| w.contains(why)), "{dev:?}");
}

#[test]
fn a_locked_registry_that_others_can_change_is_refused() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let text = "schema = 1\nmode = \"locked\"\n";
    let registry = folder.write("etc/registry.toml", text);
    let refused = |registry: &Path| {
        let options = Options {
            registry: Some(registry.to_owned()),
            ..Options::default()
        };
        load(&options).err().map(|error| error.to_string())
    };
    assert_eq!(refused(&registry), None);
    let etc = registry.parent().unwrap();
    for path in [registry.as_path(), etc] {
        give(path);
        let why = refused(&registry).unwrap();
        let expected = format!("{} belongs to user 65534, not 0", path.display());
        assert!(why.contains("NXR034") && why.contains(&expected), "{why}");
        chown(path, Some(0), Some(0)).unwrap();
    }
    // By way of a link that somebody else can point elsewhere.
    let link = shared(&folder).join("registry.toml");
    symlink(&registry, &link).unwrap();
    assert!(refused(&link).unwrap().contains("mode 1777"));
    // As configuration is often installed.
    let link = folder.join("current.toml");
    symlink(&registry, &link).unwrap();
    assert_eq!(refused(&link), None);
}

const TABLE: &str = "[pack]\nid = \"scaled\"\nversion = \"1.0.0\"\nabi = \"1\"\n\
    [[kernel]]\nid = \"scaled\"\nop = \"scaled\"\ninputs = [\"f32\"]\noutputs = [\"f32\"]\n\
    shader = \"scaled.comp\"\npush = [\"elems\"]\ngroups = [\"ceil(elems / 64)\"]\n\
    defines = { FACTOR = \"2.0\" }\n";

const SCALED: &str = "#version 450
layout(local_size_x = 64) in;
layout(push_constant) uniform Params { uint count; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = FACTOR * x[i];
}
";

/// A runtime with a pack that multiplies by `factor`.
fn scaling(folder: &Folder, factor: &str, cache: &Path, registry: Option<&str>) -> Arc<Runtime> {
    let packs = format!("packs-{factor}");
    folder.write(
        &format!("{packs}/scaled/pack.toml"),
        TABLE.replace("2.0", factor),
    );
    folder.write(&format!("{packs}/scaled/scaled.comp"), SCALED);
    let registry = registry.map(|text| folder.write("registry.toml", text));
    let config = Config {
        registry,
        packs: vec![folder.join(packs)],
        cache_dir: Some(cache.to_owned()),
        ..Config::from_env()
    };
    Runtime::open(&config).unwrap()
}

/// Three times the factor, as it is computed.
fn scaled(runtime: &Runtime) -> f32 {
    let input = runtime
        .upload(DType::F32, &[1], &3f32.to_le_bytes())
        .unwrap();
    let shape = [(DType::F32, vec![1])];
    let outputs = runtime
        .run(&Request::new("scaled", &[&input], &shape, &[]))
        .unwrap();
    let bytes = runtime.download(&outputs[0], None).unwrap();
    f32::from_le_bytes(bytes.try_into().unwrap())
}

/// The only compiled shader of a cache folder.
fn shader(cache: &Path) -> PathBuf {
    let mut entries = fs::read_dir(cache.join("shaders")).unwrap();
    let only = entries.next().unwrap().unwrap().path();
    assert!(entries.next().is_none());
    only
}

#[test]
fn a_compiled_shader_of_somebody_else_is_not_believed() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let (cache, other) = (folder.join("cache"), folder.join("other"));
    assert_eq!(scaled(&scaling(&folder, "2.0", &cache, None)), 6.0);
    assert_eq!(scaled(&scaling(&folder, "5.0", &other, None)), 15.0);
    // Whole, with a checksum that is right, and of another shader.
    let good = shader(&cache);
    let body = fs::read(shader(&other)).unwrap().split_off(32);
    let name = good.file_name().unwrap().as_encoded_bytes();
    let sum = Sha256::digest([name, &[0], &body].concat());
    let forged = [&sum[..], &body].concat();
    let value = || scaled(&scaling(&folder, "2.0", &cache, None));
    fs::write(&good, &forged).unwrap();
    assert_eq!(value(), 15.0, "root may, so the cache is read");
    give(&good);
    assert_eq!(value(), 6.0);
    // It was written anew meanwhile.
    fs::write(&good, &forged).unwrap();
    mode(&good, 0o606);
    assert_eq!(value(), 6.0);
    // Everything in a folder of somebody else's.
    fs::write(&good, &forged).unwrap();
    for path in [good.parent().unwrap(), &cache] {
        give(path);
        assert_eq!(value(), 6.0);
        assert_eq!(fs::read(&good).unwrap(), forged, "nothing is written there");
        chown(path, Some(0), Some(0)).unwrap();
    }
    assert_eq!(value(), 15.0);
}

#[test]
fn mode_locked_has_a_private_cache_or_none() {
    if !is_root() {
        return;
    }
    let folder = Folder::new();
    let locked = |cache: &Path| {
        let text = "schema = 1\nmode = \"locked\"\n";
        scaling(&folder, "2.0", cache, Some(text))
    };
    let below = shared(&folder).join("cache");
    let trouble = |runtime: &Runtime| runtime.pipeline_cache_file().unwrap_err().to_string();
    let why = trouble(&locked(&below));
    assert!(
        why.contains("shared is writable for everyone (mode 1777); make it"),
        "{why}"
    );
    assert!(!below.exists());
    let runtime = scaling(&folder, "2.0", &below, None);
    assert_eq!(scaled(&runtime), 6.0);
    assert!(
        runtime
            .pipeline_cache_file()
            .unwrap()
            .starts_with(below.canonicalize().unwrap())
    );
    let private = folder.join("private");
    let runtime = locked(&private);
    assert!(runtime.pipeline_cache_file().unwrap().starts_with(&private));
    runtime.persist_pipelines().unwrap();
    assert!(runtime.pipeline_cache_file().unwrap().exists());
    // Nor once the registry of a running VM is locked.
    let runtime = scaling(&folder, "2.0", &below, Some("schema = 1\n"));
    assert!(runtime.pipeline_cache_file().is_ok());
    folder.write("registry.toml", "schema = 1\nmode = \"locked\"\n");
    runtime.reload();
    assert!(runtime.table().is_locked());
    assert!(trouble(&runtime).contains("is not used"));
}

#[test]
fn a_cache_that_is_emptied_under_a_runtime_is_made_again() {
    let folder = Folder::new();
    let cache = folder.join("cache");
    let runtime = scaling(&folder, "2.0", &cache, None);
    fs::remove_dir_all(&cache).unwrap();
    assert_eq!(scaled(&runtime), 6.0);
    assert!(shader(&cache).exists());
    assert_eq!(runtime.stats().cache_trouble, None);
}
