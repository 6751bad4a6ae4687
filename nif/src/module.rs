//! Shaders of the caller's own: from GLSL text or a SPIR-V file, run over buffers or as leapfrog chains.

use crate::{
    device::DeviceRef,
    reply::{self, Failure},
    resource::{Class, Resource, ResourceArc},
    tensor::TensorRef,
    terms::List,
};
use nx_vulkan_chains::{self as chains, Chain, Layout, Refusal};
use nx_vulkan_host::{DType, Module, Runtime, Tensor};
use rustler::{Binary, Encoder, Env, NewBinary, Term};
use std::{ffi::CStr, path::Path, sync::Arc};

mod atoms {
    rustler::atoms! { ok, error, bad_input, size_mismatch, dispatch_failed, f32, f64 }
}

/// A module on a device.
pub(crate) struct ModuleRef {
    runtime: Arc<Runtime>,
    module: Arc<Module>,
}

impl Resource for ModuleRef {
    const NAME: &CStr = c"module";
    const EXPECTED: &str = "a module of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

/// `{:ok, module}` of a GLSL compute shader. Only a text that this library wrote itself, whole, is `generated`: it is
/// compiled and built in this process.
#[rustler::nif(schedule = "DirtyIo")]
fn module_of<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    glsl: &str,
    generated: bool,
) -> Term<'a> {
    let runtime = &device.runtime;
    let made = match generated {
        true => runtime.generated_module(glsl),
        false => runtime.module_of(glsl),
    };
    let made = made.map(|module| {
        ResourceArc::new(ModuleRef {
            runtime: runtime.clone(),
            module,
        })
    });
    reply::encode(env, made.map_err(Failure::from))
}

/// `{:ok, path}` of the SPIR-V file of a GLSL compute shader. Where it is `generated`, this library put it together of its own
/// text and the caller's: functions that are not used are not looked at.
#[rustler::nif(schedule = "DirtyIo")]
fn spirv_file<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    glsl: &str,
    generated: bool,
) -> Term<'a> {
    let path = device.runtime.spirv_file(glsl, generated);
    let path = path.map(|path| path.to_string_lossy().into_owned());
    reply::encode(env, path.map_err(Failure::from))
}

/// `{:ok, path}` of the folder with those files.
#[rustler::nif]
fn synthesis_dir<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>) -> Term<'a> {
    let path = device.runtime.synthesis_dir();
    let path = path.map(|path| path.to_string_lossy().into_owned());
    reply::encode(env, path.map_err(Failure::from))
}

/// A dispatch over buffers: `:ok` with `out` written, `{:error, :size_mismatch}`, `{:error, :bad_input}` or
/// `{:error, :dispatch_failed, message}`. `counts` are the extents that go into the push constants, `elements` those of
/// each of `inputs` and then of `out`; all have one element size. `op` goes into specialization constant 0.
#[rustler::nif(schedule = "DirtyIo")]
fn dispatch_file<'a>(
    env: Env<'a>,
    out: Term<'a>,
    List(inputs): List<Term<'a>>,
    List(elements): List<u64>,
    (List(push), op): (List<u32>, Option<i32>),
    groups: (u32, u32, u32),
    path: Binary,
) -> Term<'a> {
    let buffer = |term: &Term<'a>| -> Result<_, Refusal> {
        let buffer: ResourceArc<TensorRef> = decode(*term)?;
        let tensor = tensor(&buffer)?;
        Ok((buffer, tensor))
    };
    let inputs = inputs.iter().map(buffer).collect::<Result<Vec<_>, _>>();
    let (out, inputs) = match buffer(&out).and_then(|out| Ok((out, inputs?))) {
        Ok(buffers) => buffers,
        Err(refusal) => return refused(env, &refusal),
    };
    let runtime = &out.0.runtime;
    if !inputs.iter().all(|i| Arc::ptr_eq(&i.0.runtime, runtime)) {
        return refused(env, &Refusal::BadInput);
    }
    let all = inputs.iter().chain([&out]);
    let lens: Vec<u64> = all.map(|(buffer, _)| buffer.byte_size()).collect();
    let fits = |size: u64| {
        let wanted = |n: &u64| n.checked_mul(size);
        lens.len() == elements.len()
            && lens
                .iter()
                .zip(&elements)
                .all(|(len, n)| wanted(n) == Some(*len))
    };
    let Some(path) = file_path(&path) else {
        return refused(env, &Refusal::BadInput);
    };
    if ![1, 2, 4, 8].into_iter().any(fits) {
        return refused(env, &Refusal::SizeMismatch);
    }
    let run = || -> nx_vulkan_host::Result<Tensor> {
        let module = runtime.module_at(path)?;
        let inputs: Vec<&Tensor> = inputs.iter().map(|(_, tensor)| &**tensor).collect();
        let push: Vec<u8> = push.iter().flat_map(|word| word.to_le_bytes()).collect();
        let op = op.map(|op| (0, op.cast_unsigned()));
        let (x, y, z) = groups;
        runtime.run_module(&module, &inputs, &out.1, (op.as_slice(), &push), [x, y, z])
    };
    match run() {
        Ok(tensor) => {
            out.0.replace(tensor);
            atoms::ok().encode(env)
        }
        Err(error) => refused(env, &Refusal::Failed(error)),
    }
}

/// `{:ok, {q, p, grad, logp}}` or a refusal, by a SPIR-V file of the chain contract. `batch` tells whether the push
/// block counts chains.
#[rustler::nif(schedule = "DirtyIo")]
fn chain_file<'a>(
    env: Env<'a>,
    device: ResourceArc<DeviceRef>,
    inputs: (Term<'a>, Term<'a>, Term<'a>, Term<'a>),
    k: Term<'a>,
    path: Term<'a>,
    (dtype, batch): (rustler::Atom, bool),
) -> Term<'a> {
    let run = || -> Result<Term<'a>, Refusal> {
        let path: Binary = decode(path)?;
        let path = file_path(&path).ok_or(Refusal::BadInput)?;
        let (q, p, extras, push): (Binary, Binary, Binary, Binary) = (
            decode(inputs.0)?,
            decode(inputs.1)?,
            decode(inputs.2)?,
            decode(inputs.3)?,
        );
        let chain = Chain {
            q: &q,
            p: &p,
            extras: &extras,
            push: &push,
            k: decode(k)?,
            dtype: float(dtype)?,
            layout: if batch { Layout::Batch } else { Layout::Single },
        };
        chain.check()?;
        let module = device.runtime.module_at(path)?;
        let encoded = |parts: [&[u8]; 4]| encode(env, parts);
        chains::run_foreign(&device.runtime, &module, &chain, encoded)
    };
    run().unwrap_or_else(|refusal| refused(env, &refusal))
}

/// As [`chain_file`], by a module with its data resident: step size and inverse masses are each chain's extras.
#[rustler::nif(schedule = "DirtyIo")]
fn chain_module<'a>(
    env: Env<'a>,
    module: ResourceArc<ModuleRef>,
    (q, p, extras, push): (Binary, Binary, Binary, Binary),
    k: u32,
    dtype: rustler::Atom,
    (data, scratch, workgroup): (Option<ResourceArc<TensorRef>>, u64, u32),
) -> Term<'a> {
    let run = || -> Result<Term<'a>, Refusal> {
        let here = |data: &&ResourceArc<TensorRef>| Arc::ptr_eq(&data.runtime, &module.runtime);
        if !data.iter().all(|data| here(&data)) {
            return Err(Refusal::BadInput);
        }
        let data = data.as_ref().map(|data| tensor(data)).transpose()?;
        let info = module.runtime.device().info();
        let most = info.max_invocations.min(info.max_workgroup_size[0]);
        let chain = Chain {
            q: &q,
            p: &p,
            extras: &extras,
            push: &push,
            k,
            dtype: float(dtype)?,
            layout: Layout::Resident {
                data: data.as_deref(),
                scratch,
                workgroup: within(workgroup, most),
            },
        };
        let encoded = |parts: [&[u8]; 4]| encode(env, parts);
        chains::run(&module.runtime, &module.module, &chain, encoded)
    };
    run().unwrap_or_else(|refusal| refused(env, &refusal))
}

/// Invocations of a workgroup on a device that takes no more than `most`: a power of two of them.
fn within(workgroup: u32, most: u32) -> u32 {
    match workgroup <= most {
        true => workgroup,
        false => 1 << most.max(1).ilog2(),
    }
}

/// The tensor of a reference.
fn tensor(reference: &TensorRef) -> Result<Arc<Tensor>, Refusal> {
    reference.tensor().map_err(|failure| match failure {
        Failure::Host(error) => Refusal::Failed(error),
        Failure::Deallocated => Refusal::BadInput,
    })
}

/// A path from its bytes, which need not be text on Unix.
#[cfg(unix)]
fn file_path(bytes: &[u8]) -> Option<&Path> {
    Some(Path::new(
        <std::ffi::OsStr as std::os::unix::ffi::OsStrExt>::from_bytes(bytes),
    ))
}

/// A path from its bytes.
#[cfg(not(unix))]
fn file_path(bytes: &[u8]) -> Option<&Path> {
    std::str::from_utf8(bytes).ok().map(Path::new)
}

fn decode<'a, T: rustler::Decoder<'a>>(term: Term<'a>) -> Result<T, Refusal> {
    term.decode().map_err(|_| Refusal::BadInput)
}

fn float(name: rustler::Atom) -> Result<DType, Refusal> {
    if name == atoms::f32() {
        Ok(DType::F32)
    } else if name == atoms::f64() {
        Ok(DType::F64)
    } else {
        Err(Refusal::BadInput)
    }
}

fn encode<'a>(env: Env<'a>, parts: [&[u8]; 4]) -> Term<'a> {
    let [q, p, grad, logp] = parts.map(|part| {
        let mut binary = NewBinary::new(env, part.len());
        binary.as_mut_slice().copy_from_slice(part);
        Term::from(binary)
    });
    (atoms::ok(), (q, p, grad, logp)).encode(env)
}

fn refused<'a>(env: Env<'a>, refusal: &Refusal) -> Term<'a> {
    match refusal {
        Refusal::SizeMismatch => (atoms::error(), atoms::size_mismatch()).encode(env),
        Refusal::BadInput => (atoms::error(), atoms::bad_input()).encode(env),
        Refusal::Failed(error) => {
            (atoms::error(), atoms::dispatch_failed(), error.to_string()).encode(env)
        }
    }
}
