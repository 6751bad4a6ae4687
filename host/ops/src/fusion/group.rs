//! A group: what may be in one, how large it may be, and the request that it becomes.

use super::{Facts, operand_of};
use crate::{
    Attr, DType, Program, Request, Step, Value,
    expression::{FUSED, check_call, partial_call},
    find,
};
use nx_vulkan_abi::{
    DTypeSet, Expression,
    expression::{ATTRIBUTE, Call, MOST_CALLS, Number, Term},
};
use smallvec::{SmallVec, smallvec};

/// Most results, which bounds what a shader has to keep in registers as well.
const MOST_RESULTS: usize = 6;
/// Most operands and results together: each takes a binding, of which a dispatch has 16, up to three of them for others.
pub(super) const MOST_BOUND: usize = 12;

/// Elementwise ops of one shape.
#[derive(Debug, Clone)]
pub(super) struct Group {
    /// Where they stand in the program, ascending.
    pub(super) places: SmallVec<[usize; 1]>,
    /// Which of the numbers in its text are operands all the same, by their order there.
    apart: Vec<usize>,
}

/// What a group is as a request.
struct Draft {
    expression: Expression,
    operands: Vec<Value>,
    dtypes: Vec<DType>,
    /// The values that the results are.
    results: Vec<Value>,
    /// Numbers that were met.
    numbers: usize,
}

impl Group {
    /// The group of the step at that place alone; `None` where it is for none.
    pub(super) fn of(place: usize, program: &Program<'_>, facts: &Facts) -> Option<Group> {
        let request = request(program, place);
        let request = request.filter(|request| request.attrs.is_empty())?;
        let [(_, shape)] = &*request.outputs else {
            return None;
        };
        let of_reals = request.inputs.iter().all(|&value| {
            let dtype = facts.dtypes.get(value as usize);
            dtype.is_some_and(|dtype| DTypeSet::REAL.has(*dtype))
        });
        let group = Group {
            places: smallvec![place],
            apart: Vec::new(),
        };
        let is_read = facts.uses[facts.first[place] as usize] > 0;
        let known = find(&request.op)?.kernel.is_elementwise();
        if !known || !of_reals || !is_read || shape.contains(&0) {
            return None;
        }
        let draft = group.draft(program, facts);
        let checked = check_call(&draft.expression, &draft.expression.calls[0], &draft.dtypes);
        (checked.is_ok() && draft.fits()).then_some(group)
    }

    /// Both as one group, where that is not too large for one and they are of one shape.
    pub(super) fn with(
        &self,
        other: &Group,
        program: &Program<'_>,
        facts: &Facts,
    ) -> Option<Group> {
        let shape = |group: &Group| Some(&request(program, group.last())?.outputs[0].1);
        let mut places = [&self.places[..], &other.places[..]].concat();
        places.sort_unstable();
        let both = Group {
            places: places.into(),
            apart: Vec::new(),
        };
        let fits = shape(self) == shape(other)
            && both.places.len() <= MOST_CALLS
            && both.draft(program, facts).fits();
        fits.then_some(both)
    }

    /// The place of its last op.
    pub(super) fn last(&self) -> usize {
        self.places.last().copied().unwrap_or(0)
    }

    /// Whether the step at that place is one of it.
    pub(super) fn has(&self, place: usize) -> bool {
        self.places.binary_search(&place).is_ok()
    }

    /// The text without its numbers, and these.
    pub(super) fn text(&self, program: &Program<'_>, facts: &Facts) -> (String, Vec<Number>) {
        let mut expression = self.draft(program, facts).expression;
        let mut numbers = Vec::new();
        let terms = expression.calls.iter_mut().flat_map(|call| &mut call.terms);
        for term in terms {
            if let Term::Number(number, _) = term {
                numbers.push(*number);
                *number = match number {
                    Number::Integer(_) => Number::Integer(0),
                    Number::Float(_) => Number::Float(0.0),
                };
            }
        }
        (expression.to_string(), numbers)
    }

    /// The same with these of its numbers as operands, where that is not too much for one.
    pub(super) fn reading(
        &self,
        apart: Vec<usize>,
        program: &Program<'_>,
        facts: &Facts,
    ) -> Option<Group> {
        let group = Group {
            places: self.places.clone(),
            apart,
        };
        group.draft(program, facts).fits().then_some(group)
    }

    /// The request for all of it, and the values that its results are.
    pub(super) fn request(
        &self,
        program: &Program<'_>,
        facts: &Facts,
    ) -> (Request<'static, Value>, Vec<Value>) {
        let draft = self.draft(program, facts);
        let shape = request(program, self.last()).map(|request| request.outputs[0].1.clone());
        let shape = shape.unwrap_or_default();
        let outputs = draft.expression.gives().map(|dtype| (dtype, shape.clone()));
        let outputs: Vec<_> = outputs.collect();
        let attrs = vec![Attr::text(ATTRIBUTE, &draft.expression.to_string())];
        let request = Request::new(FUSED, draft.operands, outputs, attrs);
        (request, draft.results)
    }

    fn draft(&self, program: &Program<'_>, facts: &Facts) -> Draft {
        let mut draft = Draft {
            expression: Expression {
                calls: Vec::new(),
                results: Vec::new(),
            },
            operands: Vec::new(),
            dtypes: Vec::new(),
            results: Vec::new(),
            numbers: 0,
        };
        // How often the value of each call is read by others.
        let mut reads = vec![0; self.places.len()];
        for request in self
            .places
            .iter()
            .filter_map(|place| request(program, *place))
        {
            let term = |&value: &Value| {
                let maker = facts.maker(value);
                let own = maker.and_then(|maker| self.places.binary_search(&maker).ok());
                if let Some(call) = own {
                    reads[call] += 1;
                    return Term::Made(call);
                }
                draft.term(value, facts, &self.apart)
            };
            let terms = request.inputs.iter().map(term).collect();
            draft.expression.calls.push(Call {
                op: request.op.to_string(),
                terms,
                dtype: request.outputs[0].0,
            });
        }
        for (call, &place) in self.places.iter().enumerate() {
            let value = facts.first[place];
            if facts.uses[value as usize] > reads[call] {
                draft.expression.results.push(call);
                draft.results.push(value);
            }
        }
        draft.keep_an_operand(program, facts, self);
        draft
    }
}

impl Draft {
    fn term(&mut self, value: Value, facts: &Facts, apart: &[usize]) -> Term {
        let dtype = facts.dtypes[value as usize];
        if let Some(number) = facts.numbers[value as usize] {
            self.numbers += 1;
            if !apart.contains(&(self.numbers - 1)) {
                return Term::Number(number, dtype);
            }
        }
        self.operand(value, dtype)
    }

    fn operand(&mut self, value: Value, dtype: DType) -> Term {
        let place = operand_of(&mut self.operands, value);
        if place == self.dtypes.len() {
            self.dtypes.push(dtype);
        }
        Term::Operand(place)
    }

    /// A request has an operand, be it a number.
    fn keep_an_operand(&mut self, program: &Program<'_>, facts: &Facts, group: &Group) {
        let first = group
            .places
            .first()
            .and_then(|place| request(program, *place));
        if let (true, Some(&value)) = (
            self.operands.is_empty(),
            first.and_then(|first| first.inputs.first()),
        ) {
            self.expression.calls[0].terms[0] = self.operand(value, facts.dtypes[value as usize]);
        }
    }

    /// Whether it is not too large. Of two ops that may have no result nobody could tell which had none.
    fn fits(&self) -> bool {
        let calls = self.expression.calls.iter();
        let partial =
            calls.filter(|call| partial_call(&self.expression, call, &self.dtypes).is_some());
        self.results.len() <= MOST_RESULTS
            && self.operands.len() + self.results.len() <= MOST_BOUND
            && partial.count() <= 1
    }
}

fn request<'a, 'p>(program: &'a Program<'p>, place: usize) -> Option<&'a Request<'p, Value>> {
    match program.steps().get(place)? {
        Step::Request(request) => Some(request),
        Step::View(..) => None,
    }
}
