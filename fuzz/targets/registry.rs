//! `registry.toml`: any text is a configuration or a list of mistakes, each with its place.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nx_vulkan_host::fuzzing;

fuzz_target!(|text: &str| {
    if let Err(report) = fuzzing::registry(text) {
        assert!(report.starts_with("registry.toml:"), "{report:?}");
        let hidden = |c: char| c.is_control() && c != '\n' && c != '\t';
        assert!(!report.contains(hidden), "{report:?}");
    }
});
