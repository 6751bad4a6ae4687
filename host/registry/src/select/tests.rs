//! The order of candidates, from configurations and packs that are plain values.

use super::super::{
    config::Config,
    discover::{Found, FoundPack},
    image::{Image, Kernel, Planner},
};
use super::{
    CandidateKernel::{Host, Pack},
    *,
};
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

extern "C" fn nothing() {}

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

pub(crate) fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 0,
        driver: 0,
        kind: nx_vulkan_abi::DeviceKind::OTHER,
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

#[test]
fn without_rules_rank_priority_and_names_decide() {
    let table = table("", three());
    assert_eq!(
        order(&table, "add", DType::F32),
        ["b/k", "c/j", "c/k", "a/low", "host"]
    );
    assert_eq!(order(&table, "dot", DType::F32), ["a/other", "host"]);
    assert_eq!(order(&table, "nothing", DType::F32), ["host"]);
    assert!(table.has_op("dot") && !table.has_op("nothing"));
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
            "registry.toml:4: NXR026: no pack `bb` is loaded; did you mean `b`?",
            "registry.toml:4: NXR027: pack `b` has no kernel `kk`; did you mean `k`?",
            "registry.toml:4: NXR026: no pack `zebra` is loaded",
            "registry.toml:5: NXR028: the rule is never reached, registry.toml:2 takes its requests",
            "registry.toml:8: NXR029: no pack `q` is loaded, so this denies nothing",
        ]
    );
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

#[test]
fn the_order_is_that_of_the_defaults() {
    let times = [(Pack(0, 0), 7.0), (Pack(1, 0), 5.0), (Pack(1, 1), f64::NAN)];
    let device = device();
    for (order, expected) in [
        ("", ["b/x", "a/x", "a/y", "b/y"]),
        ("\"measured\", \"name\"", ["b/x", "a/x", "a/y", "b/y"]),
        ("\"rank\"", ["a/y", "b/y", "b/x", "a/x"]),
        ("\"priority\", \"rank\"", ["a/y", "a/x", "b/y", "b/x"]),
        ("\"name\", \"rank\"", ["a/x", "a/y", "b/x", "b/y"]),
        ("\"priority\"", ["a/x", "a/y", "b/x", "b/y"]),
    ] {
        let registry = match order {
            "" => String::new(),
            order => format!("[defaults]\norder = [{order}]\n"),
        };
        let got = dot(&table(&registry, dots()), &device, &times);
        assert_eq!(got[..4], expected, "{order}");
        assert_eq!(got[4], "host");
    }
}

#[test]
fn the_host_is_first_where_it_was_measured_to_be_faster() {
    let (device, defaults) = (device(), "[defaults]\nfallback = \"error\"\n");
    let order = |registry: &str, times: &[(CandidateKernel, f64)]| {
        dot(&table(registry, dots()), &device, times)
    };
    let both = [(Pack(1, 0), 5.0), (Host, 3.0)];
    assert_eq!(order("", &both), ["host", "b/x", "a/y", "b/y", "a/x"]);
    let slower = [(Pack(1, 0), 5.0), (Host, 6.0)];
    assert_eq!(order("", &slower), ["b/x", "host", "a/y", "b/y", "a/x"]);
    // Nobody that it could be compared with was measured.
    assert_eq!(order("", &both[1..])[4], "host");
    assert_eq!(order("[defaults]\norder = [\"rank\"]\n", &both)[4], "host");
    assert!(order(defaults, &both)[4].starts_with("host: "));
    let rule = "[[op]]\nname = \"dot\"\nuse = [\"*\"]\n";
    assert_eq!(order(rule, &both)[4], "host", "the rule leaves it out");
}

#[test]
fn the_place_in_a_rule_counts_when_the_order_says_so() {
    let rule = "[[op]]\nname = \"dot\"\nuse = [\"b\", \"host\", \"a/x\"]\n";
    let (device, times) = (device(), [(Pack(0, 0), 1.0), (Pack(1, 0), 5.0)]);
    let left_out = "a/y: registry.toml:2: the rule for `dot` does not use it";
    assert_eq!(
        dot(&table(rule, dots()), &device, &times),
        ["b/x", "b/y", "host", "a/x", left_out]
    );
    let registry = format!("{rule}[defaults]\norder = [\"measured\", \"rule\"]\n");
    assert_eq!(
        dot(&table(&registry, dots()), &device, &times),
        ["a/x", "b/x", "b/y", "host", left_out]
    );
}

#[test]
fn rules_look_at_types_shapes_and_features() {
    let table = |condition: &str| {
        let rules = format!("[[op]]\nname = \"dot\"\n{condition}\nuse = [\"host\"]\n");
        table(&rules, dots())
    };
    let device = device();
    for (condition, why) in [
        ("dtype = [\"f16,f16->f32\"]", None),
        ("dtype = [\"u8\", \"float, f16 -> real\"]", None),
        ("dtype = [\"f16\"]", None),
        (
            "dtype = [\"f16->f32\", \"f32,f16->f32\", \"u8\"]",
            Some("`dtype` does not have f16,f16->f32"),
        ),
        ("shape = [\"a.rank == 2\", \"a.dim[-1] % 16 == 0\"]", None),
        (
            "shape = [\"a.rank == 2\", \"elems >= 65\"]",
            Some("`elems >= 65` is false: out.elems is 64"),
        ),
        ("needs = [\"fp64\"]", None),
        (
            "needs = [\"fp64\", \"coopmat\", \"fp16\"]",
            Some("the device lacks fp16, coopmat"),
        ),
    ] {
        let table = table(condition);
        let verdicts = table.rules(&asked_dot(&device, &|_| None));
        let line = "registry.toml:2".to_owned();
        let unfit = why.map(str::to_owned);
        assert_eq!(verdicts, [RuleVerdict { line, unfit }], "{condition}");
        let host_first = dot(&table, &device, &[])[0] == "host";
        assert_eq!(host_first, why.is_none(), "{condition}");
    }
}

#[test]
fn the_rules_are_told_up_to_the_one_that_decides() {
    let rules = "[[op]]\nname = \"add\"\nuse = [\"*\"]\n\
                 [[op]]\nname = \"d*\"\ndtype = [\"u8\"]\nuse = [\"*\"]\n\
                 [[op]]\nname = \"dot\"\nuse = [\"a\", \"*\"]\n\
                 [[op]]\nname = \"*\"\nuse = [\"*\"]\n";
    let table = table(rules, dots());
    let device = device();
    let asked = asked_dot(&device, &|_| None);
    let lines: Vec<String> = table
        .rules(&asked)
        .into_iter()
        .map(|rule| rule.line)
        .collect();
    assert_eq!(lines, ["registry.toml:5", "registry.toml:9"]);
    let lines: Vec<Option<String>> = table
        .candidates(&asked)
        .into_iter()
        .map(|c| c.line)
        .collect();
    let used = Some("registry.toml:11".to_owned());
    assert_eq!(
        lines,
        [used.clone(), used.clone(), used.clone(), used, None]
    );
}

#[test]
fn a_denial_may_be_for_some_devices_only() {
    let nvidia = DeviceInfo {
        name: "NVIDIA H200".into(),
        vendor: 0x10de,
        driver: 550 << 22 | 40 << 14,
        ..device()
    };
    for (filter, denied) in [
        ("vendor = 0x10de", true),
        ("vendor = 0x1002", false),
        ("name = \"h200\"", true),
        ("name = \"A100\"", false),
        ("driver = \"<550.54\"", true),
        ("vendor = 0x10de, driver = \"<550.40\"", false),
    ] {
        let deny = format!("[[deny]]\npack = \"a\"\ndevice = {{ {filter} }}\nreason = \"wrong\"\n");
        let got = dot(&table(&deny, dots()), &nvidia, &[]);
        let expected = ["a/y: registry.toml:2: denied: wrong", "a/y"][usize::from(!denied)];
        assert_eq!(got[0], expected, "{filter}");
    }
}

#[test]
fn a_rule_hides_a_later_one_only_if_it_takes_all_its_requests() {
    let rule = |conditions: &str| format!("[[op]]\nname = \"dot\"\n{conditions}\nuse = [\"*\"]\n");
    for (earlier, later, hides) in [
        ("", "", true),
        ("", "dtype = [\"f16,f16->f32\"]", true),
        (
            "dtype = [\"float\"]",
            "dtype = [\"f16,f16->f32\", \"f32\"]",
            true,
        ),
        ("dtype = [\"f16\"]", "dtype = [\"float\"]", false),
        ("dtype = [\"f16\"]", "", false),
        (
            "dtype = [\"real,real->real\"]",
            "dtype = [\"f16,u8->f32\"]",
            true,
        ),
        ("dtype = [\"f16,u8->f32\"]", "dtype = [\"f16\"]", false),
        ("shape = [\"a.rank > 1\"]", "shape = [\"elems > 9\"]", false),
        (
            "shape = [\"a.rank > 1\"]",
            "shape = [\"elems > 9\", \"a.rank > 1\"]",
            true,
        ),
        ("needs = [\"fp16\"]", "", false),
        ("needs = [\"fp16\"]", "needs = [\"fp64\", \"fp16\"]", true),
    ] {
        let warnings = table(&[rule(earlier), rule(later)].concat(), dots()).warnings;
        assert_eq!(
            warnings.len(),
            usize::from(hides),
            "{earlier} | {later}: {warnings:?}"
        );
    }
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
        ("*a**a", "aa", true),
        ("a*a", "a", false),
        ("*ab*ab*", "abab", true),
        ("*ab*ab*", "abb", false),
        (&"*a".repeat(5000), &"a".repeat(4999), false),
    ] {
        assert_eq!(glob(pattern, name), matches, "{pattern} {name}");
    }
}
