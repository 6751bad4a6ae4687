//! Conditions that hold, that do not, and that are none.

use super::*;
use crate::select::tests::device;
use nx_vulkan_abi::DType;

/// Why `condition` is not met by dot(f32[512,1000], f32[1000]) -> f32[512].
fn unmet(condition: &str) -> Option<String> {
    let device = device();
    Condition::parse(condition).unwrap().unmet(&Asked {
        op: "dot",
        inputs: &[(DType::F32, &[512, 1000]), (DType::F32, &[1000])],
        outputs: &[(DType::F32, &[512])],
        device: &device,
        measured: &|_| None,
    })
}

#[test]
fn conditions_that_hold() {
    for condition in [
        "a.rank >= 2",
        "a.rank==2",
        "b.rank != 2",
        "out.rank < b.rank + 1",
        "a.dim[0] == 512",
        "a.dim[-1] == b.dim[ 0 ]",
        "a.dim[-1] % 8 == 0",
        "a.dim[a.rank - 2] == 512",
        "elems >= 512",
        "out.elems == elems",
        "a.elems > 512_000 - 1",
        "2 + 3 * 4 == 14",
        "(2 + 3) * 4 == 20",
        "7 - 2 - 1 == 4",
        "-7 / 2 == -3",
        " 1\t<=  1 ",
    ] {
        assert_eq!(unmet(condition), None, "{condition}");
    }
}

#[test]
fn conditions_that_do_not_hold_say_what_the_request_has() {
    for (condition, why) in [
        (
            "a.dim[-1] % 16 == 0",
            "`a.dim[-1] % 16 == 0` is false: a.dim[-1] is 1000",
        ),
        (
            "a.rank < b.rank",
            "`a.rank < b.rank` is false: a.rank is 2, b.rank is 1",
        ),
        (
            "elems * elems <= elems",
            "`elems * elems <= elems` is false: out.elems is 512",
        ),
        ("c.rank > 0", "`c.rank > 0`: the request has no c"),
        (
            "b.dim[1] > 0",
            "`b.dim[1] > 0`: b has no axis 1, its rank is 1",
        ),
        (
            "b.dim[-2] > 0",
            "`b.dim[-2] > 0`: b has no axis -2, its rank is 1",
        ),
        ("a.rank % 0 == 0", "`a.rank % 0 == 0`: it divides by zero"),
        (
            "a.rank / (2 - a.rank) == 0",
            "`a.rank / (2 - a.rank) == 0`: it divides by zero",
        ),
    ] {
        assert_eq!(unmet(condition).as_deref(), Some(why));
    }
    let huge = ["9000000000000000000"; 3].join(" * ");
    assert!(unmet(&format!("{huge} > 0")).unwrap().contains("too large"));
}

#[test]
fn mistakes_are_placed() {
    for (condition, at, why) in [
        ("", 0..0, "expected a number or a tensor, such as"),
        (
            "a.rank",
            6..6,
            "expected one of == != < <= > >=, got the end",
        ),
        ("a.rank = 2", 7..8, "got `=`"),
        ("a.rnak >= 2", 2..6, "no `rnak`; did you mean `rank`?"),
        ("elem >= 2", 0..4, "did you mean `elems`?"),
        ("i.rank >= 2", 0..1, "`a` to `h` are the inputs"),
        ("a rank >= 2", 2..3, "expected `.`, got `r`"),
        ("a.dim[-1 == 0", 9..10, "expected `]`, got `=`"),
        ("a.stride[0] == 1", 2..8, "it has `rank`, `dim`, `elems`"),
        ("in0.rank == 1", 0..3, "nothing called `in0`"),
        ("attr.k == 1", 0..4, "nothing called `attr`"),
        ("min(1, 2) == 1", 0..3, "no function `min`"),
        ("!1 == 1", 0..1, "expected a number or a tensor"),
        ("1 && 1", 2..3, "expected one of == != < <= > >="),
        ("a.dim[1 < 2] == 0", 8..9, "expected `]`"),
        ("1 < 2 < 3", 6..7, "a second condition is a second entry"),
        (
            "elems >= 99999999999999999999",
            9..29,
            "a whole number of 64 bits",
        ),
        ("é == 1", 0..2, "expected a number or a tensor"),
        ("(1 == 1", 3..4, "expected `)`"),
    ] {
        let mistake = Condition::parse(condition).unwrap_err();
        assert!(
            mistake.span == at && mistake.message.contains(why),
            "{condition}: {mistake:?}"
        );
    }
    let deep = "(".repeat(257);
    assert!(
        Condition::parse(&deep)
            .unwrap_err()
            .message
            .contains("at most 256")
    );
    assert!(Condition::parse(&deep[..256]).is_err());
}
