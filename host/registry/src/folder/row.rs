//! The kernels of a code-free pack as they stand in its table, checked as far as they can be without a request.

use super::text::Text;
use crate::expression::{Expression, Tensor};
use nx_vulkan_abi::{Access, DType, DTypeSet, Features, Numerics};

/// One `[[kernel]]`.
#[derive(Debug)]
pub(crate) struct Row {
    pub(super) id: String,
    pub(super) op: String,
    pub(super) inputs: DTypeSet,
    pub(super) outputs: DTypeSet,
    pub(super) types: Types,
    pub(super) needs: Features,
    pub(super) numerics: Numerics,
    pub(super) rank: u32,
    /// Whether operands come in row-major order.
    pub(super) contiguous: bool,
    pub(super) when: Vec<Condition>,
    /// Bytes of each scratch buffer.
    pub(super) scratch: Vec<Expression>,
    pub(super) steps: Vec<Step>,
    /// Operands whose offset some expression reads; the others start at element 0.
    pub(super) offsets: Vec<u32>,
}

/// Which types may occur together.
#[derive(Debug)]
pub(super) enum Types {
    Any,
    /// Every operand and result has the same.
    Equal,
    /// One of these lists, of the operands and of the results.
    Listed(Vec<Signature>),
}

/// `f32,f32->f32`
pub(super) type Signature = (Vec<DType>, Vec<DType>);

/// What must hold, and what a request is told for which it does not.
#[derive(Debug)]
pub(super) struct Condition {
    pub(super) holds: Expression,
    pub(super) reason: String,
}

/// One dispatch.
#[derive(Debug)]
pub(super) struct Step {
    pub(super) shader: String,
    pub(super) defines: Vec<(String, Text)>,
    /// `None` for the operands, then the results.
    pub(super) bindings: Option<Vec<Binding>>,
    pub(super) push: Vec<Push>,
    pub(super) groups: [Expression; 3],
    pub(super) constants: Vec<(u32, Expression)>,
    pub(super) subgroup_size: Option<Expression>,
    /// How many steps from this one on run how often, one repetition after the other.
    pub(super) repeat: Option<(u32, Expression)>,
}

/// A buffer that a step binds.
#[derive(Debug, Clone, Copy)]
pub(super) struct Binding {
    pub(super) buffer: Bound,
    pub(super) access: Access,
    /// Whether its first three words are the workgroup counts.
    pub(super) counts: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) enum Bound {
    Tensor(Tensor),
    Scratch(u32),
}

/// One push constant.
#[derive(Debug)]
pub(super) struct Push {
    pub(super) number: Number,
    pub(super) value: Value,
}

/// Type of a push constant.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Number {
    U32,
    I32,
    U64,
    F32,
}

/// Value of a push constant.
#[derive(Debug)]
pub(super) enum Value {
    Integer(Expression),
    /// The first, and by the second more in each repetition.
    Counting(Expression, Expression),
    Float(f32),
    /// The first number of an attribute, which may hold floats.
    Attribute(String),
}

impl Number {
    /// Names in a table, and bytes in std430.
    pub(super) const NAMES: &[(&str, Number)] = &[
        ("u32", Number::U32),
        ("i32", Number::I32),
        ("u64", Number::U64),
        ("f32", Number::F32),
    ];

    pub(super) fn size(self) -> usize {
        if self == Number::U64 { 8 } else { 4 }
    }

    pub(super) fn name(self) -> &'static str {
        let row = Number::NAMES.iter().find(|row| row.1 == self);
        row.map_or("", |row| row.0)
    }
}

impl Push {
    /// Whether it grows with repetitions.
    pub(super) fn counts(&self) -> bool {
        matches!(self.value, Value::Counting(..))
    }
}

impl Row {
    /// Every expression of the row.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let conditions = self.when.iter().map(|condition| &condition.holds);
        let steps = self.steps.iter().flat_map(Step::expressions);
        conditions.chain(&self.scratch).chain(steps)
    }
}

impl Step {
    fn expressions(&self) -> impl Iterator<Item = &Expression> {
        let defines = self.defines.iter().flat_map(|(_, text)| text.expressions());
        let push = self.push.iter().flat_map(|push| match &push.value {
            Value::Integer(expression) => vec![expression],
            Value::Counting(from, by) => vec![from, by],
            Value::Float(_) | Value::Attribute(_) => Vec::new(),
        });
        let times = self.repeat.iter().map(|(_, times)| times);
        let constants = self.constants.iter().map(|(_, expression)| expression);
        let list = defines.chain(push).chain(&self.groups).chain(constants);
        list.chain(&self.subgroup_size).chain(times)
    }
}
