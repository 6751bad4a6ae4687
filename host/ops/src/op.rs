//! What an op is: one row holds all that anybody has to know of it. The rows stand in `contracts`.

use crate::{
    attrs::{Attr, AttrValue, text},
    kernels::{kernel::Kernel, lanes::Lane},
    layout::Layout,
    partial::Partial,
    problems::Problem,
    request::Spec,
    tolerance::{Bound, Tolerance},
    values::{Domain, Rng},
    view::Desc,
};
use nx_vulkan_abi::{
    DType, DTypeSet,
    dtype::Class,
    precision::{self, Precision},
};
use std::fmt;

/// An op.
#[derive(Debug)]
pub struct Op {
    /// Name, as in Nx.
    pub name: &'static str,
    /// What it computes, in a sentence of `docs/ops.md`.
    pub doc: &'static str,
    /// What it has in common with the ops of its family.
    pub contract: &'static Contract,
    /// Types that each operand may have.
    pub takes: &'static [DTypeSet],
    /// Type of the results.
    pub gives: Gives,
    /// How far a result may be from the CPU kernel's.
    pub bound: Bound,
    /// What each operand is tried with.
    pub domains: &'static [Domain],
    /// What it has no result for.
    pub(crate) partial: Option<&'static Partial>,
    pub(crate) kernel: Kernel,
    /// The loop that takes its elements where they lie, for some types.
    pub(crate) lane: Option<Lane>,
}

/// What the ops of a family have in common: operands, attributes, results, and how these follow from each other.
pub struct Contract {
    /// Heading in `docs/ops.md`.
    pub title: &'static str,
    /// Names of the operands.
    pub operands: &'static [&'static str],
    /// Names of the results.
    pub results: &'static [&'static str],
    /// Attributes, in the order of their names.
    pub attributes: &'static [Attribute],
    /// Whether there may be more operands, each like the last one.
    pub variadic: bool,
    /// Whether there may be more results, each of the first one's shape.
    pub several: bool,
    /// Whether type and shape of the result follow from operands and attributes.
    pub infers: bool,
    /// Whether the CPU kernel also takes these types, with some that nobody else computes with: mostly since it only copies.
    pub(crate) copies: fn(&[DType], &[DType]) -> bool,
    /// Adds the attributes that a request leaves out.
    pub(crate) complete: fn(&[Spec], Option<&Spec>, &mut Vec<Attr>),
    /// Type and shape of the first result, where they follow.
    pub(crate) infer: Infer,
    /// All results, from the operands and the first.
    pub(crate) all: fn(&[Spec], Spec, &[Attr]) -> Vec<Spec>,
    /// Checks shapes and attributes of a request whose types and numbers of operands and results are right.
    pub(crate) check: Check,
    /// Shapes of operands that fit each other, one of them this.
    pub(crate) operand_shapes: fn(&Op, &[u64]) -> Vec<Vec<u64>>,
    /// The lowest and the highest index to try it with, of operands of [`Domain::Index`].
    pub(crate) indices: Indices,
    /// Shapes and attributes to try it with; many where it may vary.
    pub(crate) problems: fn(&Op, Layout, bool, &mut Rng) -> Vec<Problem>,
    /// Problems of the sizes that kernels of whole tiles are for, and the types to try each of them with.
    pub(crate) tiles: fn() -> (Vec<Types>, Vec<Problem>),
    /// Whether packs choose other kernels for large problems of every type, and not by the layout alone.
    pub tiled: bool,
    /// Makes a problem one whose result has that type.
    pub(crate) fit: fn(DType, &mut Problem),
    /// Types with which it stands for a type.
    pub(crate) alone: fn(&Op, DType) -> Types,
    /// Different types to try it with, and how many of them at most.
    pub(crate) mixed: fn(&Op) -> (Vec<Types>, usize),
    /// Elements that make one result.
    pub(crate) terms: Terms,
    /// What its time depends on.
    pub(crate) work: fn(&[&[u64]], &[u64]) -> Vec<f64>,
    /// Shape of a square problem of about two to this power elements.
    pub(crate) square: fn(u32) -> Vec<u64>,
}

type Infer = fn(&Op, &[Spec], &[Attr]) -> Result<Spec, String>;
type Check = fn(&Op, &[Desc<'_>], &[Desc<'_>], &[Attr]) -> Result<(), String>;
/// Of the operands' shapes.
type Indices = fn(&[&[u64]], &[Attr]) -> (i64, i64);
/// Of the operands' shapes and the result's.
type Terms = fn(&[&[u64]], &[u64], &[Attr]) -> u64;

/// An attribute of a contract.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Attribute {
    /// Name.
    pub name: &'static str,
    /// Kind of its value.
    pub kind: AttributeKind,
    /// What it means, and its default, in a sentence of `docs/ops.md`.
    pub doc: &'static str,
}

/// Kinds of an attribute's value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum AttributeKind {
    /// A list of integers.
    Ints,
    /// One number.
    Number,
    /// One of these words.
    Word(&'static [&'static str]),
    /// One of these words, or nothing.
    Choice(&'static [&'static str]),
    /// Text that the contract reads.
    Text,
}

/// Which types an op's results may have, and which they have where Nx infers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Gives {
    /// The type of the first operand.
    Operand,
    /// u8.
    Bool,
    /// An integer type: what the operands merge to.
    Integer,
    /// A float or complex type: what the operands merge to, f32 for integers.
    Float,
    /// A complex type: c128 for f64 and c128, else c64.
    Complex,
    /// The type of the first operand, or of its parts.
    OwnPart,
    /// A real type: that of the parts of a complex operand, f32 for integers.
    Part,
    /// A type of numbers: what the operands merge to.
    Real,
    /// Every type.
    Any,
}

/// Types of a request's operands and result; no result stands for the one that Nx infers.
#[derive(Debug, Clone, PartialEq)]
pub struct Types {
    /// Of the operands.
    pub inputs: Vec<DType>,
    /// Of the first result.
    pub output: Option<DType>,
}

impl Op {
    /// Number of operands; where there may be more, the least.
    pub fn arity(&self) -> usize {
        self.contract.operands.len()
    }

    /// Whether it takes so many operands.
    pub fn takes_so_many(&self, operands: usize) -> bool {
        operands == self.arity() || self.contract.variadic && operands > self.arity()
    }

    /// Types that operand `index` may have.
    pub fn takes_at(&self, index: usize) -> DTypeSet {
        let last = self.takes.len().saturating_sub(1);
        self.takes
            .get(index.min(last))
            .copied()
            .unwrap_or(DTypeSet(0))
    }

    /// What operand `index` is tried with.
    pub fn domain(&self, index: usize) -> Domain {
        let last = self.domains.len().saturating_sub(1);
        self.domains
            .get(index.min(last))
            .copied()
            .unwrap_or(Domain::Any)
    }

    /// The lowest and the highest index to try it with.
    pub fn indices(&self, inputs: &[&[u64]], attrs: &[Attr]) -> (i64, i64) {
        (self.contract.indices)(inputs, attrs)
    }

    /// Types that all operands but indices may have, numbers for the results where there are none; the first of three
    /// only chooses.
    pub fn types(&self) -> DTypeSet {
        let all = match self.takes.is_empty() {
            true => DTypeSet::NUMBER,
            false => DTypeSet::ALL,
        };
        let indexed = self.domains.contains(&Domain::Index);
        let chooses = usize::from(self.takes.len() > 2 && !indexed);
        let common = self.takes.iter().enumerate().skip(chooses);
        let common = common.filter(|(index, _)| self.domain(*index) != Domain::Index);
        common.fold(all, |set, (_, takes)| DTypeSet(set.0 & takes.0))
    }

    /// Whether each element of its result comes from one element of each operand.
    pub fn is_elementwise(&self) -> bool {
        self.kernel.is_elementwise()
    }

    /// What it has no result for, where operands of these types may be that.
    pub fn partial(&self, inputs: &[DType]) -> Option<&'static Partial> {
        self.partial.filter(|partial| partial.concerns(inputs))
    }

    /// Shapes of operands that fit each other, and a result of `shape` where the op has one operand like it.
    pub fn operand_shapes(&self, shape: &[u64]) -> Vec<Vec<u64>> {
        (self.contract.operand_shapes)(self, shape)
    }

    /// Shapes and attributes to try the op with, in that layout and for a result of type `dtype`. Elementwise there is
    /// one: if it `varies`, one of many shapes, else a shape with which several layouts need the same shader.
    pub fn problems(
        &self,
        layout: Layout,
        dtype: DType,
        varies: bool,
        rng: &mut Rng,
    ) -> Vec<Problem> {
        let mut problems = (self.contract.problems)(self, layout, varies, rng);
        problems
            .iter_mut()
            .for_each(|problem| (self.contract.fit)(dtype, problem));
        problems
    }

    /// Every type the op takes, alone: all operands have it, or the result of an op without operands. What gives any
    /// type copies them all.
    pub fn alone(&self) -> Vec<Types> {
        let set = match self.gives {
            Gives::Any => DTypeSet::ALL,
            Gives::Operand
            | Gives::Bool
            | Gives::Integer
            | Gives::Float
            | Gives::Complex
            | Gives::OwnPart
            | Gives::Part
            | Gives::Real => self.types(),
        };
        let all = DType::all().filter(|dtype| set.has(*dtype));
        all.map(|dtype| self.of_type(dtype)).collect()
    }

    /// Types with which it stands for a type: that of all operands but indices, or of the result of an op without any.
    pub fn of_type(&self, dtype: DType) -> Types {
        (self.contract.alone)(self, dtype)
    }

    /// The type that `types` stand for: that of the last operand but indices, or of the result.
    pub fn stands_for(&self, types: &Types) -> Option<DType> {
        let operands = types.inputs.iter().enumerate().rev();
        let mut moved = operands.filter(|(index, _)| self.domain(*index) != Domain::Index);
        moved.next().map(|(_, dtype)| *dtype).or(types.output)
    }

    /// Operands of different types, and results of other types than Nx infers, with how many of them to try at most.
    pub fn mixed(&self) -> (Vec<Types>, usize) {
        (self.contract.mixed)(self)
    }

    /// Problems that kernels of whole tiles take, and some that they do not, each with every type of the list.
    pub fn tiles(&self) -> (Vec<Types>, Vec<Problem>) {
        (self.contract.tiles)()
    }

    /// Elements that make one result.
    pub fn terms(&self, inputs: &[&[u64]], output: &[u64], attrs: &[Attr]) -> u64 {
        (self.contract.terms)(inputs, output, attrs)
    }

    /// How far a pack's result of type `result` may be from the CPU kernel's.
    pub fn tolerance(&self, operands: &[DType], result: DType) -> Tolerance {
        self.bound.tolerance(operands, result)
    }

    /// How far it may be off in a request with these attributes, which may allow more.
    pub fn allows(&self, operands: &[DType], result: DType, attrs: &[Attr]) -> Tolerance {
        let strict = self.tolerance(operands, result);
        strict.at(self.precision(attrs), result)
    }

    /// What the time of a request depends on, each number about proportional to it.
    pub fn work(&self, inputs: &[&[u64]], output: &[u64]) -> Vec<f64> {
        (self.contract.work)(inputs, output)
    }

    /// Shape of the first operand, or of the result, of a problem of about `2^power` elements.
    pub fn square(&self, power: u32) -> Vec<u64> {
        (self.contract.square)(power)
    }
}

impl Op {
    /// With a loop for elements where they lie.
    pub(crate) const fn in_lanes(self, lane: Lane) -> Op {
        Op {
            lane: Some(lane),
            ..self
        }
    }

    /// Whether its contract has an attribute of that name.
    pub fn has(&self, attribute: &str) -> bool {
        let mut attributes = self.contract.attributes.iter();
        attributes.any(|known| known.name == attribute)
    }

    /// How exact a request with these attributes has to be.
    pub(crate) fn precision(&self, attrs: &[Attr]) -> Precision {
        let word = text(attrs, precision::ATTRIBUTE).filter(|_| self.has(precision::ATTRIBUTE));
        word.and_then(Precision::named).unwrap_or_default()
    }

    /// The types of results that its kernel computes.
    pub(crate) fn computes(&self) -> DTypeSet {
        let takes_complex = self.takes.iter().any(|takes| takes.has(DType::C64));
        match takes_complex || self.takes.is_empty() {
            true => DTypeSet::NUMBER,
            false => DTypeSet::REAL,
        }
    }
}

impl Gives {
    /// Whether the result may be `dtype` when the first operand is `operand`.
    pub fn allows(self, dtype: DType, operand: Option<DType>) -> bool {
        match self {
            Gives::Operand => operand == Some(dtype),
            Gives::Bool => dtype == DType::U8,
            Gives::Integer => dtype.is_integer(),
            Gives::Float => dtype.is_float() || dtype.is_complex(),
            Gives::OwnPart => operand.map(DType::part) == Some(dtype),
            Gives::Part => DTypeSet::REAL.has(dtype),
            Gives::Complex => dtype.class() == Some(Class::Complex),
            Gives::Real => DTypeSet::NUMBER.has(dtype),
            Gives::Any => dtype.is_known(),
        }
    }
}

impl Attribute {
    /// What is wrong with an attribute of this name, if it has another kind of value.
    pub(crate) fn check(&self, attr: &Attr) -> Result<(), String> {
        match (self.kind, &attr.value) {
            (AttributeKind::Ints, AttrValue::Ints(_)) => Ok(()),
            (AttributeKind::Number, AttrValue::Ints(ints)) if ints.len() == 1 => Ok(()),
            (AttributeKind::Number, AttrValue::Floats(floats)) if floats.len() == 1 => Ok(()),
            (AttributeKind::Word(words) | AttributeKind::Choice(words), AttrValue::Text(text))
                if words.contains(&text.as_str()) =>
            {
                Ok(())
            }
            (AttributeKind::Text, AttrValue::Text(_)) => Ok(()),
            (AttributeKind::Text, other) => {
                Err(format!("attribute {} must be text, got {other}", self.name))
            }
            (AttributeKind::Ints, other) => Err(format!(
                "attribute {} must be a list of integers, got {other}",
                self.name
            )),
            (AttributeKind::Number, other) => Err(format!(
                "attribute {} must be a number, got {other}",
                self.name
            )),
            (AttributeKind::Word(words) | AttributeKind::Choice(words), other) => Err(format!(
                "attribute {} must be {}, got {other}",
                self.name,
                words.join(" or ")
            )),
        }
    }
}

impl fmt::Debug for Contract {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.title)
    }
}

/// Elements of the largest operand, and of the result.
pub fn elements(inputs: &[&[u64]], output: &[u64]) -> Vec<f64> {
    let count = |shape: &[u64]| shape.iter().map(|&extent| extent as f64).product::<f64>();
    let largest = inputs.iter().map(|shape| count(shape));
    vec![largest.fold(0.0, f64::max), count(output)]
}
