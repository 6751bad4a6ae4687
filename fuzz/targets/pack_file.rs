//! A pack file as it is looked at before it is mapped: ELF bounds, metadata section, metadata.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nx_vulkan_host::fuzzing;

fuzz_target!(|bytes: &[u8]| {
    let reason = match fuzzing::pack_file(bytes) {
        Ok(Some(identity)) => identity,
        Ok(None) => panic!("a file that was not looked at"),
        Err(reason) => reason,
    };
    assert!(!reason.contains(char::is_control), "{reason:?}");
});
