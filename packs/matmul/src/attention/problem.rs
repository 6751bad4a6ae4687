//! An `attention` request as the kernel sees it: batches of rows and keys, each along one or two axes of an operand.

use nx_vulkan_abi::{
    DType, Epilogue, InputAs, Refusal, Request, TensorDesc,
    epilogue::{FACTORS, Types},
    layout,
};
use nx_vulkan_pack_kit::{
    epilogue::{Asked, Finish},
    operand::within_reach,
};

/// Elements of one load, which rows are whole numbers of.
pub(super) const WIDTH: u32 = 8;
/// Elements along the depth that four lanes load, and columns of V that eight do.
pub(super) const PAIR: u32 = 32;
pub(super) const BLOCK: u32 = 64;
/// The most of both: a lane keeps rows of Q and of results in registers.
const MOST: u32 = 128;

/// Operands of its own.
const OPERANDS: usize = 3;
/// The attribute that says what becomes of scores.
const SCORES: &str = "scores";
/// The one that says in which order the result has its axes.
const ORDER: &str = "output_permutation";

/// softmax(f(Q K^T)) V.
#[derive(Debug, Clone)]
pub(crate) struct Problem {
    pub(super) dtype: DType,
    pub(super) batches: u32,
    pub(super) rows: u32,
    pub(super) keys: u32,
    /// Columns of Q and K, and of V.
    pub(super) depth: u32,
    pub(super) width: u32,
    /// What becomes of the scores.
    pub(super) finish: Option<Finish>,
    words: Vec<u32>,
}

impl Problem {
    /// Reads a request; asks for operands whose rows are no whole loads.
    pub(crate) fn of(request: &Request<'_>) -> Result<Problem, Refusal> {
        let ([q, k, v, ..], [out]) = (request.inputs.as_slice(), request.outputs.as_slice()) else {
            return Err(Refusal::BadRequest(
                "attention takes three operands at least and gives one result".into(),
            ));
        };
        let (rank, keys_rank) = (q.rank(), k.rank());
        if keys_rank < 2 || v.rank() != keys_rank || rank < keys_rank || out.rank() != rank {
            return Err(Refusal::BadRequest(format!(
                "attention over operands of {rank}, {keys_rank} and {} axes",
                v.rank()
            )));
        }
        let dtype = out.dtype;
        if [q, k, v].iter().any(|operand| operand.dtype != dtype) || dtype.size() != 2 {
            return Err(Refusal::decline(format!(
                "matrix units do not take {}, {} and {} for {dtype}",
                q.dtype, k.dtype, v.dtype
            )));
        }
        within_reach(request)?;
        let batch = keys_rank - 2;
        let limit = |extents: &[u64]| {
            let extent = extents.iter().product::<u64>();
            u32::try_from(extent)
                .ok()
                .filter(|extent| *extent <= 1 << 30)
                .ok_or_else(|| Refusal::decline(format!("an extent of {extent} exceeds 2^30")))
        };
        let q_shape = q.shape.as_slice();
        let [depth, width] = [k.shape[keys_rank - 1], v.shape[keys_rank - 1]];
        for extent in [depth, width] {
            if extent > u64::from(MOST) || !extent.is_multiple_of(u64::from(WIDTH)) {
                return Err(Refusal::decline(format!(
                    "rows of {depth} and {width} elements are no whole loads of {WIDTH}, or more than {MOST}"
                )));
            }
        }
        let mut scores = q_shape[..rank - 1].to_vec();
        scores.push(k.shape[batch]);
        let finish = finish(request, dtype, &scores, batch)?;

        let mut words = Vec::new();
        let mut wanted = Vec::new();
        let all = [(q, 0, rank - 1), (k, 1, batch), (v, 2, batch)];
        for (operand, index, last) in all {
            match place(parts(operand), batch, last) {
                Some(own) => words.extend(own),
                None if operand.is_contiguous() => {
                    return Err(Refusal::decline(
                        "the axes of an operand are more than two of batches or rows",
                    ));
                }
                None => wanted.push(InputAs::new(index, dtype)),
            }
            if index > 0 {
                let step = operand.strides[batch];
                words.push((step / i64::from(WIDTH)) as u32);
            }
        }
        if !wanted.is_empty() {
            return Err(Refusal::InputsAs(wanted));
        }
        let (shape, strides) = natural(request, out)?;
        let own = place((&shape, &strides, 0), batch, rank - 1);
        let own = own.ok_or_else(|| {
            Refusal::decline("the result has no whole rows, or more than two axes of them")
        })?;
        words.extend(&own[1..]);
        Ok(Problem {
            dtype,
            batches: limit(&q_shape[..batch])?,
            rows: limit(&q_shape[batch..rank - 1])?,
            keys: limit(&[k.shape[batch]])?,
            depth: depth as u32,
            width: width as u32,
            finish,
            words,
        })
    }

    /// Whether it has no result.
    pub(super) fn is_empty(&self) -> bool {
        self.batches == 0 || self.rows == 0 || self.width == 0
    }

    /// Where operands and result lie, as the shader takes it.
    pub(super) fn words(&self) -> &[u32] {
        &self.words
    }

    /// Fragments along the depth, two by two.
    pub(super) fn pairs(&self) -> u32 {
        self.depth.div_ceil(PAIR)
    }

    /// Columns of V, 64 by 64.
    pub(super) fn blocks(&self) -> u32 {
        self.width.div_ceil(BLOCK)
    }
}

/// What becomes of scores of that shape, `batch` axes of which are of batches.
fn finish(
    request: &Request<'_>,
    dtype: DType,
    shape: &[u64],
    batch: usize,
) -> Result<Option<Finish>, Refusal> {
    let bad = |why: String| Refusal::BadRequest(format!("attention: attribute {SCORES}: {why}"));
    let Some(text) = request.text(SCORES) else {
        return match request.inputs.len() {
            OPERANDS => Ok(None),
            given => Err(Refusal::BadRequest(format!(
                "attention takes {OPERANDS} operands without {SCORES}, got {given}"
            ))),
        };
    };
    let epilogue: Epilogue = text.parse().map_err(bad)?;
    let further = request.inputs[OPERANDS..].iter();
    let types = [dtype; FACTORS].into_iter();
    let types: Vec<DType> = types.chain(further.map(|input| input.dtype)).collect();
    let types = Types::of(&types, dtype, true);
    let types = types.filter(|types| types.compute == DType::F32);
    let types = types
        .ok_or_else(|| Refusal::decline("its scores are computed in more than f32".to_owned()))?;
    let last = shape.len() - 1;
    let axes = [0..batch, batch..last, last..last + 1].map(Vec::from_iter);
    let asked = Asked {
        epilogue: &epilogue,
        first: OPERANDS,
        types,
        result: DType::F32,
        shape,
        axes: &axes,
    };
    Finish::asked(request, &asked).map(Some)
}

/// Offset of a tensor and where its batches are, and where its rows are if these are the axes from there to `last`; `None`
/// where that is no whole loads, or more axes than two.
fn place(
    (shape, strides, offset): (&[u64], &[i64], u64),
    batch: usize,
    last: usize,
) -> Option<Vec<u32>> {
    let width = i64::from(WIDTH);
    let loads = |step: i64| (step % width == 0).then_some((step / width) as u32);
    if strides.last() != Some(&1) && shape.last() > Some(&1) {
        return None;
    }
    let along = |from: usize, to: usize| {
        let space = layout::collapse(&shape[from..to], &[strides[from..to].to_vec()]);
        let (outer, extent, inner) = match (&space.shape[..], &space.strides[0][..]) {
            ([], _) => (0, 1, 0),
            ([_], [step]) => (*step, 1, 0),
            ([_, extent], [outer, inner]) => (*outer, *extent, *inner),
            _ => return None,
        };
        let extent = u32::try_from(extent).ok()?.max(1);
        Some([loads(outer)?, extent, loads(inner)?])
    };
    let mut words = vec![loads(i64::try_from(offset).ok()?)?];
    words.extend(along(0, batch)?);
    match last > batch {
        true => words.extend(along(batch, last)?),
        false => drop(loads(strides[batch])?),
    }
    Some(words)
}

fn parts<'a>(tensor: &'a TensorDesc<'_>) -> (&'a [u64], &'a [i64], u64) {
    let (shape, strides) = (tensor.shape.as_slice(), tensor.strides.as_slice());
    (shape, strides, tensor.offset)
}

/// The axes of the result as they are computed, which it may have in another order.
fn natural(request: &Request<'_>, out: &TensorDesc<'_>) -> Result<(Vec<u64>, Vec<i64>), Refusal> {
    let rank = out.rank();
    let order = request.ints(ORDER);
    let (mut shape, mut strides) = (vec![0; rank], vec![0; rank]);
    for (axis, (&extent, &step)) in out.shape.iter().zip(out.strides.iter()).enumerate() {
        let own = match order {
            [] => axis,
            order => order.get(axis).map_or(rank, |&axis| axis as usize),
        };
        let repeats = order.iter().take(axis).any(|before| *before == own as i64);
        if order.len() > rank || own >= rank || repeats {
            return Err(Refusal::BadRequest(format!(
                "attention: attribute {ORDER} {order:?} for {rank} axes"
            )));
        }
        (shape[own], strides[own]) = (extent, step);
    }
    Ok((shape, strides))
}
