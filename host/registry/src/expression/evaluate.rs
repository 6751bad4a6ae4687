//! What an expression comes to for one request: an integer, or the reason why there is none.
//!
//! Every number of a request counts as hostile. Arithmetic is checked in 128 bits, so nothing wraps.

use super::{
    Expression, Field, Node, Op, Tensor,
    language::{FIELDS, LIMITS},
};
use nx_vulkan_abi::{AttrKind, DeviceInfo, Request, TensorDesc};

impl Expression {
    /// Its value for `request`; comparisons and logic give 0 or 1.
    ///
    /// # Errors
    /// Why it has no value: an operand, an axis or an attribute that the request lacks, a division by zero, an
    /// overflow.
    pub fn evaluate(&self, request: &Request<'_>) -> Result<i128, String> {
        value(&self.root, request).map_err(|why| format!("`{}`: {why}", self.text))
    }

    /// The properties of tensors that it reads, each once and with its value: `a.rank is 2, a.dim[-1] is 1000`.
    pub(crate) fn facts(&self, request: &Request<'_>) -> String {
        let mut facts: Vec<String> = Vec::new();
        self.root.visit(&mut |node| {
            let Node::Tensor(tensor, field, at) = node else {
                return;
            };
            let name = FIELDS
                .iter()
                .find(|row| row.1 == *field)
                .map_or("", |row| row.0);
            let at = at.as_ref().map(|at| value(at, request).unwrap_or_default());
            let at = at.map_or(String::new(), |at| format!("[{at}]"));
            let value = value(node, request).unwrap_or_default();
            let fact = format!("{tensor}.{name}{at} is {value}");
            if !facts.contains(&fact) {
                facts.push(fact);
            }
        });
        facts.join(", ")
    }
}

fn value(node: &Node, request: &Request<'_>) -> Result<i128, String> {
    let of = |node: &Node| value(node, request);
    match node {
        Node::Number(number) => Ok(*number),
        Node::Named(node) => of(node),
        Node::Tensor(tensor, field, index) => {
            let index = index.as_ref().map(|index| of(index)).transpose()?;
            property(desc(*tensor, request)?, *tensor, *field, index)
        }
        Node::Attr(name, index) => {
            let ints = integers(name, request)?;
            let index = index.as_ref().map(|index| of(index)).transpose()?;
            match index {
                Some(index) => entry(ints, index, &format!("attribute `{name}`")),
                None if ints.len() == 1 => Ok(ints[0].into()),
                None => Err(format!("attribute `{name}` has {} integers", ints.len())),
            }
        }
        Node::AttrLength(name) => Ok(integers(name, request)?.len() as i128),
        Node::Device(limit, index) => {
            let index = index.as_ref().map(|index| of(index)).transpose()?;
            device(request.device, LIMITS[*limit].0, index)
        }
        Node::Negate(node) => of(node)?.checked_neg().ok_or_else(overflow),
        Node::Not(node) => Ok(i128::from(of(node)? == 0)),
        Node::Binary(Op::And, left, right) => Ok(i128::from(of(left)? != 0 && of(right)? != 0)),
        Node::Binary(Op::Or, left, right) => Ok(i128::from(of(left)? != 0 || of(right)? != 0)),
        Node::Binary(op, left, right) => binary(*op, of(left)?, of(right)?),
        Node::Least(list) => most(list.iter().map(of), |a, b| a < b),
        Node::Most(list) => most(list.iter().map(of), |a, b| a > b),
        Node::Matrix(types, extents) => {
            let [m, n, k] = extents.each_ref().map(of);
            let extents = [m?, n?, k?].map(|extent| u32::try_from(extent).unwrap_or(0));
            Ok(request.device.multiplies(*types, extents).into())
        }
    }
}

/// `/` truncates toward zero and `%` has the sign of its left side, as in GLSL.
fn binary(op: Op, a: i128, b: i128) -> Result<i128, String> {
    let divides = matches!(op, Op::Divide | Op::CeilDivide | Op::Remainder);
    if divides && b == 0 {
        return Err("it divides by zero".to_owned());
    }
    let result = match op {
        Op::Add => a.checked_add(b),
        Op::Subtract => a.checked_sub(b),
        Op::Multiply => a.checked_mul(b),
        Op::Divide => a.checked_div(b),
        Op::Remainder => a.checked_rem(b),
        Op::CeilDivide => a.checked_div(b).and_then(|whole| {
            let more = a.checked_rem(b)? != 0 && (a < 0) == (b < 0);
            whole.checked_add(i128::from(more))
        }),
        Op::Equal => Some((a == b).into()),
        Op::NotEqual => Some((a != b).into()),
        Op::Less => Some((a < b).into()),
        Op::LessEqual => Some((a <= b).into()),
        Op::Greater => Some((a > b).into()),
        Op::GreaterEqual => Some((a >= b).into()),
        Op::And => Some((a != 0 && b != 0).into()),
        Op::Or => Some((a != 0 || b != 0).into()),
    };
    result.ok_or_else(overflow)
}

fn most(
    mut values: impl Iterator<Item = Result<i128, String>>,
    wins: fn(i128, i128) -> bool,
) -> Result<i128, String> {
    let first = values.next().unwrap_or(Ok(0));
    values.fold(first, |best, next| {
        let (best, next) = (best?, next?);
        Ok(if wins(next, best) { next } else { best })
    })
}

/// The operand or result, or that the request has none.
pub(crate) fn desc<'r>(
    tensor: Tensor,
    request: &'r Request<'_>,
) -> Result<&'r TensorDesc<'r>, String> {
    let (list, index) = match tensor {
        Tensor::Input(index) => (&request.inputs, index),
        Tensor::Output(index) => (&request.outputs, index),
    };
    let found = list.as_slice().get(index as usize);
    found.ok_or_else(|| format!("the request has no {tensor}"))
}

/// Number of elements; the request's own product may wrap.
pub(crate) fn elements(desc: &TensorDesc<'_>) -> Result<i128, String> {
    let product = |product: i128, &extent: &u64| product.checked_mul(extent.into());
    if desc.shape.as_slice().contains(&0) {
        return Ok(0);
    }
    desc.shape.iter().try_fold(1, product).ok_or_else(overflow)
}

fn property(
    desc: &TensorDesc<'_>,
    tensor: Tensor,
    field: Field,
    index: Option<i128>,
) -> Result<i128, String> {
    let index = index.unwrap_or(0);
    let no_axis = || {
        let rank = desc.rank();
        format!("{tensor} has no axis {index}, its rank is {rank}")
    };
    match field {
        Field::Elements => elements(desc),
        Field::Rank => Ok(desc.shape.len() as i128),
        Field::Offset => Ok(desc.offset.into()),
        Field::Bytes => Ok(desc.storage_len.into()),
        Field::Size => Ok(desc.dtype.size().into()),
        Field::Contiguous => Ok(desc.is_contiguous().into()),
        Field::Dim => element(desc.shape.as_slice(), index).ok_or_else(no_axis),
        Field::Stride => element(desc.strides.as_slice(), index).ok_or_else(no_axis),
    }
}

/// The element at `index`, which counts from the end when it is negative.
fn element<T: Copy + Into<i128>>(list: &[T], index: i128) -> Option<i128> {
    let at = match index < 0 {
        true => index.checked_add(list.len() as i128)?,
        false => index,
    };
    list.get(usize::try_from(at).ok()?)
        .map(|value| (*value).into())
}

fn entry<T: Copy + Into<i128>>(list: &[T], index: i128, what: &str) -> Result<i128, String> {
    let length = list.len();
    element(list, index).ok_or_else(|| format!("{what} has {length} entries, and none at {index}"))
}

fn integers<'r>(name: &str, request: &'r Request<'_>) -> Result<&'r [i64], String> {
    match request.attr(name) {
        Some(attr) if attr.kind == AttrKind::INTS => Ok(attr.ints.as_slice()),
        Some(_) => Err(format!("attribute `{name}` is not a list of integers")),
        None => Err(format!("the request has no attribute `{name}`")),
    }
}

fn device(device: &DeviceInfo<'_>, limit: &str, index: Option<i128>) -> Result<i128, String> {
    let list = |list: &[u32; 3]| entry(list, index.unwrap_or(0), &format!("`{limit}`"));
    let fact = || device.fact(limit).first().copied().unwrap_or(0).into();
    Ok(match limit {
        "vendor" => device.vendor.into(),
        "kind" => device.kind.0.into(),
        "subgroup_size" => device.subgroup_size.into(),
        "min_subgroup_size" => device.min_subgroup_size.into(),
        "max_subgroup_size" => device.max_subgroup_size.into(),
        "max_subgroups" | "subgroups_per_unit" | "memory_bytes" | "driver_id" => fact(),
        "shared_bytes" => device.shared_bytes.into(),
        "push_bytes" => device.push_bytes.into(),
        "max_invocations" => device.max_invocations.into(),
        "compute_units" => device.compute_units.into(),
        "max_buffer_range" => device.max_buffer_range.into(),
        "buffer_align" => device.buffer_align.into(),
        "max_workgroup_size" => return list(&device.max_workgroup_size),
        "max_groups" => return list(&device.max_groups),
        _ => return Err(format!("this host does not know the limit `{limit}`")),
    })
}

fn overflow() -> String {
    "its numbers become too large".to_owned()
}
