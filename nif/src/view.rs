//! Views: other layouts of the same memory. None of them copies.

use crate::{
    reply::{self, Failure},
    resource::ResourceArc,
    tensor::TensorRef,
    terms::{List, ShapeTerm, TypeTerm},
};
use nx_vulkan_host::{Result, Tensor};
use rustler::{Encoder, Env, Term};

mod atoms {
    rustler::atoms! { copy }
}

/// `{:ok, ref}`, or `:copy` when no layout of the same memory has that shape.
#[rustler::nif]
fn reshape<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, shape: ShapeTerm) -> Term<'a> {
    let layout = || -> std::result::Result<_, Failure> { Ok(tensor.tensor()?.reshape(&shape.0)?) };
    match layout().transpose() {
        Some(result) => reply::encode(env, result.map(|view| tensor.same_order(view))),
        None => atoms::copy().encode(env),
    }
}

#[rustler::nif]
fn transpose<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.transpose(&axes.0))
}

#[rustler::nif]
fn squeeze<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.squeeze(&axes.0))
}

/// Axis `i` of the tensor becomes axis `axes[i]` of `shape`.
#[rustler::nif]
fn broadcast<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    shape: ShapeTerm,
    axes: List<usize>,
) -> Term<'a> {
    view(env, &tensor, |t| t.broadcast(&shape.0, &axes.0))
}

#[rustler::nif]
fn slice<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    starts: List<u64>,
    lengths: List<u64>,
    strides: List<u64>,
) -> Term<'a> {
    view(env, &tensor, |t| t.slice(&starts.0, &lengths.0, &strides.0))
}

#[rustler::nif]
fn reverse<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, &tensor, |t| t.reverse(&axes.0))
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
        || -> std::result::Result<_, Failure> { Ok(tensor.view(layout(&*tensor.tensor()?)?)) };
    reply::encode(env, made())
}
