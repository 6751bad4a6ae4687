//! What variables of the environment may say: anything under a registry in mode dev, nothing but the choice of a device
//! and what is logged under one in mode locked.

use crate::{folder::Folder, packs::built};
use nx_vulkan_host::{Config, Runtime, stderr};
use std::{
    env, fs,
    os::unix::fs::PermissionsExt as _,
    path::{Path, PathBuf},
    process::Command,
};

/// A pack, a registry that lists it, and what the environment would have in their place.
struct Case {
    folder: Folder,
}

impl Case {
    fn new() -> Case {
        let folder = Folder::new();
        let pack = folder.write("packs/x.so", fs::read(built("template")).unwrap());
        folder.write("theirs/x.so", fs::read(built("bad")).unwrap());
        let sha256 = nx_vulkan_registry::sha256_of(&pack).unwrap();
        for mode in ["locked", "dev"] {
            let text = format!(
                "schema = 1\nmode = \"{mode}\"\n[search]\npaths = [\"packs\"]\n[pack.template]\n\
                 file = \"x.so\"\nsha256 = \"{sha256}\"\n"
            );
            folder.write(&format!("{mode}.toml"), text);
        }
        let theirs = "schema = 1\n[search]\npaths = [\"theirs\"]\n[dev]\nprobe = false\n";
        folder.write("theirs.toml", theirs);
        let prober = folder.write("prober", "#!/bin/sh\ntouch \"$0.ran\"\nexit 1\n");
        fs::set_permissions(prober, fs::Permissions::from_mode(0o755)).unwrap();
        Case { folder }
    }

    /// What [`child`] says under the registry of that mode, with these variables set.
    fn child(&self, mode: &str, variables: &[(&str, &str)]) -> String {
        let output = Command::new(env::current_exe().unwrap())
            .args(["environment::child", "--exact", "--ignored", "--nocapture"])
            .env_remove("NX_VULKAN_CACHE")
            .env_remove("NX_VULKAN_VALIDATION")
            .env(
                "NXV_CHILD_REGISTRY",
                self.folder.join(format!("{mode}.toml")),
            )
            .envs(variables.iter().copied())
            .output()
            .unwrap();
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        let lines = text.lines().filter_map(|line| line.strip_prefix("child: "));
        let lines: Vec<&str> = lines.collect();
        assert!(!lines.is_empty(), "{text}{said}");
        let ignored = said.lines().filter(|line| line.contains("ignores"));
        let ignored: Vec<&str> = ignored.collect();
        format!("{} {}", lines.join(" "), ignored.join(" "))
    }
}

/// Opens a runtime as the NIF does, and says what came of the environment.
#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    let registry = env::var_os("NXV_CHILD_REGISTRY").expect("run by another test");
    let config = Config {
        registry: Some(registry.into()),
        ..Config::from_env()
    };
    println!();
    stderr::install();
    let runtime = match Runtime::open(&config) {
        Ok(runtime) => runtime,
        Err(error) => {
            println!("child: {}", error.to_string().replace('\n', " "));
            return;
        }
    };
    for pack in &runtime.table().packs {
        println!("child: pack {} {}", pack.id, pack.path.display());
    }
    match runtime.pipeline_cache_file() {
        Ok(file) => println!("child: cache {}", file.display()),
        Err(error) => println!("child: {error}"),
    }
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    println!(
        "child: layers {}",
        maps.contains("VkLayer_khronos_validation")
    );
}

#[test]
fn mode_locked_takes_no_word_of_the_environment() {
    let case = Case::new();
    let at = |name: &str| case.folder.join(name).display().to_string();
    let packs = |list: &str| list.replace("DIR", &at("theirs"));
    let clean = case.child("locked", &[]);
    let pack = format!("pack template {}", at("packs/x.so"));
    assert!(
        clean.contains(&pack) && clean.contains("layers false"),
        "{clean}"
    );
    let mut variables: Vec<(&str, String)> = ["DIR", ":DIR", "DIR:", "::DIR::", ":DIR:DIR:"]
        .iter()
        .map(|list| ("NX_VULKAN_PACKS", packs(list)))
        .collect();
    variables.extend([
        ("NX_VULKAN_REGISTRY", at("theirs.toml")),
        ("NX_VULKAN_CACHE", at("evil-cache")),
        ("NX_VULKAN_PROBER", at("prober")),
        ("NX_VULKAN_VALIDATION", "1".to_owned()),
        ("NX_VULKAN_CHECKED", "1".to_owned()),
        ("XDG_CACHE_HOME", at("evil-xdg")),
        ("HOME", at("evil-home")),
        ("TMPDIR", at("evil-tmp")),
        ("NX_VULKAN_PACK_LOG", "5".to_owned()),
    ]);
    for (name, value) in &variables {
        let said = case.child("locked", &[(name, value)]);
        let without_warnings = |said: &str| {
            said.split_once(" [nx_vulkan]")
                .map_or(said.to_owned(), |x| x.0.to_owned())
        };
        assert_eq!(
            without_warnings(&said).trim(),
            without_warnings(&clean).trim(),
            "{name}={value}"
        );
        let is_told =
            name.starts_with("NX_") && !["NX_VULKAN_REGISTRY", "NX_VULKAN_PACK_LOG"].contains(name);
        assert_eq!(
            said.contains(&format!("ignores ${name}")),
            is_told,
            "{said}"
        );
    }
    let all: Vec<(&str, &str)> = variables.iter().map(|(n, v)| (*n, v.as_str())).collect();
    assert!(case.child("locked", &all).starts_with(clean.trim()));
    // Drivers have caches of their own, by variables of their own.
    for made in [
        "evil-cache",
        "evil-xdg/nx_vulkan",
        "evil-home/.cache/nx_vulkan",
        "evil-tmp",
        "prober.ran",
    ] {
        assert!(!case.folder.join(made).exists(), "{made}");
    }
}

#[test]
fn mode_dev_takes_the_same_words() {
    let case = Case::new();
    let at = |name: &str| case.folder.join(name).display().to_string();
    let said = |name: &str, value: &str| case.child("dev", &[(name, value), ("NXV_X", "")]);
    let cache = at("cache");
    assert!(said("NX_VULKAN_CACHE", &cache).contains(&format!("cache {cache}/pipelines-")));
    let xdg = case.child("dev", &[("XDG_CACHE_HOME", &cache)]);
    assert!(
        xdg.contains(&format!("cache {cache}/nx_vulkan/pipelines-")),
        "{xdg}"
    );
    let home = case.child("dev", &[("XDG_CACHE_HOME", ""), ("HOME", &cache)]);
    assert!(
        home.contains(&format!("cache {cache}/.cache/nx_vulkan/")),
        "{home}"
    );
    let packs = said("NX_VULKAN_PACKS", &format!(":{}:", at("theirs")));
    assert!(!packs.contains(&at("packs/x.so")), "{packs}");
    let registry = said("NX_VULKAN_REGISTRY", &at("theirs.toml"));
    assert!(registry.contains(&at("theirs/x.so")), "{registry}");
    said("NX_VULKAN_PROBER", &at("prober"));
    assert!(Path::new(&at("prober.ran")).exists());
    let layers = said("NX_VULKAN_VALIDATION", "1");
    if !layers.contains("layers true") {
        eprintln!("not tested: there are no validation layers here: {layers}");
    }
}

#[test]
fn without_any_variable_the_cache_is_in_the_home_folder_of_the_user() {
    let case = Case::new();
    let output = Command::new("getent").args(["passwd", "0"]).output();
    let entry = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned());
    let entry = entry.unwrap_or_default();
    let Some(home) = entry.split(':').nth(5).map(PathBuf::from) else {
        eprintln!("SKIPPED: there is no user database to ask");
        return;
    };
    // SAFETY: geteuid takes nothing and cannot fail.
    if unsafe { libc::geteuid() } != 0 {
        eprintln!("SKIPPED: this asks for the home folder of root");
        return;
    }
    for mode in ["locked", "dev"] {
        let nothing = [
            ("HOME", ""),
            ("XDG_CACHE_HOME", ""),
            ("NX_VULKAN_CACHE", ""),
        ];
        let said = case.child(mode, &nothing);
        let cache = format!("{}/.cache/nx_vulkan", home.display());
        assert!(said.contains(&cache), "{said}");
        assert!(!said.contains("cache /tmp"), "{said}");
    }
}
