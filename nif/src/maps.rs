//! What the host tells of itself, as maps whose keys are atoms.

use crate::terms::List;
use nx_vulkan_host::{
    BudgetStats, Considered, Explanation, KeptStats, ReplayStats, RuleVerdict, RuntimeStats, Stats,
    device::DeviceSummary,
    live::{Event, EventKind, PackVersion},
};
use rustler::{NifMap, NifUnitEnum};

/// Maps of plain structs, field by field.
macro_rules! maps {
    ($($map:ident: $of:ident { $($field:ident: $type:ty),+ $(,)? })+) => {$(
        #[derive(NifMap)]
        #[rustler(encode)]
        pub(crate) struct $map { $($field: $type),+ }

        impl From<$of> for $map {
            fn from($of { $($field),+ }: $of) -> $map {
                $map { $($field: $field.into()),+ }
            }
        }
    )+};
}

maps! {
    DeviceMap: DeviceSummary {
        index: usize,
        name: String,
        kind: &'static str,
        uuid: String,
        driver: String,
        api: String,
        memory: u64,
        features: Vec<&'static str>,
        matrices: Vec<String>,
        unusable: Option<String>,
    }
    RuntimeStatsMap: RuntimeStats {
        memory: StatsMap,
        budget: BudgetStatsMap,
        kept: KeptStatsMap,
        replays: ReplayStatsMap,
        ahead: u64,
        pipelines: usize,
        fallbacks: u64,
        served: Vec<(String, String, u64)>,
        plans: usize,
        submissions: u64,
        cache_trouble: Option<String>,
    }
    StatsMap: Stats { allocated: u64, in_use: u64, peak: u64, buffers: u64 }
    BudgetStatsMap: BudgetStats { limit: u64, taken: u64, readback: u64, upload: u64 }
    KeptStatsMap: KeptStats { limit: u64, bytes: u64, buffers: u64, reused: u64 }
    ReplayStatsMap: ReplayStats { programs: u64, bytes: u64, runs: u64 }
    ExplanationMap: Explanation {
        request: String,
        device: String,
        generation: u64,
        rules: List<RuleMap>,
        picked: Option<String>,
        candidates: List<ConsideredMap>,
    }
    RuleMap: RuleVerdict { line: String, unfit: Option<String> }
    ConsideredMap: Considered { kernel: String, outcome: &'static str, reason: String, line: Option<String>, measured_us: Option<f64> }
    PackVersionMap: PackVersion { version: String, sha256: String, edited: Vec<String>, serves: bool }
    EventMap: Event {
        kind: KindAtom,
        pack: Option<String>,
        op: Option<String>,
        file: Option<String>,
        message: String,
        generation: u64,
        took_us: u64,
    }
}

macro_rules! kinds {
    ($($kind:ident),+ $(,)?) => {
        #[derive(NifUnitEnum)]
        #[rustler(encode)]
        pub(crate) enum KindAtom { $($kind),+ }

        impl From<EventKind> for KindAtom {
            fn from(kind: EventKind) -> KindAtom {
                match kind { $(EventKind::$kind => KindAtom::$kind),+ }
            }
        }
    };
}

kinds! {
    PackAdded, PackReplaced, PackRemoved, Rejected, ShaderReplaced, ShaderRejected, RegistryReplaced, RolledBack, Chosen,
    WatchTrouble,
}
