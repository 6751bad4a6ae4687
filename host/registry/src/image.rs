//! What a mapped pack says about itself, checked and copied out of it; it maps nothing.

use super::{
    diagnostic::{clean_lines, did_you_mean},
    kernel::{KernelEntry, MAX_RANK, Planner},
    spelling::{is_pack_id, is_printable},
};
use nx_vulkan_abi::{
    Fault, HostApiRef, KernelRef, Numerics, Offers, PackRef, RStr, Source, SourceKind, Status,
};
use semver::Version;
use std::{collections::BTreeSet, path::PathBuf};

/// Why a spare field that is not zero is refused: what it means is unknown here, and ignoring it may be wrong.
pub const NEWER: &str =
    "it sets a field that this ABI has no meaning for; the pack needs a newer host";

/// Characters of a text from a pack that a message repeats.
const MAX_QUOTED: usize = 300;

/// First word of every SPIR-V module.
const SPIRV_MAGIC: u32 = 0x0723_0203;

/// A source file of a pack, copied out of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SourceFile {
    /// File name, unique in the pack.
    pub name: String,
    /// What the file holds.
    pub content: SourceContent,
    /// Where it lies on disk; nowhere for a source inside a library.
    pub path: Option<PathBuf>,
}

/// What a source file of a pack holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SourceContent {
    /// GLSL text.
    Text(String),
    /// SPIR-V words.
    Spirv(Vec<u32>),
}

/// Everything a mapped pack says about itself.
#[derive(Debug)]
pub(super) struct Image {
    pub(super) id: String,
    pub(super) version: Version,
    pub(super) sources: Vec<SourceFile>,
    pub(super) kernels: Vec<KernelEntry>,
    pub(super) warnings: Vec<String>,
    /// What is as it may be.
    pub(super) notes: Vec<String>,
    pub(super) retire: extern "C" fn(),
    /// Text of the table of a pack without code.
    pub(super) table: Option<String>,
}

/// Initialises the pack and copies its description. The error starts with the step that failed.
pub(super) fn describe(module: PackRef, host: HostApiRef) -> Result<Image, String> {
    let id = text(module.id()).filter(|id| is_pack_id(id));
    let id =
        id.ok_or("describe: its id is not made of 1 to 128 letters, digits, `.`, `_` and `-`")?;
    let version = text(module.version()).and_then(|version| Version::parse(&version).ok());
    let version = version.ok_or("describe: its version is not a semantic version")?;
    check_status("init", &module.init()(host))?;
    let described = module.describe()();
    check_status("describe", &described.status)?;
    if described.spare != [0; 4] {
        return Err(format!("describe: {}", NEWER));
    }

    let mut image = Image {
        id,
        version,
        sources: Vec::new(),
        kernels: Vec::new(),
        warnings: Vec::new(),
        notes: Vec::new(),
        retire: module.retire(),
        table: None,
    };
    for source in &described.sources {
        image
            .add_source(source)
            .map_err(|why| format!("describe: {why}"))?;
    }
    let mut ids = BTreeSet::new();
    for &kernel in &described.kernels {
        let kernel = read_kernel(kernel).map_err(|why| format!("describe: {why}"))?;
        if !ids.insert(kernel.id.clone()) {
            return Err(format!("describe: two kernels are called `{}`", kernel.id));
        }
        image.add_kernel(kernel);
    }
    Ok(image)
}

fn check_status(step: &str, status: &Status) -> Result<(), String> {
    let message = cleaned(status.message.as_rstr());
    match status.fault {
        Fault::NONE if status.spare != 0 => Err(format!("{step}: {}", NEWER)),
        Fault::NONE => Ok(()),
        Fault::PANIC => Err(format!("{step}: the pack panicked: {message}")),
        _ => Err(format!("{step}: the pack reports: {message}")),
    }
}

impl Image {
    fn add_source(&mut self, source: &Source) -> Result<(), String> {
        let name = text(source.name).filter(|name| is_printable(name));
        let name = name.ok_or("a source file has no printable name")?;
        if self.sources.iter().any(|other| other.name == name) {
            return Err(format!("two source files are called `{name}`"));
        }
        if (source.spare, source.reserved) != (0, [0; 2]) {
            return Err(format!("source file `{name}`: {}", NEWER));
        }
        let content = match source.kind {
            SourceKind::GLSL => SourceContent::Text(
                text(source.text).ok_or_else(|| format!("source file `{name}` is not UTF-8"))?,
            ),
            SourceKind::SPIRV if source.words.first() == Some(&SPIRV_MAGIC) => {
                SourceContent::Spirv(source.words.to_vec())
            }
            SourceKind::SPIRV => return Err(format!("source file `{name}` is not SPIR-V")),
            SourceKind(kind) => {
                let warning = format!(
                    "source file `{name}` is of kind {kind}, which this host does not know"
                );
                self.warnings.push(warning);
                return Ok(());
            }
        };
        self.sources.push(SourceFile {
            name,
            content,
            path: None,
        });
        Ok(())
    }

    pub(super) fn add_kernel(&mut self, kernel: KernelEntry) {
        if !(Numerics::EXACT..=Numerics::RELAXED).contains(&kernel.numerics) {
            let warning = format!(
                "kernel `{}` promises numerics {}, which this host does not know",
                kernel.id, kernel.numerics.0
            );
            self.warnings.push(warning);
            return;
        }
        if nx_vulkan_ops::find(&kernel.op).is_none() {
            let hint = did_you_mean(&kernel.op, nx_vulkan_ops::ops().map(|op| op.name));
            let note = format!(
                "kernel `{}`: the host knows no op `{}`{hint}",
                kernel.id, kernel.op
            );
            // A pack may have ops of its own; one that nearly has another's name is likely misspelt.
            match hint.is_empty() {
                true => self.notes.push(note),
                false => self.warnings.push(note),
            }
        }
        self.kernels.push(kernel);
    }
}

fn read_kernel(kernel: KernelRef) -> Result<KernelEntry, String> {
    let id = text(kernel.id())
        .filter(|id| is_printable(id))
        .ok_or("a kernel has no printable id")?;
    let op = text(kernel.op()).filter(|op| is_printable(op));
    let op = op.ok_or_else(|| {
        format!("kernel `{id}` names no op in 1 to 128 printable characters without spaces")
    })?;
    let rank = kernel.rank();
    if rank > MAX_RANK {
        return Err(format!(
            "kernel `{id}` has rank {rank}; the highest is {MAX_RANK}"
        ));
    }
    Ok(KernelEntry {
        pack: 0,
        id,
        op,
        row: kernel.row(),
        inputs: kernel.inputs(),
        outputs: kernel.outputs(),
        needs: kernel.needs(),
        numerics: kernel.numerics(),
        rank,
        offers: kernel.offers().unwrap_or(Offers::NONE),
        plan: Planner::Code(kernel.plan()),
    })
}

/// A message of the pack, fit for a log.
pub(super) fn cleaned(message: RStr<'_>) -> String {
    let text = String::from_utf8_lossy(message.as_rslice().as_slice());
    clean_lines(&text, "\n", MAX_QUOTED)
}

/// A text of the pack, copied; `None` when it is not UTF-8.
fn text(text: RStr<'_>) -> Option<String> {
    String::from_utf8(text.as_rslice().to_vec()).ok()
}
