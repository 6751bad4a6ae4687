//! The memory operands of an access: flags, then what they ask for.

use super::{Known, Memory};

/// Flags of an access that operands follow: an alignment, which is a literal, and scopes.
const ALIGNED: u32 = 2;
const SCOPES: u32 = 8 | 16;

/// How many operands follow the flags of an access.
pub(super) fn operands_of(flags: u32) -> usize {
    (flags & (ALIGNED | SCOPES)).count_ones() as usize
}

impl Memory {
    /// The memory operands of an access: flags, then what they ask for.
    pub(super) fn options(&self, known: &Known<'_>, options: &[u32]) -> Result<(), String> {
        let Some((flags, rest)) = options.split_first() else {
            return Ok(());
        };
        let aligned = usize::from(flags & ALIGNED != 0);
        if flags >> 6 != 0 || rest.len() != operands_of(*flags) {
            return Err(format!("an access with the options {flags:#x}"));
        }
        rest[aligned..]
            .iter()
            .try_for_each(|id| known.ids.constant(*id).map(drop))
    }
}
