//! What a module declares in front of its functions: capabilities, entry points, decorations, types and constants.

use super::Scan;
use crate::spirv::{allowed, constants::Constant, ids::Id, opcode, types::Kind};
use nx_vulkan_abi::Features;

impl Scan {
    pub(super) fn declaration(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        const GL_COMPUTE: u32 = 5;
        const MAIN: u32 = u32::from_le_bytes(*b"main");
        match (opcode, operands) {
            (opcode::CAPABILITY, [number]) => {
                let needs = allowed::capability(*number)?;
                // Accesses of matrices, and arithmetic that the type does not have.
                let unbounded =
                    allowed::declared(needs) != Features::NONE || needs.has(Features::BF16);
                if unbounded && self.memory.origin.is_bounded() {
                    return Err(format!(
                        "it needs {}, whose use nothing here bounds: only a pack's library may have it",
                        allowed::missing(needs, Features::NONE)
                    ));
                }
                self.needs = self.needs.with(needs);
                if !self.capabilities.contains(number) {
                    self.capabilities.push(*number);
                }
                Ok(())
            }
            (opcode::EXTENSION, name) => allowed::extension(name),
            (opcode::EXT_INST_IMPORT, [id, name @ ..]) => {
                let name = allowed::text(name);
                if name != allowed::GLSL {
                    return Err(format!("it imports the instructions {name:?}"));
                }
                self.glsl = Some(*id);
                self.ids.define(*id, Id::Glsl)
            }
            (opcode::MEMORY_MODEL, [addressing, model]) => {
                let vulkan = self.capabilities.contains(&5345);
                // Logical addressing; the memory model of GLSL, or Vulkan's.
                match (addressing, model) {
                    (0, 1) => {}
                    (0, 3) if vulkan => {}
                    _ => {
                        return Err(format!(
                            "it has addressing model {addressing} and memory model {model}"
                        ));
                    }
                }
                self.has_model = true;
                Ok(())
            }
            (opcode::ENTRY_POINT, [GL_COMPUTE, id, name @ ..]) => {
                let ends = |word: &u32| word.to_le_bytes().contains(&0);
                let length = name.iter().position(ends);
                let length = length.ok_or("an entry point's name has no end")?;
                self.named.push(*id);
                self.interface.extend(&name[length + 1..]);
                if name.starts_with(&[MAIN, 0]) {
                    if self.entry.is_some() {
                        return Err("it has two entry points named main".to_owned());
                    }
                    self.entry = Some(*id);
                }
                Ok(())
            }
            (opcode::EXECUTION_MODE, [entry, allowed::LOCAL_SIZE, x, y, z]) => {
                self.named.push(*entry);
                self.modes.push((*entry, false, [*x, *y, *z]));
                Ok(())
            }
            (opcode::EXECUTION_MODE_ID, [entry, allowed::LOCAL_SIZE_ID, x, y, z]) => {
                self.named.push(*entry);
                self.needs_1_3 = true;
                self.modes.push((*entry, true, [*x, *y, *z]));
                Ok(())
            }
            (opcode::STRING, [id, ..]) => self.ids.define(*id, Id::Text),
            (opcode::DECORATE, [target, decoration @ ..]) => {
                self.decorations.add(*target, decoration)
            }
            (opcode::MEMBER_DECORATE, [target, member, decoration @ ..]) => {
                self.decorations.add_member(*target, *member, decoration)
            }
            _ => Err("it is not allowed".to_owned()),
        }
    }

    pub(super) fn type_of(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        let has = |any: &[u32]| any.iter().any(|number| self.capabilities.contains(number));
        let (id, kind) = match (opcode, operands) {
            (opcode::TYPE_VOID, [id]) => (*id, Kind::Void),
            (opcode::TYPE_BOOL, [id]) => (*id, Kind::Bool),
            (opcode::TYPE_INT, [id, bits, 0 | 1]) => {
                let known = match bits {
                    8 => has(&[39, 4448]),
                    16 => has(&[22, 4433]),
                    32 => true,
                    64 => has(&[11]),
                    _ => false,
                };
                if !known {
                    return Err(format!("integers of {bits} bits without their capability"));
                }
                (*id, Kind::Int { bits: *bits })
            }
            (opcode::TYPE_FLOAT, [id, bits]) => {
                let known = match bits {
                    16 => has(&[9, 4433]),
                    32 => true,
                    64 => has(&[10]),
                    _ => false,
                };
                if !known {
                    return Err(format!("floats of {bits} bits without their capability"));
                }
                (*id, Kind::Float { bits: *bits })
            }
            // The third operand tells the encoding: bfloat16.
            (opcode::TYPE_FLOAT, [id, 16, 0]) if has(&[allowed::BFLOAT16]) => {
                (*id, Kind::Float { bits: 16 })
            }
            (opcode::TYPE_VECTOR, [id, of, count]) => {
                let (of, count) = (*of, *count);
                (*id, Kind::Vector { of, count })
            }
            (opcode::TYPE_MATRIX, [id, of, count]) => {
                let (of, count) = (*of, *count);
                (*id, Kind::Matrix { of, count })
            }
            (opcode::TYPE_ARRAY, [id, of, length]) => {
                let kind = self.ids.constant(*length)?;
                if self.types.integer(kind)? != 32 {
                    return Err(format!(
                        "array {id} has a length that is no integer of 32 bits"
                    ));
                }
                let (of, length) = (*of, *length);
                (*id, Kind::Array { of, length })
            }
            (opcode::TYPE_RUNTIME_ARRAY, [id, of]) => (*id, Kind::RuntimeArray { of: *of }),
            (opcode::TYPE_STRUCT, [id, members @ ..]) => (*id, Kind::Struct(members.to_vec())),
            (opcode::TYPE_POINTER, [id, class, to]) => {
                allowed::storage_class(*class)?;
                let (class, to) = (*class, *to);
                (*id, Kind::Pointer { class, to })
            }
            (opcode::TYPE_FUNCTION, [id, result, parameters @ ..]) => {
                let (result, parameters) = (*result, parameters.to_vec());
                if *self.types.kind(result)? != Kind::Void {
                    self.types.hold(result)?;
                }
                for parameter in &parameters {
                    if self.types.pointer(*parameter).is_err() {
                        self.types.hold(*parameter)?;
                    }
                }
                (*id, Kind::Function { result, parameters })
            }
            (opcode::TYPE_COOPERATIVE_MATRIX, [id, of, scope, size @ ..])
                if has(&[allowed::COOPERATIVE_MATRIX]) =>
            {
                const SUBGROUP: u32 = 3;
                for part in [scope].into_iter().chain(size) {
                    self.ids.constant(*part)?;
                }
                if self.constants.literal(*scope) != Some(SUBGROUP) {
                    self.needs = self.needs.with(Features::COOPMAT2);
                }
                (*id, Kind::CooperativeMatrix { of: *of })
            }
            (opcode::TYPE_TENSOR_LAYOUT | opcode::TYPE_TENSOR_VIEW, [id, parts @ ..])
                if has(&[allowed::TENSOR_ADDRESSING]) =>
            {
                for part in parts {
                    self.ids.constant(*part)?;
                }
                (*id, Kind::Tensor)
            }
            _ => return Err("it is a type that is not allowed".to_owned()),
        };
        self.ids.define(id, Id::Type)?;
        self.types.add(id, kind, &self.constants)
    }

    pub(super) fn constant(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        let [kind, id, parts @ ..] = operands else {
            return Err("it is cut off".to_owned());
        };
        self.types.hold(*kind)?;
        let special = self.decorations.of(*id, allowed::SPEC_ID);
        let is_word = match self.types.kind(*kind)? {
            Kind::Bool => true,
            Kind::Int { bits } => *bits == 32,
            _ => false,
        };
        let constant = match (opcode, parts) {
            (opcode::UNDEF | opcode::CONSTANT_NULL, []) => match (opcode, is_word) {
                (opcode::CONSTANT_NULL, true) => Constant::Literal(0),
                _ => Constant::Other,
            },
            (opcode::CONSTANT_TRUE, []) => Constant::Literal(1),
            (opcode::CONSTANT_FALSE, []) => Constant::Literal(0),
            (opcode::SPEC_CONSTANT_TRUE, []) => Constant::Special(1, special),
            (opcode::SPEC_CONSTANT_FALSE, []) => Constant::Special(0, special),
            (opcode::CONSTANT, [value]) if is_word => Constant::Literal(*value),
            (opcode::SPEC_CONSTANT, [value]) if is_word => Constant::Special(*value, special),
            (opcode::CONSTANT | opcode::SPEC_CONSTANT, [_] | [_, _]) => Constant::Other,
            (opcode::CONSTANT_COMPOSITE | opcode::SPEC_CONSTANT_COMPOSITE, parts) => {
                for part in parts {
                    self.ids.constant(*part)?;
                }
                Constant::Composite(parts.to_vec())
            }
            (opcode::SPEC_CONSTANT_OP, [operation, parts @ ..]) => {
                let values = opcode::value_operands(*operation)
                    .ok_or_else(|| format!("a constant of operation {operation}"))?;
                for (n, part) in parts.iter().enumerate() {
                    if opcode::is_value(values, n) {
                        self.ids.constant(*part)?;
                    }
                }
                match is_word {
                    true => Constant::Operation(*operation, parts.to_vec()),
                    false => Constant::Other,
                }
            }
            _ => return Err("it is a constant that is not allowed".to_owned()),
        };
        self.ids.define(*id, Id::Constant(*kind))?;
        self.constants.add(*id, constant);
        Ok(())
    }
}
