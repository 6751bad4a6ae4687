//! Faults that need a process of their own.

use super::{config, run, tensor, words};
use crate::folder::Folder;
use nx_vulkan_host::{Config, Kind, Runtime};
use std::{
    fs,
    path::Path,
    process::{Command, Stdio},
    time::Duration,
};

/// Runs [`child`] with the given cache folder behind a shell prefix.
fn spawn_child(prefix: &str, cache: &Path, packs: &Path, mode: &str) -> std::process::Child {
    Command::new("bash")
        .args([
            "-c",
            &format!("{prefix} exec \"$0\" faults::processes::child --exact --ignored --nocapture"),
        ])
        .arg(std::env::current_exe().unwrap())
        .env("NXV_CHILD_CACHE", cache)
        .env("NXV_CHILD_PACKS", packs)
        .env("NXV_CHILD_MODE", mode)
        .stdout(Stdio::piped())
        .stderr(Stdio::inherit())
        .spawn()
        .unwrap()
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    let folder = |name| std::env::var_os(name).map(Into::into).unwrap();
    let is_slow = std::env::var("NXV_CHILD_MODE").unwrap() == "slow";
    let runtime = Runtime::open(&Config {
        packs: vec![folder("NXV_CHILD_PACKS")],
        cache_dir: Some(folder("NXV_CHILD_CACHE")),
        // lavapipe compiles shaders as their first command begins, which others must have time for.
        timeout: is_slow.then_some(Duration::from_millis(300)),
        ..Config::from_env()
    })
    .unwrap();
    let input = tensor(&runtime, 1000);
    if is_slow {
        let slow = run(&runtime, "bad_slow", &input).unwrap();
        let error = runtime.download(&slow, None).unwrap_err();
        assert_eq!(error.kind(), Kind::DeviceLost, "{error}");
        println!("child: {error}");
        let again = run(&runtime, "bad_nothing", &input).unwrap_err();
        assert_eq!(again.kind(), Kind::DeviceLost, "{again}");
        return;
    }
    let good = run(&runtime, "bad_nothing", &input).unwrap();
    assert_eq!(runtime.download(&good, None).unwrap(), words(1000));
    println!(
        "child: {}",
        runtime.stats().cache_trouble.unwrap_or_default()
    );
}

fn succeeds(child: std::process::Child) -> String {
    let output = child.wait_with_output().unwrap();
    let text = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{}: {text}", output.status);
    text
}

#[test]
fn a_device_that_does_not_finish_counts_as_lost() {
    let cache = Folder::new();
    let config = config(&cache, &["bad"]);
    let text = succeeds(spawn_child(
        "",
        &cache.join("cache"),
        &config.packs[0],
        "slow",
    ));
    assert!(
        text.contains("a command (bad_slow(u32[1000]) -> u32[1000]) did not finish within 0.3 s"),
        "{text}"
    );
}

#[test]
fn processes_share_one_cache() {
    let cache = Folder::new();
    let config = config(&cache, &["bad"]);
    let children: Vec<_> = (0..4)
        .map(|_| spawn_child("", &cache.join("cache"), &config.packs[0], "ok"))
        .collect();
    children.into_iter().map(succeeds).for_each(drop);
    let shaders = fs::read_dir(cache.join("cache/shaders")).unwrap();
    let names: Vec<_> = shaders
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    assert!(names.len() == 1 && names[0].ends_with(".spv"), "{names:?}");
}

#[test]
fn a_full_disk_costs_the_cache_and_nothing_else() {
    let cache = Folder::new();
    let config = config(&cache, &["bad"]);
    let disk = cache.join("disk");
    fs::create_dir_all(&disk).unwrap();
    // Full with one byte.
    let size = 4096;
    let mount = format!(
        "mount -t tmpfs -o size={size},mode=700 none {} && ",
        disk.display()
    );
    let probe = Command::new("unshare")
        .args(["-m", "true"])
        .stderr(Stdio::null())
        .status();
    if !probe.is_ok_and(|status| status.success()) {
        eprintln!("not tested: a full disk needs the right to mount one");
        return;
    }
    let inner = format!(
        "{mount} mkdir -p {0}/packs && chmod 700 {0}/packs && head -c 1 /dev/zero > {0}/fill && ",
        disk.display()
    );
    let text = succeeds(
        Command::new("unshare")
            .args(["-m", "bash", "-c"])
            .arg(format!(
                "{inner} NXV_CHILD_CACHE={} exec \"$0\" faults::processes::child --exact --ignored --nocapture",
                disk.display()
            ))
            .arg(std::env::current_exe().unwrap())
            .env("NXV_CHILD_PACKS", &config.packs[0])
            .env("NXV_CHILD_MODE", "ok")
            .stdout(Stdio::piped())
            .spawn()
            .unwrap(),
    );
    assert!(
        text.contains("cannot be written") && text.contains("No space left"),
        "{text}"
    );
}
