//! SPIR-V modules. A [`Module`] exists only where a check of every instruction went well, and only a module becomes a
//! pipeline, so that no driver sees anything else, whoever it comes from.

mod allowed;
mod clamp;
mod constants;
mod control;
mod decorations;
mod extent;
mod ids;
mod memory;
mod opcode;
mod places;
mod scan;
mod types;

#[cfg(test)]
mod tests;

pub(crate) use allowed::{declared, missing};
use constants::{Constants, Values};
use control::Control;
use extent::Extents;
use nx_vulkan_abi::Features;
use nx_vulkan_registry::Origin;
use scan::Scan;
use std::{collections::HashMap, sync::Arc};
use types::{Kind, Types};

/// The most bytes that one invocation may have in private memory and in variables of functions once they are
/// inlined. The packs' shaders reach 9,468.
const MAX_PRIVATE: u64 = 64 << 10;
/// The same in a library's module, and in generated log densities, which hold what their expressions name.
const MAX_PRIVATE_OF_LIBRARY: u64 = 1 << 20;

/// A compute module that was checked.
#[derive(Debug)]
pub(crate) struct Module {
    words: Arc<[u32]>,
    origin: Origin,
    /// Binding numbers, in descriptor set 0.
    pub(crate) bindings: Vec<u32>,
    /// Those that some instruction may write, whatever the module says of itself.
    pub(crate) written: Vec<u32>,
    /// Ids of specialization constants.
    pub(crate) spec_ids: Vec<u32>,
    /// Bytes of push constants that it may read.
    pub(crate) push_bytes: u64,
    /// Features of a device that its capabilities need.
    pub(crate) needs: Features,
    /// Whether it is for Vulkan 1.3 and newer.
    needs_1_3: bool,
    size: Size,
    types: Types,
    constants: Constants,
    control: Control,
    /// Types of what is in shared memory, and in private memory.
    shared: Vec<u32>,
    private: Vec<u32>,
}

/// A module with its specialization constants.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Specialized {
    /// Extent of the workgroup.
    pub(crate) local_size: Option<[u32; 3]>,
    /// Bytes of shared memory, without padding.
    pub(crate) shared_bytes: u64,
}

#[derive(Debug, Clone, Copy)]
enum Size {
    Absent,
    Literal([u32; 3]),
    /// Each extent is a constant.
    Constants([u32; 3]),
}

impl Module {
    /// Checks a module.
    ///
    /// # Errors
    /// What is wrong with it, as the rest of a sentence about it.
    pub(crate) fn admit(words: Arc<[u32]>, origin: Origin) -> Result<Module, String> {
        let mut scan = Scan::new(&words, origin)?;
        let words = match origin.is_bounded() {
            false => words,
            true => bounded(&words, &scan)?.into(),
        };
        let (mut bindings, mut written) = (Vec::new(), Vec::new());
        let (mut push_bytes, mut shared, mut private) = (0, Vec::new(), Vec::new());
        let values = scan.constants.values(&[]);
        // Many variables may have one block of many members.
        let mut read_only = HashMap::new();
        let mut extents = Extents::new(&scan.types, &scan.decorations, &scan.constants);
        for variable in &scan.memory.variables {
            match variable.class {
                allowed::UNIFORM | allowed::STORAGE_BUFFER => {
                    let binding = scan.decorations.of(variable.id, allowed::BINDING);
                    let binding = binding.ok_or("a buffer has no binding")?;
                    let members = match scan.types.kind(variable.kind)? {
                        Kind::Struct(members) => members.len(),
                        _ => 0,
                    };
                    let mut is_read_only = || {
                        scan.decorations.is_read_only(variable.id)
                            || *read_only.entry(variable.kind).or_insert_with(|| {
                                scan.decorations.has_read_only(variable.kind, members)
                            })
                    };
                    if variable.is_written && is_read_only() {
                        return Err(format!(
                            "it writes to binding {binding}, which it declares to be read only"
                        ));
                    }
                    bindings.push(binding);
                    written.extend(variable.is_written.then_some(binding));
                }
                allowed::PUSH_CONSTANT => push_bytes = extents.of(variable.kind).max(push_bytes),
                _ => {}
            }
        }
        for list in [&mut bindings, &mut written] {
            list.sort_unstable();
            list.dedup();
        }
        shared.extend(scan.memory.held(allowed::WORKGROUP));
        private.extend(scan.memory.held(allowed::PRIVATE));
        let size = size(&scan)?;
        scan.types.shrink();
        scan.constants.shrink();
        let module = Module {
            words,
            origin,
            bindings,
            written,
            spec_ids: scan.decorations.spec_ids(),
            push_bytes,
            needs: scan.needs,
            needs_1_3: scan.needs_1_3,
            size,
            types: scan.types,
            constants: scan.constants,
            control: scan.control,
            shared,
            private,
        };
        module.measure(&values)?;
        Ok(module)
    }

    /// The words to make a pipeline of.
    pub(crate) fn words(&self) -> &Arc<[u32]> {
        &self.words
    }

    /// Whether a device of that version of Vulkan, as `VK_MAKE_API_VERSION` packs it, takes it.
    pub(crate) fn is_for(&self, api: u32) -> bool {
        const VULKAN_1_3: u32 = 1 << 22 | 3 << 12;
        !self.needs_1_3 || api >= VULKAN_1_3
    }

    pub(crate) fn origin(&self) -> Origin {
        self.origin
    }

    /// What the module is with these specialization constants.
    ///
    /// # Errors
    /// When arrays become empty, or larger than any device is asked for.
    pub(crate) fn specialize(&self, special: &[(u32, u32)]) -> Result<Specialized, String> {
        let values = self.constants.values(special);
        let extent = |id| self.constants.value(&values, id);
        let local_size = match self.size {
            Size::Absent => None,
            Size::Literal(size) => Some(size),
            Size::Constants(ids) => match ids.map(extent) {
                [Some(x), Some(y), Some(z)] => Some([x, y, z]),
                _ => return Err("its workgroup size is not constant".to_owned()),
            },
        };
        Ok(Specialized {
            local_size,
            shared_bytes: self.measure(&values)?,
        })
    }

    /// Bytes of shared memory; checks those of private memory and of values.
    fn measure(&self, values: &Values) -> Result<u64, String> {
        let sizes = self.types.sizes(&self.constants, values)?;
        let size = |id: u32| self.types.size(&sizes, id);
        let total = |list: &[u32]| {
            let sizes = list.iter().map(|id| size(*id));
            sizes.fold(0, u64::saturating_add)
        };
        let private = total(&self.private).saturating_add(self.control.variables(size));
        let most = match self.origin.is_bounded() {
            true => MAX_PRIVATE,
            false => MAX_PRIVATE_OF_LIBRARY,
        };
        if private > most {
            return Err(format!(
                "an invocation has {private} bytes of private memory, and the limit is {most}"
            ));
        }
        let largest = self.types.largest_held(&sizes);
        if largest > 8 * types::MAX_SCALARS {
            return Err(format!("a value has {largest} bytes"));
        }
        Ok(total(&self.shared))
    }
}

/// The words with every loose index bounded, and without those that are for debuggers: drivers read them, and nothing
/// else needs them.
///
/// # Errors
/// When the module has too many ids for that.
fn bounded(words: &[u32], scan: &Scan) -> Result<Vec<u32>, String> {
    let words = clamp::clamped(words, scan)?;
    let mut kept = words[..scan::HEADER].to_vec();
    for (at, opcode, operands) in scan::instructions(&words).flatten() {
        if !opcode::is_for_debuggers(opcode) {
            kept.extend(&words[at..=at + operands.len()]);
        }
    }
    match kept[3] as usize > scan::most_ids(kept.len()) {
        true => Err("it has too many ids to bound its indices".to_owned()),
        false => Ok(kept),
    }
}

/// What gives the extent of a workgroup.
fn size(scan: &Scan) -> Result<Size, String> {
    let of_main = |by_id: bool| {
        let modes = scan.modes.iter();
        let mut modes = modes.filter(move |mode| Some(mode.0) == scan.entry && mode.1 == by_id);
        modes.next().map(|mode| mode.2)
    };
    let built_in = scan.decorations.workgroup_size().map(|id| {
        let parts = scan.constants.parts(id);
        let parts = parts.and_then(|parts| <[u32; 3]>::try_from(parts).ok());
        parts.ok_or("its workgroup size is not constant")
    });
    let size = match (
        built_in.transpose()?.or_else(|| of_main(true)),
        of_main(false),
    ) {
        (Some(ids), _) => Size::Constants(ids),
        (None, Some(size)) => Size::Literal(size),
        (None, None) => Size::Absent,
    };
    if let Size::Constants(ids) = size
        && ids.iter().any(|id| scan.constants.default(*id).is_none())
    {
        return Err("its workgroup size is not constant".to_owned());
    }
    Ok(size)
}
