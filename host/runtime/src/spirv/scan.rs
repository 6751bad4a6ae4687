//! One pass over the words of a module, which checks every instruction before anything relies on it.

use super::{
    Origin, allowed,
    constants::{Constant, Constants},
    control::Control,
    decorations::Decorations,
    ids::{Id, Ids},
    memory::{Known, Limit, Loose, Memory},
    opcode,
    types::{Kind, Types},
};
use nx_vulkan_abi::Features;

const MAGIC: u32 = 0x0723_0203;
/// Words in front of the instructions.
pub(super) const HEADER: usize = 5;
/// Ids that any module may have; beyond that as many as it has words. Drivers keep a table of them.
const MAX_SPARE_IDS: usize = 1 << 16;
/// The most ids that SPIR-V allows.
const MAX_IDS: usize = 4_194_303;
/// The most instructions of a module.
const MAX_INSTRUCTIONS: usize = 1 << 20;

/// What the pass has found.
#[derive(Debug)]
pub(super) struct Scan {
    pub(super) ids: Ids,
    pub(super) types: Types,
    pub(super) constants: Constants,
    pub(super) decorations: Decorations,
    pub(super) memory: Memory,
    pub(super) control: Control,
    pub(super) needs: Features,
    /// The entry point named main.
    pub(super) entry: Option<u32>,
    /// Execution modes that give the workgroup's size: entry point, whether by ids, the extents.
    pub(super) modes: Vec<(u32, bool, [u32; 3])>,
    /// Instructions of GLSL, if imported, and the word where an import can go.
    pub(super) glsl: Option<u32>,
    pub(super) imports_end: usize,
    /// The word where the first function begins.
    pub(super) functions_start: usize,
    capabilities: Vec<u32>,
    /// Values that a phi names before they are defined.
    awaited: Vec<u32>,
    /// Ids that are spoken of before they are defined: entry points, and their variables.
    named: Vec<u32>,
    interface: Vec<u32>,
    section: u32,
    has_model: bool,
}

/// The instructions of a module, each with its first word.
pub(super) fn instructions(
    words: &[u32],
) -> impl Iterator<Item = Result<(usize, u32, &[u32]), String>> {
    let mut at = HEADER;
    std::iter::from_fn(move || {
        let first = *words.get(at)?;
        let (start, count) = (at, (first >> 16) as usize);
        let operands = match count {
            0 => None,
            _ => words.get(start + 1..start + count),
        };
        at = operands.map_or(words.len(), |_| start + count);
        let past_end = || format!("an instruction at word {start} runs past the end");
        Some(
            operands
                .ok_or_else(past_end)
                .map(|operands| (start, first & 0xffff, operands)),
        )
    })
}

/// The ids that a module of so many words may have.
pub(super) fn most_ids(words: usize) -> usize {
    words.clamp(MAX_SPARE_IDS, MAX_IDS)
}

impl Scan {
    pub(super) fn new(words: &[u32], origin: Origin) -> Result<Scan, String> {
        if words.len() < HEADER || words[0] != MAGIC {
            return Err("it does not start like SPIR-V".to_owned());
        }
        let bound = words[3] as usize;
        if bound > most_ids(words.len()) {
            return Err(format!(
                "it has {} words and a bound of {bound} ids",
                words.len()
            ));
        }
        let mut scan = Scan {
            ids: Ids::new(bound),
            types: Types::new(bound),
            constants: Constants::new(bound),
            decorations: Decorations::default(),
            memory: Memory::new(origin),
            control: Control::new(origin.is_bounded()),
            needs: Features::NONE,
            entry: None,
            modes: Vec::new(),
            glsl: None,
            imports_end: words.len(),
            functions_start: words.len(),
            capabilities: Vec::new(),
            awaited: Vec::new(),
            named: Vec::new(),
            interface: Vec::new(),
            section: 0,
            has_model: false,
        };
        for (count, instruction) in instructions(words).enumerate() {
            let (at, opcode, operands) = instruction?;
            if count == MAX_INSTRUCTIONS {
                return Err(format!("it has more than {MAX_INSTRUCTIONS} instructions"));
            }
            scan.instruction(at, opcode, operands)
                .map_err(|why| format!("{why} (word {at}, instruction {opcode})"))?;
        }
        scan.finish()?;
        Ok(scan)
    }

    fn instruction(&mut self, at: usize, opcode: u32, operands: &[u32]) -> Result<(), String> {
        self.order(at, opcode)?;
        match opcode {
            opcode::STRING => self.declaration(opcode, operands),
            _ if opcode::is_for_debuggers(opcode) => Ok(()),
            opcode::FUNCTION..=opcode::FUNCTION_CALL => self.function(opcode, operands),
            opcode::PHI..=opcode::UNREACHABLE => self.control(opcode, operands),
            opcode::VARIABLE => self.variable(operands),
            _ if self.control.in_function() => self.inside(at, opcode, operands),
            opcode::TYPE_VOID..=opcode::TYPE_FUNCTION | opcode::TYPE_COOPERATIVE_MATRIX => {
                self.type_of(opcode, operands)
            }
            opcode::CONSTANT_TRUE..=opcode::SPEC_CONSTANT_OP | opcode::UNDEF => {
                self.constant(opcode, operands)
            }
            _ => self.declaration(opcode, operands),
        }
    }

    /// Sections of a module follow each other, so that what is said of an id is known when it is defined.
    fn order(&mut self, at: usize, opcode: u32) -> Result<(), String> {
        let section = match opcode {
            opcode::CAPABILITY => 0,
            opcode::EXTENSION => 1,
            opcode::EXT_INST_IMPORT => 2,
            opcode::MEMORY_MODEL => 3,
            opcode::ENTRY_POINT => 4,
            opcode::EXECUTION_MODE | opcode::EXECUTION_MODE_ID => 5,
            opcode::SOURCE_CONTINUED..=opcode::SOURCE_EXTENSION | opcode::STRING => 6,
            opcode::NAME | opcode::MEMBER_NAME => 7,
            opcode::MODULE_PROCESSED => 8,
            opcode::DECORATE | opcode::MEMBER_DECORATE => 9,
            opcode::LINE | opcode::NO_LINE => self.section.max(10),
            opcode::FUNCTION => 11,
            _ => self.section.max(10),
        };
        if section < self.section {
            return Err("its instructions are out of order".to_owned());
        }
        if section == 3 {
            self.imports_end = at;
        }
        if section == 11 && self.section < 11 {
            self.functions_start = at;
        }
        self.section = section;
        Ok(())
    }

    fn declaration(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        const GL_COMPUTE: u32 = 5;
        const MAIN: u32 = u32::from_le_bytes(*b"main");
        match (opcode, operands) {
            (opcode::CAPABILITY, [number]) => {
                let needs = allowed::capability(*number)?;
                if needs.has(allowed::DECLARED) && self.memory.origin.is_bounded() {
                    return Err(format!(
                        "it needs {}, whose accesses nothing bounds: only a pack's library may use it",
                        allowed::missing(needs, Features::NONE)
                    ));
                }
                self.needs = self.needs.with(needs);
                self.capabilities.push(*number);
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

    fn type_of(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
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
            (opcode::TYPE_COOPERATIVE_MATRIX, [id, of, size @ ..]) if has(&[6022]) => {
                size.iter()
                    .try_for_each(|id| self.ids.constant(*id).map(drop))?;
                (*id, Kind::CooperativeMatrix { of: *of })
            }
            _ => return Err("it is a type that is not allowed".to_owned()),
        };
        self.ids.define(id, Id::Type)?;
        self.types.add(id, kind, &self.constants)
    }

    fn constant(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
        let [kind, id, parts @ ..] = operands else {
            return Err("it is cut off".to_owned());
        };
        self.types.hold(*kind)?;
        let special = self.decorations.spec_id(*id);
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

    fn variable(&mut self, operands: &[u32]) -> Result<(), String> {
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

    fn function(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
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

    fn control(&mut self, opcode: u32, operands: &[u32]) -> Result<(), String> {
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
    fn inside(&mut self, at: usize, opcode: u32, operands: &[u32]) -> Result<(), String> {
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

    fn memory(&mut self) -> (&mut Memory, Known<'_>) {
        let known = Known {
            ids: &mut self.ids,
            types: &mut self.types,
            constants: &self.constants,
            decorations: &self.decorations,
        };
        (&mut self.memory, known)
    }

    fn finish(&mut self) -> Result<(), String> {
        if !self.has_model {
            return Err("it has no memory model".to_owned());
        }
        for id in &self.awaited {
            self.ids.value(*id)?;
        }
        let types = &self.types;
        self.control.finish(|kind| match types.kind(kind) {
            Ok(Kind::Function { result, parameters }) => Some((*result, parameters.clone())),
            _ => None,
        })?;
        let entry = self
            .entry
            .ok_or("it has no compute entry point named main")?;
        if !self.control.has(entry) {
            return Err("it ends before all of its functions are defined".to_owned());
        }
        // A driver has a place for each id that is defined, and looks at others beyond their end.
        for id in self.named.iter().copied().chain(self.decorations.ids()) {
            if self.ids.get(id) == Id::Unknown {
                return Err(format!("it speaks of {id}, which it does not define"));
            }
        }
        for id in &self.interface {
            self.ids.pointer(*id)?;
        }
        for (id, member) in self.decorations.members() {
            let count = match self.types.kind(id)? {
                Kind::Struct(members) => members.len(),
                _ => 0,
            };
            if member as usize >= count {
                return Err(format!(
                    "it decorates member {member} of {id}, which has {count}"
                ));
            }
        }
        Ok(())
    }
}
