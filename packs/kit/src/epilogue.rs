//! Epilogues of products: their GLSL, from the rows of the elementwise pack, and how their operands lie beside the result. Where
//! a kernel calls it is the kernel's.

mod further;

use crate::{
    expression::{self, made, row},
    operand::supports,
    rows::Compute,
    steps::number,
    vendor,
};
pub use further::Run;
use further::{Further, place, reads};
use nx_vulkan_abi::{
    BufArg, DType, Define, Epilogue, Refusal, Request, Source,
    epilogue::{FACTORS, Term, Types},
    glsl::{self, define},
};

/// The shader's half.
pub const GLSL: Source = Source::glsl("epilogue.glsl", include_str!("../glsl/epilogue.glsl"));
/// The functions that the rows of the elementwise pack call, which the shader's half includes.
pub const FUNCTIONS: Source = Source::glsl(
    "functions.glsl",
    include_str!("../../elementwise/shaders/functions.glsl"),
);

/// Further operands that the shader's half declares.
const MOST_OPERANDS: usize = 4;

/// An epilogue as a kernel needs it.
#[derive(Debug, Clone, PartialEq)]
pub struct Finish {
    /// Types of sums and epilogue.
    pub types: Types,
    /// Type of the result.
    pub result: DType,
    code: String,
    math: bool,
    is_nvidia: bool,
    operands: Vec<Further>,
    /// Bytes of sums that one binding covers.
    room: u64,
}

/// Code of the kind that epilogues are, of something that has batches, rows and columns.
#[derive(Debug, Clone)]
pub struct Asked<'a> {
    /// The code.
    pub epilogue: &'a Epilogue,
    /// Number of the request's first operand that is a further one.
    pub first: usize,
    /// Types of what it is of, and in which it is computed.
    pub types: Types,
    /// Type of what it gives.
    pub result: DType,
    /// Shape of what it is of, to which further operands broadcast.
    pub shape: &'a [u64],
    /// Which of its axes are batches, rows and columns, outermost first.
    pub axes: &'a [Vec<usize>; 3],
}

impl Finish {
    /// The epilogue of a request for a kernel that knows of each result its batch, row and column: `axes` are those axes of the
    /// result, outermost first. `None` where the request has none.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] for what is no epilogue; a decline where the operands are too many, or lie so that their axes do
    /// not collapse to batch, row and column, or the device lacks a type.
    pub fn of(request: &Request<'_>, axes: &[Vec<usize>; 3]) -> Result<Option<Finish>, Refusal> {
        let (Some(epilogue), Some(out)) = (Epilogue::of(request)?, request.outputs.first()) else {
            return Ok(None);
        };
        let op = request.op.as_str();
        let bad = |why| Refusal::BadRequest(format!("the epilogue of {op}: {why}"));
        if axes.iter().flatten().any(|&axis| axis >= out.rank()) {
            return Err(bad("the result has fewer axes than the product".to_owned()));
        }
        let types = Types::of_request(request);
        let types = types.ok_or_else(|| bad("it is for real types only".to_owned()))?;
        let asked = Asked {
            epilogue: &epilogue,
            first: FACTORS,
            types,
            result: out.dtype,
            shape: out.shape.as_slice(),
            axes,
        };
        Finish::asked(request, &asked).map(Some)
    }

    /// The same of what is no result, or stands in another attribute.
    ///
    /// # Errors
    /// As those of [`Finish::of`].
    pub fn asked(request: &Request<'_>, asked: &Asked<'_>) -> Result<Finish, Refusal> {
        let op = request.op.as_str();
        let bad = |why| Refusal::BadRequest(format!("the epilogue of {op}: {why}"));
        let &Asked {
            epilogue,
            first,
            types,
            result,
            shape,
            axes,
        } = asked;
        let checked = epilogue.check_further(first, request.inputs.len());
        checked.map_err(bad)?;
        let further = request.inputs.iter().zip(0..).skip(first);
        let operands = further.map(|(input, index)| place(index, input, shape, axes));
        let operands = operands.collect::<Result<Vec<Further>, Refusal>>()?;
        if operands.len() > MOST_OPERANDS {
            return Err(Refusal::decline(format!(
                "its epilogue has {} operands of its own and kernels take {MOST_OPERANDS}",
                operands.len()
            )));
        }
        let used = operands.iter().map(|operand| operand.dtype);
        for dtype in used.chain([types.sum, types.compute, result]) {
            supports(op, dtype, request.device)?;
        }
        let (code, math) = code(epilogue, first, types.compute, result)?;
        Ok(Finish {
            types,
            result,
            code,
            math,
            is_nvidia: vendor::is_nvidia(request.device),
            operands,
            room: request.device.max_buffer_range.min(u64::from(u32::MAX)),
        })
    }

    /// Whether so many sums are finished by a dispatch of their own, where memory holds them. Long code that stands there for each
    /// sum of an invocation costs registers and instruction cache: on an H200, driver 580.159.04, the gelu of 4096 x 4096 sums
    /// took 470 us in matmul's tile.comp and 170 in cores.comp, of 512 x 2048 it took 6.
    pub fn stands_apart(&self, sums: u64) -> bool {
        const MANY: u64 = 1 << 21;
        let register = self.types.sum.register().size().max(4);
        self.math && sums >= MANY && sums.saturating_mul(register) <= self.room
    }

    /// Bindings of the further operands, which come one after the other.
    pub fn args(&self) -> impl Iterator<Item = BufArg> {
        self.operands
            .iter()
            .map(|operand| BufArg::input(operand.input))
    }

    /// As a kernel needs it whose rows are the result's columns.
    #[must_use]
    pub fn exchanged(self) -> Finish {
        let operands = self.operands.into_iter().map(Further::exchanged);
        Finish {
            operands: operands.collect(),
            ..self
        }
    }

    /// The words at the end of the push constants: four of each operand, then two for each of its axes that is two.
    pub fn words(&self) -> Vec<u32> {
        let words = |operand: &Further| {
            let [batch, row, column] = operand.strides.map(|step| step as u32);
            [operand.offset as u32, batch, row, column]
        };
        let inner = self.operands.iter().flat_map(|operand| operand.inner);
        let inner = inner.flatten();
        let inner = inner.flat_map(|(extent, step)| [extent as u32, step as u32]);
        self.operands.iter().flat_map(words).chain(inner).collect()
    }

    /// The shader's half may know which steps of operands are 0.
    pub fn still(&self) -> Define {
        let steps = self.operands.iter().flat_map(|operand| operand.strides);
        let bits = steps.zip(0..).filter(|(step, _)| *step == 0);
        number("E_STILL", bits.fold(0u64, |all, (_, bit)| all | 1 << bit))
    }

    /// Words of a run that are others for each run: what a kernel that asks for several runs at once has to have registers for.
    pub fn words_of_run(&self, run: Run) -> u32 {
        let words = self.operands.iter().map(|operand| operand.own_words(run));
        words.sum()
    }

    /// What the shader's half needs, its operands from binding `first` on, for a kernel that finishes a run at a time.
    pub fn defines(&self, first: u32, run: Run) -> Vec<Define> {
        let Types { sum, compute } = self.types;
        let mut defines = glsl::operand("R", self.result);
        defines.extend(glsl::operand("E", compute));
        for (index, operand) in self.operands.iter().enumerate() {
            defines.extend(glsl::operand(&format!("E{index}"), operand.dtype));
        }
        defines.extend(glsl::needs(sum));
        if self.math {
            let wide = compute == DType::F64;
            defines.push(define(if wide { "MATH_F64" } else { "MATH_F32" }, "1"));
        }
        defines.extend(vendor::defines(self.is_nvidia, self.math));
        if !self.operands.is_empty() {
            defines.push(number("EPILOGUE_WORDS", self.words().len() as u64));
        }
        defines.extend(reads(&self.operands, run, register(compute)));
        defines.extend([
            number("EPILOGUE", 1u32),
            number("E_OPERANDS", self.operands.len() as u64),
            number("E_FIRST", first),
            define("R_VALUE4", four(self.result)),
            define("E_SUM", register(sum)),
            define("E_FROM(x)", cast(compute)),
            define("R_FROM(x)", cast(self.result)),
            number("A_BITS", 8 * compute.size()),
            define("E_CODE", self.code.as_str()),
        ]);
        defines
    }
}

fn register(dtype: DType) -> &'static str {
    glsl::types(dtype).map_or("float", |types| types.1)
}

/// Four of them in registers.
fn four(dtype: DType) -> &'static str {
    glsl::vector(register(dtype), 4).unwrap_or("vec4")
}

fn cast(dtype: DType) -> String {
    format!("nxv_to_{}(x)", dtype.name())
}

/// The body of the function that finishes a sum, and whether it calls the math headers.
fn code(
    epilogue: &Epilogue,
    first: usize,
    compute: DType,
    result: DType,
) -> Result<(String, bool), Refusal> {
    let (mut code, mut math) = (String::new(), false);
    let register = register(compute);
    for (index, call) in epilogue.calls.iter().enumerate() {
        let row = row(&call.op, call.terms.len(), call)?;
        math |= row.math;
        let operand = |(place, term): (usize, &Term)| {
            let value = value(term, first, compute, row.math);
            match (row.math && place > 0, term) {
                (true, Term::Sum | Term::Operand(_) | Term::Made(_)) => {
                    (register, expression::unknown(&value, register))
                }
                _ => (register, value),
            }
        };
        let operands: Vec<_> = call.terms.iter().enumerate().map(operand).collect();
        let result = format!("E_FROM({})", row.glsl);
        let compared = compute.is_float() && row.compute(0) == Compute::Compared;
        let result = match row.math || compared {
            true => expression::unknown(&result, register),
            false => result,
        };
        code += &made(index, register, &operands, "", &result);
    }
    let last = epilogue.calls.len() - 1;
    let same = compute == result;
    code += &match same {
        true => format!("return v{last};"),
        false => format!("return R_FROM(v{last});"),
    };
    Ok((code, math))
}

fn value(term: &Term, first: usize, compute: DType, unknown: bool) -> String {
    match term {
        Term::Sum => "x".to_owned(),
        Term::Operand(index) => {
            let index = index - first;
            format!("o{index}")
        }
        Term::Made(index) => format!("v{index}"),
        Term::Number(number) => {
            let whole = *number as i128;
            expression::literal(number.to_bits(), whole, compute, register(compute), unknown)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_is_the_rows_of_the_elementwise_pack() {
        let of = |text: &str, result| {
            let epilogue: Epilogue = text.parse().unwrap();
            code(&epilogue, FACTORS, DType::F32, result).unwrap()
        };
        let (text, math) = of("add(x, i2); max(%0, 0.5)", DType::F16);
        assert!(!math);
        assert_eq!(
            text,
            "float v0; { float a = x; float b = o0; v0 = E_FROM(a + b); } \
             float v1; { float a = v0; float b = uintBitsToFloat(0x3f000000u); v1 = E_FROM(maximum(a, b)); } \
             return R_FROM(v1);"
        );
        assert_eq!(
            of("erf(x)", DType::F32).0,
            "float v0; { float a = x; v0 = uintBitsToFloat(floatBitsToUint(E_FROM(nxv_erf(a))) ^ ZERO); } \
             return v0;"
        );
        assert!(of("erf(x)", DType::F32).1);
        // Nor does a compiler know what it must not.
        let hidden = "float b = uintBitsToFloat(floatBitsToUint(x) ^ ZERO);";
        assert!(of("divide(x, x)", DType::F32).0.contains(hidden));
        let (chosen, _) = of("less(x, 0.5); select(%0, 0.5, x)", DType::F32);
        assert!(
            chosen.contains("v0 = uintBitsToFloat(floatBitsToUint(E_FROM(a < b)) ^ ZERO);"),
            "{chosen}"
        );
        for unknown in ["dot(x)", "add(x)", "iota(x)"] {
            let epilogue: Epilogue = unknown.parse().unwrap();
            assert!(code(&epilogue, FACTORS, DType::F32, DType::F32).is_err());
        }
    }
}
