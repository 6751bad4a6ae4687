//! Integer expressions of `pack.toml` and `registry.toml` as trees; what they may name, how they are written and what
//! they come to is in other files.

mod evaluate;
mod language;
mod parser;

pub(super) use evaluate::{desc, elements};
pub(super) use language::{is_free, tensor};
use nx_vulkan_abi::DType;
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
    /// Whether a subgroup multiplies matrices of these types (operands, result) and extents m, n and k.
    Matrix([DType; 3], Box<[Node; 3]>),
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

impl Expression {
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
            Node::Matrix(_, extents) => extents.iter().for_each(|node| node.visit(see)),
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
