//! The readers of everything that is kept from one process to the next. The first byte chooses the reader.

#![no_main]

use libfuzzer_sys::fuzz_target;
use nx_vulkan_host::fuzzing;
use sha2::{Digest as _, Sha256};

const UUID: [u8; 16] = [5; 16];
const SHA256: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

/// The bytes with the checksum in front that they would have if somebody forged them.
fn summed(body: &[u8]) -> Vec<u8> {
    [Sha256::digest(body).as_slice(), body].concat()
}

fn is_hash(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn shaders(bytes: &[u8]) {
    for file in [bytes.to_vec(), summed(bytes)] {
        if let Some(words) = fuzzing::shader_cache(&file) {
            let again: Vec<u8> = words.iter().flat_map(|word| word.to_le_bytes()).collect();
            assert_eq!(file[32..], again);
            // What was kept is a module only if the check of modules says so.
            fuzzing::module(&words).expect("a bounded module is the module");
        }
    }
}

fn pipelines(bytes: &[u8]) {
    for file in [bytes.to_vec(), summed(bytes)] {
        match fuzzing::pipeline_cache(&file, &UUID) {
            Ok(data) => assert!(data == &file[32..] && data[16..32] == UUID),
            Err(why) => assert!(!why.contains(char::is_control)),
        }
    }
}

fn measured(bytes: &[u8]) {
    if let Some((times, again)) = fuzzing::measured(bytes) {
        assert!(times.iter().flatten().all(|us| us.is_finite() && *us >= 0.0));
        assert_eq!(fuzzing::measured(&again).map(|read| read.0), Some(times));
    }
}

fn quarantine(bytes: &[u8]) {
    match fuzzing::quarantine(bytes) {
        Ok(entries) => {
            for (sha256, reason) in entries {
                assert!(is_hash(&sha256) && !sha256.contains(char::is_uppercase));
                assert!(!reason.contains(char::is_control));
            }
        }
        Err(why) => assert!(!why.contains('\n'), "{why:?}"),
    }
}

fn marker(bytes: &[u8]) {
    let name = String::from_utf8_lossy(bytes);
    assert!(fuzzing::marker(&name).is_none_or(is_hash));
}

fn note(bytes: &[u8]) {
    let is_sound = fuzzing::probe_note(bytes, SHA256);
    assert!(!is_sound || String::from_utf8_lossy(bytes).contains(SHA256));
}

fuzz_target!(|bytes: &[u8]| {
    let readers = [shaders, pipelines, measured, quarantine, marker, note];
    if let Some((which, bytes)) = bytes.split_first() {
        readers[usize::from(*which) % readers.len()](bytes);
    }
});
