//! The functions of a module: their parameters and calls, their control flow, and the instructions of their blocks.

use super::Scan;
use crate::spirv::{
    control::Applied,
    ids::Id,
    memory::{Limit, Loose, Memory},
    opcode,
    types::Kind,
};

impl Scan {
    pub(super) fn variable(&mut self, operands: &[u32]) -> Result<(), String> {
        let in_function = self.control.in_function();
        if in_function {
            self.control.instruction(1)?;
            if let [pointer, ..] = operands {
                let (_, kind) = self.types.pointer(*pointer)?;
                self.control.variable(kind)?;
            }
        }
        let (memory, mut known) = self.memory();
        memory.variable(&mut known, operands, in_function)
    }

    pub(super) fn function(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        match (opcode, operands) {
            (opcode::FUNCTION, [result, id, _, kind]) if !self.control.in_function() => {
                let Kind::Function {
                    result: gives,
                    parameters,
                } = self.types.kind(*kind)?
                else {
                    return Err(format!("function {id} is of type {kind}"));
                };
                if gives != result {
                    return Err(format!("function {id} gives another type"));
                }
                self.control.begin(*id, *kind, *result, parameters);
                self.ids.define(*id, Id::Function)
            }
            (opcode::FUNCTION_PARAMETER, [kind, id]) => {
                self.control.parameter(*kind)?;
                if self.types.pointer(*kind).is_err() {
                    return self.ids.define(*id, Id::Value(*kind));
                }
                let (memory, mut known) = self.memory();
                memory.parameter(&mut known, *id, *kind)
            }
            (opcode::FUNCTION_END, []) => self.control.end(),
            (opcode::FUNCTION_CALL, [kind, id, function, arguments @ ..]) => {
                self.control.instruction(self.types.scalars(*kind))?;
                let mut types = Vec::with_capacity(arguments.len());
                for argument in arguments {
                    types.push(match self.ids.get(*argument) {
                        // What it points to may be written: parameters never point into buffers.
                        Id::Pointer { kind, .. } => kind,
                        _ => self.ids.value(*argument)?,
                    });
                }
                self.control.call(*function, *kind, types)?;
                self.ids.define(*id, Id::Value(*kind))
            }
            _ => Err("it is not allowed here".to_owned()),
        }
    }

    pub(super) fn control(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        match (opcode, operands) {
            (opcode::PHI, [kind, id, parts @ ..]) => {
                self.types.hold(*kind)?;
                self.control.instruction(self.types.scalars(*kind))?;
                self.awaited.extend(parts.iter().step_by(2));
                self.ids.define(*id, Id::Value(*kind))
            }
            (opcode::LOOP_MERGE, [merge, goes_on, ..]) => {
                self.control.merge(*merge, Some(*goes_on))
            }
            (opcode::SELECTION_MERGE, [merge, _]) => self.control.merge(*merge, None),
            (opcode::LABEL, [id]) => {
                self.ids.define(*id, Id::Label)?;
                self.control.label(*id)
            }
            (opcode::BRANCH, [target]) => self.control.branch(opcode, vec![*target]),
            (opcode::BRANCH_CONDITIONAL, [condition, yes, no, ..]) => {
                self.ids.value(*condition)?;
                self.control.branch(opcode, vec![*yes, *no])
            }
            (opcode::SWITCH, [selector, default, cases @ ..]) => {
                let bits = self.types.integer(self.ids.value(*selector)?)?;
                let step = if bits == 64 { 3 } else { 2 };
                if cases.len() % step != 0 {
                    return Err("it is cut off".to_owned());
                }
                let cases = cases.iter().skip(step - 1).step_by(step);
                let targets = std::iter::once(default).chain(cases).copied();
                self.control.branch(opcode, targets.collect())
            }
            (opcode::RETURN, []) if *self.types.kind(self.control.result()?)? == Kind::Void => {
                self.control.branch(opcode, Vec::new())
            }
            (opcode::RETURN_VALUE, [value]) => {
                if self.ids.value(*value)? != self.control.result()? {
                    return Err(format!("{value} is given back as another type"));
                }
                self.control.branch(opcode, Vec::new())
            }
            (opcode::UNREACHABLE, []) => self.control.branch(opcode, Vec::new()),
            _ => Err("it is not allowed here".to_owned()),
        }
    }

    /// An instruction of a block.
    pub(super) fn inside(
        &mut self,
        at: usize,
        opcode: u32,
        operands: &[u32],
    ) -> Result<(), String> {
        if Memory::is_access(opcode) {
            let scalars = match (opcode, operands) {
                (opcode::LOAD, [kind, ..]) => self.types.scalars(*kind),
                _ => 1,
            };
            self.control.instruction(scalars)?;
            let (memory, mut known) = self.memory();
            return memory.access(&mut known, at, opcode, operands);
        }
        match (opcode, operands) {
            (opcode::CONTROL_BARRIER | opcode::MEMORY_BARRIER, scopes) => {
                self.control.instruction(1)?;
                scopes
                    .iter()
                    .try_for_each(|id| self.ids.constant(*id).map(drop))
            }
            (opcode::UNDEF, [kind, id]) => self.result(*kind, *id),
            (opcode::COPY_OBJECT, [kind, id, from]) => match self.ids.get(*from) {
                pointer @ Id::Pointer { kind: same, .. } if same == *kind => {
                    self.control.instruction(1)?;
                    self.ids.define(*id, pointer)
                }
                _ if self.ids.value(*from)? == *kind => self.result(*kind, *id),
                _ => Err(format!("{from} is copied as another type")),
            },
            (opcode::EXT_INST, [kind, id, set, number, values @ ..]) => {
                if Some(*set) != self.glsl || !opcode::is_glsl(*number) {
                    return Err(format!("instruction {number} of GLSL is not allowed"));
                }
                values
                    .iter()
                    .try_for_each(|id| self.ids.value(*id).map(drop))?;
                if *number == opcode::GLSL_U_MIN {
                    self.bound(*id, values, Some);
                }
                self.result(*kind, *id)
            }
            (opcode::COOPERATIVE_MATRIX_LENGTH, [kind, id, matrix]) => {
                self.types.hold(*matrix)?;
                self.result(*kind, *id)
            }
            (opcode::COOPERATIVE_MATRIX_REDUCE, [kind, id, matrix, _, function]) => {
                self.apply(*matrix, *kind, *function, None)?;
                self.result(*kind, *id)
            }
            (
                opcode::COOPERATIVE_MATRIX_PER_ELEMENT,
                [kind, id, matrix, function, further @ ..],
            ) => {
                let further = further.iter().map(|id| self.ids.value(*id));
                let further = further.collect::<Result<_, _>>()?;
                self.apply(*matrix, *kind, *function, Some(further))?;
                self.result(*kind, *id)
            }
            (_, [kind, id, values @ ..]) => {
                let is_value = opcode::value_operands(opcode).ok_or("it is not allowed")?;
                for (n, value) in values.iter().enumerate() {
                    if opcode::is_value(is_value, n) {
                        self.ids.value(*value)?;
                    }
                }
                self.component(at, opcode, values)?;
                match opcode {
                    opcode::BITWISE_AND => self.bound(*id, values, Some),
                    opcode::U_MOD => {
                        self.bound(*id, &values[1.min(values.len())..], |n| n.checked_sub(1));
                    }
                    _ => {}
                }
                self.result(*kind, *id)
            }
            _ => Err("it is not allowed".to_owned()),
        }
    }

    /// A function that is applied to the elements of a matrix, which become those of one of type `kind`.
    fn apply(
        &mut self,
        matrix: u32,
        kind: u32,
        function: u32,
        further: Option<Vec<u32>>,
    ) -> Result<(), String> {
        let element = self.types.element(self.ids.value(matrix)?)?;
        if self.types.element(kind)? != element {
            return Err(format!("function {function} gives other elements"));
        }
        self.control.apply(Applied {
            function,
            element,
            further,
        })
    }

    /// Notes that a value is at most what an operand that is a literal allows.
    fn bound(&mut self, id: u32, operands: &[u32], most: impl Fn(u32) -> Option<u32>) {
        let literals = operands.iter().filter_map(|id| self.constants.literal(*id));
        if let Some(most) = literals.filter_map(most).min() {
            self.ids.bound(id, most);
        }
    }

    /// The index of a component that is chosen while the shader runs.
    fn component(&mut self, at: usize, opcode: u32, values: &[u32]) -> Result<(), String> {
        let (vector, index, operand) = match (opcode, values) {
            (opcode::VECTOR_EXTRACT_DYNAMIC, [vector, index]) => (*vector, *index, at + 4),
            (opcode::VECTOR_INSERT_DYNAMIC, [vector, _, index]) => (*vector, *index, at + 5),
            (opcode::VECTOR_EXTRACT_DYNAMIC | opcode::VECTOR_INSERT_DYNAMIC, _) => {
                return Err("it is cut off".to_owned());
            }
            _ => return Ok(()),
        };
        let Kind::Vector { count, .. } = self.types.kind(self.ids.value(vector)?)? else {
            return Err(format!("{vector} is no vector"));
        };
        let limit = Limit::Literal(*count);
        let kind = self.ids.value(index)?;
        let loose = Loose {
            instruction: at,
            operand,
            index,
            kind,
            bits: self.types.integer(kind)?,
            limit,
        };
        let (memory, known) = self.memory();
        memory.index(&known, loose)
    }

    /// Defines what an instruction gives.
    fn result(&mut self, kind: u32, id: u32) -> Result<(), String> {
        self.types.hold(kind)?;
        self.control.instruction(self.types.scalars(kind))?;
        self.ids.define(id, Id::Value(kind))
    }
}
