//! The further operands of an epilogue: how they lie beside the result, and how the shader's half reads them.

use crate::steps::number;
use nx_vulkan_abi::{
    DType, Define, Refusal, TensorDesc,
    glsl::{self, define},
    layout,
};

/// Neighbouring results that a kernel finishes together. They begin at a multiple of their number, and there are no fewer.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Run {
    /// So many rows of a column.
    Rows(u32),
    /// So many columns of a row.
    Columns(u32),
}

impl Run {
    /// Each result for itself.
    pub const ONE: Run = Run::Columns(1);

    /// The axis of their number, and that number.
    fn along(self) -> (usize, u32) {
        match self {
            Run::Rows(length) => (1, length),
            Run::Columns(length) => (2, length),
        }
    }
}

/// A further operand: its element for batch b, row r, column c is at `offset + b * strides[0] + r * strides[1] + c * strides[2]`,
/// but where one of them is of two axes.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Further {
    pub(super) input: u32,
    pub(super) dtype: DType,
    pub(super) offset: u64,
    pub(super) strides: [i64; 3],
    /// Of the inner one of two axes the extent and the stride: then that above is the outer one's.
    pub(super) inner: [Option<(u64, i64)>; 3],
}

impl Further {
    /// As a kernel needs it whose rows are the result's columns.
    pub(super) fn exchanged(mut self) -> Further {
        self.strides.swap(1, 2);
        self.inner.swap(1, 2);
        self
    }

    /// Words that a run has of this operand, where they hold nothing else; `None` where elements are read one by one.
    fn words(&self, run: Run) -> Option<u32> {
        let (axis, length) = run.along();
        let bytes = u64::from(length) * self.dtype.size();
        let begins = |steps: i64| steps % i64::from(length) == 0;
        let aligned = (0..3).filter(|other| *other != axis);
        let aligned = aligned.map(|other| self.strides[other]).all(begins);
        let inner = self.inner.iter().flatten();
        let is_in_words = length > 1
            && self.inner[axis].is_none()
            && inner.map(|inner| inner.1).all(begins)
            && matches!(self.dtype.size(), 1 | 2 | 4)
            && bytes.is_multiple_of(4)
            && self.strides[axis] == 1
            && aligned
            && begins(self.offset as i64);
        is_in_words.then_some(bytes as u32 / 4)
    }

    /// Those of them that are not the same for each run along the other axis.
    pub(super) fn own_words(&self, run: Run) -> u32 {
        let across = match run {
            Run::Rows(_) => 2,
            Run::Columns(_) => 1,
        };
        let is_still = self.strides[across] == 0 && self.inner[across].is_none();
        self.words(run).filter(|_| !is_still).unwrap_or(0)
    }

    /// The GLSL of element `i` of a run's words.
    fn element(&self, words: &str) -> String {
        let storage = glsl::types(self.dtype).map_or("float", |types| types.0);
        match self.dtype.size() {
            4 if storage == "float" => format!("uintBitsToFloat({words}[i])"),
            4 => format!("{storage}({words}[i])"),
            2 => format!("{storage}({words}[i / 2] >> 16 * (i % 2))"),
            _ => format!("{storage}({words}[i / 4] >> 8 * (i % 4))"),
        }
    }
}

/// How an operand lies beside the result.
pub(super) fn place(
    input: u32,
    tensor: &TensorDesc<'_>,
    of: &[u64],
    axes: &[Vec<usize>; 3],
) -> Result<Further, Refusal> {
    let (shape, own) = (tensor.shape.as_slice(), tensor.strides.as_slice());
    let strides = layout::broadcast_strides(shape, own, of);
    let strides = strides.ok_or_else(|| {
        Refusal::BadRequest(format!("operand {input} does not broadcast to the result"))
    })?;
    let mut found = [0; 3];
    let mut inner = [None; 3];
    for ((found, inner), axes) in found.iter_mut().zip(&mut inner).zip(axes) {
        let (extents, steps) = axes.iter().map(|&axis| (of[axis], strides[axis])).unzip();
        let extents: Vec<u64> = extents;
        let space = layout::collapse(&extents, &[steps]);
        *found = match (space.shape.as_slice(), space.strides[0].as_slice()) {
            ([], _) | ([1], _) => 0,
            ([_], [step]) => *step,
            ([_, extent], [outer, step]) => {
                *inner = Some((*extent, *step));
                *outer
            }
            _ => {
                return Err(Refusal::decline(format!(
                    "operand {input} of the epilogue has axes of which more than two do not collapse to rows or columns of the result"
                )));
            }
        };
    }
    if tensor.offset > u64::from(u32::MAX) {
        return Err(Refusal::decline(
            "an operand of the epilogue begins beyond 2^32 elements",
        ));
    }
    Ok(Further {
        input,
        dtype: tensor.dtype,
        offset: tensor.offset,
        strides: found,
        inner,
    })
}

/// How the shader's half reads the further operands: those that lie so in the words of a run, the others element by element. In
/// registers they are of the type `register`.
pub(super) fn reads(operands: &[Further], run: Run, register: &str) -> Vec<Define> {
    let (mut parameters, mut fields) = (String::new(), String::new());
    let (mut read, mut elements) = (String::new(), String::new());
    let (mut defines, mut is_run) = (Vec::new(), false);
    let mut next = 4 * operands.len() as u64;
    for (i, operand) in operands.iter().enumerate() {
        for (axis, inner) in operand.inner.iter().enumerate() {
            let name = format!("E{i}_INNER{axis}");
            defines.push(number(&name, inner.map_or(0, |_| next)));
            next += inner.map_or(0, |_| 2);
        }
        let words = operand.words(run);
        let stored = match words {
            None => glsl::types(operand.dtype).map_or("float", |types| types.0),
            Some(1) => "uint",
            Some(2) => "uvec2",
            Some(_) => "uvec4",
        };
        defines.push(define(format!("E{i}_STORED"), stored));
        let element = match words {
            None => format!("e{i}[E_AT({i})]"),
            Some(_) => operand.element(&format!("own.e{i}")),
        };
        parameters += &format!(", {register} o{i}");
        elements += &format!(", E_FROM(E{i}_LOAD({element}))");
        let Some(words) = words else { continue };
        is_run = true;
        let at = format!(
            "E_AT({i}) / {}",
            u64::from(words.min(4)) * 4 / operand.dtype.size()
        );
        let vectors = match words > 4 {
            true => format!("e{i}[{at}], e{i}[{at} + 1]"),
            false => format!("e{i}[{at}]"),
        };
        fields += &format!("uint e{i}[{words}]; ");
        read += &format!("own.e{i} = words_of({vectors}); ");
    }
    let (_, length) = if is_run { run } else { Run::ONE }.along();
    defines.extend([
        number("E_RUN", length),
        define("E_PARAMETERS", parameters),
        define("E_ELEMENTS", elements),
    ]);
    if is_run {
        defines.extend([define("E_FIELDS", fields), define("E_READ", read)]);
    }
    defines
}
