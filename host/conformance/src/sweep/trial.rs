//! One case on a device: its operands, its runs, and what is wrong with the results.

use super::{
    canary::{Canaries, Found},
    cases::Case,
    judge, oracle, orthogonal,
    report::{Failure, Report, What, signature},
};
use nx_vulkan_abi::{
    DType, Expression, Features, Numerics,
    expression::{ATTRIBUTE, Term},
};
use nx_vulkan_host::{Runtime, Tensor};
use nx_vulkan_ops::{Attr, AttrValue, Kind, Request, Result, Spec, values::Values};

/// Bytes with which result memory is filled before each run.
const PATTERNS: [u8; 3] = [0xa7, 0x3c, 0xff];

/// A turn of the sweep: a runtime, and what was found on it.
pub(super) struct Sweep<'a> {
    canaries: Canaries<'a>,
    runtime: &'a Runtime,
    pub(super) report: Report,
}

impl<'a> Sweep<'a> {
    pub(super) fn new(runtime: &'a Runtime) -> Sweep<'a> {
        Sweep {
            canaries: Canaries::new(runtime),
            runtime,
            report: Report::default(),
        }
    }

    /// Runs a case, with one kernel or with the one that the registry chooses.
    pub(super) fn case(&mut self, case: &Case, kernel: Option<&str>) {
        self.report.cases += 1;
        let mut served_by = kernel.unwrap_or_default().to_owned();
        let what = match self.try_case(case, kernel, &mut served_by) {
            Ok(what) => what,
            Err(error) => Some(What::Error(error.to_string())),
        };
        if let Some(what) = what {
            self.report.add(failure(case, served_by, what));
        }
    }

    fn try_case(
        &mut self,
        case: &Case,
        kernel: Option<&str>,
        served_by: &mut String,
    ) -> Result<Option<What>> {
        let bases = case.elements();
        let uploaded = case.inputs.iter().zip(&bases);
        let uploaded =
            uploaded.map(|(input, base)| self.runtime.upload(input.dtype, &input.base, base));
        let uploaded = uploaded.collect::<Result<Vec<Tensor>>>()?;
        let views = case
            .inputs
            .iter()
            .zip(&uploaded)
            .map(|(input, base)| input.of(base));
        let views = views.collect::<Result<Vec<Tensor>>>()?;
        let operands: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        let inputs: Vec<&Tensor> = views.iter().collect();
        let request = Request::new(case.op.name, &inputs, &case.outputs, &case.attrs);
        let plan = |kernel| self.runtime.plan_with(kernel, &request);
        let forced = match kernel.map(plan).transpose() {
            Err(error) if error.kind() == Kind::Unsupported => {
                self.report.decline(case, &operands);
                return Ok(None);
            }
            forced => forced?,
        };
        let tolerance = case.op.allows(&operands, case.outputs[0].0, &case.attrs);
        let answers = oracle::answers(case, &bases, &views, &tolerance)?;

        let mut first: Option<Vec<Vec<u8>>> = None;
        for (run, pattern) in (1..).zip(PATTERNS) {
            let (dtype, shape) = &case.outputs[0];
            let size = shape.iter().product::<u64>() * dtype.size();
            self.canaries.prepare(size, pattern, &uploaded)?;
            let ran = match &forced {
                Some(forced) => self.runtime.run_planned(forced, &inputs),
                None => self.runtime.run_reported(&request),
            }?;
            let got = ran.outputs.iter();
            let got = got.map(|result| self.runtime.download(result, None));
            let got = got.collect::<Result<Vec<Vec<u8>>>>()?;
            let Some(first) = &first else {
                *served_by = ran.served_by.to_string();
                self.serve(case, &operands, served_by);
                if let Some(mut wrong) = self.judge(case, &answers, &got, served_by) {
                    self.tell_operands(&views, &case.outputs[0].1, &mut wrong)?;
                    return Ok(Some(wrong));
                }
                first = Some(got);
                continue;
            };
            for (first, got) in first.iter().zip(&got) {
                if let Some(byte) = first.iter().zip(got).position(|(a, b)| a != b) {
                    return Ok(Some(What::Varies {
                        byte: byte as u64,
                        run,
                    }));
                }
            }
            let mut untouched = false;
            for result in &ran.outputs {
                match self.canaries.look(result, pattern)? {
                    Found::Overwritten(what) => return Ok(Some(What::StrayWrite(what))),
                    Found::Untouched => untouched = true,
                    Found::Unguarded => {}
                }
            }
            self.report.guarded += u64::from(untouched && run == 3);
        }
        for (index, (tensor, base)) in uploaded.iter().zip(&bases).enumerate() {
            if self.runtime.download(tensor, None)? != *base {
                return Ok(Some(What::InputChanged(index)));
            }
        }
        Ok(None)
    }

    /// The first element of any result that is beyond the tolerance, or the first matrix that is not orthogonal.
    fn judge(
        &mut self,
        case: &Case,
        answers: &[oracle::Answer],
        got: &[Vec<u8>],
        served_by: &str,
    ) -> Option<What> {
        let operands: Vec<DType> = case.inputs.iter().map(|input| input.dtype).collect();
        let is_relaxed = self.is_relaxed(served_by);
        for (result, ((answer, got), output)) in
            answers.iter().zip(got).zip(&case.outputs).enumerate()
        {
            let mut tolerance = case.op.allows(&operands, output.0, &case.attrs);
            if is_relaxed {
                tolerance = tolerance.relaxed(output.0);
            }
            let expected = answer.expected();
            let settled =
                orthogonal::settled(case.op.name, &case.outputs, result, got, expected.bytes);
            let verdict = judge::judge(&expected, &settled, &tolerance);
            self.report.flushed += verdict.flushed;
            if let Some(wrong) = verdict.wrong {
                return Some(element(wrong));
            }
            self.report.measure(case.op.name, output.0, verdict.ulp);
        }
        match case.values {
            Values::Finite => orthogonal::judge(case.op.name, &case.outputs, got).map(element),
            Values::Special => None,
        }
    }

    /// Adds what operands of the result's shape are at the wrong element.
    fn tell_operands(&self, views: &[Tensor], shape: &[u64], wrong: &mut What) -> Result<()> {
        let What::Element {
            index, operands, ..
        } = wrong
        else {
            return Ok(());
        };
        for view in views.iter().filter(|view| view.shape() == shape) {
            let bytes = self.runtime.download(view, None)?;
            let size = view.dtype().size() as usize;
            let element = bytes.chunks_exact(size).nth(*index as usize);
            operands.extend(element.map(|element| judge::show(view.dtype(), element)));
        }
        Ok(())
    }

    /// Whether the kernel of that name, `pack/kernel`, says that it is less accurate than the table of tolerances.
    fn is_relaxed(&self, served_by: &str) -> bool {
        let Some((id, kernel)) = served_by.split_once('/') else {
            return false;
        };
        let table = self.runtime.table();
        let mut packs = table.packs.iter();
        let pack = packs.find(|pack| pack.id == id);
        pack.is_some_and(|pack| {
            let mut own = pack.kernels.iter().filter(|own| own.id == kernel);
            own.any(|own| own.numerics == Numerics::RELAXED)
        })
    }

    fn serve(&mut self, case: &Case, operands: &[DType], served_by: &str) {
        if served_by != "host" {
            return;
        }
        let key = signature(case, operands);
        let needed = needed(operands, &case.outputs, &case.attrs);
        let list = match self.runtime.device_info().features.has(needed) {
            true => &mut self.report.not_served,
            false => &mut self.report.lacking,
        };
        *list.entry(key).or_default() += 1;
    }
}

/// What a device needs for the types of a request: those of operands and results, and those that an expression computes in.
fn needed(operands: &[DType], outputs: &[Spec], attrs: &[Attr]) -> Features {
    let text = attrs.iter().find_map(|attr| match &attr.value {
        AttrValue::Text(text) if attr.name == ATTRIBUTE => Some(text),
        AttrValue::Text(_) | AttrValue::Ints(_) | AttrValue::Floats(_) => None,
    });
    let expression: Option<Expression> = text.and_then(|text| text.parse().ok());
    let calls = expression.into_iter().flat_map(|own| own.calls);
    let computed = calls.flat_map(|call| {
        let numbers = call.terms.into_iter().filter_map(|term| match term {
            Term::Number(_, dtype) => Some(dtype),
            Term::Operand(_) | Term::Made(_) => None,
        });
        numbers.chain([call.dtype]).collect::<Vec<_>>()
    });
    let all = operands
        .iter()
        .copied()
        .chain(outputs.iter().map(|output| output.0))
        .chain(computed);
    all.map(Features::for_dtype)
        .fold(Features::NONE, Features::with)
}

fn element(wrong: judge::Wrong) -> What {
    let judge::Wrong {
        index,
        got,
        expected,
        ulp,
    } = wrong;
    What::Element {
        index,
        got,
        expected,
        ulp,
        operands: Vec::new(),
    }
}

fn failure(case: &Case, served_by: String, what: What) -> Failure {
    let attr = |attr: &Attr| match &attr.value {
        AttrValue::Ints(ints) => format!("{}={ints:?}", attr.name),
        AttrValue::Floats(floats) => format!("{}={floats:?}", attr.name),
        AttrValue::Text(text) => format!("{}={text}", attr.name),
    };
    let outputs: Vec<String> = case
        .outputs
        .iter()
        .map(|(dtype, shape)| format!("{dtype}{shape:?}"))
        .collect();
    Failure {
        op: case.op.name.to_owned(),
        inputs: case.inputs.iter().map(ToString::to_string).collect(),
        output: outputs.join(", "),
        attrs: case.attrs.iter().map(attr).collect(),
        layout: case.layout,
        values: case.values,
        served_by,
        seed: case.seed,
        what,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn types_that_an_expression_computes_in_are_needed() {
        let outputs = [(DType::F32, vec![4])];
        let of = |attrs: &[Attr]| needed(&[DType::F32; 2], &outputs, attrs);
        let bytes = Features::for_dtype(DType::U8);
        assert!(!of(&[]).has(bytes));
        let text = "greater(i0, i1):u8; select(%0, i0, i1):f32";
        assert!(of(&[Attr::text(ATTRIBUTE, text)]).has(bytes));
        let doubles = Features::for_dtype(DType::F64);
        let text = "add(i0, 2.0:f64):f32";
        assert!(of(&[Attr::text(ATTRIBUTE, text)]).has(doubles));
    }
}
