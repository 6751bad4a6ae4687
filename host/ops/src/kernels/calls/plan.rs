//! What the calls of an expression are computed with. It takes longer to find than to compute some thousand elements, and is the same
//! for all operands of the same kinds: each thread keeps what it found last.

use super::making::{registers, values};
use crate::kernels::{
    kernel::Sums,
    lanes::{Cast, Loop},
    operand::Operand,
};
use nx_vulkan_abi::{DType, Expression};
use smallvec::SmallVec;
use std::{cell::RefCell, collections::HashMap, sync::Arc};

/// Expressions that a thread keeps plans of, and plans of each.
const MOST_EXPRESSIONS: usize = 256;
const MOST_PLANS: usize = 4;

/// The values that an expression's calls need, and where each is.
pub(super) struct Plan {
    pub(super) values: Vec<Value>,
    /// By value where its blocks are, if they are nowhere yet.
    pub(super) registers: Vec<Option<usize>>,
    /// Bytes of an element in each register.
    pub(super) sizes: Vec<usize>,
    /// The value that each result is, and whether it has one element for each row.
    pub(super) results: Vec<(usize, bool)>,
    /// The result that the last value is, and no other value reads.
    pub(super) last: Option<usize>,
    /// Bytes of an element in all blocks.
    pub(super) bytes: usize,
    /// Values that are computed.
    pub(super) computed: usize,
}

/// What there may be a block of.
pub(super) struct Value {
    pub(super) dtype: DType,
    /// Whether its elements are read, and not only the one that all of them are.
    pub(super) is_read: bool,
    /// Whether it has one element for each row.
    pub(super) per_row: bool,
    pub(super) made: Made,
}

/// How the elements of a value are made.
pub(super) enum Made {
    /// They are those of an operand.
    Operand(usize),
    /// The same, of which all rows are the same one.
    Row(usize),
    /// All are the same one.
    One(Vec<u8>),
    /// Those of another value, of 16 bits, as f32.
    Widened(usize),
    /// Those of another value, rounded to 16 bits.
    Narrowed(usize),
    /// Those of another value, cast.
    Cast(usize, Cast),
    /// Those of another value, which has one for each row.
    Spread(usize),
    /// By a loop.
    Loop(Loop, Vec<usize>),
    /// By an op that has no loop for them.
    Op(&'static str, Vec<usize>),
    /// Of each row of another value.
    Reduced(&'static str, Vec<usize>),
}

/// What of an operand a plan depends on.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) enum Kind {
    /// It has an element for each, or for each row.
    Each(DType, bool),
    /// All rows are the same one.
    Row(DType),
    /// All elements are the same one, whether that is one for each row or not.
    Same(DType, bool, [u8; 8]),
}

impl Kind {
    fn of((operand, per_row): &(Operand<'_>, bool), length: Option<u64>) -> Result<Kind, String> {
        let dtype = operand.dtype;
        if operand.is_constant() {
            let element = operand.line(0, 1);
            let mut one = [0; 8];
            let to = one.get_mut(..element.len());
            to.ok_or_else(|| format!("{dtype} is no real type"))?
                .copy_from_slice(element);
            return Ok(Kind::Same(dtype, *per_row, one));
        }
        let is_row = !per_row && length.is_some_and(|length| operand.repeats(length));
        Ok(match is_row {
            true => Kind::Row(dtype),
            false => Kind::Each(dtype, *per_row),
        })
    }

    fn per_row(&self) -> bool {
        match *self {
            Kind::Each(_, per_row) | Kind::Same(_, per_row, _) => per_row,
            Kind::Row(_) => false,
        }
    }
}

/// Operands, whether there are rows, and how exact sums are.
#[derive(PartialEq)]
struct Key(SmallVec<[Kind; 8]>, bool, Sums);

type Plans = SmallVec<[(Key, Arc<Plan>); 1]>;

thread_local! {
    /// By where the expression lies, which it does as long as it stands here.
    static KNOWN: RefCell<HashMap<usize, (Arc<Expression>, Plans)>> = RefCell::default();
}

/// The plan of an expression for operands, with rows of so many elements where it is of rows.
///
/// # Errors
/// That an op or a type is none of those.
pub(super) fn of(
    expression: &Arc<Expression>,
    operands: &[(Operand<'_>, bool)],
    length: Option<u64>,
    sums: Sums,
) -> Result<Arc<Plan>, String> {
    let kinds = operands.iter().map(|operand| Kind::of(operand, length));
    let key = Key(kinds.collect::<Result<_, _>>()?, length.is_some(), sums);
    KNOWN.with_borrow_mut(|known| {
        let place = Arc::as_ptr(expression) as usize;
        if let Some((_, plans)) = known.get(&place)
            && let Some((_, plan)) = plans.iter().find(|plan| plan.0 == key)
        {
            return Ok(Arc::clone(plan));
        }
        let plan = Arc::new(Plan::new(expression, &key)?);
        if known.len() == MOST_EXPRESSIONS && !known.contains_key(&place) {
            known.clear();
        }
        let (_, plans) = known
            .entry(place)
            .or_insert_with(|| (Arc::clone(expression), Plans::new()));
        if plans.len() == MOST_PLANS {
            plans.remove(0);
        }
        plans.push((key, Arc::clone(&plan)));
        Ok(plan)
    })
}

impl Plan {
    fn new(expression: &Expression, Key(kinds, has_rows, sums): &Key) -> Result<Plan, String> {
        let per_row = match has_rows {
            true => expression.per_row(&kinds.iter().map(Kind::per_row).collect::<Vec<_>>()),
            false => vec![false; expression.calls.len()],
        };
        let (mut values, calls) = values(expression, kinds, &per_row, *sums)?;
        let results = expression.results.iter();
        let results: Vec<_> = results.map(|&call| (calls[call], per_row[call])).collect();
        let own: Vec<usize> = results.iter().map(|result| result.0).collect();
        let (registers, sizes) = registers(&mut values, &own);
        let is_last = |result: &(usize, bool)| result.0 + 1 == values.len();
        let last = results.iter().position(is_last);
        let same = values.iter().filter(|value| value.is_same());
        let bytes = sizes.iter().copied().chain(same.map(Value::size));
        Ok(Plan {
            bytes: bytes.sum::<usize>().max(1),
            computed: values.iter().filter(|value| value.is_computed()).count(),
            last: last.filter(|last| !results[last + 1..].iter().any(is_last)),
            values,
            registers,
            sizes,
            results,
        })
    }
}

impl Value {
    /// Bytes of an element.
    pub(super) fn size(&self) -> usize {
        self.dtype.size() as usize
    }

    /// Whether it has blocks, which are all the same.
    pub(super) fn is_same(&self) -> bool {
        self.is_read && matches!(self.made, Made::One(_) | Made::Row(_))
    }

    fn is_computed(&self) -> bool {
        !matches!(self.made, Made::Operand(_) | Made::Row(_) | Made::One(_))
    }
}
