//! Bounds for the indices of a module that nothing else bounds: those into shared and private arrays, vectors and
//! matrices. Drivers that run shaders on a CPU access whatever such an index reaches.
//!
//! An index becomes the unsigned minimum of itself and the last one there is, so that one in bounds stays as it is.

use super::{
    memory::{Limit, Loose},
    opcode,
    scan::Scan,
};
use std::collections::HashMap;

/// `GLSL.std.450`.
const GLSL: [u32; 4] = [
    u32::from_le_bytes(*b"GLSL"),
    u32::from_le_bytes(*b".std"),
    u32::from_le_bytes(*b".450"),
    0,
];
/// Words of the instructions for one index, at most: a conversion, a subtraction, the minimum.
const WORDS: usize = 4 + 5 + 7;

struct Clamp<'a> {
    scan: &'a Scan,
    next: u32,
    glsl: u32,
    /// By type and value.
    constants: HashMap<(u32, u64), u32>,
    /// Instructions in front of the functions.
    globals: Vec<u32>,
}

/// The words with every loose index bounded.
///
/// # Errors
/// When the length of an array is no constant.
pub(super) fn clamped(words: &[u32], scan: &Scan) -> Result<Vec<u32>, String> {
    let loose = &scan.memory.loose;
    if loose.is_empty() {
        return Ok(words.to_vec());
    }
    let mut clamp = Clamp {
        scan,
        next: words[3],
        glsl: 0,
        constants: HashMap::new(),
        globals: Vec::new(),
    };
    clamp.glsl = scan.glsl.unwrap_or_else(|| clamp.id());
    let mut body = Vec::with_capacity(words.len() + loose.len() * WORDS);
    let mut at = scan.functions_start;
    // They are in the order of their instructions.
    for group in loose.chunk_by(|a, b| a.instruction == b.instruction) {
        let start = group[0].instruction;
        body.extend_from_slice(&words[at..start]);
        let mut bounded = Vec::with_capacity(group.len());
        for loose in group {
            bounded.push(clamp.bounded(&mut body, loose)?);
        }
        let end = start + (words[start] >> 16) as usize;
        let copy = body.len();
        body.extend_from_slice(&words[start..end]);
        for (loose, id) in group.iter().zip(bounded) {
            body[copy + loose.operand - start] = id;
        }
        at = end;
    }
    body.extend_from_slice(&words[at..]);
    let mut whole = Vec::with_capacity(words.len() + body.len() + clamp.globals.len());
    whole.extend_from_slice(&words[..scan.imports_end]);
    if scan.glsl.is_none() {
        whole.extend([6 << 16 | opcode::EXT_INST_IMPORT, clamp.glsl]);
        whole.extend(GLSL);
    }
    whole.extend_from_slice(&words[scan.imports_end..scan.functions_start]);
    whole.extend(&clamp.globals);
    whole.extend(body);
    whole[3] = clamp.next;
    Ok(whole)
}

impl Clamp<'_> {
    /// Adds what bounds an index, and gives the bounded one.
    fn bounded(&mut self, body: &mut Vec<u32>, loose: &Loose) -> Result<u32, String> {
        let (mut index, mut kind, mut bits) = (loose.index, loose.kind, loose.bits);
        let last = match loose.limit {
            // Indices are signed, so that a narrow one is negative where its first bit is set.
            Limit::Literal(limit) => {
                let most = 1u64 << (bits.min(32) - 1);
                self.constant(kind, bits, u64::from(limit).min(most) - 1)
            }
            Limit::Constant(length) => {
                let of_length = self.scan.ids.constant(length)?;
                if bits < 32 {
                    (kind, bits) = (of_length, 32);
                    index = self.operation(body, opcode::S_CONVERT, kind, &[index]);
                }
                let length = match bits {
                    32 => length,
                    _ => self.operation(body, opcode::S_CONVERT, kind, &[length]),
                };
                let one = self.constant(kind, bits, 1);
                self.operation(body, opcode::I_SUB, kind, &[length, one])
            }
        };
        let minimum = [self.glsl, opcode::GLSL_U_MIN, index, last];
        Ok(self.operation(body, opcode::EXT_INST, kind, &minimum))
    }

    fn operation(&mut self, body: &mut Vec<u32>, opcode: u32, kind: u32, operands: &[u32]) -> u32 {
        let id = self.id();
        body.extend([(3 + operands.len() as u32) << 16 | opcode, kind, id]);
        body.extend(operands);
        id
    }

    fn constant(&mut self, kind: u32, bits: u32, value: u64) -> u32 {
        if let Some(known) = self.constants.get(&(kind, value)) {
            return *known;
        }
        let id = self.id();
        let words = [value as u32, (value >> 32) as u32];
        let words = &words[..if bits > 32 { 2 } else { 1 }];
        let count = 3 + words.len() as u32;
        self.globals
            .extend([count << 16 | opcode::CONSTANT, kind, id]);
        self.globals.extend(words);
        self.constants.insert((kind, value), id);
        id
    }

    fn id(&mut self) -> u32 {
        let id = self.next;
        self.next += 1;
        id
    }
}
