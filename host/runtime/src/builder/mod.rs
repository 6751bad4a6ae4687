//! Shaders of strangers are compiled and first built in a process of their own: whatever they do to the compiler or to
//! the driver ends that process and not this one. Who is a stranger is decided where shaders come from.
//!
//! The child is `nxv-child build-server SECONDS`, which calls [`serve`]. It is started when packs with such shaders are
//! loaded or by the first such shader, and kept while there are more.

mod failure;
mod message;
mod passed;
mod serve;
mod worker;

pub(crate) use failure::Unanswered;
pub use serve::serve;
pub use worker::VERB;

use crate::{Error, Kind, Result, device::Device, pipeline::spec::PipelineSpec};
use failure::Failure;
use message::{Built, Job, Reply};
use nx_vulkan_registry::{LoadedPack, Origin, Table, cache::Cache};
use parking_lot::{Condvar, Mutex};
use passed::{MAX_REMEMBERED, Passed};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    path::{Path, PathBuf},
    sync::{
        Arc, Once, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};
use worker::{Ended, Limits, Worker};

/// Children that work at the same time; further jobs wait for their turn.
const MAX_WORKERS: usize = 2;

/// Bytes of memory that a child may use.
const MAX_MEMORY: u64 = 4 << 30;

/// How long a child without work is kept.
const IDLE: Duration = Duration::from_secs(30);

/// How long a shader that did not finish is not tried again: the machine may have been busy.
const PATIENCE: Duration = Duration::from_secs(60);

/// Compiles and builds in child processes. Safe to use from any number of threads; each waits for its own answer.
#[derive(Debug, Default)]
pub(crate) struct Builder {
    program: Option<PathBuf>,
    /// UUID of the device that is built for; an empty one is the best.
    device: OnceLock<String>,
    time: Duration,
    workers: Mutex<Workers>,
    freed: Condvar,
    passed: Passed,
    failed: Mutex<HashMap<[u8; 32], Failure>>,
    stop: AtomicBool,
}

#[derive(Debug, Default)]
struct Workers {
    idle: Vec<Worker>,
    working: usize,
}

impl Builder {
    /// With an `nxv-child` of this version, or without: strangers' shaders are then compiled and built in this process. Each
    /// job may take `time`. What passed is noted in the cache folder.
    pub(crate) fn new(program: Option<PathBuf>, cache: &Arc<Cache>, time: Duration) -> Builder {
        Builder {
            program,
            time,
            passed: Passed::new(cache),
            ..Builder::default()
        }
    }

    /// Says for which device is built. Children open it while they wait.
    pub(crate) fn set_device(&self, uuid: &str) {
        if self.device.set(uuid.to_owned()).is_ok() {
            for worker in &mut self.workers.lock().idle {
                worker.tell(uuid);
            }
        }
    }

    /// Starts a child that waits for its first job, on a thread of its own, if packs of that table have shaders of
    /// strangers.
    pub(crate) fn prepare_for(self: &Arc<Self>, table: &Table) {
        let is_strange =
            |pack: &LoadedPack| pack.origin() == Origin::Stranger || !pack.edited.is_empty();
        if !table.packs.iter().any(is_strange) {
            return;
        }
        let builder = self.clone();
        let prepare = move || {
            let (Some(program), Ok(mut turn)) = (builder.program(), builder.turn()) else {
                return;
            };
            if turn.worker.is_none() {
                // Whoever has a job tries again, and says what is wrong.
                turn.worker = builder.start(program).ok();
            }
            if let (Some(worker), Some(device)) = (&mut turn.worker, builder.device.get()) {
                worker.tell(device);
            }
        };
        let thread = std::thread::Builder::new().name("nx_vulkan-builder".to_owned());
        // Without a thread the first job waits for what this would have done.
        drop(thread.spawn(prepare));
    }

    /// The words of a text whose includes are in place. The outer error tells why it could not be tried or what it did
    /// to the compiler, the inner one is the compiler's own log. `None`: it has to be compiled here.
    pub(crate) fn compile(
        &self,
        text: &str,
    ) -> Option<std::result::Result<std::result::Result<Vec<u32>, String>, Unanswered>> {
        let program = self.program()?;
        let key = Sha256::new()
            .chain_update(b"text")
            .chain_update(text)
            .finalize();
        let job = Job::Compile(text.to_owned());
        Some(match self.ask(program, key.into(), &job) {
            Ok(Reply::Words(words)) => Ok(Ok(words)),
            Ok(Reply::Refused(log)) => Ok(Err(log)),
            Ok(Reply::Trouble(why)) => Err(Unanswered::passing(why)),
            Ok(Reply::Hello(..) | Reply::Built(_)) => Err(senseless().into()),
            Err(why) => Err(why),
        })
    }

    /// Makes the pipeline in a child, unless it is known that this goes well.
    ///
    /// # Errors
    /// [`Kind::Shader`] when the driver refuses it or it ends the child, in whatever way; [`Kind::Vulkan`] when it could
    /// not be tried.
    pub(crate) fn admit(&self, spec: &PipelineSpec<'_>, device: &Device) -> Result<Option<Built>> {
        let Some(program) = self.program() else {
            return Ok(None);
        };
        let summary = device.summary();
        let key: [u8; 32] = Sha256::new()
            .chain_update(spec.key())
            .chain_update(&summary.uuid)
            .chain_update(&summary.driver)
            .chain_update(device.info().driver.to_le_bytes())
            .chain_update(device.pipeline_cache_uuid())
            .finalize()
            .into();
        if self.passed.has(&key) {
            return Ok(None);
        }
        let built = self.build(program, key, spec)?;
        self.passed.add(key);
        Ok(Some(built))
    }

    /// Makes the pipeline in a child.
    pub(crate) fn build(
        &self,
        program: &Path,
        key: [u8; 32],
        spec: &PipelineSpec<'_>,
    ) -> Result<Built> {
        let shader = |why| Error::new(Kind::Shader, why);
        let job = Job::Build(spec.into());
        let answer = self.ask(program, key, &job);
        match answer.map_err(|unanswered| unanswered.error(Kind::Shader))? {
            Reply::Built(built) => Ok(built),
            Reply::Refused(why) => Err(shader(why)),
            Reply::Trouble(why) => Err(Error::new(
                Kind::Vulkan,
                format!("the shader could not be tried in a process of its own: {why}"),
            )
            .passing(true)),
            Reply::Hello(..) | Reply::Words(_) => Err(shader(senseless())),
        }
    }

    /// Ends the children that have had no work for a while.
    pub(crate) fn rest(&self) {
        let Some(mut workers) = self.workers.try_lock() else {
            return;
        };
        let idle = std::mem::take(&mut workers.idle);
        let (kept, spare) = idle
            .into_iter()
            .partition(|worker| worker.idle_since.elapsed() < IDLE);
        workers.idle = kept;
        drop(workers);
        drop::<Vec<Worker>>(spare);
    }

    /// Ends all children; whoever waits for one gets an error.
    pub(crate) fn stop(&self) {
        self.stop.store(true, Ordering::Release);
        let idle = std::mem::take(&mut self.workers.lock().idle);
        self.freed.notify_all();
        drop(idle);
    }

    fn program(&self) -> Option<&Path> {
        static WARNED: Once = Once::new();
        if self.program.is_none() {
            WARNED.call_once(|| {
                log::warn!(
                    "there is no nxv-child to try shaders with that come from outside, so one that breaks the driver ends this \
                     process; set NX_VULKAN_PROBER",
                );
            });
        }
        self.program.as_deref()
    }

    fn ask(
        &self,
        program: &Path,
        key: [u8; 32],
        job: &Job,
    ) -> std::result::Result<Reply, Unanswered> {
        let known = self.failed.lock().get(&key).cloned();
        if let Some(failure) = known
            && failure.until.is_none_or(|until| Instant::now() < until)
        {
            return Err(failure.into());
        }
        // One that waited may end just when it is asked, by itself or by the system's choice: only the end of a new one
        // tells of the shader. Twice is no chance.
        let mut ended = Ended::Before;
        for _ in 0..2 {
            let mut turn = self.turn().map_err(Unanswered::passing)?;
            let waited = turn.worker.is_some();
            let mut worker = match turn.worker.take() {
                Some(worker) => worker,
                None => self.start(program).map_err(Unanswered::passing)?,
            };
            worker.tell(self.device.get_or_init(String::new));
            match worker.ask(job, self.limits(), &self.stop) {
                Ok(reply) => {
                    worker.idle_since = Instant::now();
                    turn.worker = Some(worker);
                    return Ok(reply);
                }
                Err(Ended::Before) => {}
                Err(Ended::Died(how)) if waited => {
                    turn.forget_idle();
                    ended = Ended::Died(how);
                }
                Err(other) => {
                    ended = other;
                    break;
                }
            }
        }
        let failure = self.judge(program, job, &ended);
        if ended != Ended::Stopped {
            let mut failed = self.failed.lock();
            if failed.len() >= MAX_REMEMBERED {
                failed.clear();
            }
            failed.insert(key, failure.clone());
        }
        Err(failure.into())
    }

    fn limits(&self) -> Limits {
        Limits {
            time: self.time,
            memory: MAX_MEMORY,
        }
    }

    fn start(&self, program: &Path) -> std::result::Result<Worker, String> {
        Worker::start(program, self.limits()).map_err(|error| {
            let program = program.display();
            format!("{program}, which tries shaders, does not start: {error}")
        })
    }

    fn judge(&self, program: &Path, job: &Job, ended: &Ended) -> Failure {
        let compiler = match job {
            Job::Compile(_) => "the compiler",
            Job::Build(_) | Job::Open(_) => "the driver's compiler",
        };
        let (why, may_pass) = match ended {
            Ended::Died(how) => {
                let how = how.strip_prefix("by ").unwrap_or(how);
                let (how, words) = how.split_once("; ").unwrap_or((how, ""));
                let words = if words.is_empty() {
                    String::new()
                } else {
                    format!("; {words}")
                };
                (format!("this shader ends {compiler} ({how}){words}"), false)
            }
            Ended::Late => {
                let limit = self.time.as_secs_f32();
                (format!("{compiler} did not finish within {limit} s"), true)
            }
            Ended::Memory(bytes) => {
                let (used, most) = (bytes >> 20, MAX_MEMORY >> 20);
                let why = format!("{compiler} used {used} MiB of memory, and the limit is {most}");
                (why, false)
            }
            Ended::Stopped => ("the device is being closed".to_owned(), true),
            Ended::Unusable(why) => {
                let program = program.display();
                (format!("{program}, which tries shaders, {why}"), true)
            }
            Ended::Before => {
                let program = program.display();
                (
                    format!("{program}, which tries shaders, ends at once"),
                    true,
                )
            }
        };
        let until = may_pass.then(|| Instant::now() + PATIENCE);
        Failure { why, until }
    }

    /// Waits for a turn; with it comes a child that waits, if there is one.
    fn turn(&self) -> std::result::Result<Turn<'_>, String> {
        let mut workers = self.workers.lock();
        while workers.working >= MAX_WORKERS && !self.stop.load(Ordering::Acquire) {
            self.freed.wait(&mut workers);
        }
        if self.stop.load(Ordering::Acquire) {
            return Err("the device is being closed".to_owned());
        }
        workers.working += 1;
        let mut idle = std::mem::take(&mut workers.idle);
        idle.retain_mut(Worker::is_alive);
        let worker = idle.pop();
        workers.idle = idle;
        Ok(Turn {
            builder: self,
            worker,
        })
    }
}

/// The right to have one child at work; what is left in `worker` at its end waits for the next job.
struct Turn<'a> {
    builder: &'a Builder,
    worker: Option<Worker>,
}

impl Turn<'_> {
    /// Ends the other children that wait, so that the next one is new.
    fn forget_idle(&self) {
        let idle = std::mem::take(&mut self.builder.workers.lock().idle);
        drop(idle);
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut workers = self.builder.workers.lock();
        workers.working -= 1;
        if !self.builder.stop.load(Ordering::Acquire) {
            workers.idle.extend(self.worker.take());
        }
        drop(workers);
        self.builder.freed.notify_one();
    }
}

fn senseless() -> String {
    "the process that tries shaders gave an answer to something else".to_owned()
}
