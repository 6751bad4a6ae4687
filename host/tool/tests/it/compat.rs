//! Packs of the released ABI, of a newer minor and of incompatible ones, in this host and in a newer one.

use crate::{
    folder::Folder,
    packs::{self, cargo},
};
use nx_vulkan_abi::{DType, DeviceInfo, Outcome, Reply, Request, TensorDesc};
use nx_vulkan_registry::{LoadedPack, Options, Table, load};
use std::{fs, path::Path, process::Command, sync::Once};

/// Builds `fixtures/compat`.
fn build() {
    static BUILT: Once = Once::new();
    let folder = Path::new("tests/fixtures/compat");
    BUILT.call_once(|| cargo(folder, &["build", "--release", "--quiet"]));
}

/// Loads the packs in the order of their names, each under another file name.
fn loaded(folder: &Folder, names: &[&str]) -> Table {
    build();
    for (index, name) in names.iter().enumerate() {
        let to = folder.write(&format!("packs/{index}.so"), "");
        fs::copy(packs::library(name), to).unwrap();
    }
    load(&Options {
        packs: vec![folder.join("packs")],
        store: folder.join("store"),
        ..Options::default()
    })
    .unwrap()
}

fn ask(pack: &LoadedPack, kernel: &str) -> Reply {
    let kernel = pack.kernels.iter().find(|k| k.id == kernel).unwrap();
    let (shape, strides) = ([8u64], [1i64]);
    let operand = [TensorDesc {
        dtype: DType::F32,
        spare: 0,
        shape: shape[..].into(),
        strides: strides[..].into(),
        offset: 0,
        storage_len: 32,
        reserved: [0; 2],
    }];
    kernel.plan(&Request {
        op: kernel.op.as_str().into(),
        inputs: operand[..].into(),
        outputs: operand[..].into(),
        attrs: [][..].into(),
        device: &DeviceInfo::default(),
        spare: [0; 4],
    })
}

#[test]
fn this_host_runs_released_and_newer_packs_and_refuses_incompatible_ones_between_them() {
    let folder = Folder::new();
    let table = loaded(&folder, &["changed", "old", "other", "newer"]);
    let reasons: Vec<&str> = table.rejected.iter().map(|r| r.reason.as_str()).collect();
    let [changed, other] = reasons[..] else {
        panic!("{table:?}");
    };
    assert!(changed.starts_with("layout: "), "{changed}");
    assert!(
        changed.ends_with("args.buffer: size 32 expected, 40 found"),
        "{changed}"
    );
    assert!(
        other.starts_with("metadata: it is built for ABI 2.0.0, this host"),
        "{other}"
    );

    let ids: Vec<&str> = table.packs.iter().map(|pack| pack.id.as_str()).collect();
    assert_eq!(ids, ["nx-vulkan-pack-newer", "nx-vulkan-pack-old"]);
    for pack in &table.packs {
        let reply = ask(pack, "square");
        assert_eq!(reply.outcome, Outcome::PLAN);
        let step = &reply.plan.steps[0];
        assert_eq!(
            (step.groups, step.args.len(), step.spec[0].value),
            ([8, 1, 1], 2, 9)
        );
        assert_eq!(reply.plan.shaders[0].defines[0].name.as_str(), "N");
        let report = ask(pack, "report");
        assert_eq!(report.outcome, Outcome::DECLINE);
        let minor = nx_vulkan_abi::ABI_VERSION.split('.').nth(1).unwrap();
        assert_eq!(
            report.message.as_str(),
            format!("report of [8] on default, host of minor {minor}, clock None")
        );
    }
}

#[test]
fn a_newer_host_runs_released_packs_and_reads_what_they_lack_as_absent() {
    build();
    let files = ["changed", "old", "other", "newer", "old"].map(packs::library);
    let output = Command::new(packs::target().join("release/compat-host"))
        .args(files)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    assert!(output.status.success(), "{text}{output:?}");
    let refused: Vec<&str> = text
        .lines()
        .filter(|line| line.starts_with("refused"))
        .collect();
    assert_eq!(refused.len(), 2, "{text}");
    assert!(refused[0].ends_with("size 32 expected, 40 found"), "{text}");
    assert!(
        refused[1].ends_with("crate version 1.1.0 expected, 2.0.0 found"),
        "{text}"
    );
    let old = "nx-vulkan-pack-old/report: outcome 2, report of [8] on compat, host of minor 1, clock None, \
               groups [8, 1, 1], 2 arguments, cost None";
    let newer = "nx-vulkan-pack-newer/report: outcome 2, report of [8] on compat, host of minor 1, clock Some(1234), \
                 groups [8, 1, 1], 2 arguments, cost Some(7)";
    for (line, count) in [
        ("nx-vulkan-pack-old: notes None", 2),
        ("nx-vulkan-pack-newer: notes Some(\"a note\")", 1),
        (old, 2),
        (newer, 1),
    ] {
        assert_eq!(
            text.lines().filter(|l| *l == line).count(),
            count,
            "{line}\n{text}"
        );
    }
}
