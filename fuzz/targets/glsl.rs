//! GLSL source to pipeline: whatever a text does to the driver, the process that asks goes on and gets an answer in time;
//! and nothing that passes the bounds ends the compiler, which some run in their own process.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nx_vulkan_host::fuzzing::{self, Glsl};

fuzz_target!(|text: &str| {
    match fuzzing::glsl(text) {
        Glsl::EndedCompiler(why) => panic!("{why}"),
        Glsl::Refused(why) | Glsl::EndedDriver(why) => assert!(!why.is_empty()),
        Glsl::Built => {}
    }
});
