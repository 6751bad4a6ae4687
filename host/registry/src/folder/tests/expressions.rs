//! What expressions come to, and what is wrong with others.

use super::*;

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
        ("1_000", 1000),
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
        (
            "device.subgroups_per_unit * 100 + device.memory_bytes",
            4800,
        ),
        ("matrix(f16, f16, f32, 16, 8, 8 * 2)", 1),
        ("matrix(f16, f16, f16, 16, 8, 16)", 0),
        ("matrix(s8, s8, s32, -16, 8, 16)", 0),
    ];
    for (text, expected) in cases {
        assert_eq!(value(text), Ok(expected), "{text}");
    }
}

#[test]
fn what_has_no_value_says_why() {
    let cases = [
        ("1 / (elems - 3)", "it divides by zero"),
        ("5 % 0", "it divides by zero"),
        ("ceil_div(5, 0)", "it divides by zero"),
        ("a.dim[2]", "a has no axis 2, its rank is 2"),
        ("a.stride[-3]", "a has no axis -3, its rank is 2"),
        (
            "a.dim[attr.k]",
            "a has no axis -9223372036854775808, its rank is 2",
        ),
        ("b.elems", "the request has no b"),
        ("out1.rank", "the request has no out1"),
        ("attr.axes", "attribute `axes` has 2 integers"),
        ("attr.gone", "the request has no attribute `gone`"),
        (
            "device.max_groups[3]",
            "`max_groups` has 3 entries, and none at 3",
        ),
        ("attr.k * attr.k * attr.k", "its numbers become too large"),
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
        (
            "matrix(f16, half, f32, 16, 16, 16)",
            12,
            "there is no type `half`",
        ),
        (
            "1 + matrix(f16, f16, f32, 16)",
            4,
            "matrix takes the extents m, n and k",
        ),
        ("matrix(f16, f16)", 15, "expected `,`, got `)`"),
        ("sqrt(3)", 0, "there is no function `sqrt`"),
        ("q.elems", 0, "there is nothing called `q`"),
        ("in16.elems", 0, "there is nothing called `in16`"),
        ("1e5", 0, "expected a whole number of 64 bits"),
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
