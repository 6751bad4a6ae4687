//! Views: other layouts of the same memory. None of them copies.

use crate::{
    later::later,
    reply::{self, Failure},
    resource::ResourceArc,
    run::scheduler,
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
    once_there(env, tensor, move |env, tensor, held| {
        match held.reshape(&shape.0).transpose() {
            Some(Ok(view)) => (rustler::types::atom::ok(), tensor.same_order(view)).encode(env),
            Some(Err(error)) => reply::encode_error(env, &error.into()),
            None => atoms::copy().encode(env),
        }
    })
}

#[rustler::nif]
fn transpose<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, tensor, move |t| t.transpose(&axes.0))
}

#[rustler::nif]
fn squeeze<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, tensor, move |t| t.squeeze(&axes.0))
}

/// Axis `i` of the tensor becomes axis `axes[i]` of `shape`.
#[rustler::nif]
fn broadcast<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    shape: ShapeTerm,
    axes: List<usize>,
) -> Term<'a> {
    view(env, tensor, move |t| t.broadcast(&shape.0, &axes.0))
}

#[rustler::nif]
fn slice<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    starts: List<u64>,
    lengths: List<u64>,
    strides: List<u64>,
) -> Term<'a> {
    view(env, tensor, move |t| {
        t.slice(&starts.0, &lengths.0, &strides.0)
    })
}

#[rustler::nif]
fn reverse<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, axes: List<usize>) -> Term<'a> {
    view(env, tensor, move |t| t.reverse(&axes.0))
}

/// The same bytes read as another type of the same width.
#[rustler::nif]
fn bitcast<'a>(env: Env<'a>, tensor: ResourceArc<TensorRef>, dtype: TypeTerm) -> Term<'a> {
    view(env, tensor, move |t| t.bitcast(dtype.0))
}

fn view<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    layout: impl FnOnce(&Tensor) -> Result<Tensor> + Send + 'static,
) -> Term<'a> {
    once_there(env, tensor, move |env, tensor, held| {
        let made = layout(held).map(|view| tensor.view(held, view));
        reply::encode(env, made.map_err(Failure::from))
    })
}

/// What `rest` makes of the tensor, on a dirty scheduler where it has to be computed first.
fn once_there<'a>(
    env: Env<'a>,
    tensor: ResourceArc<TensorRef>,
    rest: impl for<'b> FnOnce(Env<'b>, &TensorRef, &Tensor) -> Term<'b> + Send + 'static,
) -> Term<'a> {
    match tensor.try_tensor() {
        Ok(Some(held)) => rest(env, &tensor, &held),
        Ok(None) => later(
            env,
            scheduler(&tensor.runtime),
            &[],
            move |env, _| match tensor.tensor() {
                Ok(held) => rest(env, &tensor, &held),
                Err(failure) => reply::encode_error(env, &failure),
            },
        ),
        Err(failure) => reply::encode_error(env, &failure),
    }
}
