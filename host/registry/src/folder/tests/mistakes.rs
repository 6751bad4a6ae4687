//! Tables that are wrong.

use super::*;

/// The error that a table gives for a kernel with these lines, from its first on.
#[track_caller]
fn mistakes(lines: &str) -> String {
    kernel(lines).unwrap_err()
}

#[test]
fn every_mistake_is_reported_at_once_and_at_its_place() {
    let error = read(
        "[pack]\nid = \"host\"\nversion = \"one\"\nabi = \"2\"\n[[kernel]]\nid = \"a b\"\n\
         inputs = [\"f23\"]\noutputs = [\"f32\"]\nneeds = [\"fp65\"]\nnumerics = \"exactly\"\nrank = 300\n\
         contiguous = 1\nwehn = []\nshader = \"k.cmp\"\ngroups = [\"ceil(elms / 4)\"]\n",
    );
    let expected = "\
pack.toml:2:6: a pack id is made of 1 to 128 letters, digits, `.`, `_` and `-`, and is not `host`
 2 | id = \"host\"
   |      ^^^^^^
pack.toml:3:11: `one` is not a semantic version: unexpected character 'o' while parsing major version number
 3 | version = \"one\"
   |           ^^^^^
pack.toml:4:7: this host reads `abi = \"1\"` only
 4 | abi = \"2\"
   |       ^^^
pack.toml:5:1: [[kernel]] needs `op`
 5 | [[kernel]]
   | ^^^^^^^^^^
pack.toml:6:6: expected 1 to 128 printable characters without spaces
 6 | id = \"a b\"
   |      ^^^^^
pack.toml:7:11: there is no type `f23`; did you mean `f32`?
 7 | inputs = [\"f23\"]
   |           ^^^^^
pack.toml:9:10: there is no device feature `fp65`; did you mean `fp64`?
 9 | needs = [\"fp65\"]
   |          ^^^^^^
pack.toml:10:12: expected one of \"exact\", \"ieee\", \"relaxed\", got \"exactly\"; did you mean `exact`?
 10 | numerics = \"exactly\"
    |            ^^^^^^^^^
pack.toml:11:8: expected a number from 0 to 255
 11 | rank = 300
    |        ^^^
pack.toml:12:14: expected a boolean, got an integer
 12 | contiguous = 1
    |              ^
pack.toml:13:1: [[kernel]] has no key `wehn`; did you mean `when`?
 13 | wehn = []
    | ^^^^
pack.toml:14:10: the pack has no file `k.cmp`; did you mean `k.comp`?
 14 | shader = \"k.cmp\"
    |          ^^^^^^^
pack.toml:15:17: there is nothing called `elms`; did you mean `elems`?
 15 | groups = [\"ceil(elms / 4)\"]
    |                 ^^^^";
    assert_eq!(error.unwrap_err(), expected);
}

/// A table of 65 entries.
fn many(key: &str, prefix: &str) -> String {
    let entries: Vec<String> = (100..165).map(|i| format!("{prefix}{i} = 1")).collect();
    format!("{key} = {{ {} }}", entries.join(", "))
}

#[test]
fn each_kind_of_mistake_has_its_message() {
    let step = "shader = \"k.comp\"\ngroups = [1]\n";
    let with = |line: &str| mistakes(&format!("{step}{line}"));
    let cases = [
        ("types = \"same\"", "`types` is \"equal\" or a list"),
        ("types = [\"f32\"]", "expected types such as"),
        ("types = [\"f32->\"]", "expected types such as"),
        ("types = [\"f23->f32\"]", "there is no type `f23`"),
        ("let = { elems = 1 }", "has no meaning yet"),
        (
            "let = { a = 1 }",
            "`a` is an operand or a result already; names of one letter go from `i` to `p`",
        ),
        ("let = { in8 = 1 }", "is an operand or a result already"),
        ("let = { x = \"y\" }", "there is nothing called `y`"),
        (
            "let = { w = 64, each = \"w * 2\" }",
            "`w` is a name of this `let`, and none is known inside it; write it out",
        ),
        ("let = { x = [] }", "expected an expression"),
        (
            "let = { x = 99999999999999999999 }",
            "this number is too large",
        ),
        ("when = \"elems\"", "expected a list, got a string"),
        ("when = [{ reason = \"x\" }]", "a condition needs `check`"),
        ("when = [{ check = \"1\" }]", "a condition needs `reason`"),
        (
            "when = [{ check = \"1\", reason = \"x\", els = 1 }]",
            "a condition has no key `els`",
        ),
        ("scratch = [\"\"]", "got the end of the expression"),
        (
            "scratch = [1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1,1]",
            "`scratch` has at most 16 entries",
        ),
        ("bindings = [\"z\"]", "`z` is no buffer"),
        (
            "bindings = [\"\\u001b[31mx\"]",
            "`\u{fffd}[31mx` is no buffer",
        ),
        (
            "bindings = [\"scratch1\"]",
            "there are 0 scratch buffers, and no `scratch1`",
        ),
        ("bindings = [\"write a\"]", "operand `a` is read only"),
        ("bindings = [1]", "a binding is a string"),
        (
            "defines = { \"1A\" = 1 }",
            "a define is called like a GLSL macro",
        ),
        (
            "defines = { \"F(\" = 1 }",
            "a define is called like a GLSL macro",
        ),
        ("defines = { X = \"{elems\" }", "this brace is not closed"),
        ("defines = { X = \"elems}\" }", "this brace closes nothing"),
        ("defines = { X = \"a\\nb\" }", "a define is one line"),
        ("defines = { X = \"{a.storag}\" }", "`a` has no `storag`"),
        ("push = [\"f64 1\"]", "there is nothing called `f64`"),
        ("push = [true]", "expected an expression"),
        ("constants = { x = 1 }", "is named by its constant_id"),
        ("constants = { 03 = 1 }", "is named by its constant_id"),
        ("types = []", "`types` is empty"),
        ("types = [\"f32,,->f32\"]", "there is no type ``"),
        ("step = []", "belongs into each [[kernel.step]]"),
        (
            "push = [{ from = 1, by = 2 }]",
            "grows with repetitions, and the step does not repeat",
        ),
        (
            "repeat = { times = 2 }\npush = [{ from = 1, by = 2 }, { from = 1, by = 2 }]",
            "one push constant of a step may grow",
        ),
        (
            "repeat = { steps = 2, times = 2 }",
            "more steps repeat than there are",
        ),
        (
            "repeat = { steps = 0, times = 2 }",
            "expected a number from 1 to 64",
        ),
        ("repeat = { steps = 1 }", "`repeat` needs `times`"),
        ("push = [{ from = 1 }]", "a push constant needs `by`"),
        ("rank = -1", "expected a number from 0 to 255"),
        ("types = 1", "`types` is \"equal\" or a list"),
        ("types = [1]", "expected a string, got an integer"),
        ("let = 1", "expected a table, got an integer"),
        ("needs = [1]", "expected a string, got an integer"),
    ];
    for (line, message) in cases {
        let error = with(line);
        assert!(error.contains(message), "{line}: {error}");
    }
    let cases = [
        (mistakes("groups = [1]"), "[[kernel]] needs `shader`"),
        (mistakes("shader = \"k.comp\""), "[[kernel]] needs `groups`"),
        (
            mistakes("shader = \"k.comp\"\ngroups = [1,1,1,1]"),
            "at most 3 entries",
        ),
        (
            mistakes("shader = \"k.comp\"\ngroups = []"),
            "`groups` has one to three counts",
        ),
        (
            with(&many("defines", "D")),
            "`defines` has at most 64 entries",
        ),
        (
            with(&many("constants", "1")),
            "`constants` has at most 64 entries",
        ),
        (
            read(&HEAD.replace("id = \"", &format!("id = \"{}", "x".repeat(128)))).unwrap_err(),
            "a pack id is made of 1 to 128 letters",
        ),
        (
            read(&format!(
                "{HEAD}[[kernel]]\nid = \"k\"\nop = \"o\"\ninputs = [\"s32\"]\noutputs = [\"f32\"]\n\
                 types = [\"f32->f32\"]\n{step}"
            ))
            .unwrap_err(),
            "`types` has f32, which is not among these",
        ),
        (mistakes("step = []"), "a kernel has 1 to 64 steps"),
        (read("").unwrap_err(), "the file needs `pack`"),
        (read(HEAD).unwrap_err(), "the file needs `kernel`"),
        (read("[pack]\nid = \"x\n").unwrap_err(), "pack.toml:2:"),
        (read("pack = 1").unwrap_err(), "expected a table"),
        (
            read(&format!("{HEAD}[[kernel]]\nid = \"k\"\nop = \"o\"\n{step}")).unwrap_err(),
            "[[kernel]] needs `inputs`",
        ),
    ];
    for (error, message) in cases {
        assert!(error.contains(message), "{message}: {error}");
    }
    let row = format!("[[kernel]]\nid = \"k\"\nop = \"o\"\ntypes = [\"->f32\"]\n{step}");
    let error = read(&format!("{HEAD}{row}{row}")).unwrap_err();
    assert!(
        error.contains("pack.toml:12:6: two kernels are called `k`"),
        "{error}"
    );
}

#[test]
fn damaged_tables_give_an_error_or_a_table_and_no_panic() {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../examples/packs/swish/pack.toml"
    );
    let text = std::fs::read_to_string(path).unwrap();
    for at in (0..text.len()).filter(|&at| text.is_char_boundary(at)) {
        let _ = read(&text[..at]);
        for junk in ["\"", "[", "}", "(", "-", "9", "é"] {
            if at % 7 == 0 {
                let _ = read(&format!("{}{junk}{}", &text[..at], &text[at..]));
            }
        }
    }
}
