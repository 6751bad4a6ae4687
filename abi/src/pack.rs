//! The root module a pack exports, the guard around its functions, and the [`pack!`](crate::pack!) macro that supplies both.

use crate::{DTypeSet, Fault, Features, InputAs, Outcome, Plan, Reply, Request, Status};
use abi_stable::{
    StableAbi,
    library::RootModule,
    package_version_strings,
    sabi_types::VersionStrings,
    std_types::{RSlice, RStr, RString, RVec},
};
use std::panic::{AssertUnwindSafe, catch_unwind};

/// The root module of a pack. All functions are thread-safe.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = PackRef)))]
#[sabi(missing_field(option))]
pub struct Pack {
    /// Id, equal to the one in the metadata section. Static.
    pub id: RStr<'static>,
    /// Semver of the pack, equal to the one in the metadata section. Static.
    pub version: RStr<'static>,
    /// Called once after loading, before anything else. `host` stays valid for ever.
    pub init: extern "C" fn(host: HostApiRef) -> Status,
    /// Called once after `init`. Everything it returns is static.
    pub describe: extern "C" fn() -> Described,
    /// Called when the host stops using the pack: end threads, drop caches. The library stays mapped.
    #[sabi(last_prefix_field)]
    pub retire: extern "C" fn(),
}

impl RootModule for PackRef {
    abi_stable::declare_root_module_statics! {PackRef}
    const BASE_NAME: &'static str = "nx_vulkan_pack";
    const NAME: &'static str = "nx_vulkan_pack";
    const VERSION_STRINGS: VersionStrings = package_version_strings!();
}

/// What the host offers to packs.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = HostApiRef)))]
#[sabi(missing_field(option))]
pub struct HostApi {
    /// Minor version of the contract the host was built with.
    pub abi_minor: u32,
    /// Writes one line to the host's log; level 1 is error, 5 is trace. \[thread-safe\]
    #[sabi(last_prefix_field)]
    pub log: extern "C" fn(level: u32, pack: RStr<'_>, message: RStr<'_>),
}

/// Reply to `describe`.
#[repr(C)]
#[derive(StableAbi)]
pub struct Described {
    /// Whether the lists below are complete.
    pub status: Status,
    /// Sources of the pack.
    pub sources: RVec<Source>,
    /// Kernels of the pack, in the order in which the pack itself prefers them.
    pub kernels: RVec<KernelRef>,
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

/// Descriptor of one kernel.
#[repr(C)]
#[derive(StableAbi, Debug)]
#[sabi(kind(Prefix(prefix_ref = KernelRef)))]
#[sabi(missing_field(option))]
pub struct Kernel {
    /// Id, unique in the pack and stable across its versions. Static.
    pub id: RStr<'static>,
    /// Name of the op it runs. Static.
    pub op: RStr<'static>,
    /// Number that `plan` gets back, so that one function serves many rows.
    pub row: u32,
    /// Element types that every input must be of.
    pub inputs: DTypeSet,
    /// Element types that every output must be of.
    pub outputs: DTypeSet,
    /// Device capabilities without which the host does not ask.
    pub needs: Features,
    /// Promise about rounding.
    pub numerics: Numerics,
    /// Preference among kernels of the same op; higher is asked first. 0 to 255, 128 for a good general kernel.
    pub rank: u32,
    /// Plans a request. Pure: the same request gives the same reply. \[thread-safe\]
    #[sabi(last_prefix_field)]
    pub plan: extern "C" fn(row: u32, request: &Request<'_>) -> Reply,
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
    /// File name, unique in the pack: `binary.comp`. Static.
    pub name: RStr<'static>,
    /// What the file holds.
    pub kind: SourceKind,
    /// Zero in ABI 1.
    pub spare: u32,
    /// GLSL text. Static.
    pub text: RStr<'static>,
    /// SPIR-V words. Static.
    pub words: RSlice<'static, u32>,
}

impl Source {
    /// A GLSL file: a shader, or a header that shaders of the pack `#include` by its name.
    pub const fn glsl(name: &'static str, text: &'static str) -> Source {
        Source {
            name: RStr::from_str(name),
            kind: SourceKind::GLSL,
            spare: 0,
            text: RStr::from_str(text),
            words: RSlice::EMPTY,
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

/// A kernel as a pack author writes it; `pack!` turns it into a [`Kernel`].
#[derive(Debug, Clone)]
pub struct Row {
    /// Id, unique in the pack.
    pub id: String,
    /// Name of the op.
    pub op: String,
    /// Element types of the inputs.
    pub inputs: DTypeSet,
    /// Element types of the outputs.
    pub outputs: DTypeSet,
    /// Device capabilities it needs whatever the types are.
    pub needs: Features,
    /// Promise about rounding.
    pub numerics: Numerics,
    /// Preference, 0 to 255.
    pub rank: u32,
}

/// Everything a pack has to say about itself.
#[derive(Debug, Clone, Default)]
pub struct Description {
    /// Shaders and headers.
    pub sources: Vec<Source>,
    /// Kernels; the index of a row is what `plan` gets as its first argument.
    pub kernels: Vec<Row>,
}

/// Why a pack does not answer with a plan.
#[derive(Debug, Clone, PartialEq)]
pub enum Refusal {
    /// The kernel does not run this request, for this reason.
    Decline(String),
    /// The kernel would run it with these inputs contiguous and cast.
    InputsAs(Vec<InputAs>),
    /// The request breaks the op's contract, in this way.
    BadRequest(String),
    /// The pack is broken, in this way.
    Internal(String),
}

impl Refusal {
    /// A decline with its reason.
    pub fn decline(reason: impl Into<String>) -> Refusal {
        Refusal::Decline(reason.into())
    }
}

/// Runs a pack's plan function behind the panic guard.
pub fn guarded_plan(
    plan: fn(u32, &Request<'_>) -> Result<Plan, Refusal>,
    row: u32,
    request: &Request<'_>,
) -> Reply {
    let reply = |outcome, fault, message: String| Reply {
        outcome,
        fault,
        message: RString::from(message),
        inputs_as: RVec::new(),
        plan: Plan::default(),
        spare: [0; 2],
    };
    match guard(|| plan(row, request)) {
        Ok(Ok(plan)) => Reply {
            plan,
            ..reply(Outcome::PLAN, Fault::NONE, String::new())
        },
        Ok(Err(Refusal::Decline(why))) => reply(Outcome::DECLINE, Fault::NONE, why),
        Ok(Err(Refusal::InputsAs(list))) => Reply {
            inputs_as: list.into(),
            ..reply(Outcome::INPUTS_AS, Fault::NONE, String::new())
        },
        Ok(Err(Refusal::BadRequest(why))) => reply(Outcome::ERROR, Fault::HOST, why),
        Ok(Err(Refusal::Internal(why))) => reply(Outcome::ERROR, Fault::PACK, why),
        Err(panic) => reply(Outcome::ERROR, Fault::PANIC, panic),
    }
}

/// Runs a pack's describe function behind the panic guard and leaks its result, which is static by contract.
pub fn guarded_describe(
    describe: fn() -> Result<Description, String>,
    plan: extern "C" fn(u32, &Request<'_>) -> Reply,
) -> Described {
    let (fault, message, description) = match guard(describe) {
        Ok(Ok(description)) => (Fault::NONE, String::new(), description),
        Ok(Err(why)) => (Fault::PACK, why, Description::default()),
        Err(panic) => (Fault::PANIC, panic, Description::default()),
    };
    let leak = |text: String| RStr::from_str(String::leak(text));
    let kernels = description
        .kernels
        .into_iter()
        .zip(0..)
        .map(|(row, index)| {
            abi_stable::prefix_type::PrefixTypeTrait::leak_into_prefix(Kernel {
                id: leak(row.id),
                op: leak(row.op),
                row: index,
                inputs: row.inputs,
                outputs: row.outputs,
                needs: row.needs,
                numerics: row.numerics,
                rank: row.rank,
                plan,
            })
        });
    Described {
        status: Status {
            fault,
            spare: 0,
            message: RString::from(message),
        },
        kernels: kernels.collect(),
        sources: description.sources.into(),
    }
}

/// Runs `f`; a panic becomes its text. The payload is leaked, since dropping it may panic again.
pub fn guard<T>(f: impl FnOnce() -> T) -> Result<T, String> {
    catch_unwind(AssertUnwindSafe(f)).map_err(|payload| {
        let text = payload
            .downcast_ref::<&str>()
            .map(|s| (*s).to_owned())
            .or_else(|| payload.downcast_ref::<String>().cloned())
            .unwrap_or_else(|| "panic without a text".to_owned());
        std::mem::forget(payload);
        text
    })
}

/// Exports a pack: its root module, its metadata section, and a panic guard around every function.
///
/// `describe` is `fn() -> Result<Description, String>`; `plan` is `fn(u32, &Request) -> Result<Plan, Refusal>`
/// and must be pure. Build the crate as a `cdylib` with `panic = "unwind"`.
#[macro_export]
macro_rules! pack {
    (id: $id:expr, version: $version:expr, describe: $describe:expr, plan: $plan:expr $(,)?) => {
        #[used]
        #[cfg_attr(
            any(target_os = "linux", target_os = "freebsd"),
            unsafe(link_section = ".nxv.meta")
        )]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__nxv_meta"))]
        #[cfg_attr(windows, unsafe(link_section = ".nxvmeta"))]
        static NXV_META: [u8; $crate::meta::LEN] =
            $crate::meta::build($id, $version, cfg!(panic = "unwind"));

        extern "C" fn nxv_init(_host: $crate::HostApiRef) -> $crate::Status {
            $crate::Status {
                fault: $crate::Fault::NONE,
                spare: 0,
                message: $crate::RString::new(),
            }
        }

        extern "C" fn nxv_describe() -> $crate::pack::Described {
            $crate::pack::guarded_describe($describe, nxv_plan)
        }

        extern "C" fn nxv_plan(row: u32, request: &$crate::Request<'_>) -> $crate::Reply {
            $crate::pack::guarded_plan($plan, row, request)
        }

        extern "C" fn nxv_retire() {}

        #[$crate::__abi_stable::export_root_module]
        fn nxv_root_module() -> $crate::PackRef {
            $crate::__abi_stable::prefix_type::PrefixTypeTrait::leak_into_prefix($crate::Pack {
                id: $crate::RStr::from_str($id),
                version: $crate::RStr::from_str($version),
                init: nxv_init,
                describe: nxv_describe,
                retire: nxv_retire,
            })
        }
    };
}
