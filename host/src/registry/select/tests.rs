//! The order of candidates, from configurations and packs that are plain values.

use super::super::{
    config::Config,
    discover::{Found, FoundPack},
    image::{Image, Kernel, Planner},
};
use super::*;
use nx_vulkan_abi::{Fault, Numerics, Outcome, Plan, Reply, Request};
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

fn kernel(id: &str, op: &str, rank: u32) -> Kernel {
    Kernel {
        id: id.to_owned(),
        op: op.to_owned(),
        row: 0,
        inputs: DTypeSet::of(&[DType::F32, DType::F16]),
        outputs: DTypeSet::ALL,
        needs: Features::NONE,
        numerics: Numerics::IEEE,
        rank,
        plan: Planner::Code(declines),
    }
}

fn pack(id: &str, priority: i64, kernels: Vec<Kernel>) -> FoundPack {
    let version = semver::Version::new(1, 4, 2);
    let id = id.to_owned();
    let image = Image {
        id,
        version,
        sources: Vec::new(),
        kernels,
        warnings: Vec::new(),
    };
    FoundPack {
        path: "x.so".into(),
        sha256: String::new(),
        priority,
        image: Arc::new(image),
    }
}

fn table(registry: &str, packs: Vec<FoundPack>) -> Table {
    let config = Config::parse(
        Path::new("registry.toml"),
        format!("schema = 1\n{registry}"),
    )
    .unwrap();
    Table::new(
        config,
        None,
        Found {
            packs,
            ..Found::default()
        },
    )
    .unwrap()
}

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: 0,
        subgroup_size: 32,
        shared_bytes: 0,
        push_bytes: 128,
        max_invocations: 1,
        compute_units: 0,
        max_workgroup_size: [1; 3],
        max_groups: [1; 3],
        max_buffer_range: 1,
        buffer_align: 256,
        features: Features::FP64,
        spare: [0; 4],
    }
}

/// `pack/kernel` or `host`, with the reason of a skip after a colon.
fn order(table: &Table, op: &str, input: DType) -> Vec<String> {
    let name = |kernel| match kernel {
        CandidateKernel::Pack(p, k) => {
            format!("{}/{}", table.packs[p].id, table.packs[p].kernels[k].id)
        }
        CandidateKernel::Host => "host".to_owned(),
    };
    let candidates = table.candidates(op, &[input], &[DType::F32], &device());
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

#[test]
fn without_rules_rank_priority_and_names_decide() {
    let table = table("", three());
    assert_eq!(
        order(&table, "add", DType::F32),
        ["b/k", "c/j", "c/k", "a/low", "host"]
    );
    assert_eq!(order(&table, "dot", DType::F32), ["a/other", "host"]);
    assert_eq!(order(&table, "nothing", DType::F32), ["host"]);
}

#[test]
fn the_order_in_which_packs_are_found_does_not_matter() {
    let mut reversed = three();
    reversed.reverse();
    let (one, two) = (table("", three()), table("", reversed));
    assert_eq!(
        order(&one, "add", DType::F32),
        order(&two, "add", DType::F32)
    );
}

#[test]
fn a_rule_orders_and_leaves_out() {
    let table = table(
        "[[op]]\nname = \"add\"\nuse = [\"c/k\", \"a\", \"host\", \"c\"]\n",
        three(),
    );
    assert_eq!(
        order(&table, "add", DType::F32),
        [
            "c/k",
            "a/low",
            "host",
            "c/j",
            "b/k: registry.toml:2: the rule for `add` does not use it"
        ]
    );
    assert_eq!(order(&table, "dot", DType::F32), ["a/other", "host"]);
}

#[test]
fn a_star_stands_for_the_packs_that_are_not_named() {
    let table = table("[[op]]\nname = \"*\"\nuse = [\"*\", \"b\"]\n", three());
    assert_eq!(
        order(&table, "add", DType::F32),
        ["c/j", "c/k", "a/low", "b/k", "host"]
    );
}

#[test]
fn the_first_rule_whose_name_and_types_match_counts() {
    let rules = "[[op]]\nname = \"a*\"\ndtype = [\"f16\"]\nuse = [\"a\", \"*\"]\n\
                 [[op]]\nname = \"add\"\nuse = [\"host\", \"*\"]\n";
    let table = table(rules, three());
    assert_eq!(
        order(&table, "add", DType::F16),
        ["a/low", "b/k", "c/j", "c/k", "host"]
    );
    assert_eq!(
        order(&table, "add", DType::F32),
        ["host", "b/k", "c/j", "c/k", "a/low"]
    );
}

#[test]
fn a_denial_names_its_line_and_reason() {
    let deny = "[[deny]]\npack = \"b\"\nop = \"a*d\"\nversion = \">=1.4.0, <1.4.3\"\nreason = \"wrong\"\n\
                [[deny]]\npack = \"c\"\nop = \"dot\"\nreason = \"no\"\n\
                [[deny]]\npack = \"a\"\nversion = \"2\"\nreason = \"no\"\n";
    let order = order(&table(deny, three()), "add", DType::F32);
    assert_eq!(order[0], "b/k: registry.toml:2: denied: wrong");
    assert_eq!(order[1..], ["c/j", "c/k", "a/low", "host"]);
}

#[test]
fn types_features_and_numerics_are_reasons() {
    let packs = vec![pack(
        "p",
        0,
        vec![
            Kernel {
                needs: Features::FP64,
                ..kernel("a", "add", 6)
            },
            Kernel {
                needs: Features::FP16.with(Features::FP64),
                ..kernel("b", "add", 5)
            },
            Kernel {
                needs: Features(1 << 60),
                ..kernel("c", "add", 4)
            },
            Kernel {
                numerics: Numerics::RELAXED,
                ..kernel("d", "add", 3)
            },
            Kernel {
                numerics: Numerics(9),
                ..kernel("e", "add", 2)
            },
            Kernel {
                outputs: DTypeSet::of(&[DType::U8]),
                ..kernel("f", "add", 1)
            },
        ],
    )];
    let table = table("[defaults]\nnumerics = \"ieee\"\n", packs);
    assert_eq!(
        order(&table, "add", DType::F32),
        [
            "p/a",
            "p/b: the device lacks fp16",
            "p/c: the device lacks a feature this host does not know",
            "p/d: registry.toml:3: numerics = \"ieee\", it is relaxed",
            "p/e: this host does not know its numerics, 9",
            "p/f: output f32 is not one of u8",
            "host"
        ]
    );
    assert_eq!(
        order(&table, "add", DType::S8)[0],
        "p/a: input s8 is not one of f16, f32"
    );
}

#[test]
fn a_forbidden_fallback_is_skipped_unless_a_rule_names_the_host() {
    let rules =
        "[defaults]\nfallback = \"error\"\n[[op]]\nname = \"dot\"\nuse = [\"*\", \"host\"]\n";
    let table = table(rules, three());
    assert_eq!(
        order(&table, "add", DType::F32)[4],
        "host: registry.toml:3: fallback = \"error\""
    );
    assert_eq!(order(&table, "dot", DType::F32), ["a/other", "host"]);
}

#[test]
fn rules_that_name_what_is_not_there_or_are_never_reached_are_warnings_in_dev_mode() {
    let rules = "[[op]]\nname = \"r*\"\nuse = [\"bb\", \"b/kk\", \"zebra\"]\n\
                 [[op]]\nname = \"reduce_max\"\nuse = [\"*\"]\n\
                 [[deny]]\npack = \"q\"\nreason = \"old\"\n";
    let warnings = table(rules, three()).warnings;
    assert_eq!(
        warnings,
        [
            "registry.toml:8: no pack `q` is loaded, so this denies nothing",
            "registry.toml:5: the rule is never reached, registry.toml:2 matches first",
            "registry.toml:4: no pack `bb` is loaded; did you mean `b`?",
            "registry.toml:4: pack `b` has no kernel `kk`; did you mean `k`?",
            "registry.toml:4: no pack `zebra` is loaded",
        ]
    );
}

#[test]
fn patterns() {
    for (pattern, name, matches) in [
        ("add", "add", true),
        ("add", "addx", false),
        ("*", "", true),
        ("reduce_*", "reduce_max", true),
        ("*_max", "reduce_max", true),
        ("r*_*x", "reduce_max", true),
        ("r*_*y", "reduce_max", false),
    ] {
        assert_eq!(glob(pattern, name), matches, "{pattern} {name}");
    }
}
