//! One pass over the words of a module, which checks every instruction before anything relies on it.

mod body;
mod declaration;

use super::{
    allowed,
    constants::Constants,
    control::Control,
    decorations::Decorations,
    ids::{Id, Ids},
    memory::{Known, Memory},
    opcode,
    types::{Kind, Types},
};
use nx_vulkan_abi::Features;
use nx_vulkan_registry::Origin;

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
    /// Whether it is for Vulkan 1.3: by its version, or since ids give the size of its workgroups.
    pub(super) needs_1_3: bool,
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
        let version = words[1];
        if version > allowed::NEWEST {
            let [_, minor, major, _] = version.to_le_bytes();
            return Err(format!(
                "it is of SPIR-V {major}.{minor}, and the newest that is known is 1.6"
            ));
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
            needs_1_3: version > allowed::OF_1_2,
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
            opcode::TYPE_VOID..=opcode::TYPE_FUNCTION
            | opcode::TYPE_COOPERATIVE_MATRIX
            | opcode::TYPE_TENSOR_LAYOUT
            | opcode::TYPE_TENSOR_VIEW => self.type_of(opcode, operands),
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
        let signature = |kind| match types.kind(kind) {
            Ok(Kind::Function { result, parameters }) => Some((*result, parameters.clone())),
            _ => None,
        };
        self.control
            .finish(signature, |kind| types.integer(kind) == Ok(32))?;
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
