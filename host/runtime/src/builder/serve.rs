//! The child of a builder: it compiles and builds what it is asked, one job after another, until its parent is gone.

use super::message::{self, Built, Job, Reply, Spec, VERSION};
use crate::{
    Error, Kind, Result,
    config::{Config, DeviceChoice},
    device::Device,
    memory::{Budget, Patience, Pool, Use},
    pipeline::{Pipelines, spec::PipelineSpec},
    queue::{Bound, Label, Quiet, Step, StepArg, Stream},
    shader::{self, Target},
    spirv::Module,
};
use nx_vulkan_registry::{
    Origin,
    cache::Cache,
    child::{self, Limits},
};
use std::{
    cell::LazyCell,
    io,
    os::{fd::AsFd as _, unix::net::UnixStream},
    sync::Arc,
    thread,
    time::Duration,
};

/// Bytes of a file that the child may write: drivers keep what they compiled.
const MAX_FILE: u64 = 1 << 30;

/// Stack of the driver's compiler. The parent's is larger, so what passes here has room there.
const STACK: usize = crate::pipeline::STACK / 2;

/// Seconds after the parent's limit when the child ends by itself, because nobody else ended it.
const GRACE: u32 = 10;

/// Bytes of the one buffer that is bound everywhere. Nothing runs that could read or write it.
const BUFFER: u64 = 1 << 16;

/// What `nxv-child build-server SECONDS` does: limits this process, and answers what comes through standard input, which is a
/// socket, until that is closed. Ends the process in the ways that shaders find.
///
/// # Errors
/// When standard input is no socket, or somebody else speaks there.
pub fn serve(seconds: u32) -> io::Result<()> {
    child::limit(Limits {
        file: MAX_FILE,
        memory: None,
    });
    let mut parent = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let hello = Reply::Hello(VERSION.to_owned(), Some(std::process::id()));
    message::write_frame(&mut parent, &hello)?;
    // Its tables are made by the first compilation, which waits for this one if it comes early.
    thread::spawn(|| shader::glslang_compile("#version 450\nvoid main() {}\n", Target::Older));
    let Some(device) = message::read_frame(&mut parent)? else {
        return Ok(());
    };
    let Some(Job::Open(device)) = Job::decode(&device) else {
        return Err(io::Error::other("a device comes first"));
    };
    let opening = thread::spawn(move || Bench::open(&device));
    let bench = LazyCell::new(|| {
        let ended = |_| Err(Error::new(Kind::Vulkan, "the device was not opened"));
        opening.join().unwrap_or_else(ended)
    });
    while let Some(frame) = message::read_frame(&mut parent)? {
        let Some(job) = Job::decode(&frame) else {
            return Err(io::Error::other("a job that makes no sense"));
        };
        child::end_after(seconds.saturating_add(GRACE));
        let reply = answer(job, &bench);
        child::end_after(0);
        message::write_frame(&mut parent, &reply)?;
    }
    Ok(())
}

fn answer(job: Job, bench: &Opening<impl FnOnce() -> Result<Bench>>) -> Reply {
    match job {
        Job::Open(_) => Reply::Trouble("its device is open".to_owned()),
        Job::Compile(text) => match shader::glslang_compile(&text, Target::Older) {
            Ok(words) => Reply::Words(words),
            Err(log) => Reply::Refused(log),
        },
        Job::Build(spec) => match &**bench {
            Ok(bench) => match bench.build(&spec) {
                Ok(built) => Reply::Built(built),
                Err(error) if error.kind() == Kind::Shader => Reply::Refused(error.to_string()),
                Err(error) => Reply::Trouble(error.to_string()),
            },
            Err(error) => Reply::Trouble(error.to_string()),
        },
    }
}

/// A bench that a thread opens, and whoever uses it waits for.
type Opening<F> = LazyCell<Result<Bench>, F>;

/// A device on which pipelines are tried.
struct Bench {
    // The queue stops first.
    stream: Arc<Stream>,
    pool: Arc<Pool>,
    device: Arc<Device>,
}

impl Bench {
    fn open(uuid: &str) -> Result<Bench> {
        let choice = match uuid {
            "" => DeviceChoice::Auto,
            uuid => DeviceChoice::Uuid(uuid.replace('-', "")),
        };
        let device = Device::open(&choice, false)?;
        let budget = |heap| Budget::new(&device, Config::default().memory, heap);
        let pool = Pool::new(&device, Use::Tensors, budget)?;
        let quiet = Quiet(Box::new(|| {}));
        Ok(Bench {
            stream: Stream::new(&device, Duration::from_secs(3600), false, quiet)?,
            pool,
            device,
        })
    }

    /// Makes the pipeline, and has it dispatched with no workgroups: some drivers compile when a pipeline is first used.
    fn build(&self, spec: &Spec) -> Result<Built> {
        let pipelines = Pipelines::new(&self.device, &Cache::open(None))?.with_stack(STACK);
        let words = spec.words.as_slice().into();
        let module = Module::admit(words, Origin::Stranger);
        let module = Arc::new(module.map_err(|why| Error::new(Kind::Shader, why))?);
        let pipeline = pipelines.get(&PipelineSpec {
            module: &module,
            bindings: spec.bindings,
            push_bytes: spec.push_bytes,
            subgroup_size: spec.subgroup_size,
            constants: &spec.constants,
        })?;
        let buffer = self.pool.alloc(BUFFER, None, Patience::Waits)?;
        let arg = StepArg {
            buffer: 0,
            offset: 0,
            len: 0,
            reads: true,
            writes: true,
        };
        let step = Step {
            pipeline,
            groups: [0; 3],
            counts: None,
            args: vec![arg; spec.bindings as usize],
            push: vec![0; spec.push_bytes as usize],
            barrier: false,
            reports: false,
            label: Label::new(&"host".into(), "module"),
        };
        let recorded = self.stream.record(
            &pipelines,
            &"a module's first run".into(),
            &[step],
            &[Bound::whole(&buffer)],
        );
        recorded.and_then(|()| self.stream.wait(self.stream.sequence()))?;
        let cache = pipelines.cache().data()?;
        Ok(Built { cache })
    }
}
