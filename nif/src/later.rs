//! Calls that go on elsewhere: what was decoded on the scheduler of a process moves to a dirty one, where it may wait.

use crate::resource::{Class, Resource, ResourceArc};
use parking_lot::Mutex;
use rustler::{
    Encoder, Env, Term,
    schedule::SchedulerFlags,
    sys::{ErlNifEnv, ErlNifTerm, enif_make_badarg, enif_raise_exception, enif_schedule_nif},
    types::atom,
};
use std::{
    ffi::{CStr, c_int},
    panic::{AssertUnwindSafe, catch_unwind},
    time::Duration,
};

/// Waiting for at most this long, a call stays on the scheduler it came from: changing to a dirty one and back costs
/// about a tenth of it.
pub(crate) const SHORT: Duration = Duration::from_micros(50);

/// What is left of a call. It is given the terms that were kept for it.
type Rest = Box<dyn for<'a> FnOnce(Env<'a>, &[Term<'a>]) -> Term<'a> + Send>;

/// The rest of a call, until it is taken up.
pub(crate) struct Waiting(Mutex<Option<Rest>>);

impl Resource for Waiting {
    const NAME: &CStr = c"call";
    const EXPECTED: &str = "a call of this VM that was not collected";

    fn class() -> &'static Class {
        static CLASS: Class = Class::unopened();
        &CLASS
    }
}

/// Moves a call to a dirty scheduler. What this answers must be the answer of the function that the VM called, which
/// then ends; the caller gets the answer of `rest`. `kept` are terms that live until then.
pub(crate) fn later<'a>(
    env: Env<'a>,
    scheduler: SchedulerFlags,
    kept: &[Term<'a>],
    rest: impl for<'b> FnOnce(Env<'b>, &[Term<'b>]) -> Term<'b> + Send + 'static,
) -> Term<'a> {
    let waiting = ResourceArc::new(Waiting(Mutex::new(Some(Box::new(rest)))));
    let mut arguments = vec![waiting.encode(env).as_c_arg()];
    arguments.extend(kept.iter().map(Term::as_c_arg));
    // SAFETY: the env is that of the call that goes on here, the arguments are terms of it, and the VM copies them and
    // the name. `resume` stays mapped, as the whole library does.
    unsafe {
        let scheduled = enif_schedule_nif(
            env.as_c_arg(),
            c"later".as_ptr(),
            scheduler as c_int,
            resume,
            arguments.len() as c_int,
            arguments.as_ptr(),
        );
        Term::new(env, scheduled)
    }
}

unsafe extern "C" fn resume(
    env: *mut ErlNifEnv,
    count: c_int,
    arguments: *const ErlNifTerm,
) -> ErlNifTerm {
    let lifetime = ();
    // SAFETY: the VM gives its env, which is good until this returns, and `count` terms of it.
    let (env, arguments) = unsafe {
        let env = Env::new(&lifetime, env);
        let arguments = std::slice::from_raw_parts(arguments, count as usize);
        let terms: Vec<Term> = arguments.iter().map(|&t| Term::new(env, t)).collect();
        (env, terms)
    };
    let answer = catch_unwind(AssertUnwindSafe(|| {
        let (waiting, kept) = arguments.split_first()?;
        let waiting: ResourceArc<Waiting> = waiting.decode().ok()?;
        let rest = waiting.0.lock().take()?;
        Some(rest(env, kept).as_c_arg())
    }));
    // SAFETY: the env is that of this call, and the answer is returned to the VM at once.
    unsafe {
        match answer {
            Ok(Some(answer)) => answer,
            Ok(None) => enif_make_badarg(env.as_c_arg()),
            Err(_) => enif_raise_exception(env.as_c_arg(), atom::nif_panicked().as_c_arg()),
        }
    }
}
