//! Integer expressions of `pack.toml` and `registry.toml` as trees; how they are written and what they come to is in
//! other files.

mod evaluate;
mod parser;

pub(super) use evaluate::{desc, elements};
pub(super) use parser::condition;
use std::{collections::BTreeMap, fmt, ops::Range, sync::Arc};

/// Operands, and as many results, that can be named.
pub(super) const MAX_TENSORS: u32 = 16;

/// A parsed expression, with the text it was parsed from.
#[derive(Debug, Clone)]
pub struct Expression {
    pub(super) text: String,
    pub(super) root: Arc<Node>,
}

/// An expression that is wrong: where in its text, in bytes, and how.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Mistake {
    /// The part of the text that is wrong.
    pub span: Range<usize>,
    /// What is wrong with it.
    pub message: String,
}

/// Expressions that others refer to by name.
pub(super) type Names = BTreeMap<String, Expression>;

#[derive(Debug)]
pub(super) enum Node {
    Number(i128),
    /// A named expression.
    Named(Arc<Node>),
    /// A property of a tensor, with the index where the property is a list.
    Tensor(Tensor, Field, Option<Box<Node>>),
    /// An integer of an attribute; without an index the attribute is one integer.
    Attr(String, Option<Box<Node>>),
    /// How many integers an attribute has.
    AttrLength(String),
    /// A limit of the device, with the index where the limit is a list.
    Device(usize, Option<Box<Node>>),
    Negate(Box<Node>),
    Not(Box<Node>),
    Binary(Op, Box<Node>, Box<Node>),
    Least(Vec<Node>),
    Most(Vec<Node>),
}

/// A tensor of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Tensor {
    Input(u32),
    Output(u32),
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Field {
    Elements,
    Rank,
    Offset,
    /// Bytes of the buffer it lies in.
    Bytes,
    /// Bytes of one element.
    Size,
    Contiguous,
    Dim,
    Stride,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Op {
    Or,
    And,
    Equal,
    NotEqual,
    Less,
    LessEqual,
    Greater,
    GreaterEqual,
    Add,
    Subtract,
    Multiply,
    Divide,
    CeilDivide,
    Remainder,
}

/// Limits by name, and whether each is a list of three.
pub(super) const LIMITS: &[(&str, bool)] = &[
    ("vendor", false),
    ("kind", false),
    ("subgroup_size", false),
    ("shared_bytes", false),
    ("push_bytes", false),
    ("max_invocations", false),
    ("compute_units", false),
    ("max_buffer_range", false),
    ("buffer_align", false),
    ("max_workgroup_size", true),
    ("max_groups", true),
];

const FIELDS: &[(&str, Field)] = &[
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
struct Language {
    /// As messages call a text, and its most characters.
    text: &'static str,
    longest: usize,
    /// Precedence of the weakest operator inside parentheses.
    weakest: u8,
    /// What a value is, and which tensors there are, for messages.
    value: &'static str,
    tensors: &'static str,
    tensor: fn(&str) -> Option<Tensor>,
    fields: &'static [(&'static str, Field)],
    /// Further words with members.
    owners: &'static [&'static str],
    functions: &'static [&'static str],
}

static PACK: Language = Language {
    text: "an expression",
    longest: 1024,
    weakest: 0,
    value: "a number or a name",
    tensors: "operands are `a` to `p` or `in0` to `in15`, results `out` or `out0` to `out15`",
    tensor,
    fields: FIELDS,
    owners: &["attr", "device"],
    functions: &["ceil", "ceil_div", "min", "max"],
};

/// The sides of a condition in `registry.toml`.
static RULE: Language = Language {
    text: "a condition",
    longest: 256,
    weakest: parser::SUM,
    value: "a number or a tensor, such as `a.rank >= 2`, `a.dim[-1] % 16 == 0` or `elems >= 65536`",
    tensors: "`a` to `h` are the inputs, `out` the result, `elems` its elements",
    tensor: |name| tensor(name).filter(|_| matches!(name.as_bytes(), b"out" | [b'a'..=b'h'])),
    fields: FIELDS.split_at(3).0,
    owners: &[],
    functions: &[],
};

impl Expression {
    /// Parses `text`; any text gives an expression or a mistake.
    ///
    /// # Errors
    /// The first mistake, with its place.
    pub fn parse(text: &str) -> Result<Expression, Mistake> {
        Expression::parse_with(text, &Names::new())
    }

    pub(super) fn parse_with(text: &str, names: &Names) -> Result<Expression, Mistake> {
        parser::parse(text, names).map(|root| Expression::new(text, root))
    }

    fn new(text: &str, root: Node) -> Expression {
        Expression {
            text: text.trim().to_owned(),
            root: Arc::new(root),
        }
    }

    /// Whether it reads that property of a tensor, directly or through a name.
    pub(super) fn reads(&self, tensor: Tensor, field: Field) -> bool {
        let mut found = false;
        self.root.visit(&mut |node| {
            found |= matches!(node, Node::Tensor(own, what, _) if (*own, *what) == (tensor, field));
        });
        found
    }
}

impl Node {
    /// Itself, and every node that it is made of.
    fn visit<'n>(&'n self, see: &mut impl FnMut(&'n Node)) {
        see(self);
        match self {
            Node::Number(_) | Node::AttrLength(_) => {}
            Node::Named(node) => node.visit(see),
            Node::Tensor(.., at) | Node::Attr(_, at) | Node::Device(_, at) => {
                at.iter().for_each(|node| node.visit(see));
            }
            Node::Negate(node) | Node::Not(node) => node.visit(see),
            Node::Binary(_, left, right) => [left, right].into_iter().for_each(|n| n.visit(see)),
            Node::Least(list) | Node::Most(list) => list.iter().for_each(|node| node.visit(see)),
        }
    }
}

impl fmt::Display for Tensor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Tensor::Input(index) => write!(f, "{}", char::from(b'a' + *index as u8)),
            Tensor::Output(0) => f.write_str("out"),
            Tensor::Output(index) => write!(f, "out{index}"),
        }
    }
}

/// The tensor that `name` stands for: `a` to `p` and `in0` to `in15`, `out` and `out0` to `out15`.
pub(super) fn tensor(name: &str) -> Option<Tensor> {
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

/// Whether `name` can be given to an expression.
pub(super) fn is_free(name: &str) -> bool {
    let mut bytes = name.bytes();
    bytes
        .next()
        .is_some_and(|b| b.is_ascii_alphabetic() || b == b'_')
        && bytes.all(|b| b.is_ascii_alphanumeric() || b == b'_')
        && tensor(name).is_none()
        && name != "elems"
        && !PACK
            .owners
            .iter()
            .chain(PACK.functions)
            .any(|word| *word == name)
}
