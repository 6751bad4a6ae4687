//! The program that tries shaders: killed, missing, or another one.

use super::{
    assert_serves, config, open_with, run, run_text,
    texts::{long, macro_bomb, shader},
};
use crate::folder::Folder;
use nx_vulkan_host::{Config, Runtime};
use std::{
    fs,
    os::unix::fs::symlink,
    path::Path,
    thread,
    time::{Duration, Instant},
};

/// Numbers of the processes of that program that work. One that has a child waits for it.
fn running(program: &Path) -> Vec<i32> {
    let program = program.display().to_string();
    let processes = fs::read_dir("/proc").unwrap().flatten();
    let ours = processes.filter_map(|entry| {
        let number: i32 = entry.file_name().to_str()?.parse().ok()?;
        let line = fs::read_to_string(entry.path().join("cmdline")).ok()?;
        let children = fs::read_to_string(entry.path().join(format!("task/{number}/children")));
        let waits = children.is_ok_and(|children| !children.is_empty());
        (line.starts_with(&program) && !waits).then_some(number)
    });
    ours.collect()
}

/// One that has ended meanwhile is none to kill.
fn kill(process: i32) {
    // SAFETY: kill takes two numbers.
    unsafe { libc::kill(process, libc::SIGKILL) };
}

#[test]
pub(crate) fn a_child_that_is_killed_is_replaced() {
    let folder = Folder::new();
    // Under a name of its own, so that the children of other tests live.
    let program = folder.join("nxv");
    symlink(env!("CARGO_BIN_EXE_nxv"), &program).unwrap();
    let runtime = open_with(&folder, &program, &[]);
    assert_serves(&runtime, 1);
    let idle = running(&program);
    assert_eq!(idle.len(), 1);
    kill(idle[0]);
    assert_serves(&runtime, 2);
    let slow = {
        let runtime = runtime.clone();
        thread::spawn(move || run_text(&runtime, &long(20_000)))
    };
    while !slow.is_finished() {
        thread::sleep(Duration::from_millis(300));
        running(&program).into_iter().for_each(kill);
    }
    let error = slow.join().unwrap().unwrap_err();
    // Killed at work, or before it said what it is. One that is killed before there are two cannot tell of itself.
    let told = ["SIGKILL", "in an unknown way"].map(|how| error.to_string().contains(how));
    assert!(told.contains(&true), "{error}");
    assert_serves(&runtime, 3);
    runtime.stop_threads();
    let until = Instant::now() + Duration::from_secs(20);
    while !running(&program).is_empty() {
        assert!(Instant::now() < until, "it is still there");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Sockets and files of the BEAM, which closes them for its own children alone.
#[test]
fn a_child_keeps_nothing_that_the_process_has_open() {
    let mut pipe = [0; 2];
    // SAFETY: pipe fills an array of two numbers. What it opens stays open for children.
    assert_eq!(unsafe { libc::pipe(pipe.as_mut_ptr()) }, 0);
    let ours = fs::read_link(format!("/proc/self/fd/{}", pipe[0])).unwrap();
    let folder = Folder::new();
    let program = folder.join("nxv");
    symlink(env!("CARGO_BIN_EXE_nxv"), &program).unwrap();
    let runtime = open_with(&folder, &program, &[]);
    assert_serves(&runtime, 1);
    let [child] = running(&program)[..] else {
        panic!("one child is idle")
    };
    let open = fs::read_dir(format!("/proc/{child}/fd")).unwrap().flatten();
    let open: Vec<_> = open
        .filter_map(|file| fs::read_link(file.path()).ok())
        .collect();
    assert!(open.len() >= 3 && !open.contains(&ours), "{open:?}");
    runtime.stop_threads();
    for end in pipe {
        // SAFETY: nobody else has it.
        unsafe { libc::close(end) };
    }
}

#[test]
fn without_a_program_shaders_are_built_here() {
    let folder = Folder::new();
    let runtime = Runtime::open(&Config {
        prober: None,
        ..config(&folder)
    });
    let runtime = runtime.unwrap();
    assert_serves(&runtime, 1);
    assert!(runtime.module_of(&macro_bomb()).is_err());
}

#[test]
fn a_program_that_cannot_build_is_named() {
    let folder = Folder::new();
    for (program, why) in [
        (
            "/nowhere/nxv",
            "/nowhere/nxv, which tries shaders, does not start: ",
        ),
        (
            "/bin/true",
            "/bin/true, which tries shaders, is not an nxv-child that builds shaders; it ended",
        ),
        (
            "/bin/cat",
            "/bin/cat, which tries shaders, is not an nxv-child that builds shaders; it ended",
        ),
    ] {
        let runtime = open_with(&folder, program, &[]);
        let error = runtime.module_of(&shader("x = 7.0;")).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
        let module = runtime.generated_module(&shader("x = 8.0;")).unwrap();
        assert_eq!(run(&runtime, &module).unwrap(), [8.0; 4]);
    }
}
