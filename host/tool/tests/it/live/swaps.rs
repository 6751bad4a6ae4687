//! Swaps while others call.

use super::watched::{Watched, shader, square, variant};
use nx_vulkan_host::live::EventKind;
use std::{
    fs,
    sync::atomic::{AtomicBool, AtomicU64, Ordering},
    thread,
    time::Duration,
};

#[test]
fn calls_during_swaps_never_fail() {
    let watched = Watched::new();
    let (stop, calls) = (AtomicBool::new(false), AtomicU64::new(0));
    let library = watched.folder.join("packs/libtemplate.so");
    thread::scope(|scope| {
        // Whoever fails below must not leave the others at work.
        let _stop = SetAtEnd(&stop);
        for worker in 0..4 {
            let (runtime, stop, calls) = (&watched.runtime, &stop, &calls);
            scope.spawn(move || {
                let x = worker as f32 + 1.5;
                while !stop.load(Ordering::Relaxed) {
                    assert_eq!(square(runtime, x).unwrap(), x * x);
                    calls.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        let kinds = [
            EventKind::ShaderReplaced,
            EventKind::PackReplaced,
            EventKind::ShaderRejected,
            EventKind::Rejected,
        ];
        for (swap, kind) in (0..12).zip(kinds.into_iter().cycle()) {
            match swap % 4 {
                0 => drop(watched.folder.write(
                    "shaders/template/unary.comp",
                    shader(&format!("(1.0 + 0.0 * {swap}.0)")),
                )),
                1 => fs::write(&library, variant(swap)).unwrap(),
                2 => drop(
                    watched
                        .folder
                        .write("shaders/template/unary.comp", "#version 450\nbroken"),
                ),
                _ => fs::write(&library, b"no library").unwrap(),
            }
            watched.wait_for(kind);
        }
        while calls.load(Ordering::Relaxed) < 100 {
            thread::sleep(Duration::from_millis(5));
        }
    });
}

struct SetAtEnd<'a>(&'a AtomicBool);

impl Drop for SetAtEnd<'_> {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}
