//! The variables of a module and every access to them: which of them it may write, and which indices the compiler of a
//! driver would have to trust.
//!
//! Under logical addressing a pointer is a variable, a parameter, or a part of one, so that what an instruction may
//! write is known exactly.

mod matrices;
mod options;

use super::{
    allowed::{
        self, BINDING, BUILT_IN, FUNCTION, INPUT, PRIVATE, PUSH_CONSTANT, STORAGE_BUFFER, UNIFORM,
        WORKGROUP, storage_class,
    },
    constants::Constants,
    decorations::Decorations,
    ids::{Id, Ids},
    opcode,
    types::{Kind, Types},
};
use nx_vulkan_registry::Origin;

#[derive(Debug)]
pub(super) struct Variable {
    pub(super) id: u32,
    pub(super) class: u32,
    /// Type of what it holds.
    pub(super) kind: u32,
    pub(super) is_written: bool,
    /// Whether it is a parameter, which takes no memory of its own.
    is_parameter: bool,
}

/// What an index must stay below.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Limit {
    Literal(u32),
    /// A constant of 32 bits that specialization may change.
    Constant(u32),
}

/// An index that nothing proves to be in bounds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Loose {
    /// The instruction, and its operand, as words of the module.
    pub(super) instruction: usize,
    pub(super) operand: usize,
    pub(super) index: u32,
    /// Type of the index.
    pub(super) kind: u32,
    pub(super) bits: u32,
    pub(super) limit: Limit,
}

#[derive(Debug)]
pub(super) struct Memory {
    pub(super) origin: Origin,
    pub(super) variables: Vec<Variable>,
    pub(super) loose: Vec<Loose>,
}

/// What a module is made of so far.
pub(super) struct Known<'a> {
    pub(super) ids: &'a mut Ids,
    pub(super) types: &'a mut Types,
    pub(super) constants: &'a Constants,
    pub(super) decorations: &'a Decorations,
}

impl Memory {
    pub(super) fn new(origin: Origin) -> Memory {
        Memory {
            origin,
            variables: Vec::new(),
            loose: Vec::new(),
        }
    }

    /// A variable of the module or, where `in_function`, of a function.
    pub(super) fn variable(
        &mut self,
        known: &mut Known<'_>,
        operands: &[u32],
        in_function: bool,
    ) -> Result<(), String> {
        let [pointer, id, class, initial @ ..] = operands else {
            return Err("a variable is cut off".to_owned());
        };
        let (of, kind) = known.types.pointer(*pointer)?;
        storage_class(*class)?;
        if of != *class || in_function != (*class == FUNCTION) {
            return Err(format!("variable {id} is in the wrong storage class"));
        }
        match initial {
            [] => {}
            [value] if matches!(*class, FUNCTION | PRIVATE) => {
                if known.ids.constant(*value)? != kind {
                    return Err(format!("variable {id} starts as another type"));
                }
            }
            _ => return Err(format!("variable {id} has an initial value")),
        }
        let is_block = match *class {
            UNIFORM | STORAGE_BUFFER => {
                known.decorations.is_buffer(kind, *class)
                    && known.decorations.of(*id, BINDING).is_some()
            }
            PUSH_CONSTANT => true,
            INPUT => known.decorations.of(*id, BUILT_IN).is_some(),
            _ => return self.add(known, *id, *pointer, (*class, kind), false),
        };
        let is_struct = matches!(known.types.kind(kind)?, Kind::Struct(_));
        if !is_block || is_struct != (*class != INPUT) {
            return Err(format!(
                "variable {id} is no storage buffer with a binding, push constant or built-in variable"
            ));
        }
        if *class == INPUT {
            let built_in = known.decorations.of(*id, BUILT_IN);
            let (of, count) = match known.types.kind(kind)? {
                Kind::Vector { of, count } => (*of, *count),
                _ => (kind, 1),
            };
            let bits = known.types.integer(of);
            if bits != Ok(32) || built_in.and_then(allowed::built_in) != Some(count) {
                return Err(format!("built-in variable {id} has another type than that"));
            }
        }
        self.add(known, *id, *pointer, (*class, kind), false)
    }

    /// A parameter of a function that is a pointer.
    pub(super) fn parameter(
        &mut self,
        known: &mut Known<'_>,
        id: u32,
        pointer: u32,
    ) -> Result<(), String> {
        let (class, kind) = known.types.pointer(pointer)?;
        if !matches!(class, FUNCTION | PRIVATE | WORKGROUP) {
            return Err(format!("parameter {id} points into a buffer"));
        }
        self.add(known, id, pointer, (class, kind), true)
    }

    fn add(
        &mut self,
        known: &mut Known<'_>,
        id: u32,
        pointer: u32,
        (class, kind): (u32, u32),
        is_parameter: bool,
    ) -> Result<(), String> {
        let variable = self.variables.len();
        self.variables.push(Variable {
            id,
            class,
            kind,
            is_written: false,
            is_parameter,
        });
        let kind = pointer;
        known.ids.define(id, Id::Pointer { kind, variable })
    }

    /// Whether `opcode` is about memory.
    pub(super) fn is_access(opcode: u32) -> bool {
        matches!(
            opcode,
            opcode::LOAD
                | opcode::STORE
                | opcode::COPY_MEMORY
                | opcode::ACCESS_CHAIN
                | opcode::IN_BOUNDS_ACCESS_CHAIN
                | opcode::ARRAY_LENGTH
                | opcode::ATOMIC_LOAD..=opcode::ATOMIC_COMPARE_EXCHANGE
                | opcode::ATOMIC_I_INCREMENT..=opcode::ATOMIC_XOR
                | opcode::COOPERATIVE_MATRIX_LOAD
                | opcode::COOPERATIVE_MATRIX_STORE
                | opcode::COOPERATIVE_MATRIX_LOAD_TENSOR
                | opcode::COOPERATIVE_MATRIX_STORE_TENSOR
        )
    }

    /// An instruction that reads or writes memory, or makes a pointer. `at` is its first word.
    pub(super) fn access(
        &mut self,
        known: &mut Known<'_>,
        at: usize,
        opcode: u32,
        operands: &[u32],
    ) -> Result<(), String> {
        match (opcode, operands) {
            (opcode::ACCESS_CHAIN | opcode::IN_BOUNDS_ACCESS_CHAIN, [kind, id, base, ..]) => {
                let chain = (*kind, *id, *base);
                self.chain(known, at, chain, &operands[3..])
            }
            (opcode::LOAD, [kind, id, pointer, options @ ..]) => {
                self.options(known, options)?;
                if self.target(known, *pointer)? != *kind {
                    return Err(format!("{id} is loaded as another type"));
                }
                known.types.hold(*kind)?;
                known.ids.define(*id, Id::Value(*kind))
            }
            (opcode::STORE, [pointer, value, options @ ..]) => {
                self.options(known, options)?;
                if self.target(known, *pointer)? != known.ids.value(*value)? {
                    return Err(format!("{value} is stored as another type"));
                }
                self.write(known, *pointer)
            }
            (opcode::COPY_MEMORY, [to, from, options @ ..]) => {
                self.options(known, options)?;
                if self.target(known, *to)? != self.target(known, *from)? {
                    return Err(format!("{from} is copied as another type"));
                }
                self.write(known, *to)
            }
            (opcode::ARRAY_LENGTH, [kind, id, block, member]) => {
                let Kind::Struct(members) = known.types.kind(self.target(known, *block)?)? else {
                    return Err(format!("{block} is no block with an array"));
                };
                let last = members
                    .last()
                    .filter(|_| *member as usize + 1 == members.len());
                let array = last.map(|last| known.types.kind(*last)).transpose()?;
                if !matches!(array, Some(Kind::RuntimeArray { .. }))
                    || known.types.integer(*kind)? != 32
                {
                    return Err(format!("{block} is no block with an array"));
                }
                known.ids.define(*id, Id::Value(*kind))
            }
            (opcode::ATOMIC_STORE, [pointer, rest @ ..]) => {
                self.atomic(known, *pointer, rest)?;
                self.write(known, *pointer)
            }
            (opcode::COOPERATIVE_MATRIX_STORE, [pointer, rest @ ..]) => {
                self.matrix(known, *pointer, rest)?;
                self.write(known, *pointer)
            }
            (opcode::COOPERATIVE_MATRIX_LOAD, [kind, id, pointer, rest @ ..]) => {
                self.matrix(known, *pointer, rest)?;
                known.types.hold(*kind)?;
                known.ids.define(*id, Id::Value(*kind))
            }
            (
                opcode::COOPERATIVE_MATRIX_LOAD_TENSOR,
                [kind, id, pointer, matrix, layout, options @ ..],
            ) => {
                self.target(known, *pointer)?;
                self.tensor(known, [*matrix, *layout], options)?;
                if known.ids.value(*matrix)? != *kind {
                    return Err(format!("{id} is loaded as another type"));
                }
                known.types.hold(*kind)?;
                known.ids.define(*id, Id::Value(*kind))
            }
            (opcode::COOPERATIVE_MATRIX_STORE_TENSOR, [pointer, matrix, layout, options @ ..]) => {
                self.target(known, *pointer)?;
                self.tensor(known, [*matrix, *layout], options)?;
                self.write(known, *pointer)
            }
            // Only atomic operations are left, which give a value.
            (
                opcode::COOPERATIVE_MATRIX_LOAD_TENSOR | opcode::COOPERATIVE_MATRIX_STORE_TENSOR,
                _,
            ) => Err(format!("instruction {opcode} is cut off")),
            (_, [kind, id, pointer, rest @ ..]) => {
                self.atomic(known, *pointer, rest)?;
                if self.target(known, *pointer)? != *kind {
                    return Err(format!("{id} is loaded as another type"));
                }
                if opcode != opcode::ATOMIC_LOAD {
                    self.write(known, *pointer)?;
                }
                known.ids.define(*id, Id::Value(*kind))
            }
            _ => Err(format!("instruction {opcode} is cut off")),
        }
    }

    /// Scope, semantics and values of an atomic operation, which works on numbers.
    fn atomic(&self, known: &Known<'_>, pointer: u32, rest: &[u32]) -> Result<(), String> {
        let target = known.types.kind(self.target(known, pointer)?)?;
        if !matches!(target, Kind::Int { .. } | Kind::Float { .. }) {
            return Err(format!(
                "an atomic operation on {pointer}, which is no number"
            ));
        }
        rest.iter()
            .try_for_each(|id| known.ids.value(*id).map(drop))
    }

    /// Type of what a pointer points to.
    fn target(&self, known: &Known<'_>, pointer: u32) -> Result<u32, String> {
        let (kind, _) = known.ids.pointer(pointer)?;
        Ok(known.types.pointer(kind)?.1)
    }

    fn write(&mut self, known: &Known<'_>, pointer: u32) -> Result<(), String> {
        let (_, variable) = known.ids.pointer(pointer)?;
        let variable = &mut self.variables[variable];
        if matches!(variable.class, PUSH_CONSTANT | INPUT) {
            return Err(format!(
                "it writes to {}, which cannot be written",
                variable.id
            ));
        }
        variable.is_written = true;
        Ok(())
    }

    fn chain(
        &mut self,
        known: &mut Known<'_>,
        at: usize,
        (kind, id, base): (u32, u32, u32),
        indices: &[u32],
    ) -> Result<(), String> {
        let (base_kind, variable) = known.ids.pointer(base)?;
        let (class, mut part) = known.types.pointer(base_kind)?;
        // What lies in buffers is bounded by the driver.
        let is_bounded = matches!(class, UNIFORM | STORAGE_BUFFER);
        for (n, &index) in indices.iter().enumerate() {
            let index_kind = known.ids.value(index)?;
            let bits = known.types.integer(index_kind)?;
            let (limit, of) = match known.types.kind(part)? {
                Kind::Struct(members) => {
                    let member = known.constants.literal(index);
                    let member = member.and_then(|member| members.get(member as usize));
                    let member =
                        member.ok_or_else(|| format!("{id} is of a member that does not exist"))?;
                    (None, *member)
                }
                Kind::Vector { of, count } | Kind::Matrix { of, count } => {
                    (Some(Limit::Literal(*count)), *of)
                }
                Kind::Array { of, length } => {
                    let literal = known.constants.literal(*length).map(Limit::Literal);
                    (Some(literal.unwrap_or(Limit::Constant(*length))), *of)
                }
                Kind::RuntimeArray { of } => (None, *of),
                Kind::CooperativeMatrix { of } if self.origin == Origin::Library => (None, *of),
                _ => return Err(format!("{id} is a part of what has none")),
            };
            part = of;
            if let Some(limit) = limit.filter(|_| !is_bounded) {
                let loose = Loose {
                    instruction: at,
                    operand: at + 4 + n,
                    index,
                    kind: index_kind,
                    bits,
                    limit,
                };
                self.index(known, loose)?;
            }
        }
        if known.types.pointer(kind)? != (class, part) {
            return Err(format!("{id} points to another type than it is reached as"));
        }
        known.ids.define(id, Id::Pointer { kind, variable })
    }

    /// Checks an index that is a literal; notes any other that may be too large.
    pub(super) fn index(&mut self, known: &Known<'_>, loose: Loose) -> Result<(), String> {
        match (known.constants.literal(loose.index), loose.limit) {
            (Some(index), Limit::Literal(limit)) if index < limit => Ok(()),
            (Some(index), Limit::Literal(limit)) => {
                Err(format!("index {index} is outside of {limit} elements"))
            }
            (None, Limit::Literal(limit))
                if known.ids.most(loose.index).is_some_and(|most| most < limit) =>
            {
                Ok(())
            }
            _ => {
                self.loose.push(loose);
                Ok(())
            }
        }
    }

    /// Variables of the module in that storage class, as the types of what they hold.
    pub(super) fn held(&self, class: u32) -> impl Iterator<Item = u32> {
        let own = self.variables.iter();
        own.filter(move |variable| variable.class == class && !variable.is_parameter)
            .map(|variable| variable.kind)
    }
}
