//! What a SPIR-V module says of its push constants and storage buffers. It trusts nothing it reads.

use std::collections::HashMap;

const PUSH_CONSTANT: u32 = 9;
const UNIFORM: u32 = 2;
const STORAGE_BUFFER: u32 = 12;
/// Deeper types are not GLSL's.
const DEPTH: u32 = 32;

/// Interface of a module.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Interface {
    /// Bytes of push constants that the module may read.
    pub(crate) push_bytes: u32,
    /// Bindings of storage buffers that are not declared `readonly`.
    pub(crate) writable: Vec<u32>,
}

enum Type {
    Scalar(u32),
    Repeated { of: u32, count: u32, matrix: bool },
    Array { of: u32, len: u32 },
    Struct(Vec<u32>),
    Pointer(u32),
}

#[derive(Default)]
struct Module {
    types: HashMap<u32, Type>,
    constants: HashMap<u32, u32>,
    strides: HashMap<u32, u32>,
    offsets: HashMap<(u32, u32), u32>,
    matrix_strides: HashMap<(u32, u32), u32>,
    read_only: Vec<u32>,
    read_only_members: Vec<(u32, u32)>,
    bindings: HashMap<u32, u32>,
    /// Variable, pointer type, storage class.
    variables: Vec<(u32, u32, u32)>,
}

/// Reads the interface of a module whose instructions were checked to lie in it.
pub(crate) fn interface(words: &[u32]) -> Interface {
    let mut module = Module::default();
    let mut at = 5;
    while let Some(&first) = words.get(at) {
        let count = (first >> 16) as usize;
        let Some(instruction) = words.get(at..at + count).filter(|i| !i.is_empty()) else {
            break;
        };
        module.instruction(first & 0xffff, &instruction[1..]);
        at += count;
    }
    module.interface()
}

impl Module {
    fn instruction(&mut self, opcode: u32, operands: &[u32]) {
        match (opcode, operands) {
            // OpTypeInt, OpTypeFloat, OpTypeVector, OpTypeMatrix, OpTypeArray, OpTypeStruct, OpTypePointer
            (21 | 22, [id, width, ..]) => self.put(*id, Type::Scalar(width / 8)),
            (23 | 24, [id, of, count]) => {
                let (of, count, matrix) = (*of, *count, opcode == 24);
                self.put(*id, Type::Repeated { of, count, matrix });
            }
            (28, [id, of, len]) => self.put(*id, Type::Array { of: *of, len: *len }),
            (30, [id, members @ ..]) => self.put(*id, Type::Struct(members.to_vec())),
            (32, [id, _, to]) => self.put(*id, Type::Pointer(*to)),
            // OpConstant, OpSpecConstant, OpVariable
            (43 | 50, [_, id, value, ..]) => drop(self.constants.insert(*id, *value)),
            (59, [kind, id, class, ..]) => self.variables.push((*id, *kind, *class)),
            // OpDecorate ArrayStride, NonWritable, Binding
            (71, [id, 6, stride]) => drop(self.strides.insert(*id, *stride)),
            (71, [id, 24]) => self.read_only.push(*id),
            (71, [id, 33, binding]) => drop(self.bindings.insert(*id, *binding)),
            // OpMemberDecorate MatrixStride, NonWritable, Offset
            (72, [id, member, 7, stride]) => {
                self.matrix_strides.insert((*id, *member), *stride);
            }
            (72, [id, member, 24]) => self.read_only_members.push((*id, *member)),
            (72, [id, member, 35, offset]) => {
                self.offsets.insert((*id, *member), *offset);
            }
            _ => {}
        }
    }

    fn put(&mut self, id: u32, kind: Type) {
        self.types.insert(id, kind);
    }

    fn interface(&self) -> Interface {
        let mut interface = Interface::default();
        for (id, pointer, class) in &self.variables {
            let Some(Type::Pointer(to)) = self.types.get(pointer) else {
                continue;
            };
            if *class == PUSH_CONSTANT {
                interface.push_bytes = interface.push_bytes.max(self.size(*to, None, 0));
            }
            let buffer = matches!(*class, UNIFORM | STORAGE_BUFFER);
            if let Some(binding) = self.bindings.get(id).filter(|_| buffer)
                && !self.is_read_only(*id, *to)
            {
                interface.writable.push(*binding);
            }
        }
        interface.writable.sort_unstable();
        interface.writable.dedup();
        interface
    }

    fn is_read_only(&self, variable: u32, block: u32) -> bool {
        let members = match self.types.get(&block) {
            Some(Type::Struct(members)) => members.len() as u32,
            _ => 0,
        };
        let marked = |member| self.read_only_members.contains(&(block, member));
        self.read_only.contains(&variable) || members > 0 && (0..members).all(marked)
    }

    /// Bytes up to the end of the last element. `matrix_stride` is what the enclosing member says.
    fn size(&self, id: u32, matrix_stride: Option<u32>, depth: u32) -> u32 {
        if depth > DEPTH {
            return 0;
        }
        let inner = |of: u32| self.size(of, matrix_stride, depth + 1);
        let spaced = |stride: u32, count: u32, last: u32| {
            stride
                .saturating_mul(count.saturating_sub(1))
                .saturating_add(last)
        };
        match self.types.get(&id) {
            Some(Type::Scalar(bytes)) => *bytes,
            Some(Type::Repeated { of, count, matrix }) => {
                let one = inner(*of);
                spaced(
                    matrix_stride.filter(|_| *matrix).unwrap_or(one),
                    *count,
                    one,
                )
            }
            Some(Type::Array { of, len }) => {
                let (one, count) = (inner(*of), self.constants.get(len).copied().unwrap_or(0));
                spaced(self.strides.get(&id).copied().unwrap_or(one), count, one)
            }
            Some(Type::Struct(members)) => {
                let ends = (0..).zip(members).map(|(member, kind)| {
                    let offset = self.offsets.get(&(id, member)).copied().unwrap_or(0);
                    let stride = self.matrix_strides.get(&(id, member)).copied();
                    offset.saturating_add(self.size(*kind, stride, depth + 1))
                });
                ends.max().unwrap_or(0)
            }
            Some(Type::Pointer(_)) => 8,
            None => 0,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(body: &str) -> Interface {
        let text = format!("#version 450\nlayout(local_size_x = 1) in;\n{body}\n");
        let file = crate::shader::GlslFile {
            text: &text,
            path: None,
        };
        let words = crate::shader::Shaders::new(None)
            .compile("t", &[], &|_| Some(file))
            .unwrap();
        interface(&words)
    }

    #[test]
    fn push_constants_end_where_the_last_member_does() {
        let none = "void main() {}";
        assert_eq!(of(none).push_bytes, 0);
        let some = "struct Walk { uint first; uint step; };\n\
            layout(push_constant, std430) uniform P { uint n; Walk w[3]; mat2 m; } p;\n\
            layout(set = 0, binding = 0) buffer B { float b[]; };\n\
            void main() { b[0] = p.m[1][1] + p.w[2].step + p.n; }";
        // 4, then 3 times 8, then a matrix of two columns of 8 bytes at a multiple of 8.
        assert_eq!(of(some).push_bytes, 32 + 16);
    }

    #[test]
    fn buffers_that_are_not_readonly_are_writable() {
        let body = "layout(set = 0, binding = 0) readonly buffer A { float a[]; };\n\
            layout(set = 0, binding = 1) writeonly buffer B { float b[]; };\n\
            layout(set = 0, binding = 2) buffer C { float c[]; };\n\
            void main() { b[0] = a[0] + c[0]; }";
        assert_eq!(of(body).writable, [1, 2]);
    }

    #[test]
    fn types_that_contain_themselves_have_an_end() {
        // A struct 7 of itself behind the push constant variable 9.
        let words = [
            0,
            0,
            0,
            0,
            0,
            3 << 16 | 30,
            7,
            7,
            4 << 16 | 32,
            8,
            9,
            7,
            4 << 16 | 59,
            8,
            9,
            9,
        ];
        assert_eq!(interface(&words).push_bytes, 0);
        assert_eq!(interface(&words[..7]), Interface::default());
    }
}
