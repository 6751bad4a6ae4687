//! What a pack author writes, the guard around it, and the [`pack!`](crate::pack!) macro that exports it.

use crate::{
    DTypeSet, Fault, Features, HostApiRef, InputAs, Kernel, KernelRef, Level, Numerics, Offers,
    Outcome, Plan, Reply, Request, Source, Status, pack::Described,
};
use abi_stable::{
    prefix_type::PrefixTypeTrait as _,
    std_types::{RStr, RString, RVec},
};
use std::{
    cell::Cell,
    panic::{AssertUnwindSafe, PanicHookInfo, catch_unwind},
    sync::OnceLock,
};

/// A kernel as a pack author writes it; `pack!` turns it into a [`Kernel`]. Later versions may add fields: end a
/// literal with `..Row::default()`.
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
    /// What it runs beyond the plain op.
    pub offers: Offers,
}

/// A good general kernel ([`Numerics::IEEE`], rank 128) without a name and for no type.
impl Default for Row {
    fn default() -> Row {
        Row {
            id: String::new(),
            op: String::new(),
            inputs: DTypeSet(0),
            outputs: DTypeSet(0),
            needs: Features::NONE,
            numerics: Numerics::IEEE,
            rank: 128,
            offers: Offers::NONE,
        }
    }
}

/// Everything a pack has to say about itself. Later versions may add fields: end a literal with
/// `..Description::default()`.
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

/// The host and the pack's own id. Static data belongs to one dylib, so each pack has its own.
static HOST: OnceLock<(HostApiRef, &'static str)> = OnceLock::new();

/// What the host offers, from `init` on; `None` in a pack's own tests. A function that an older host does not have
/// reads as `None`. \[thread-safe\]
pub fn host() -> Option<HostApiRef> {
    HOST.get().map(|(host, _)| *host)
}

/// Writes one line to the host's log, or to standard error where there is no host: in a pack's own tests.
/// \[thread-safe\]
pub fn log(level: Level, message: &str) {
    match HOST.get() {
        Some((host, pack)) => host.log()(level, RStr::from_str(pack), RStr::from_str(message)),
        None => eprintln!("level {}: {message}", level.0),
    }
}

thread_local! {
    /// What the plan function that runs on this thread said of its plan.
    static WHY: Cell<String> = const { Cell::new(String::new()) };
}

/// Says, in a few words, why the plan that is being made is as it is: `nxv explain` shows it. The last call within one
/// plan function counts; elsewhere it has no effect. \[thread-safe\]
pub fn explain(why: impl Into<String>) {
    WHY.set(why.into());
}

/// Keeps the host, sends the text of panics to its log, and runs a pack's init function, if it has one, behind the
/// panic guard.
pub fn guarded_init(
    pack: &'static str,
    host: HostApiRef,
    init: &[fn() -> Result<(), String>],
) -> Status {
    let (fault, message) = match guard(|| {
        if HOST.set((host, pack)).is_ok() {
            std::panic::set_hook(Box::new(log_panic));
        }
        init.iter().try_for_each(|init| init())
    }) {
        Ok(Ok(())) => (Fault::NONE, String::new()),
        Ok(Err(why)) => (Fault::PACK, why),
        Err(panic) => (Fault::PANIC, panic),
    };
    Status {
        fault,
        spare: 0,
        message: RString::from(message),
    }
}

/// Runs a pack's retire function behind the panic guard; the hook of `init` has logged a panic.
pub fn guarded_retire(retire: fn()) {
    let _ = guard(retire);
}

fn log_panic(info: &PanicHookInfo<'_>) {
    let text = info.payload_as_str().unwrap_or("without a text");
    match info.location() {
        Some(place) => log(Level::ERROR, &format!("panic at {place}: {text}")),
        None => log(Level::ERROR, &format!("panic: {text}")),
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
    WHY.take();
    match guard(|| plan(row, request)) {
        Ok(Ok(plan)) => Reply {
            plan,
            ..reply(Outcome::PLAN, Fault::NONE, WHY.take())
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
        .map(|(row, index)| -> KernelRef {
            Kernel {
                id: leak(row.id),
                op: leak(row.op),
                row: index,
                inputs: row.inputs,
                outputs: row.outputs,
                needs: row.needs,
                numerics: row.numerics,
                rank: row.rank,
                plan,
                offers: row.offers,
            }
            .leak_into_prefix()
        });
    Described {
        status: Status {
            fault,
            spare: 0,
            message: RString::from(message),
        },
        kernels: kernels.collect(),
        sources: description.sources.into(),
        spare: [0; 4],
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
/// and must be pure. After them may stand `init`, a `fn() -> Result<(), String>` that runs first and whose error
/// refuses the pack, and `retire`, a `fn()` that runs when the host stops using the pack.
/// Build the crate as a `cdylib` with `panic = "unwind"`.
#[macro_export]
macro_rules! pack {
    (id: $id:expr, version: $version:expr, describe: $describe:expr, plan: $plan:expr
     $(, init: $init:expr)? $(, retire: $retire:expr)? $(,)?) => {
        #[used]
        #[cfg_attr(
            not(any(target_vendor = "apple", windows)),
            unsafe(link_section = ".nxv.meta")
        )]
        #[cfg_attr(target_vendor = "apple", unsafe(link_section = "__DATA,__nxv_meta"))]
        #[cfg_attr(windows, unsafe(link_section = ".nxvmeta"))]
        static NXV_META: [u8; $crate::meta::LEN] =
            $crate::meta::build($id, $version, cfg!(panic = "unwind"));

        extern "C" fn nxv_init(host: $crate::HostApiRef) -> $crate::Status {
            $crate::author::guarded_init($id, host, &[$($init)?])
        }

        extern "C" fn nxv_describe() -> $crate::pack::Described {
            $crate::author::guarded_describe($describe, nxv_plan)
        }

        extern "C" fn nxv_plan(row: u32, request: &$crate::Request<'_>) -> $crate::Reply {
            $crate::author::guarded_plan($plan, row, request)
        }

        extern "C" fn nxv_retire() {
            $($crate::author::guarded_retire($retire);)?
        }

        fn nxv_root_module() -> $crate::PackRef {
            $crate::__abi_stable::prefix_type::PrefixTypeTrait::leak_into_prefix($crate::Pack {
                id: $crate::RStr::from_str($id),
                version: $crate::RStr::from_str($version),
                init: nxv_init,
                describe: nxv_describe,
                retire: nxv_retire,
            })
        }

        extern "C" fn nxv_erased_root_module() -> $crate::__abi_stable::library::RootModuleResult {
            $crate::__abi_stable::library::__call_root_module_loader(nxv_root_module)
        }

        // What `abi_stable::export_root_module` writes, except that a pack need not depend on abi_stable for it.
        // SAFETY: no other symbol of a pack has this name.
        #[unsafe(export_name = "_1as_0lib_1header_0root_bmodule_bloader")]
        #[doc(hidden)]
        pub static NXV_ROOT_MODULE: $crate::__abi_stable::library::LibHeader =
            // SAFETY: the function gives a module of that very type.
            unsafe {
                $crate::__abi_stable::library::LibHeader::from_constructor::<$crate::PackRef>(
                    nxv_erased_root_module,
                    $crate::__abi_stable::library::CheckTypeLayout::Yes,
                )
            };
    };
}
