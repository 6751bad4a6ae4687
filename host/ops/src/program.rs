//! Programs: requests and views over numbered values, as one value. It says what is computed of what, not where or by whom.

use crate::{Attr, DType, Error, Request, Result, request::Spec};
use smallvec::{SmallVec, smallvec};
use std::{borrow::Cow, fmt};

/// Number of a value: the program's inputs come first, then the results of each step.
pub type Value = u32;

/// Another layout of the same elements.
#[derive(Debug, Clone, PartialEq)]
pub enum View {
    /// Row-major in another shape; a copy where no layout has it.
    Reshape(Vec<u64>),
    /// Axis `i` of the result is this axis of the value.
    Transpose(Vec<usize>),
    /// Without these axes.
    Squeeze(Vec<usize>),
    /// Repeated to a shape: axis `i` becomes that axis of it.
    Broadcast(Vec<u64>, Vec<usize>),
    /// Starts, lengths and strides of each axis.
    Slice(Vec<u64>, Vec<u64>, Vec<u64>),
    /// The other way round along these axes.
    Reverse(Vec<usize>),
    /// The same bits as another type.
    Bitcast(DType),
}

/// One step of a program.
#[derive(Debug, Clone, PartialEq)]
pub enum Step<'a> {
    /// An op on values.
    Request(Request<'a, Value>),
    /// A view of a value.
    View(Value, View),
}

impl<'a> From<Request<'a, Value>> for Step<'a> {
    fn from(request: Request<'a, Value>) -> Step<'a> {
        Step::Request(request)
    }
}

impl<'a> Step<'a> {
    /// The values that it needs.
    pub fn inputs(&self) -> &[Value] {
        match self {
            Step::Request(request) => &request.inputs,
            Step::View(value, _) => std::slice::from_ref(value),
        }
    }

    /// How many values it makes.
    pub fn made(&self) -> usize {
        match self {
            Step::Request(request) => request.outputs.len(),
            Step::View(..) => 1,
        }
    }

    /// Name of its op.
    pub fn op(&self) -> &str {
        match self {
            Step::Request(request) => &request.op,
            Step::View(_, view) => match view {
                View::Reshape(_) => "reshape",
                View::Transpose(_) => "transpose",
                View::Squeeze(_) => "squeeze",
                View::Broadcast(..) => "broadcast",
                View::Slice(..) => "slice",
                View::Reverse(_) => "reverse",
                View::Bitcast(_) => "bitcast",
            },
        }
    }

    fn into_owned(self) -> Step<'static> {
        match self {
            Step::Request(request) => Step::Request(request.into_owned()),
            Step::View(value, view) => Step::View(value, view),
        }
    }
}

/// Steps in the order in which they run, each of inputs and of results that came before it.
#[derive(Debug, Clone)]
pub struct Program<'a> {
    inputs: usize,
    steps: SmallVec<[Step<'a>; 1]>,
    results: SmallVec<[Value; 2]>,
    /// For each value that a step makes, the place of the last step that needs it.
    needed: SmallVec<[u32; 4]>,
    /// Where steps stand for others: the places of these.
    places: Vec<SmallVec<[usize; 1]>>,
}

/// Numbers of the inputs of most ops.
static FIRST: [Value; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

/// Where a value is needed that the program gives back.
const TO_THE_END: u32 = u32::MAX;

impl<'a> Program<'a> {
    /// A program of `inputs` values that gives back the values `results`.
    ///
    /// # Errors
    /// Bad input where a step or a result names a value that nothing before it makes.
    pub fn new(
        inputs: usize,
        steps: impl IntoIterator<Item = impl Into<Step<'a>>>,
        results: impl IntoIterator<Item = Value>,
    ) -> Result<Program<'a>> {
        let mut program = Program {
            inputs,
            steps: steps.into_iter().map(Into::into).collect(),
            results: results.into_iter().collect(),
            needed: SmallVec::new(),
            places: Vec::new(),
        };
        for (index, step) in program.steps.iter().enumerate() {
            let known = inputs.saturating_add(program.needed.len());
            for &value in step.inputs() {
                if value as usize >= known {
                    return Err(program.unknown(
                        value,
                        known,
                        format_args!("{} ({})", program.place(index), step.op()),
                    ));
                }
                if let Some(made) = (value as usize).checked_sub(inputs) {
                    program.needed[made] = index as u32;
                }
            }
            let made = program.needed.len() + step.made();
            program.needed.resize(made, index as u32);
        }
        let known = inputs.saturating_add(program.needed.len());
        for (index, &value) in program.results.iter().enumerate() {
            if value as usize >= known {
                return Err(program.unknown(value, known, format_args!("result {}", index + 1)));
            }
            if let Some(made) = (value as usize).checked_sub(inputs) {
                program.needed[made] = TO_THE_END;
            }
        }
        Ok(program)
    }

    /// The program of one op: of all inputs, in order, to all its results.
    pub fn of_one(
        op: &'a str,
        inputs: usize,
        outputs: impl Into<Cow<'a, [Spec]>>,
        attrs: impl Into<Cow<'a, [Attr]>>,
    ) -> Program<'a> {
        let outputs = outputs.into();
        let results = (inputs as Value..).take(outputs.len()).collect();
        let needed = SmallVec::from_elem(TO_THE_END, outputs.len());
        let operands: Cow<'a, [Value]> = match FIRST.get(..inputs) {
            Some(first) => first.into(),
            None => (0..inputs as Value).collect(),
        };
        Program {
            inputs,
            steps: smallvec![Request::new(op, operands, outputs, attrs).into()],
            results,
            needed,
            places: Vec::new(),
        }
    }

    /// The same program, each of whose steps stands for those at some places of another.
    pub(crate) fn in_place_of(self, places: Vec<SmallVec<[usize; 1]>>) -> Program<'a> {
        Program { places, ..self }
    }

    /// How many values it takes.
    pub fn inputs(&self) -> usize {
        self.inputs
    }

    /// The steps, in the order in which they run.
    pub fn steps(&self) -> &[Step<'a>] {
        &self.steps
    }

    /// The values that it gives back.
    pub fn results(&self) -> &[Value] {
        &self.results
    }

    /// The only request of a program that gives back all that it makes, in order.
    pub fn only(&self) -> Option<&Request<'a, Value>> {
        let [Step::Request(request)] = &self.steps[..] else {
            return None;
        };
        let made = self.inputs as Value..(self.inputs + request.outputs.len()) as Value;
        made.eq(self.results.iter().copied()).then_some(request)
    }

    /// The values, counted from the first that a step makes, that nobody needs once step `index` has run and has made
    /// those before `made`.
    pub fn done_with(&self, index: usize, made: usize) -> impl Iterator<Item = usize> {
        let step = &self.steps[index];
        let own = made.saturating_sub(step.made())..made;
        let operands = step.inputs().iter();
        operands
            .filter_map(|&value| (value as usize).checked_sub(self.inputs))
            .chain(own)
            .filter(move |&made| self.needed[made] == index as u32)
    }

    /// The places of the steps that step `index` stands for: its own, unless it is several ops as one.
    pub fn stands_for(&self, index: usize) -> SmallVec<[usize; 1]> {
        let places = self.places.get(index).cloned();
        places.unwrap_or_else(|| smallvec![index])
    }

    /// `request 2 of 3`
    pub fn place(&self, index: usize) -> String {
        format!("request {} of {}", index + 1, self.steps.len())
    }

    /// The same program, which borrows nothing.
    pub fn into_owned(self) -> Program<'static> {
        Program {
            inputs: self.inputs,
            steps: self.steps.into_iter().map(Step::into_owned).collect(),
            results: self.results,
            needed: self.needed,
            places: self.places,
        }
    }

    fn unknown(&self, value: Value, known: usize, who: fmt::Arguments<'_>) -> Error {
        let range = match known {
            0 => "there is none".to_owned(),
            1 => "there is only value 0".to_owned(),
            _ => format!("there are only values 0 to {}", known - 1),
        };
        Error::bad_input(format!("{who} names value {value}, and {range} before it"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::DType;

    fn request(
        op: &'static str,
        inputs: &'static [Value],
        outputs: usize,
    ) -> Request<'static, Value> {
        Request::new(op, inputs, vec![(DType::F32, vec![2]); outputs], &[])
    }

    const NOTHING: [Request<'static, Value>; 0] = [];

    fn done(program: &Program<'_>) -> Vec<Vec<usize>> {
        let mut made = 0;
        let steps = program.steps().iter().enumerate();
        steps
            .map(|(index, step)| {
                made += step.made();
                program.done_with(index, made).collect()
            })
            .collect()
    }

    #[test]
    fn a_value_is_done_with_after_its_last_use() {
        let chain = [
            request("negate", &[0], 1),
            request("exp", &[1], 1),
            request("add", &[1, 2], 1),
        ];
        let program = Program::new(1, chain.clone(), [3]).unwrap();
        assert_eq!(done(&program), [vec![], vec![], vec![0, 1]]);
        let program = Program::new(1, chain, [1, 0, 3, 3]).unwrap();
        assert_eq!(done(&program), [vec![], vec![], vec![1]]);
        assert_eq!(program.results(), [1, 0, 3, 3]);
    }

    #[test]
    fn a_program_of_one_is_the_same_as_any() {
        for inputs in [0, 2, 20] {
            let outputs = vec![(DType::F32, vec![2]); 3];
            let one = Program::of_one("split", inputs, outputs.clone(), &[]);
            let operands: Vec<Value> = (0..inputs as Value).collect();
            let request = Request::new("split", operands, outputs, &[]);
            let results = inputs as Value..inputs as Value + 3;
            let same = Program::new(inputs, [request], results).unwrap();
            assert_eq!(one.steps(), same.steps());
            assert_eq!(one.results(), same.results());
            assert_eq!(done(&one), done(&same));
            assert!(one.only().is_some() && same.only().is_some());
        }
    }

    #[test]
    fn views_need_values_as_requests_do() {
        let steps = [
            request("exp", &[0], 1).into(),
            Step::View(1, View::Reshape(vec![2, 1])),
            Step::View(2, View::Transpose(vec![1, 0])),
            request("negate", &[2], 1).into(),
        ];
        let program = Program::new(1, steps, [4]).unwrap().into_owned();
        assert_eq!(done(&program), [vec![], vec![0], vec![2], vec![1]]);
        assert!(program.only().is_none());
        let late = [Step::View(3, View::Reverse(vec![0]))];
        assert_eq!(
            Program::new(1, late, []).unwrap_err().to_string(),
            "request 1 of 1 (reverse) names value 3, and there is only value 0 before it"
        );
    }

    #[test]
    fn what_nobody_uses_is_done_with_at_once() {
        let program = Program::new(1, [request("pair", &[0, 0], 2)], [1]).unwrap();
        assert_eq!(done(&program), [vec![1]]);
        let program = Program::new(2, NOTHING, [1]).unwrap();
        assert!(program.steps().is_empty());
    }

    #[test]
    fn a_value_must_come_before_its_use() {
        let bad = |requests: Vec<_>, results: &[Value]| {
            let program = Program::new(1, requests, results.to_vec());
            program.unwrap_err().to_string()
        };
        let own = vec![request("negate", &[0], 1), request("exp", &[2], 1)];
        assert_eq!(
            bad(own, &[1]),
            "request 2 of 2 (exp) names value 2, and there are only values 0 to 1 before it"
        );
        let first = vec![request("negate", &[u32::MAX], 1)];
        assert_eq!(
            bad(first, &[]),
            "request 1 of 1 (negate) names value 4294967295, and there is only value 0 before it"
        );
        assert_eq!(
            bad(Vec::new(), &[0, 3]),
            "result 2 names value 3, and there is only value 0 before it"
        );
        let none = Program::new(0, NOTHING, [0]).unwrap_err().to_string();
        assert_eq!(none, "result 1 names value 0, and there is none before it");
    }
}
