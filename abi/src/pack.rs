//! The root module that a pack exports, the kernels it describes, and what the host offers to it.

use crate::{DTypeSet, Features, Reply, Request, Status};
use abi_stable::{
    StableAbi,
    library::RootModule,
    package_version_strings,
    sabi_types::VersionStrings,
    std_types::{RSlice, RStr, RVec},
};

/// The root module of a pack.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = PackRef)))]
#[sabi(missing_field(option))]
pub struct Pack {
    /// Id, equal to the one in the metadata section: 1 to 128 letters, digits, `.`, `_` and `-`. \[static\]
    pub id: RStr<'static>,
    /// Semver of the pack, equal to the one in the metadata section. \[static\]
    pub version: RStr<'static>,
    /// Called once after loading, before any other function. `host` stays valid for ever; an error refuses the pack.
    /// \[once, one thread\]
    pub init: extern "C" fn(host: HostApiRef) -> Status,
    /// Called once after `init`. \[once, one thread\]
    pub describe: extern "C" fn() -> Described,
    /// Called when the host stops using the pack: end threads, drop caches. The library stays mapped, and `plan` may
    /// still be called, by work that began before or when the host goes back to this version. \[thread-safe\]
    #[sabi(last_prefix_field)]
    pub retire: extern "C" fn(),
}

impl RootModule for PackRef {
    abi_stable::declare_root_module_statics! {PackRef}
    const BASE_NAME: &'static str = "nx_vulkan_pack";
    const NAME: &'static str = "nx_vulkan_pack";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

/// What the host offers to packs. It is valid for ever.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = HostApiRef)))]
#[sabi(missing_field(option))]
pub struct HostApi {
    /// Minor version of the contract the host was built with.
    pub abi_minor: u32,
    /// Writes one line to the host's log. It keeps no pointer and never panics; packs call it through [`crate::log`].
    /// \[thread-safe\]
    #[sabi(last_prefix_field)]
    pub log: extern "C" fn(level: Level, pack: RStr<'_>, message: RStr<'_>),
}

/// How much a line of the log matters. Open integer; a host takes a level it does not know for [`Level::TRACE`].
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Level(pub u32);

impl Level {
    /// Something does not work.
    pub const ERROR: Level = Level(1);
    /// Something may not work.
    pub const WARN: Level = Level(2);
    /// Something a user may want to know.
    pub const INFO: Level = Level(3);
    /// Something an author wants to know.
    pub const DEBUG: Level = Level(4);
    /// Everything else.
    pub const TRACE: Level = Level(5);
}

/// Reply to `describe`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Described {
    /// Whether the lists below are complete.
    pub status: Status,
    /// Sources of the pack. \[moved\]
    pub sources: RVec<Source>,
    /// Kernels of the pack, in the order in which the pack itself prefers them. The list is moved, what it points to
    /// is static. \[moved\]
    pub kernels: RVec<KernelRef>,
    /// Zero in ABI 1.
    pub spare: [u64; 4],
}

impl std::fmt::Debug for Described {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Described")
            .field("status", &self.status)
            .field("sources", &self.sources.len())
            .field(
                "kernels",
                &self.kernels.iter().map(|k| k.id()).collect::<Vec<_>>(),
            )
            .finish()
    }
}

/// Descriptor of one kernel. It is valid for ever.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = KernelRef)))]
#[sabi(missing_field(option))]
pub struct Kernel {
    /// Id, unique in the pack and stable across its versions. \[static\]
    pub id: RStr<'static>,
    /// Name of the op it runs. \[static\]
    pub op: RStr<'static>,
    /// Number that `plan` gets back, so that one function serves many rows.
    pub row: u32,
    /// Element types that every input must be of.
    pub inputs: DTypeSet,
    /// Element types that every output must be of.
    pub outputs: DTypeSet,
    /// Device capabilities without which the host does not ask. A bit the host does not know counts as absent.
    pub needs: Features,
    /// Promise about rounding. A host does not ask a kernel whose promise it does not know.
    pub numerics: Numerics,
    /// Preference among kernels of the same op; higher is asked first. 0 to 255, 128 for a good general kernel.
    pub rank: u32,
    /// Plans a request. Pure: the same request gives the same reply. It runs on threads with small stacks: 64 KiB is
    /// for it to use. \[thread-safe\]
    #[sabi(last_prefix_field)]
    pub plan: extern "C" fn(row: u32, request: &Request<'_>) -> Reply,
    /// What it runs beyond the plain op. From ABI 1.1 on; a kernel without it offers nothing.
    pub offers: Offers,
}

/// What a kernel runs beyond the plain op, one bit each. A host asks a kernel for such a request only if it has the bit; a bit
/// that a host does not know is one that it does not ask for.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct Offers(pub u64);

impl Offers {
    /// The plain op.
    pub const NONE: Offers = Offers(0);
    /// Requests with the attribute `epilogue` and the further operands that it uses.
    pub const EPILOGUE: Offers = Offers(1);
    /// Requests with the attribute `precision`, which allows less exact results. A kernel without it is asked for the same without
    /// that attribute.
    pub const PRECISION: Offers = Offers(2);
    /// Requests with the attribute `lasting`, which says what may be kept. A kernel without it is asked for the same without that
    /// attribute.
    pub const LASTING: Offers = Offers(4);

    /// What is here or in `other`.
    #[must_use]
    pub const fn with(self, other: Offers) -> Offers {
        Offers(self.0 | other.0)
    }

    /// Whether everything in `asked` is here.
    pub const fn has(self, asked: Offers) -> bool {
        self.0 & asked.0 == asked.0
    }
}

/// What a kernel promises about its results. Open integer; a lower value is stricter.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Numerics(pub u32);

impl Numerics {
    /// Bit for bit what the host kernel gives.
    pub const EXACT: Numerics = Numerics(1);
    /// Within the tolerance table of the conformance sweep.
    pub const IEEE: Numerics = Numerics(2);
    /// Less accurate than that; chosen only where the registry allows it.
    pub const RELAXED: Numerics = Numerics(3);
}

/// One source file of a pack.
#[repr(C)]
#[derive(StableAbi, Debug, Clone)]
pub struct Source {
    /// File name, unique in the pack: `binary.comp`. \[static\]
    pub name: RStr<'static>,
    /// What the file holds.
    pub kind: SourceKind,
    /// Zero in ABI 1.
    pub spare: u32,
    /// GLSL text. \[static\]
    pub text: RStr<'static>,
    /// SPIR-V words. \[static\]
    pub words: RSlice<'static, u32>,
    /// Zero in ABI 1.
    pub reserved: [u64; 2],
}

impl Source {
    /// A GLSL file: a shader, or a header that shaders of the pack `#include` by its name, and from ABI 1.1 on those of
    /// other packs by this pack's id, `/`, and its name.
    pub const fn glsl(name: &'static str, text: &'static str) -> Source {
        Source {
            name: RStr::from_str(name),
            kind: SourceKind::GLSL,
            spare: 0,
            text: RStr::from_str(text),
            words: RSlice::EMPTY,
            reserved: [0; 2],
        }
    }

    /// A SPIR-V module whose entry point is `main`.
    pub fn spirv(name: &'static str, words: &'static [u32]) -> Source {
        Source {
            name: RStr::from_str(name),
            kind: SourceKind::SPIRV,
            spare: 0,
            text: RStr::from_str(""),
            words: RSlice::from_slice(words),
            reserved: [0; 2],
        }
    }
}

/// What a source file holds. Open integer.
#[repr(transparent)]
#[derive(StableAbi, Debug, Clone, Copy, PartialEq, Eq)]
pub struct SourceKind(pub u32);

impl SourceKind {
    /// GLSL text.
    pub const GLSL: SourceKind = SourceKind(1);
    /// SPIR-V words.
    pub const SPIRV: SourceKind = SourceKind(2);
}
