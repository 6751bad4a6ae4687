//! Tables and plans as data, without a device: what they say, what is wrong with them, and hostile numbers.

use super::*;
use nx_vulkan_abi::{
    Access, Attr, AttrKind, BufArg, DType, DeviceInfo, DeviceKind, Features, InputAs, Outcome,
    RStr, TensorDesc, layout,
};

const HEAD: &str = "[pack]\nid = \"p\"\nversion = \"1.0.0\"\nabi = \"1\"\n";

fn device() -> DeviceInfo<'static> {
    DeviceInfo {
        name: "test".into(),
        vendor: 7,
        driver: 0,
        kind: DeviceKind(4),
        subgroup_size: 32,
        shared_bytes: 16384,
        push_bytes: 128,
        max_invocations: 128,
        compute_units: 0,
        max_workgroup_size: [128, 128, 64],
        max_groups: [65535, 1000, 10],
        max_buffer_range: 1 << 27,
        buffer_align: 256,
        features: Features::STORAGE16.with(Features::INT16),
        ..DeviceInfo::default()
    }
}

/// One operand or result: type, shape, strides, offset.
type Layout<'a> = (DType, &'a [u64], Option<&'a [i64]>, u64);

fn f32(shape: &[u64]) -> Layout<'_> {
    (DType::F32, shape, None, 0)
}

fn ask(table: &Table, inputs: &[Layout<'_>], outputs: &[Layout<'_>], attrs: &[Attr<'_>]) -> Reply {
    let strides = |list: &[Layout<'_>]| -> Vec<Vec<i64>> {
        list.iter()
            .map(|l| {
                l.2.map_or_else(|| layout::contiguous_strides(l.1), <[i64]>::to_vec)
            })
            .collect()
    };
    let (own, results) = (strides(inputs), strides(outputs));
    fn descs<'a>(list: &[Layout<'a>], strides: &'a [Vec<i64>]) -> Vec<TensorDesc<'a>> {
        let desc = |(l, strides): (&Layout<'a>, &'a Vec<i64>)| TensorDesc {
            dtype: l.0,
            spare: 0,
            shape: l.1.into(),
            strides: strides[..].into(),
            offset: l.3,
            storage_len: 4096,
            reserved: [0; 2],
        };
        list.iter().zip(strides).map(desc).collect()
    }
    let (inputs, outputs) = (descs(inputs, &own), descs(outputs, &results));
    let device = device();
    let request = Request {
        op: "op".into(),
        inputs: inputs[..].into(),
        outputs: outputs[..].into(),
        attrs: attrs.into(),
        device: &device,
        spare: [0; 4],
    };
    table.plan(0, &request).unwrap()
}

fn ints<'a>(name: &'a str, ints: &'a [i64]) -> Attr<'a> {
    Attr {
        name: name.into(),
        kind: AttrKind::INTS,
        spare: 0,
        ints: ints.into(),
        floats: [][..].into(),
        text: RStr::from_str(""),
    }
}

fn read(text: &str) -> Result<Table, String> {
    let files = ["k.comp", "other.comp", "h.glsl"];
    Table::parse(Path::new("pack.toml"), text, &files)
}

/// A table with one kernel on all types that has these further lines.
fn kernel(lines: &str) -> Result<Table, String> {
    let start = "[[kernel]]\nid = \"k\"\nop = \"op\"\ninputs = [\"all\"]\noutputs = [\"all\"]\n";
    read(&format!("{HEAD}{start}{lines}"))
}

/// What `text` comes to when `a` is f32[3,5] with strides 10 and -2 at offset 9, and the result f32[3].
fn value(text: &str) -> Result<i128, String> {
    let lines = format!(
        "shader = \"k.comp\"\ngroups = [1]\ncontiguous = false\npush = [\"u64 a.offset\", \"f32 {text}\"]"
    );
    kernel(&lines).map_err(|error| error.lines().next().unwrap().to_owned())?;
    let expression = Expression::parse(text).unwrap();
    let (device, shape, strides) = (device(), [3, 5], [10, -2]);
    let desc = |shape: &'static [u64]| TensorDesc {
        dtype: DType::F32,
        spare: 0,
        shape: shape.into(),
        strides: [1][..].into(),
        offset: 0,
        storage_len: 12,
        reserved: [0; 2],
    };
    let input = [TensorDesc {
        shape: shape[..].into(),
        strides: strides[..].into(),
        offset: 9,
        storage_len: 400,
        ..desc(&[])
    }];
    let output = [desc(&[3])];
    let attrs = [ints("axes", &[-1, 4]), ints("k", &[i64::MIN])];
    expression.evaluate(&Request {
        op: "op".into(),
        inputs: input[..].into(),
        outputs: output[..].into(),
        attrs: attrs[..].into(),
        device: &device,
        spare: [0; 4],
    })
}

#[test]
fn expressions_follow_the_usual_rules() {
    let cases = [
        ("1 + 2 * 3 - 4", 3),
        ("(1 + 2) * 3", 9),
        ("10 - 3 - 2", 5),
        ("-7 / 2", -3),
        ("-7 % 3", -1),
        ("ceil(7 / 2) + ceil_div(-7, 2) + ceil(7 / -2)", 4 - 3 - 3),
        ("ceil(6 / 3)", 2),
        ("min(3, 1, 2) + max(1, 5)", 6),
        ("1 < 2 && 2 <= 2 && 3 > 2 && 3 >= 3 && 1 != 2 && 1 == 1", 1),
        ("!(1 == 2) || 1 / 0", 1),
        ("0 && 1 / 0", 0),
        ("- - 4", 4),
        ("elems + out.elems + out0.dim[0]", 9),
        ("a.elems", 15),
        ("a.rank", 2),
        ("a.dim[0] * 10 + in0.dim[-1]", 35),
        ("a.stride[0] + a.stride[a.rank - 1]", 8),
        ("a.offset + a.bytes + a.size + a.contiguous", 9 + 400 + 4),
        ("attr.axes[1] + attr.axes[0] + attr.axes.len", 5),
        ("attr.k", i64::MIN.into()),
        ("device.max_groups[1] + device.vendor", 1007),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_has_no_value_says_why() {
    let cases = [
        ("1 / (elems - 3)", "a division by zero"),
        ("5 % 0", "a division by zero"),
        ("ceil_div(5, 0)", "a division by zero"),
        ("a.dim[2]", "the shape has 2 entries, and none at 2"),
        (
            "a.stride[-3]",
            "the list of strides has 2 entries, and none at -3",
        ),
        (
            "a.dim[attr.k]",
            "the shape has 2 entries, and none at -9223372036854775808",
        ),
        ("b.elems", "the request has 1 operands"),
        ("out1.rank", "the request has 1 results"),
        ("attr.axes", "attribute `axes` has 2 integers"),
        ("attr.gone", "the request has no attribute `gone`"),
        (
            "device.max_groups[3]",
            "`max_groups` has 3 entries, and none at 3",
        ),
        ("attr.k * attr.k * attr.k", "a number too large"),
    ];
    for (text, why) in cases {
        assert_eq!(value(text), Err(format!("`{text}`: {why}")));
    }
}

#[test]
fn an_expression_that_is_wrong_is_placed() {
    let cases = [
        (
            "",
            0,
            "expected a number or a name, got the end of the expression",
        ),
        (
            "1 +",
            3,
            "expected a number or a name, got the end of the expression",
        ),
        ("1 $ 2", 2, "expected an operator or the end, got `$`"),
        ("(1", 2, "expected `)`, got the end of the expression"),
        (
            "elms",
            0,
            "there is nothing called `elms`; did you mean `elems`?",
        ),
        ("a.elem", 2, "`a` has no `elem`; did you mean `elems`?"),
        ("a.dim", 5, "`dim` is a list: write `dim[0]`"),
        ("a.rank[0]", 6, "`rank` is one number and takes no index"),
        ("ceil(3)", 0, "ceil takes one division: ceil(x / y)"),
        ("min(3)", 0, "min and max take two numbers or more"),
        ("sqrt(3)", 0, "there is no function `sqrt`"),
        ("q.elems", 0, "there is nothing called `q`"),
        ("in16.elems", 0, "there is nothing called `in16`"),
        ("1e5", 0, "this is not an integer"),
        (
            "device.speed",
            7,
            "`device` has no `speed`; it has `vendor`",
        ),
        ("é", 0, "expected a number or a name, got `\\u{e9}`"),
    ];
    for (text, at, message) in cases {
        let mistake = Expression::parse(text).unwrap_err();
        assert_eq!(mistake.span.start, at, "{text}");
        assert!(
            mistake.message.starts_with(message),
            "{text}: {}",
            mistake.message
        );
    }
}

#[test]
fn no_text_is_too_deep_or_too_long_to_be_parsed() {
    for text in ["(", "-", "!", "a.dim[", "min(1,"] {
        let deep = text.repeat(1000 / text.len());
        assert_eq!(
            Expression::parse(&deep).unwrap_err().message,
            "it is nested too deeply"
        );
    }
    assert!(
        Expression::parse(&"1+".repeat(600))
            .unwrap_err()
            .message
            .contains("1024")
    );
    let long = format!("{}1", "1+".repeat(511));
    assert_eq!(value(&long), Ok(512));
}

#[test]
fn a_plan_has_what_the_table_says() {
    let table = kernel(
        "let = { wide = 64 }\n\
         scratch = [\"8 * elems\", 4]\n\
         defines = { WIDE = \"{wide}\", \"F(x)\" = \"{{{a.storage} {out.type}}}\" }\n\
         [[kernel.step]]\nshader = \"k.comp\"\nbindings = [\"a\", \"write scratch\"]\n\
         push = [\"a.offset\", \"u64 elems\", \"i32 -a.rank\", \"f32 0.5\", \"f32 attr.k\"]\n\
         groups = [\"ceil(elems / wide)\", 2]\n\
         [[kernel.step]]\nshader = \"other.comp\"\nbindings = [\"read scratch0\", \"update scratch1\", \"out\"]\n\
         groups = [1]\nconstants = { 3 = \"wide + 1\" }\nsubgroup_size = \"device.subgroup_size\"\n\
         defines = { LAST = 1 }\n",
    );
    let input = (DType::F16, &[10, 10][..], None, 7);
    let reply = ask(
        &table.unwrap(),
        &[input],
        &[f32(&[100])],
        &[ints("k", &[3])],
    );
    assert_eq!(reply.outcome, Outcome::PLAN, "{}", reply.message);
    let plan = reply.plan;
    assert_eq!(plan.scratch.as_slice(), [800, 4]);
    let (first, second) = (&plan.steps[0], &plan.steps[1]);
    assert_eq!((first.groups, second.groups), ([2, 2, 1], [1, 1, 1]));
    let scratch = |index, access| BufArg::scratch(index, access);
    assert_eq!(
        first.args.as_slice(),
        [BufArg::input(0), scratch(0, Access::WRITE)]
    );
    let expected = [
        scratch(0, Access::READ),
        scratch(1, Access::READ_WRITE),
        BufArg::output(0),
    ];
    assert_eq!(second.args.as_slice(), expected);
    // A u64 starts at a multiple of 8.
    let mut push = vec![
        7, 0, 0, 0, 0, 0, 0, 0, 100, 0, 0, 0, 0, 0, 0, 0, 254, 255, 255, 255,
    ];
    push.extend(0.5f32.to_le_bytes());
    push.extend(3f32.to_le_bytes());
    assert_eq!(first.push.as_slice(), push);
    let defines: Vec<String> = plan.shaders[0]
        .defines
        .iter()
        .map(|d| format!("{} {}", d.name, d.value))
        .collect();
    assert!(
        defines.contains(&"A_STORAGE uint16_t".to_owned()),
        "{defines:?}"
    );
    assert!(
        defines.contains(&"R_STORAGE float".to_owned()),
        "{defines:?}"
    );
    assert_eq!(
        defines[defines.len() - 2..],
        ["WIDE 64", "F(x) {uint16_t f32}"]
    );
    assert_eq!(plan.shaders[1].defines.last().unwrap().name, "LAST");
    assert_eq!(plan.shaders[1].subgroup_size, 32);
    assert_eq!((second.spec[0].id, second.spec[0].value), (3, 65));
    assert_eq!((first.shader, second.shader), (0, 1));
}

#[test]
fn operands_that_a_kernel_cannot_take_are_asked_for_in_order() {
    let step = "shader = \"k.comp\"\ngroups = [1]\n";
    let asked = |lines: &str, input: Layout<'_>| {
        let reply = ask(
            &kernel(&format!("{step}{lines}")).unwrap(),
            &[input],
            &[f32(&[6])],
            &[],
        );
        match reply.outcome {
            Outcome::PLAN => None,
            _ => Some(reply.inputs_as.to_vec()),
        }
    };
    let copy = Some(vec![InputAs::new(0, DType::F32)]);
    let transposed = (DType::F32, &[2, 3][..], Some(&[1, 2][..]), 0);
    assert_eq!(asked("", transposed), copy);
    assert_eq!(asked("contiguous = false", transposed), None);
    // A kernel that never reads the offset would read the wrong elements.
    let shifted = (DType::F32, &[6][..], None, 3);
    assert_eq!(asked("", shifted), copy);
    assert_eq!(asked("contiguous = false", shifted), copy);
    assert_eq!(asked("push = [\"a.offset\"]", shifted), None);
    assert_eq!(
        asked("let = { x = \"a.offset\" }\npush = [\"x + 1\"]", shifted),
        None
    );
    assert_eq!(asked("", f32(&[6])), None);
}

#[test]
fn requests_that_a_table_does_not_fit_are_declined_with_the_reason() {
    let step = "shader = \"k.comp\"\n";
    let (f32x6, big) = (f32(&[6]), f32(&[1 << 40]));
    let half = (DType::F16, &[6][..], None, 0);
    let double = (DType::F64, &[6][..], None, 0);
    let huge = f32(&[u64::MAX, u64::MAX, 3]);
    let one = "groups = [1]\n";
    let cases: &[(&str, Layout<'_>, Layout<'_>, &str)] = &[
        (
            "groups = [\"elems\"]",
            f32x6,
            big,
            "`elems` is 1099511627776, and the device takes 0 to 65535",
        ),
        (
            "groups = [1, \"1 - elems\"]",
            f32x6,
            f32x6,
            "`1 - elems` is -5, and",
        ),
        (
            "groups = [1]\npush = [\"elems\"]",
            f32x6,
            big,
            "`elems` is 1099511627776, which u32 does not hold",
        ),
        (
            "groups = [1]\npush = [\"i32 elems * 1000000000\"]",
            f32x6,
            f32x6,
            "which i32 does not hold",
        ),
        (
            "groups = [1]\npush = [\"u64 -1\"]",
            f32x6,
            f32x6,
            "`-1` is -1, which u64 does not hold",
        ),
        (
            "groups = [1]\nconstants = { 0 = -1 }",
            f32x6,
            f32x6,
            "`-1` is -1, which u32",
        ),
        (
            "groups = [1]\nscratch = [\"elems - 6\"]",
            f32x6,
            f32x6,
            "is 0, which is no size",
        ),
        (
            "groups = [\"elems\"]",
            f32x6,
            huge,
            "`elems`: a number too large",
        ),
        (
            "groups = [1]\ntypes = \"equal\"",
            half,
            f32x6,
            "it takes operands and results of one type",
        ),
        (
            "groups = [1]\ntypes = [\"f32,f32->f32\"]",
            f32x6,
            f32x6,
            "it does not take these types together",
        ),
        (one, double, f32x6, "f64 needs fp64, int64"),
        (
            "groups = [1]\nwhen = [\"elems > 6\"]",
            f32x6,
            f32x6,
            "`elems > 6` does not hold",
        ),
        (
            "groups = [1]\nwhen = [{ check = \"a.rank == 2\", reason = \"only matrices\" }]",
            f32x6,
            f32x6,
            "only matrices",
        ),
        (
            "groups = [1]\nbindings = [\"b\", \"out\"]",
            f32x6,
            f32x6,
            "the request has 1 operands",
        ),
        (one, f32(&[0]), f32x6, "operand 0 is empty"),
        (
            "groups = [1]\npush = [\"f32 attr.alpha\"]",
            f32x6,
            f32x6,
            "the request has no attribute `alpha`",
        ),
        (
            "groups = [1]\ndefines = { X = \"{a.storage}\" }",
            (DType::C64, &[6], None, 0),
            f32x6,
            "c64 has no GLSL type",
        ),
    ];
    for (lines, input, output, reason) in cases {
        let table = kernel(&format!("{step}{lines}")).unwrap();
        let reply = ask(&table, &[*input], &[*output], &[]);
        assert_eq!(reply.outcome, Outcome::DECLINE, "{lines}");
        assert!(reply.message.contains(reason), "{lines}: {}", reply.message);
    }
    let table = kernel(&format!("{step}{one}push = [{}]", "1,".repeat(40))).unwrap();
    let reply = ask(&table, &[f32x6], &[f32x6], &[]);
    assert!(
        reply.message.contains("160 bytes of push constants"),
        "{}",
        reply.message
    );
}

#[test]
fn an_empty_result_takes_no_step() {
    let table = kernel("shader = \"k.comp\"\ngroups = [1]\nscratch = [\"elems\"]").unwrap();
    let reply = ask(&table, &[f32(&[0])], &[f32(&[0])], &[]);
    assert_eq!((reply.outcome, reply.plan.steps.len()), (Outcome::PLAN, 0));
}

/// Every number is extreme in turn, and nothing panics or wraps: the answer is a plan or a decline.
#[test]
fn hostile_numbers_give_a_plan_or_a_decline() {
    let table = kernel(
        "contiguous = false\nshader = \"k.comp\"\nscratch = [\"a.bytes + 1\"]\n\
         push = [\"u64 a.offset * a.offset\", \"i32 a.stride[0] - 1\", \"a.dim[0] * a.dim[1]\", \"f32 a.elems\"]\n\
         groups = [\"ceil(elems / a.dim[0])\", \"-a.stride[1] % a.dim[1]\", \"a.elems / attr.k\"]\n",
    );
    let table = table.unwrap();
    let extents = [0, 1, 2, 1 << 31, u64::MAX];
    let steps = [i64::MIN, -1, 0, 1, i64::MAX];
    for extent in extents {
        for other in extents {
            for step in steps {
                for offset in extents {
                    let (shape, strides) = ([extent, other], [step, step]);
                    let input = (DType::F32, &shape[..], Some(&strides[..]), offset);
                    let result = [other, extent];
                    let reply = ask(
                        &table,
                        &[input],
                        &[(DType::F32, &result, Some(&strides), 0)],
                        &[ints("k", &[step])],
                    );
                    let known = [Outcome::PLAN, Outcome::DECLINE].contains(&reply.outcome);
                    assert!(known && (reply.outcome == Outcome::PLAN || !reply.message.is_empty()));
                }
            }
        }
    }
}

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
pack.toml:2:6: a pack id is made of letters, digits, `.`, `_` and `-`, and is not `host`
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
pack.toml:6:6: `id` is 1 to 128 printable characters without spaces
 6 | id = \"a b\"
   |      ^^^^^
pack.toml:7:11: there is no type `f23`; did you mean `f32`?
 7 | inputs = [\"f23\"]
   |           ^^^^^
pack.toml:9:10: there is no device feature `fp65`; did you mean `fp64`?
 9 | needs = [\"fp65\"]
   |          ^^^^^^
pack.toml:10:12: `numerics` is one of \"exact\", \"ieee\", \"relaxed\", not \"exactly\"; did you mean `exact`?
 10 | numerics = \"exactly\"
    |            ^^^^^^^^^
pack.toml:11:8: a rank is a number from 0 to 255
 11 | rank = 300
    |        ^^^
pack.toml:12:14: `contiguous` is true or false
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
        ("let = { x = \"y\" }", "there is nothing called `y`"),
        ("let = { x = [] }", "expected an expression"),
        (
            "let = { x = 99999999999999999999 }",
            "this number is too large",
        ),
        ("when = \"elems\"", "`when` is a list"),
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
        ("step = []", "belongs into each [[kernel.step]]"),
        ("rank = -1", "a rank is a number from 0 to 255"),
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
        (mistakes("step = []"), "a kernel has 1 to 64 steps"),
        (read("").unwrap_err(), "the file needs a table [pack]"),
        (read(HEAD).unwrap_err(), "the file needs a [[kernel]]"),
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
        "/../examples/packs/swish/pack.toml"
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
