//! The order of candidates, from configurations and packs that are plain values.

mod order;
mod rules;

use super::super::{
    discover::Found, document, image::Image, kernel::Planner, loaded::FoundPack, rules::glob,
};
use super::{
    CandidateKernel::{Host, Pack},
    *,
};
use nx_vulkan_abi::{DeviceInfo, Fault, Features, Numerics, Offers, Outcome, Plan, Reply, Request};
use std::{path::Path, sync::Arc};

extern "C" fn declines(_row: u32, _request: &Request<'_>) -> Reply {
    Reply {
        outcome: Outcome::DECLINE,
        fault: Fault::NONE,
        message: "not today".into(),
        inputs_as: Vec::new().into(),
        plan: Plan::default(),
        spare: [0; 2],
    }
}

extern "C" fn nothing() {}

fn kernel(id: &str, op: &str, rank: u32) -> KernelEntry {
    KernelEntry {
        pack: 0,
        id: id.to_owned(),
        op: op.to_owned(),
        row: 0,
        inputs: DTypeSet::of(&[DType::F32, DType::F16]),
        outputs: DTypeSet::ALL,
        needs: Features::NONE,
        numerics: Numerics::IEEE,
        rank,
        offers: Offers::NONE,
        plan: Planner::Code(declines),
    }
}

fn pack(id: &str, priority: i64, kernels: Vec<KernelEntry>) -> FoundPack {
    let version = semver::Version::new(1, 4, 2);
    let id = id.to_owned();
    let image = Image {
        id,
        version,
        sources: Vec::new(),
        kernels,
        warnings: Vec::new(),
        notes: Vec::new(),
        retire: nothing,
        table: None,
    };
    FoundPack {
        path: "x.so".into(),
        sha256: String::new(),
        priority,
        is_vouched: false,
        image: Arc::new(image),
    }
}

fn table(registry: &str, packs: Vec<FoundPack>) -> Table {
    let text = format!("schema = 1\n{registry}");
    let config = document::parse(Path::new("registry.toml"), text).unwrap();
    let found = Found {
        packs,
        ..Found::default()
    };
    Table::new(config, None, found).unwrap()
}

pub(crate) fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        features: Features::FP64,
        ..DeviceInfo::default()
    }
}

/// `pack/kernel` or `host`, with the reason of a skip after a colon.
fn order(table: &Table, op: &str, input: DType) -> Vec<String> {
    let candidates = table.candidates(&Asked {
        op,
        inputs: &[(input, &[2, 3])],
        outputs: &[(DType::F32, &[2, 3])],
        device: &device(),
        measured: &|_| None,
    });
    show(table, &candidates)
}

fn show(table: &Table, candidates: &[Candidate]) -> Vec<String> {
    let name = |kernel| match kernel {
        CandidateKernel::Pack(p, k) => {
            format!("{}/{}", table.packs[p].id, table.packs[p].kernels[k].id)
        }
        CandidateKernel::Host => "host".to_owned(),
    };
    let show = |candidate: &Candidate| match &candidate.outcome {
        CandidateOutcome::Considered => name(candidate.kernel),
        CandidateOutcome::Skipped(why) => format!("{}: {why}", name(candidate.kernel)),
    };
    candidates.iter().map(show).collect()
}

fn three() -> Vec<FoundPack> {
    vec![
        pack(
            "c",
            0,
            vec![kernel("k", "add", 128), kernel("j", "add", 128)],
        ),
        pack(
            "a",
            0,
            vec![kernel("low", "add", 64), kernel("other", "dot", 200)],
        ),
        pack("b", 5, vec![kernel("k", "add", 128)]),
    ]
}

/// The candidates for dot(f16[64,32], f16[32]) -> f32[64] on a device, with measured times.
fn dot(table: &Table, device: &DeviceInfo<'_>, times: &[(CandidateKernel, f64)]) -> Vec<String> {
    let time = |kernel| {
        let row = times.iter().find(|row| row.0 == kernel);
        row.map(|row| row.1)
    };
    let candidates = table.candidates(&asked_dot(device, &time));
    show(table, &candidates)
}

fn asked_dot<'a>(
    device: &'a DeviceInfo<'a>,
    measured: &'a dyn Fn(CandidateKernel) -> Option<f64>,
) -> Asked<'a> {
    Asked {
        op: "dot",
        inputs: &[(DType::F16, &[64, 32]), (DType::F16, &[32])],
        outputs: &[(DType::F32, &[64])],
        device,
        measured,
    }
}

fn dots() -> Vec<FoundPack> {
    let rows = |ranks: [u32; 2]| vec![kernel("x", "dot", ranks[0]), kernel("y", "dot", ranks[1])];
    vec![pack("a", 1, rows([10, 30])), pack("b", 0, rows([20, 30]))]
}
