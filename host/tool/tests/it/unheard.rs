//! Children of a process that does not hear of them, as the BEAM, which ignores SIGCHLD: how they ended is known all the
//! same. What ends them is tested elsewhere.

use crate::{hostile, packs::built, strangers};
use std::{env, process::Command};

#[test]
#[ignore = "another test runs it in a process of its own"]
fn child() {
    // Cargo is waited for.
    for name in ["hostile", "template"] {
        built(name);
    }
    // SAFETY: signal takes two numbers, and nothing else runs in this process.
    unsafe { libc::signal(libc::SIGCHLD, libc::SIG_IGN) };
    hostile::a_pack_that_ends_its_process_ends_only_the_probe();
    strangers::child::a_child_that_is_killed_is_replaced();
}

#[test]
fn how_children_end_is_known_where_they_are_ignored() {
    let mut command = Command::new(env::current_exe().unwrap());
    command.args(["unheard::child", "--exact", "--ignored"]);
    let output = command.output().unwrap();
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(
        output.status.success() && text.contains("1 passed"),
        "{text}{}",
        String::from_utf8_lossy(&output.stderr)
    );
}
