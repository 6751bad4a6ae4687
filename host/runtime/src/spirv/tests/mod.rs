//! Tests of the check of modules, on modules of the compiler and on what an enemy would make of them.

mod attacks;
mod clamps;
mod interfaces;
mod matrices;

use super::*;
use crate::shader::Shaders;
use nx_vulkan_registry::Glsl;
use std::time::{Duration, Instant};

/// Words of a shader whose `main` is in `body`.
fn compiled(body: &str) -> Vec<u32> {
    let text = format!("#version 450\nlayout(local_size_x = 64) in;\n{body}\n");
    compile(&text).unwrap()
}

fn compile(text: &str) -> Result<Vec<u32>, String> {
    compile_of(text, Origin::Library)
}

fn compile_of(text: &str, origin: Origin) -> Result<Vec<u32>, String> {
    let find = |_: &str| Some(Glsl::new(text, origin));
    let module = Shaders::new(None).compile("t", &[], &find);
    let module = module.map_err(|error| error.to_string())?;
    Ok(module.words().to_vec())
}

fn admit(words: &[u32], origin: Origin) -> Result<Module, String> {
    Module::admit(words.into(), origin)
}

fn refusal(words: &[u32]) -> String {
    let stranger = admit(words, Origin::Stranger).unwrap_err();
    assert_eq!(admit(words, Origin::Library).unwrap_err(), stranger);
    stranger
}

/// The words with every instruction as `change` makes it.
fn changed(words: &[u32], mut change: impl FnMut(u32, &mut Vec<u32>)) -> Vec<u32> {
    let mut all = words[..5].to_vec();
    for instruction in scan::instructions(words) {
        let (_, opcode, operands) = instruction.unwrap();
        let mut operands = operands.to_vec();
        change(opcode, &mut operands);
        all.push((operands.len() as u32 + 1) << 16 | opcode);
        all.extend(operands);
    }
    all
}

/// A module of these instructions, each an opcode with its operands, after what every module begins with.
fn assembled(bound: u32, instructions: &[(u32, &[u32])]) -> Vec<u32> {
    const MAIN: u32 = u32::from_le_bytes(*b"main");
    let start: [(u32, &[u32]); 4] = [
        (opcode::CAPABILITY, &[1]),
        (opcode::MEMORY_MODEL, &[0, 1]),
        (opcode::ENTRY_POINT, &[5, 1, MAIN, 0]),
        (opcode::EXECUTION_MODE, &[1, allowed::LOCAL_SIZE, 64, 1, 1]),
    ];
    let mut words = vec![0x0723_0203, 0x0001_0500, 0, bound, 0];
    for (opcode, operands) in start.iter().chain(instructions) {
        words.push((operands.len() as u32 + 1) << 16 | opcode);
        words.extend(*operands);
    }
    words
}

/// `void main() {}` with ids 1 to 4: function, void, its type, label.
const EMPTY_MAIN: [(u32, &[u32]); 6] = [
    (opcode::TYPE_VOID, &[2]),
    (opcode::TYPE_FUNCTION, &[3, 2]),
    (opcode::FUNCTION, &[2, 1, 0, 3]),
    (opcode::LABEL, &[4]),
    (opcode::RETURN, &[]),
    (opcode::FUNCTION_END, &[]),
];

/// The answer, which takes milliseconds.
fn soon<T>(work: impl FnOnce() -> T) -> T {
    let start = Instant::now();
    let answer = work();
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "{took:?}");
    answer
}
