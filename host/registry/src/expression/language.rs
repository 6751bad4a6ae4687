//! What the expressions of each file may name, as messages call it too; how they are written is the parser's.

use super::{Field, MAX_TENSORS, Tensor};

/// Precedence of sums.
pub(super) const SUM: u8 = 4;

/// The function of cooperative matrices: three types, three extents.
pub(super) const MATRIX: &str = "matrix";

/// Limits by name, and whether each is a list of three.
pub(super) const LIMITS: &[(&str, bool)] = &[
    ("vendor", false),
    ("kind", false),
    ("subgroup_size", false),
    ("min_subgroup_size", false),
    ("max_subgroup_size", false),
    ("max_subgroups", false),
    ("subgroups_per_unit", false),
    ("memory_bytes", false),
    ("driver_id", false),
    ("shared_bytes", false),
    ("push_bytes", false),
    ("max_invocations", false),
    ("compute_units", false),
    ("max_buffer_range", false),
    ("buffer_align", false),
    ("max_workgroup_size", true),
    ("max_groups", true),
];

pub(super) const FIELDS: &[(&str, Field)] = &[
    ("rank", Field::Rank),
    ("dim", Field::Dim),
    ("elems", Field::Elements),
    ("offset", Field::Offset),
    ("bytes", Field::Bytes),
    ("size", Field::Size),
    ("contiguous", Field::Contiguous),
    ("stride", Field::Stride),
];

/// What the expressions of one file may name.
#[derive(Debug)]
pub(super) struct Language {
    /// As messages call a text, and its most characters.
    pub(super) text: &'static str,
    pub(super) longest: usize,
    /// Precedence of the weakest operator inside parentheses.
    pub(super) weakest: u8,
    /// What a value is, and which tensors there are, for messages.
    pub(super) value: &'static str,
    pub(super) tensors: &'static str,
    pub(super) tensor: fn(&str) -> Option<Tensor>,
    pub(super) fields: &'static [(&'static str, Field)],
    /// Further words with members.
    pub(super) owners: &'static [&'static str],
    pub(super) functions: &'static [&'static str],
}

pub(super) static PACK: Language = Language {
    text: "an expression",
    longest: 1024,
    weakest: 0,
    value: "a number or a name",
    tensors: "operands are `a` to `p` or `in0` to `in15`, results `out` or `out0` to `out15`",
    tensor,
    fields: FIELDS,
    owners: &["attr", "device"],
    functions: &["ceil", "ceil_div", "min", "max", MATRIX],
};

/// The sides of a condition in `registry.toml`.
pub(super) static RULE: Language = Language {
    text: "a condition",
    longest: 256,
    weakest: SUM,
    value: "a number or a tensor, such as `a.rank >= 2`, `a.dim[-1] % 16 == 0` or `elems >= 65536`",
    tensors: "`a` to `h` are the inputs, `out` the result, `elems` its elements",
    tensor: |name| tensor(name).filter(|_| matches!(name.as_bytes(), b"out" | [b'a'..=b'h'])),
    fields: FIELDS.split_at(3).0,
    owners: &[],
    functions: &[],
};

/// The tensor that `name` stands for: `a` to `p` and `in0` to `in15`, `out` and `out0` to `out15`.
pub(crate) fn tensor(name: &str) -> Option<Tensor> {
    let numbered = |rest: &str| {
        let plain = rest == "0" || !rest.starts_with(['0', '+']);
        rest.parse().ok().filter(|&n| plain && n < MAX_TENSORS)
    };
    match name.as_bytes() {
        [letter @ b'a'..=b'p'] => Some(Tensor::Input(u32::from(letter - b'a'))),
        b"out" => Some(Tensor::Output(0)),
        _ => match name.strip_prefix("out") {
            Some(rest) => numbered(rest).map(Tensor::Output),
            None => numbered(name.strip_prefix("in")?).map(Tensor::Input),
        },
    }
}

/// Whether `name` can be given to an expression. Operands from the ninth on have their letters until somebody needs them,
/// and remain `in8` to `in15`: no op has so many that it names, and m, n and k are what products are spoken of in.
pub(crate) fn is_free(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && (tensor(name).is_none() || matches!(name.as_bytes(), [b'i'..=b'p']))
        && name != "elems"
        && !PACK
            .owners
            .iter()
            .chain(PACK.functions)
            .any(|word| *word == name)
}
