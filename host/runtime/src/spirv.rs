//! The little that the host has to know of a SPIR-V module before it trusts it to a driver.

/// Facts of a compute module.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Module {
    /// Binding numbers, in whatever descriptor set.
    pub(crate) bindings: Vec<u32>,
    /// Whether anything lies in another descriptor set.
    pub(crate) other_sets: bool,
    /// Ids of specialization constants.
    pub(crate) spec_ids: Vec<u32>,
    /// Numbers of the capabilities it declares.
    pub(crate) capabilities: Vec<u32>,
    size: LocalSize,
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
enum LocalSize {
    #[default]
    Absent,
    Literal([u32; 3]),
    /// Each extent is a constant: its default and its specialization id.
    Constants([(u32, Option<u32>); 3]),
}

const MAGIC: u32 = 0x0723_0203;

impl Module {
    /// Reads the module; every instruction is bounds-checked.
    ///
    /// # Errors
    /// What is wrong with it, as a sentence.
    pub(crate) fn parse(words: &[u32]) -> Result<Module, String> {
        if words.len() < 5 || words[0] != MAGIC {
            return Err("it does not start like SPIR-V".to_owned());
        }
        let mut scan = Scan::default();
        let mut at = 5;
        while at < words.len() {
            let (count, opcode) = ((words[at] >> 16) as usize, words[at] & 0xffff);
            let instruction = words.get(at..at + count).filter(|i| !i.is_empty());
            let Some(instruction) = instruction else {
                return Err(format!("an instruction at word {at} runs past the end"));
            };
            scan.instruction(opcode, &instruction[1..]);
            at += count;
        }
        scan.finish()
    }

    /// Extent of the workgroup with these specialization constants.
    pub(crate) fn local_size(&self, spec: &[(u32, u32)]) -> Option<[u32; 3]> {
        let value = |(default, id): (u32, Option<u32>)| {
            id.and_then(|id| spec.iter().find(|s| s.0 == id))
                .map_or(default, |s| s.1)
        };
        match self.size {
            LocalSize::Absent => None,
            LocalSize::Literal(size) => Some(size),
            LocalSize::Constants(parts) => Some(parts.map(value)),
        }
    }
}

#[derive(Default)]
struct Scan {
    /// Id of the entry point.
    entry: Option<u32>,
    other_sets: bool,
    bindings: Vec<u32>,
    capabilities: Vec<u32>,
    /// Functions that are defined, and those that are called.
    functions: Vec<u32>,
    calls: Vec<u32>,
    in_function: bool,
    spec: Vec<(u32, u32)>,
    constants: Vec<(u32, u32)>,
    composites: Vec<(u32, Vec<u32>)>,
    workgroup_size: Option<u32>,
    /// Execution modes of any entry point, by its id.
    literals: Vec<(u32, [u32; 3])>,
    size_ids: Vec<(u32, [u32; 3])>,
}

impl Scan {
    fn instruction(&mut self, opcode: u32, operands: &[u32]) {
        const GL_COMPUTE: u32 = 5;
        const MAIN: u32 = u32::from_le_bytes(*b"main");
        match (opcode, operands) {
            // OpEntryPoint
            (15, [GL_COMPUTE, id, MAIN, 0, ..]) => self.entry = Some(*id),
            // OpCapability
            (17, [capability]) => self.capabilities.push(*capability),
            // OpFunction, OpFunctionEnd, OpFunctionCall
            (54, [_, id, ..]) => {
                self.functions.push(*id);
                self.in_function = true;
            }
            (56, _) => self.in_function = false,
            (57, [_, _, function, ..]) => self.calls.push(*function),
            // OpExecutionMode LocalSize, OpExecutionModeId LocalSizeId
            (16, [entry, 17, x, y, z]) => self.literals.push((*entry, [*x, *y, *z])),
            (331, [entry, 38, x, y, z]) => self.size_ids.push((*entry, [*x, *y, *z])),
            // OpDecorate SpecId, BuiltIn WorkgroupSize, Binding, DescriptorSet
            (71, [target, 1, id]) => self.spec.push((*target, *id)),
            (71, [target, 11, 25]) => self.workgroup_size = Some(*target),
            (71, [_, 33, binding]) => self.bindings.push(*binding),
            (71, [_, 34, set]) => self.other_sets |= *set != 0,
            // OpConstant, OpSpecConstant; OpConstantComposite, OpSpecConstantComposite
            (43 | 50, [_, id, value, ..]) => self.constants.push((*id, *value)),
            (44 | 51, [_, id, parts @ ..]) => self.composites.push((*id, parts.to_vec())),
            _ => {}
        }
    }

    fn finish(mut self) -> Result<Module, String> {
        let entry = self
            .entry
            .ok_or("it has no compute entry point named main")?;
        self.functions.sort_unstable();
        let defined = |id: &u32| self.functions.binary_search(id).is_ok();
        if self.in_function || !defined(&entry) || !self.calls.iter().all(defined) {
            return Err("it ends before all of its functions are defined".to_owned());
        }
        let of_entry = |modes: &[(u32, [u32; 3])]| {
            let mode = modes.iter().find(|mode| mode.0 == entry);
            mode.map(|mode| mode.1)
        };
        let constant = |id: u32| {
            let value = self.constants.iter().find(|c| c.0 == id)?.1;
            Some((value, self.spec.iter().find(|s| s.0 == id).map(|s| s.1)))
        };
        let built_in = self
            .workgroup_size
            .and_then(|id| self.composites.iter().find(|c| c.0 == id))
            .and_then(|(_, parts)| <[u32; 3]>::try_from(parts.as_slice()).ok());
        let ids = built_in.or_else(|| of_entry(&self.size_ids));
        let size = match (ids, of_entry(&self.literals)) {
            (Some(ids), _) => match ids.map(constant) {
                [Some(x), Some(y), Some(z)] => LocalSize::Constants([x, y, z]),
                _ => return Err("its workgroup size is not constant".to_owned()),
            },
            (None, Some(size)) => LocalSize::Literal(size),
            (None, None) => LocalSize::Absent,
        };
        self.bindings.sort_unstable();
        self.bindings.dedup();
        Ok(Module {
            other_sets: self.other_sets,
            bindings: self.bindings,
            spec_ids: self.spec.iter().map(|s| s.1).collect(),
            capabilities: self.capabilities,
            size,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::shader::GlslFile;

    #[test]
    fn garbage_is_refused() {
        assert!(Module::parse(&[]).is_err());
        assert!(Module::parse(&[MAGIC, 0, 0, 0, 0, 0]).is_err());
        assert!(Module::parse(&[MAGIC, 0, 0, 0, 0, 9 << 16 | 15]).is_err());
        assert!(
            Module::parse(&[MAGIC, 0, 0, 0, 0])
                .unwrap_err()
                .contains("entry point")
        );
    }

    #[test]
    fn the_workgroup_size_is_that_of_main() {
        const MAIN: u32 = u32::from_le_bytes(*b"main");
        const SIDE: u32 = u32::from_le_bytes(*b"side");
        let entry = |id, name| [5 << 16 | 15, 5, id, name, 0];
        let size = |id, x| [6 << 16 | 16, id, 17, x, 1, 1];
        let function = |id| [5 << 16 | 54, 3, id, 0, 4, 1 << 16 | 56];
        let words = [
            &[MAGIC, 0, 0, 0, 0][..],
            &entry(1, MAIN),
            &entry(2, SIDE),
            &size(1, 4096),
            &size(2, 1),
            &function(1),
            &function(2),
        ];
        let module = Module::parse(&words.concat()).unwrap();
        assert_eq!(module.local_size(&[]), Some([4096, 1, 1]));
    }

    /// Wherever a file was cut off.
    #[test]
    fn truncated_modules_are_refused() {
        let text = "#version 450\nlayout(local_size_x = 64) in;\n\
            layout(set = 0, binding = 1) buffer B { int b[]; };\nint half_of(int x) { return x / 2; }\n\
            void main() { if (b[0] > 1) { b[1] = half_of(b[0]); } }\n";
        let words = crate::shader::Shaders::new(None)
            .compile("t", &[], &|_| Some(GlslFile { text, path: None }))
            .unwrap();
        assert!(Module::parse(&words).is_ok());
        for len in 0..words.len() {
            assert!(Module::parse(&words[..len]).is_err(), "{len} words");
        }
    }

    #[test]
    fn workgroup_sizes_follow_specialization() {
        let text = "#version 450\nlayout(local_size_x_id = 3, local_size_y = 2) in;\n\
            layout(constant_id = 7) const int K = 5;\n\
            layout(set = 0, binding = 1) buffer B { int b[]; };\nvoid main() { b[0] = K; }\n";
        let words = crate::shader::Shaders::new(None)
            .compile("t", &[], &|_| Some(GlslFile { text, path: None }))
            .unwrap();
        let module = Module::parse(&words).unwrap();
        assert_eq!(module.local_size(&[]), Some([1, 2, 1]));
        assert_eq!(module.local_size(&[(3, 64)]), Some([64, 2, 1]));
        assert_eq!(module.bindings, [1]);
        assert!(module.spec_ids.contains(&7) && module.spec_ids.contains(&3));
        assert!(!module.other_sets);
    }
}
