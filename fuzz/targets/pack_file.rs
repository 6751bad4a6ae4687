//! A pack file as it is looked at before it is mapped: format, bounds, metadata section, metadata.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nx_vulkan_host::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    for result in fuzzing::pack_file(bytes) {
        let told = result.unwrap_or_else(|reason| reason);
        assert!(!told.contains(char::is_control), "{told:?}");
    }
});
