//! Expressions: their GLSL, from the rows of the elementwise pack. What it is made of is the shader's.

#[cfg(test)]
mod tests;

use crate::{
    operand::supports,
    rows::{self, Compute, Row},
    vendor,
};
use nx_vulkan_abi::{
    DType, Define, DeviceInfo, Expression, Precision, Refusal, Request, Source,
    dtype::Class,
    expression::{Call, Number, Term},
    glsl::{self, define},
    plan::MAX_BINDINGS,
};
use std::fmt::Display;

/// What calls need; it includes [`crate::epilogue::FUNCTIONS`] and [`MIXED`].
pub const GLSL: Source = Source::glsl("expression.glsl", include_str!("../glsl/expression.glsl"));
/// What operands need that no type of shaders holds both of.
pub const MIXED: Source = Source::glsl(
    "mixed.glsl",
    include_str!("../../elementwise/shaders/mixed.glsl"),
);

/// Bindings that are left to the plan's parameters, what the host watches, and what it is told.
const SPARE: usize = 3;

/// The expression of a request for what it makes of all operands.
///
/// # Errors
/// [`Refusal::BadRequest`] where it is none, or the results are others; a decline where there are more of both than a dispatch binds.
pub fn of_all(request: &Request<'_>) -> Result<Expression, Refusal> {
    let expression = Expression::of(request)?;
    let (inputs, outputs) = (request.inputs.as_slice(), request.outputs.as_slice());
    let gives = outputs.iter().map(|output| output.dtype);
    if !expression.gives().eq(gives) || inputs.is_empty() {
        return Err(Refusal::BadRequest(
            "its results are not those of the expression".to_owned(),
        ));
    }
    let bound = inputs.len() + outputs.len();
    if bound > MAX_BINDINGS - SPARE {
        return Err(Refusal::decline(format!(
            "{bound} operands and results are more than a dispatch binds"
        )));
    }
    Ok(expression)
}

/// `f(0) f(1)`, for macros that stand for one of several.
pub fn each(name: &str, numbers: impl IntoIterator<Item = usize>) -> Define {
    let all: Vec<String> = numbers.into_iter().map(|k| format!("f({k})")).collect();
    define(name, all.join(" "))
}

/// An expression as shaders compute it, with the bits that its ops would have one by one, or with functions of f32 that are as exact as
/// those for narrower types.
#[derive(Debug, Clone, PartialEq)]
pub struct Code {
    /// Statements over `i0`, `i1`, …, each in its register type.
    pub body: String,
    /// The results, after these, each in its register type.
    pub results: Vec<String>,
    /// Calls of the math headers.
    pub functions: usize,
    /// All types that occur.
    types: Vec<DType>,
    math: [bool; 2],
    mixed: bool,
    is_nvidia: bool,
    is_loose: bool,
}

/// Whether calls of f32 may have the digits of narrower types.
pub fn is_loose(request: &Request<'_>) -> bool {
    Precision::of(request) == Precision::High
}

impl Code {
    /// The code of an expression on operands of these types, with the bits of its ops.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] where an op or an operand is none; a decline where the device lacks a type.
    pub fn of(
        expression: &Expression,
        operands: &[DType],
        device: &DeviceInfo<'_>,
    ) -> Result<Code, Refusal> {
        Code::within(expression, operands, device, false)
    }

    /// The same, with the digits that a request needs: [`is_loose`] says it.
    ///
    /// # Errors
    /// [`Refusal::BadRequest`] where an op or an operand is none; a decline where the device lacks a type.
    pub fn within(
        expression: &Expression,
        operands: &[DType],
        device: &DeviceInfo<'_>,
        is_loose: bool,
    ) -> Result<Code, Refusal> {
        let mut code = Code {
            body: String::new(),
            results: expression
                .results
                .iter()
                .map(|call| format!("v{call}"))
                .collect(),
            functions: 0,
            types: operands.to_vec(),
            math: [false; 2],
            mixed: false,
            is_nvidia: vendor::is_nvidia(device),
            is_loose,
        };
        for (index, call) in expression.calls.iter().enumerate() {
            code.call(index, call, expression, operands)?;
        }
        for dtype in &code.types {
            supports("an expression", *dtype, device)?;
        }
        Ok(code)
    }

    fn call(
        &mut self,
        index: usize,
        call: &Call,
        expression: &Expression,
        operands: &[DType],
    ) -> Result<(), Refusal> {
        let bad = |why: String| Refusal::BadRequest(format!("the expression: {why}"));
        let types = expression.dtypes(call, operands).map_err(bad)?;
        let row = row(&call.op, types.len(), call)?;
        let all = types.iter().chain([&call.dtype]);
        if let Some(unfit) = all
            .clone()
            .find(|dtype| dtype.is_complex() || !dtype.is_known())
        {
            return Err(bad(format!("`{call}`: {unfit} is no real type")));
        }
        let entry = row.entry(&types, call.dtype);
        self.types.extend(all.chain(&entry.types));
        self.mixed |= entry.is_mixed;
        if row.math {
            let wide = entry.types.contains(&DType::F64);
            self.math[usize::from(wide)] = true;
            self.functions += 1;
        }
        let is_loose = self.is_loose && call.dtype == DType::F32;
        let is_exact = row.math && !is_loose;
        let values = call.terms.iter().zip(types.iter().zip(&entry.types));
        let values: Vec<(&str, String)> = values
            .enumerate()
            .map(|(place, (term, (dtype, computed)))| {
                let value = cast(&value(term, is_exact), *dtype, *computed);
                let register = register(*computed);
                let is_number = matches!(term, Term::Number(..));
                // A number may become 0 by that, and of an integer compilers may know that it is.
                let is_cast =
                    dtype != computed && computed.is_float() && dtype.is_integer() != is_number;
                let is_cast = is_cast || !is_number && is_rounded(*dtype, *computed);
                let of_function = is_exact && place > 0 && !is_number;
                match is_cast || of_function {
                    true => (register, unknown(&value, register)),
                    false => (register, value),
                }
            })
            .collect();
        let gives = register(call.dtype);
        let bits = entry.types.first().and_then(|dtype| dtype.row());
        let bits = bits.map_or(0, |row| row.bits).to_string();
        let glsl = match simpler(call, types[0], &entry.types) {
            Some(simpler) => simpler,
            None if is_loose => row.loose(&entry.types).replace("A_BITS", &bits),
            None => row.code(&entry.types, call.dtype).replace("A_BITS", &bits),
        };
        let (values, before) = match entry.is_order {
            // How the operands compare is how their order compares with 0.
            true => {
                let of: Vec<&str> = values.iter().map(|(_, value)| value.as_str()).collect();
                let order = format!("order({})", of.join(", "));
                (
                    vec![("float", order), ("float", "0.0".to_owned())],
                    String::new(),
                )
            }
            // Nothing is contracted with what the next call makes of it.
            false if call.dtype.is_float() && row.compute(0) != Compute::Own => {
                (values, format!("precise {gives} r = {glsl};"))
            }
            false => (values, String::new()),
        };
        let result = if before.is_empty() {
            glsl.as_str()
        } else {
            "r"
        };
        let result = stored(&format!("nxv_to_{}({result})", call.dtype), call.dtype);
        let compared =
            types.iter().any(|dtype| dtype.is_float()) && row.compute(0) == Compute::Compared;
        let is_known = call
            .terms
            .iter()
            .all(|term| matches!(term, Term::Number(..)));
        let rounds = entry
            .types
            .iter()
            .any(|dtype| is_rounded(*dtype, call.dtype));
        let result = match is_exact || compared || is_known || rounds {
            true => unknown(&result, gives),
            false => result,
        };
        self.body += &made(index, gives, &values, &before, &result);
        Ok(())
    }

    /// What the shader's half needs beside the body.
    pub fn defines(&self) -> Vec<Define> {
        let mut defines: Vec<Define> = self.types.iter().copied().flat_map(glsl::needs).collect();
        let switches = [
            (self.math[0], "MATH_F32"),
            (self.math[1], "MATH_F64"),
            (self.mixed, "MIXED"),
        ];
        let on = switches.into_iter().filter(|(is_on, _)| *is_on);
        defines.extend(on.map(|(_, name)| define(name, "1")));
        defines.extend(vendor::defines(self.is_nvidia, self.math != [false; 2]));
        defines
    }
}

/// GLSL with the same results where the second operand is known: a square, and a quotient by a number whose inverse is exact, or by one
/// of at most 13 bits where operand and result have 8: no such quotient is within 2^-22 of itself of the middle between two results.
fn simpler(call: &Call, given: DType, types: &[DType]) -> Option<String> {
    let (Some(Term::Number(number, _)), [_, divisor]) = (call.terms.get(1), types) else {
        return None;
    };
    if !divisor.is_float() || divisor.size() == 1 {
        return None;
    }
    let number = match *number {
        Number::Integer(whole) => whole as f64,
        Number::Float(number) => number,
    };
    let is_near = (0.0625..=1024.0).contains(&number);
    let is_power = number.to_bits() << 12 == 0;
    let is_served = |dtype: &DType| match is_power {
        true => dtype.size() < 8,
        false => [given, *dtype] == [DType::BF16; 2] && number.to_bits() << 24 == 0,
    };
    match call.op.as_str() {
        "pow" if number == 2.0 => Some("a * a".to_owned()),
        "divide" if is_near && types.iter().all(is_served) => {
            let inverse = ((1.0 / number) as f32).to_bits();
            Some(format!(
                "nxv_divide_by(a, b, uintBitsToFloat(0x{inverse:x}u))"
            ))
        }
        _ => None,
    }
}

/// The row of an op that is called.
pub(crate) fn row(op: &str, terms: usize, call: &dyn Display) -> Result<&'static Row, Refusal> {
    let row = rows::of(op, terms).map_err(Refusal::Internal)?;
    row.ok_or_else(|| Refusal::BadRequest(format!("`{call}` is no call of an elementwise op")))
}

/// The statements that make value `index` of type `gives`: `operands` are types and values of a, b and c, of which `result`
/// is made after the statements `before`.
pub(crate) fn made(
    index: usize,
    gives: &str,
    operands: &[(&str, String)],
    before: &str,
    result: &str,
) -> String {
    let operand = |(place, name): (usize, &str)| {
        let (register, value) = &operands[place];
        // A compiler takes x / x for 1, whatever x is.
        let value = match operands[..place].contains(&operands[place]) {
            true => unknown(value, register),
            false => value.clone(),
        };
        format!("{register} {name} = {value}; ")
    };
    let names = ["a", "b", "c"].into_iter().take(operands.len());
    let operands: String = names.enumerate().map(operand).collect();
    let space = if before.is_empty() { "" } else { " " };
    format!("{gives} v{index}; {{ {operands}{before}{space}v{index} = {result}; }} ")
}

/// A value of a register type that compilers know nothing of, by the shader's `ZERO`. NVIDIA's takes the last step of a
/// function of the math headers and the first of the next one for one sum, what a comparison chooses for the greater one,
/// which is not a NaN, and a quotient of two numbers for 1 where it sees that they are the same, or for -1.
pub(crate) fn unknown(value: &str, register: &str) -> String {
    match register {
        "float" => format!("uintBitsToFloat(floatBitsToUint({value}) ^ ZERO)"),
        "double" => format!("packDouble2x32(unpackDouble2x32({value}) ^ ZERO)"),
        "uint" => format!("{value} ^ ZERO"),
        "int" | "int64_t" | "uint64_t" => format!("{value} ^ {register}(ZERO)"),
        _ => value.to_owned(),
    }
}

/// A number by its bits, so that nothing rounds it twice: those of an f64 where `dtype` is a float, else of a whole number. There
/// are no 64-bit literals, since glslang reads defines before extensions are on.
///
/// Functions of the math headers take theirs `unknown` to the driver's compiler, by the shader's `ZERO`: NVIDIA's multiplies by
/// the inverse of a divisor that it knows, and by both in one, so that the rest of a division is lost. Everybody takes zeros so:
/// Mesa's compilers know that a product with one is 0, which it is not of an infinity, and that 0 - (x - y) is y - x.
pub(crate) fn literal(
    bits: u64,
    whole: i128,
    dtype: DType,
    register: &str,
    unknown: bool,
) -> String {
    let single = f64::from_bits(bits) as f32;
    let is_zero = match (dtype.class(), dtype.size()) {
        (Some(Class::Float | Class::Complex), 8..) => f64::from_bits(bits) == 0.0,
        (Some(Class::Float | Class::Complex), _) => single == 0.0,
        (Some(Class::Unsigned | Class::Signed) | None, _) => whole == 0,
    };
    let zero = if unknown || is_zero { " ^ ZERO" } else { "" };
    let words = |bits: u64| format!("uvec2(0x{:x}u, 0x{:x}u){zero}", bits as u32, bits >> 32);
    match (dtype.class(), dtype.size()) {
        (Some(Class::Float | Class::Complex), 8..) => format!("packDouble2x32({})", words(bits)),
        (Some(Class::Float | Class::Complex), _) => {
            format!("uintBitsToFloat(0x{:x}u{zero})", single.to_bits())
        }
        (Some(Class::Unsigned | Class::Signed) | None, 8) => {
            format!("{register}(packUint2x32({}))", words(whole as u64))
        }
        (Some(Class::Unsigned | Class::Signed) | None, _) => {
            format!("{register}(0x{:x}u{zero})", whole as u32)
        }
    }
}

/// A term of a call; `unknown` says whether of one whose numbers compilers must not know.
fn value(term: &Term, unknown: bool) -> String {
    match *term {
        Term::Operand(index) => format!("i{index}"),
        Term::Made(index) => format!("v{index}"),
        Term::Number(Number::Integer(whole), dtype) => {
            literal(0, whole, dtype, register(dtype), unknown)
        }
        Term::Number(Number::Float(number), dtype) => {
            literal(number.to_bits(), 0, dtype, register(dtype), unknown)
        }
    }
}

/// Whether a float is made of a number with more digits. Compilers take what is made of it in turn, a wider float or an integer, for
/// the number itself, so that they must not know it; types that are narrower in memory hide theirs in `stored`.
fn is_rounded(from: DType, to: DType) -> bool {
    match to {
        DType::F32 => from == DType::F64 || from.is_integer() && from.size() >= 4,
        DType::F64 => from.is_integer() && from.size() >= 8,
        _ => false,
    }
}

fn register(dtype: DType) -> &'static str {
    glsl::types(dtype).map_or("float", |types| types.1)
}

fn cast(value: &str, from: DType, to: DType) -> String {
    match from == to {
        true => value.to_owned(),
        false => format!("nxv_to_{to}({value})"),
    }
}

/// A value as it is in memory, where that holds less than a register. NVIDIA's compiler takes an f16 that is made and read again
/// for the value that it was made of, so that it is hidden by the shader's `ZERO`.
pub fn stored(value: &str, dtype: DType) -> String {
    match glsl::of(dtype) {
        Some(glsl) if dtype == DType::F16 => {
            format!("{}(uint16_t({}({value}) ^ ZERO))", glsl.load, glsl.store)
        }
        Some(_) if dtype == DType::BF16 => format!("nxv_rounded_bf16({value})"),
        Some(glsl) if dtype.is_float() && dtype.register() != dtype => {
            format!("{}({}({value}))", glsl.load, glsl.store)
        }
        Some(_) | None => value.to_owned(),
    }
}
