//! What each id of a module is. An id is defined once, and but for labels, functions and the values of a phi it is
//! defined before it is used.

use std::collections::HashMap;

/// What an id stands for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Id {
    Unknown,
    Type,
    /// A constant of that type.
    Constant(u32),
    /// A result of that type.
    Value(u32),
    /// A pointer of that type into a variable, which is known by its number.
    Pointer {
        kind: u32,
        variable: usize,
    },
    Function,
    Label,
    /// Instructions of GLSL.
    Glsl,
    Text,
}

#[derive(Debug)]
pub(super) struct Ids {
    list: Vec<Id>,
    /// Values that cannot exceed a number.
    most: HashMap<u32, u32>,
}

impl Ids {
    pub(super) fn new(bound: usize) -> Ids {
        Ids {
            list: vec![Id::Unknown; bound],
            most: HashMap::new(),
        }
    }

    pub(super) fn get(&self, id: u32) -> Id {
        self.list.get(id as usize).copied().unwrap_or(Id::Unknown)
    }

    pub(super) fn define(&mut self, id: u32, what: Id) -> Result<(), String> {
        match self.list.get_mut(id as usize) {
            Some(place) if *place == Id::Unknown && id != 0 => {
                *place = what;
                Ok(())
            }
            Some(_) if id != 0 => Err(format!("it defines {id} twice")),
            _ => Err(format!("it defines {id}, which is out of its bound")),
        }
    }

    /// Notes that a value never exceeds `most`, as an unsigned number.
    pub(super) fn bound(&mut self, id: u32, most: u32) {
        self.most.insert(id, most);
    }

    /// What a value never exceeds, where that is known.
    pub(super) fn most(&self, id: u32) -> Option<u32> {
        self.most.get(&id).copied()
    }

    /// The type of a value or a constant.
    pub(super) fn value(&self, id: u32) -> Result<u32, String> {
        match self.get(id) {
            Id::Value(kind) | Id::Constant(kind) => Ok(kind),
            Id::Pointer { .. } => Err(format!("pointer {id} is used as a value")),
            _ => Err(format!("{id} is not a value that was defined before")),
        }
    }

    pub(super) fn constant(&self, id: u32) -> Result<u32, String> {
        match self.get(id) {
            Id::Constant(kind) => Ok(kind),
            _ => Err(format!("{id} is not a constant that was defined before")),
        }
    }

    /// Type and variable of a pointer.
    pub(super) fn pointer(&self, id: u32) -> Result<(u32, usize), String> {
        match self.get(id) {
            Id::Pointer { kind, variable } => Ok((kind, variable)),
            _ => Err(format!("{id} is not a pointer that was defined before")),
        }
    }
}
