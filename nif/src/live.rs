//! Reloads: looking anew, going back, and telling a process what happened.

use crate::{
    device::DeviceRef,
    maps::{EventMap, PackVersionMap},
    notes::notes,
    reply::{self, Failure},
    resource::ResourceArc,
    terms::List,
};
use nx_vulkan_host::{Runtime, live::Event};
use parking_lot::Mutex;
use rustler::{Encoder, Env, LocalPid, OwnedEnv, Term};
use std::sync::{
    Arc, Weak,
    atomic::{AtomicU64, Ordering},
};

mod atoms {
    rustler::atoms! { ok, nx_vulkan_event }
}

/// A process that is told what happens on a device.
pub(crate) struct Follower {
    pid: LocalPid,
    runtime: Weak<Runtime>,
    listener: AtomicU64,
}

impl Follower {
    fn tell(&self, event: Event) {
        let sent = OwnedEnv::new().send_and_clear(&self.pid, |env| {
            (atoms::nx_vulkan_event(), EventMap::from(event)).encode(env)
        });
        if sent.is_err()
            && let Some(runtime) = self.runtime.upgrade()
        {
            runtime.forget_listener(self.listener.load(Ordering::Acquire));
        }
    }
}

/// Runtimes that a process follows already, by address: they live as long as the VM.
static FOLLOWED: Mutex<Vec<(usize, LocalPid)>> = Mutex::new(Vec::new());

/// From now on `pid` gets `{:nx_vulkan_event, map}` for everything that happens on the device, until it dies.
#[rustler::nif]
fn follow<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>, pid: LocalPid) -> Term<'a> {
    match notes() {
        Err(failure) => reply::encode_error(env, &failure),
        Ok(notes) => {
            let runtime = Arc::as_ptr(&device.runtime) as usize;
            let mut followed = FOLLOWED.lock();
            if followed.contains(&(runtime, pid)) {
                return atoms::ok().encode(env);
            }
            followed.push((runtime, pid));
            let follower = Arc::new(Follower {
                pid,
                runtime: Arc::downgrade(&device.runtime),
                listener: AtomicU64::new(0),
            });
            let own = follower.clone();
            let number = device.runtime.listen(Box::new(move |event| {
                let (own, event) = (own.clone(), event.clone());
                drop(notes.send(Box::new(move || own.tell(event))));
            }));
            follower.listener.store(number, Ordering::Release);
            atoms::ok().encode(env)
        }
    }
}

/// The events of a look at the registry, packs and shaders.
#[rustler::nif(schedule = "DirtyIo")]
fn reload(device: ResourceArc<DeviceRef>) -> List<EventMap> {
    device.runtime.reload().into()
}

/// The versions of a pack, the newest last.
#[rustler::nif]
fn pack_versions(device: ResourceArc<DeviceRef>, pack: &str) -> List<PackVersionMap> {
    device.runtime.versions(pack).into()
}

/// `{:ok, version}`, or an error.
#[rustler::nif(schedule = "DirtyIo")]
fn rollback<'a>(env: Env<'a>, device: ResourceArc<DeviceRef>, pack: &str, steps: u64) -> Term<'a> {
    let version = device.runtime.rollback(pack, steps as usize);
    reply::encode(
        env,
        version.map(PackVersionMap::from).map_err(Failure::from),
    )
}

/// The events of a look after a rollback has ended.
#[rustler::nif(schedule = "DirtyIo")]
fn resume_pack(device: ResourceArc<DeviceRef>, pack: &str) -> List<EventMap> {
    device.runtime.resume(pack).into()
}
