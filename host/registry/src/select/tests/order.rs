//! What is asked first.

use super::*;
use nx_vulkan_ops::Attr;

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
fn who_does_not_offer_it_is_not_told_what_a_product_permits() {
    let attrs = |word| [Attr::ints("contract_a", [1]), Attr::text("precision", word)];
    let asked = |kernel: &KernelEntry, word| {
        let attrs = attrs(word);
        let asked = kernel.asked_with(&attrs)?;
        assert_eq!(asked[0], attrs[0]);
        Ok(asked.len() > 1)
    };
    let offers = |offers| KernelEntry {
        offers,
        ..kernel("k", "dot", 1)
    };
    for (kernel, word, told) in [
        (offers(Offers::NONE), "high", Ok::<bool, String>(false)),
        (offers(Offers::EPILOGUE), "high", Ok(false)),
        (offers(Offers::PRECISION), "high", Ok(true)),
        (offers(Offers::PRECISION), "default", Ok(false)),
        (offers(Offers::PRECISION), "highest", Ok(false)),
    ] {
        assert_eq!(asked(&kernel, word), told, "{kernel:?} {word}");
    }
    // Nor what lasts.
    let lasting = [Attr::ints("lasting", [1])];
    for (kernel, told) in [(offers(Offers::PRECISION), 0), (offers(Offers::LASTING), 1)] {
        assert_eq!(kernel.asked_with(&lasting).unwrap().len(), told);
    }
    let relaxed = KernelEntry {
        numerics: Numerics::RELAXED,
        ..offers(Offers::NONE)
    };
    assert_eq!(asked(&relaxed, "default"), Ok(false));
    let refused = asked(&relaxed, "highest").unwrap_err();
    assert_eq!(refused, "precision is highest, and it is relaxed");
    // An attribute of that name is another one where the op is a stranger's.
    let strange = KernelEntry {
        op: "Acme.Block".to_owned(),
        ..offers(Offers::NONE)
    };
    assert_eq!(asked(&strange, "high"), Ok(true));
}

#[test]
fn epilogues_are_for_who_takes_them() {
    let attrs = [Attr::text("epilogue", "exp(x)")];
    let plain = kernel("k", "dot", 1);
    assert_eq!(
        plain.asked_with(&attrs).unwrap_err(),
        "it takes no epilogue"
    );
    let takes = KernelEntry {
        offers: Offers::EPILOGUE,
        ..plain
    };
    assert_eq!(takes.asked_with(&attrs).unwrap(), &attrs[..]);
}

#[test]
fn types_features_and_numerics_are_reasons() {
    let packs = vec![pack(
        "p",
        0,
        vec![
            KernelEntry {
                needs: Features::FP64,
                ..kernel("a", "add", 6)
            },
            KernelEntry {
                needs: Features::FP16.with(Features::FP64),
                ..kernel("b", "add", 5)
            },
            KernelEntry {
                needs: Features(1 << 60),
                ..kernel("c", "add", 4)
            },
            KernelEntry {
                numerics: Numerics::RELAXED,
                ..kernel("d", "add", 3)
            },
            KernelEntry {
                numerics: Numerics(9),
                ..kernel("e", "add", 2)
            },
            KernelEntry {
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

/// `nxv explain` said of a kernel that is slower by measured times only that an earlier one was picked.
#[test]
fn times_that_decide_are_told() {
    let device = device();
    let times = |kernel| {
        [(Pack(1, 0), 5.0), (Host, 3.0)]
            .iter()
            .find(|row| row.0 == kernel)
            .map(|row| row.1)
    };
    let told = |registry: &str| -> Vec<Option<f64>> {
        let candidates = table(registry, dots()).candidates(&asked_dot(&device, &times));
        candidates
            .iter()
            .map(|candidate| candidate.measured)
            .collect()
    };
    assert_eq!(told(""), [Some(3.0), Some(5.0), None, None, None]);
    let rule = "[[op]]\nname = \"dot\"\nuse = [\"b/x\", \"host\", \"*\"]\n";
    assert_eq!(told(rule), [None; 5], "the rule decides");
    assert_eq!(told("[defaults]\norder = [\"rank\"]\n"), [None; 5]);
}
