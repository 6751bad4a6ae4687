//! A SPIR-V module as an enemy may give it: the check answers, soon, and what it admits stays admitted once its indices
//! are bounded.

#![no_main]

use libfuzzer_sys::{
    arbitrary::{Result, Unstructured},
    fuzz_target,
};
use nx_vulkan_host::fuzzing;
use std::{
    sync::{Arc, LazyLock},
    time::{Duration, Instant},
};

const MAGIC: u32 = 0x0723_0203;
/// Far above what any module took, with the fuzzer's instrumentation.
const SLOW: Duration = Duration::from_secs(10);

/// Modules to change.
static MODULES: LazyLock<Vec<Arc<[u32]>>> = LazyLock::new(|| {
    let texts = [
        "shared uint s[8]; uvec3 v;\nuint f(uint x) { uint t[4]; t[x] = x; for (uint i = 0; i < x; ++i) t[i & 3] += a[i]; return t[x & 3]; }\n\
         void main() { s[a[0]] = f(a[1]); barrier(); if (s[1] > 2) a[s[2]] = uvec4(1)[a[3]] + v[a[4]]; }",
        "layout(constant_id = 0) const int N = 4;\nlayout(constant_id = 3) const int M = 4;\nshared float s[N * M + 1];\n\
         layout(push_constant) uniform P { uint n; mat3 m; uint list[4]; } p;\n\
         void main() { s[a[0]] = p.m[a[1]].x; switch (a[2]) { case 1: a[3] = p.list[a[4]]; break; case 7: return; default: a[5] = N; } }",
        "layout(set = 0, binding = 1) readonly buffer B { uint n; vec4 v[4]; float b[]; };\n\
         void main() { atomicAdd(a[0], n); double d = double(b[a[1]]); a[2] = uint(d) + uint(b.length()) + uint(v[a[3]][a[4]]); }",
    ];
    let compile = |text: &str| {
        let head = "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer A { uint a[]; };";
        fuzzing::compile(&format!("{head}\n{text}\n"))
    };
    texts
        .map(|text| compile(text).expect("the shader compiles"))
        .into()
});

/// One of the modules with some of its words replaced, added or taken away.
fn changed(data: &[u8]) -> Result<Vec<u32>> {
    let mut u = Unstructured::new(data);
    let mut words = u.choose(&MODULES)?.to_vec();
    for _ in 0..u.int_in_range(1..=12)? {
        let at = u.choose_index(words.len())?;
        let word = match u.int_in_range(0..=3)? {
            0 => words[u.choose_index(words.len())?],
            1 => words[at].wrapping_add_signed(u.int_in_range(-3..=3)?),
            2 => u.int_in_range(0..=300)?,
            _ => u.arbitrary()?,
        };
        match u.int_in_range(0..=7)? {
            0 => words.insert(at, word),
            1 if words.len() > 6 => drop(words.remove(at)),
            2 => {
                // An instruction moves, or is there twice.
                let from = u.choose_index(words.len())?;
                let count = ((words[from] >> 16) as usize).clamp(1, 16);
                let some: Vec<u32> = words.iter().skip(from).take(count).copied().collect();
                words.splice(at..at, some);
            }
            _ => words[at] = word,
        }
    }
    Ok(words)
}

fuzz_target!(|data: &[u8]| {
    let words = match data.starts_with(&MAGIC.to_le_bytes()) {
        true => {
            let chunks = data.as_chunks::<4>().0.iter();
            chunks.map(|chunk| u32::from_le_bytes(*chunk)).collect()
        }
        false => match changed(data) {
            Ok(words) => words,
            Err(_) => return,
        },
    };
    let start = Instant::now();
    fuzzing::module(&words).expect("a bounded module is the module");
    assert!(start.elapsed() < SLOW, "{} words", words.len());
});
