//! Types of a module. Each is made of types before it, so that none contains itself and one pass measures them all.

use super::{
    allowed::{STORAGE_BUFFER, UNIFORM},
    constants::{Constants, Values},
    places::Places,
};

/// How deep types may nest.
///
/// The packs' shaders reach 5.
const MAX_DEPTH: u32 = 16;
/// The most numbers of one value, such as an array that is copied. The packs' shaders reach 40.
pub(super) const MAX_SCALARS: u64 = 1 << 16;
const NO_LENGTH: &str = "an array's length is 0, or no integer of 32 bits";

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Kind {
    Void,
    Bool,
    Int {
        bits: u32,
    },
    Float {
        bits: u32,
    },
    Vector {
        of: u32,
        count: u32,
    },
    Matrix {
        of: u32,
        count: u32,
    },
    /// The length is a constant.
    Array {
        of: u32,
        length: u32,
    },
    RuntimeArray {
        of: u32,
    },
    Struct(Vec<u32>),
    Pointer {
        class: u32,
        to: u32,
    },
    Function {
        result: u32,
        parameters: Vec<u32>,
    },
    CooperativeMatrix {
        of: u32,
    },
    /// How a tensor lies in memory, or is seen.
    Tensor,
}

#[derive(Debug)]
struct Type {
    id: u32,
    kind: Kind,
    depth: u32,
    /// Whether its size is known only with its buffer.
    is_open: bool,
    /// How many numbers a value of it has, with the lengths that arrays have without specialization.
    scalars: u64,
    /// Whether there are values of it.
    is_held: bool,
}

#[derive(Debug)]
pub(super) struct Types {
    list: Vec<Type>,
    places: Places,
}

/// Bytes of each type, packed.
#[derive(Debug)]
pub(super) struct Sizes(Vec<u64>);

impl Types {
    pub(super) fn new(bound: usize) -> Types {
        Types {
            list: Vec::new(),
            places: Places::new(bound),
        }
    }

    /// Adds a type whose id is below the bound.
    pub(super) fn add(&mut self, id: u32, kind: Kind, constants: &Constants) -> Result<(), String> {
        let parts: &[u32] = match &kind {
            Kind::Vector { of, .. }
            | Kind::Matrix { of, .. }
            | Kind::Array { of, .. }
            | Kind::RuntimeArray { of }
            | Kind::CooperativeMatrix { of } => &[*of],
            Kind::Struct(members) => members,
            Kind::Pointer { to, .. } => &[*to],
            _ => &[],
        };
        let (mut depth, mut scalars) = (0, 0u64);
        let mut is_open = matches!(kind, Kind::RuntimeArray { .. });
        for (n, part) in parts.iter().enumerate() {
            let part = self.find(*part)?;
            depth = depth.max(part.depth + 1);
            scalars = scalars.saturating_add(part.scalars);
            let holds = match &kind {
                Kind::Vector { .. } | Kind::CooperativeMatrix { .. } => {
                    matches!(
                        part.kind,
                        Kind::Bool | Kind::Int { .. } | Kind::Float { .. }
                    )
                }
                Kind::Matrix { .. } => matches!(part.kind, Kind::Vector { .. }),
                // The last member of a buffer's block is the only thing whose length may be open.
                Kind::Struct(members) => {
                    let last_array =
                        matches!(part.kind, Kind::RuntimeArray { .. }) && n + 1 == members.len();
                    is_open |= last_array;
                    part.is_data() && (!part.is_open || last_array)
                }
                Kind::Pointer { class, .. } => {
                    let buffer = matches!(*class, UNIFORM | STORAGE_BUFFER);
                    part.is_data() && (!part.is_open || buffer)
                }
                _ => part.is_data() && !part.is_open,
            };
            if !holds {
                return Err(format!("type {id} is made of type {}", part.id));
            }
        }
        scalars = match kind {
            Kind::Vector { count, .. } | Kind::Matrix { count, .. } => {
                if !(2..=4).contains(&count) {
                    return Err(format!("type {id} has {count} components"));
                }
                scalars * u64::from(count)
            }
            Kind::Array { length, .. } => {
                let length = constants.default(length).filter(|n| *n > 0);
                scalars.saturating_mul(length.ok_or(NO_LENGTH)?.into())
            }
            _ => scalars.max(1),
        };
        if depth > MAX_DEPTH {
            return Err(format!("its types nest deeper than {MAX_DEPTH}"));
        }
        self.list.push(Type {
            id,
            kind,
            depth,
            is_open,
            scalars,
            is_held: false,
        });
        self.places.set(id, self.list.len() - 1);
        Ok(())
    }

    /// Gives back the memory that only reading a module takes.
    pub(super) fn shrink(&mut self) {
        self.places.shrink();
    }

    fn find(&self, id: u32) -> Result<&Type, String> {
        let found = self.places.get(id).map(|place| &self.list[place]);
        found.ok_or_else(|| format!("{id} is not a type that was defined before"))
    }

    pub(super) fn kind(&self, id: u32) -> Result<&Kind, String> {
        self.find(id).map(|found| &found.kind)
    }

    /// Storage class and target of a pointer type.
    pub(super) fn pointer(&self, id: u32) -> Result<(u32, u32), String> {
        match self.kind(id)? {
            Kind::Pointer { class, to } => Ok((*class, *to)),
            _ => Err(format!("type {id} is not a pointer")),
        }
    }

    /// Refuses types that no value is of; notes that there are values of the others.
    pub(super) fn hold(&mut self, id: u32) -> Result<(), String> {
        let found = self.find(id)?;
        if !found.is_data() || found.is_open {
            return Err(format!("a value is of type {id}"));
        }
        if found.scalars > MAX_SCALARS {
            return Err(format!(
                "a value has {} numbers, and the limit is {MAX_SCALARS}",
                found.scalars
            ));
        }
        if let Some(place) = self.places.get(id) {
            self.list[place].is_held = true;
        }
        Ok(())
    }

    /// How many numbers a value of that type has.
    pub(super) fn scalars(&self, id: u32) -> u64 {
        self.find(id).map_or(1, |found| found.scalars)
    }

    /// Bytes of the largest type that there are values of.
    pub(super) fn largest_held(&self, sizes: &Sizes) -> u64 {
        let held = self.list.iter().zip(&sizes.0);
        let held = held.filter(|(found, _)| found.is_held);
        held.map(|(_, size)| *size).max().unwrap_or(0)
    }

    /// Type of the elements of a cooperative matrix.
    pub(super) fn element(&self, id: u32) -> Result<u32, String> {
        match self.kind(id)? {
            Kind::CooperativeMatrix { of } => Ok(*of),
            _ => Err(format!("type {id} is no cooperative matrix")),
        }
    }

    /// Whether it is an integer, and of how many bits.
    pub(super) fn integer(&self, id: u32) -> Result<u32, String> {
        match self.kind(id)? {
            Kind::Int { bits } => Ok(*bits),
            _ => Err(format!("type {id} is no integer")),
        }
    }

    /// Bytes of every type; arrays have the lengths that `values` gives.
    ///
    /// # Errors
    /// When a length is not known, or is 0.
    pub(super) fn sizes(&self, constants: &Constants, values: &Values) -> Result<Sizes, String> {
        let mut sizes = Sizes(Vec::with_capacity(self.list.len()));
        for found in &self.list {
            let size = |id: u32| self.size(&sizes, id);
            let bytes = match &found.kind {
                Kind::Bool => 4,
                Kind::Int { bits } | Kind::Float { bits } => u64::from(bits / 8),
                Kind::Vector { of, count } | Kind::Matrix { of, count } => {
                    size(*of).saturating_mul((*count).into())
                }
                Kind::Array { of, length } => {
                    let length = constants.value(values, *length).filter(|n| *n > 0);
                    let length = length.ok_or(NO_LENGTH)?;
                    size(*of).saturating_mul(length.into())
                }
                Kind::Struct(members) => members
                    .iter()
                    .fold(0, |sum: u64, member| sum.saturating_add(size(*member))),
                // What of it one invocation holds depends on the device.
                Kind::CooperativeMatrix { .. } | Kind::Tensor => 256,
                Kind::Void | Kind::RuntimeArray { .. } => 0,
                Kind::Pointer { .. } | Kind::Function { .. } => 0,
            };
            sizes.0.push(bytes);
        }
        Ok(sizes)
    }

    pub(super) fn size(&self, sizes: &Sizes, id: u32) -> u64 {
        let size = self.places.get(id).and_then(|place| sizes.0.get(place));
        size.copied().unwrap_or(0)
    }
}

impl Type {
    /// Whether values and memory may be of it.
    fn is_data(&self) -> bool {
        !matches!(
            self.kind,
            Kind::Void | Kind::Pointer { .. } | Kind::Function { .. }
        )
    }
}
