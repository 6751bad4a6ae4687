//! Views: other layouts of the same memory. None of them copies.

use crate::{
    reply::{self, Failure},
    tensor::TensorRef,
    terms::{ShapeTerm, TypeTerm},
};
use nx_vulkan_host::{Result, Tensor};
use rustler::{Encoder, Env, ResourceArc, Term};

mod atoms {
    rustler::atoms! { copy }
}

/// `{:ok, ref}`, or `:copy` when no layout of the same memory has that shape.
#[rustler::nif]
fn reshape<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, shape: ShapeTerm) -> Term<'a> {
    let layout = || -> std::result::Result<_, Failure> { Ok(tensor.tensor()?.reshape(&shape.0)?) };
    match layout().transpose() {
        Some(result) => reply::encode(env, result.map(|view| tensor.view(view))),
        None => atoms::copy().encode(env),
    }
}

#[rustler::nif]
fn transpose<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: Vec<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.transpose(&axes))
}

#[rustler::nif]
fn squeeze<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: Vec<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.squeeze(&axes))
}

/// Axis `i` of the tensor becomes axis `axes[i]` of `shape`.
#[rustler::nif]
fn broadcast<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    shape: ShapeTerm,
    axes: Vec<usize>,
) -> Term<'a> {
    view(env, &tensor, |t| t.broadcast(&shape.0, &axes))
}

#[rustler::nif]
fn slice<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    starts: Vec<u64>,
    lengths: Vec<u64>,
    strides: Vec<u64>,
) -> Term<'a> {
    view(env, &tensor, |t| t.slice(&starts, &lengths, &strides))
}

#[rustler::nif]
fn reverse<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: Vec<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.reverse(&axes))
}

/// The same bytes read as another type of the same width.
#[rustler::nif]
fn bitcast<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, dtype: TypeTerm) -> Term<'a> {
    view(env, &tensor, |t| t.bitcast(dtype.0))
}

fn view<'a>(
    env: Env<'a>,
    tensor: &TensorRef,
    layout: impl FnOnce(&Tensor) -> Result<Tensor>,
) -> Term<'a> {
    let made =
        || -> std::result::Result<_, Failure> { Ok(tensor.view(layout(&tensor.tensor()?)?)) };
    reply::encode(env, made())
}
