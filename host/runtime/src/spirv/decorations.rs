//! What a module says of its ids and of the members of its structs. It may say each thing once.

use super::allowed::{
    self, ARRAY_STRIDE, BINDING, BLOCK, BUFFER_BLOCK, BUILT_IN, MATRIX_STRIDE, NON_WRITABLE,
    OFFSET, SPEC_ID, WORKGROUP_SIZE,
};
use std::collections::BTreeMap;

pub(super) const ROW_MAJOR: u32 = 4;

#[derive(Debug, Default)]
pub(super) struct Decorations {
    /// By id and decoration, its literal.
    of_ids: BTreeMap<(u32, u32), u32>,
    /// By struct, member and decoration, its literal.
    of_members: BTreeMap<(u32, u32, u32), u32>,
    /// The constant that is the size of workgroups.
    workgroup_size: Option<u32>,
}

impl Decorations {
    pub(super) fn add(&mut self, target: u32, operands: &[u32]) -> Result<(), String> {
        let (number, literal) = read(operands)?;
        if (number, literal) == (BUILT_IN, WORKGROUP_SIZE) {
            match self.workgroup_size {
                Some(other) if other != target => {
                    return Err("it gives two sizes of workgroups".to_owned());
                }
                _ => self.workgroup_size = Some(target),
            }
        }
        match self.of_ids.insert((target, number), literal) {
            Some(other) if other != literal => {
                Err(format!("it decorates {target} twice with {number}"))
            }
            _ => Ok(()),
        }
    }

    pub(super) fn add_member(
        &mut self,
        target: u32,
        member: u32,
        operands: &[u32],
    ) -> Result<(), String> {
        let (number, literal) = read(operands)?;
        // These are of variables, and would hide what a variable is.
        if [BINDING, BLOCK, BUFFER_BLOCK, SPEC_ID].contains(&number) {
            return Err(format!("it decorates a member with {number}"));
        }
        match self.of_members.insert((target, member, number), literal) {
            Some(other) if other != literal => Err(format!(
                "it decorates member {member} of {target} twice with {number}"
            )),
            _ => Ok(()),
        }
    }

    /// What is decorated.
    pub(super) fn ids(&self) -> impl Iterator<Item = u32> {
        self.of_ids.keys().map(|(id, _)| *id)
    }

    /// Members that are decorated, with their structs.
    pub(super) fn members(&self) -> impl Iterator<Item = (u32, u32)> {
        self.of_members.keys().map(|(id, member, _)| (*id, *member))
    }

    /// The literal of a decoration of an id.
    pub(super) fn of(&self, id: u32, decoration: u32) -> Option<u32> {
        self.of_ids.get(&(id, decoration)).copied()
    }

    /// The same of a member of a struct.
    pub(super) fn of_member(&self, block: u32, member: u32, decoration: u32) -> Option<u32> {
        self.of_members.get(&(block, member, decoration)).copied()
    }

    pub(super) fn spec_ids(&self) -> Vec<u32> {
        let ids = self.of_ids.iter();
        let mut ids: Vec<u32> = ids
            .filter(|row| row.0.1 == SPEC_ID)
            .map(|row| *row.1)
            .collect();
        ids.sort_unstable();
        ids
    }

    pub(super) fn workgroup_size(&self) -> Option<u32> {
        self.workgroup_size
    }

    /// Whether a struct is the block of a storage buffer in that storage class.
    pub(super) fn is_buffer(&self, block: u32, class: u32) -> bool {
        let decoration = match class {
            allowed::STORAGE_BUFFER => BLOCK,
            _ => BUFFER_BLOCK,
        };
        self.of_ids.contains_key(&(block, decoration))
    }

    /// Whether a variable is declared to be read only.
    pub(super) fn is_read_only(&self, variable: u32) -> bool {
        self.of_ids.contains_key(&(variable, NON_WRITABLE))
    }

    /// Whether every member of a block is.
    pub(super) fn has_read_only(&self, block: u32, members: usize) -> bool {
        let marked = |member| self.of_members.contains_key(&(block, member, NON_WRITABLE));
        members > 0 && (0..members as u32).all(marked)
    }
}

fn read(operands: &[u32]) -> Result<(u32, u32), String> {
    let (number, literals) = operands.split_first().ok_or("a decoration is cut off")?;
    allowed::decoration(*number, literals)?;
    let needs_literal = [
        SPEC_ID,
        ARRAY_STRIDE,
        MATRIX_STRIDE,
        BUILT_IN,
        BINDING,
        allowed::DESCRIPTOR_SET,
        OFFSET,
    ]
    .contains(number);
    match literals {
        [] if !needs_literal => Ok((*number, 0)),
        [literal] => Ok((*number, *literal)),
        _ => Err(format!("decoration {number} is cut off")),
    }
}
