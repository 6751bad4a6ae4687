//! Rules and denials of the registry file.

use super::*;

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
