//! What the queue decides, on the device that the tests run on.

use super::{Bound, Quiet, Step, Stream, progress::BATCH, stamps::MOST};
use crate::{
    Config, DType, Tensor,
    device::Device,
    memory::{Budget, Patience, Pool, Use},
    module::{Binding, Launch, Module},
    pipeline::Pipelines,
    shader::Shaders,
};
use nx_vulkan_registry::{Glsl, Origin, cache::Cache};
use std::{
    sync::{Arc, atomic::Ordering},
    time::{Duration, Instant},
};

const TOUCH: &str = "#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint x[]; };
void main() { x[0] += 1u; }";

struct Setup {
    device: Arc<Device>,
    stream: Arc<Stream>,
    pool: Arc<Pool>,
    pipelines: Pipelines,
    module: Module,
}

fn setup() -> Setup {
    let config = Config::from_env();
    let device = Device::open(&config.device, config.validation).unwrap();
    let quiet = Quiet(Box::new(|| {}));
    let stream = Stream::new(&device, Duration::from_secs(20), false, quiet).unwrap();
    // Nothing is submitted before somebody asks for it.
    stream.stop_timer(Instant::now() + Duration::from_secs(5));
    stream.open.lock().last_look = Instant::now() + Duration::from_secs(3_600);
    let budget = |heap| Budget::new(&device, config.memory, heap);
    let pool = Pool::new(&device, Use::Tensors, budget).unwrap();
    let own = Glsl::new(TOUCH, Origin::Stranger);
    let find = |name: &str| (name == "touch").then_some(own);
    let words = Shaders::new(None).compile("touch", &[], &find);
    let module = Module::new("touch".to_owned(), words.unwrap(), &device).unwrap();
    Setup {
        pipelines: Pipelines::new(&device, &Cache::open(None)).unwrap(),
        device,
        stream,
        pool,
        module,
    }
}

impl Setup {
    fn tensor(&self, len: u64) -> Tensor {
        let buffer = self.pool.alloc(len, None, Patience::Waits).unwrap();
        Tensor::contiguous(buffer, DType::U8, &[len])
    }

    /// A step that reads or writes 256 bytes and says that it depends on no other of its plan.
    fn step(&self, tensor: &Tensor, offset: u64, writes: bool) -> Step {
        let binding = Binding {
            tensor,
            offset,
            len: 256,
            writes: true,
        };
        let launch = Launch {
            bindings: &[binding],
            constants: &[],
            push: &[],
            groups: [1, 1, 1],
        };
        let mut step = self
            .module
            .step(&launch, &self.device, &self.pipelines)
            .unwrap();
        step.args[0].reads = !writes;
        step.args[0].writes = writes;
        step
    }

    fn record(&self, steps: &[Step], tensor: &Tensor) {
        self.stream
            .record(
                &self.pipelines,
                &"t".into(),
                steps,
                &[Bound::whole(&tensor.buffer)],
            )
            .unwrap();
    }
}

#[test]
fn a_plan_that_reads_before_it_writes_elsewhere_waits_for_earlier_readers() {
    let setup = setup();
    let shared = setup.tensor(512);
    setup.record(&[setup.step(&shared, 256, false)], &shared);
    let earlier = setup.stream.sequence();
    let reads_then_writes = [
        setup.step(&shared, 0, false),
        setup.step(&shared, 256, true),
    ];
    setup.record(&reads_then_writes, &shared);
    let open = setup.stream.open.lock();
    assert!(
        open.ordered >= earlier,
        "no barrier between the earlier read and the write: {open:?}"
    );
}

#[test]
fn steps_of_one_plan_that_say_they_are_independent_get_no_barrier() {
    let setup = setup();
    let shared = setup.tensor(512);
    let independent = [setup.step(&shared, 0, true), setup.step(&shared, 256, true)];
    setup.record(&independent, &shared);
    assert_eq!(setup.stream.open.lock().ordered, 0);
    setup.record(&independent, &shared);
    assert_eq!(setup.stream.open.lock().ordered, 2);
}

#[test]
fn an_idle_device_gets_a_burst_in_growing_batches() {
    let setup = setup();
    setup.stream.batch.store(BATCH, Ordering::Relaxed);
    let tensor = setup.tensor(256);
    let record = |count: u64| {
        for _ in 0..count {
            let submitted = setup.stream.open.lock().submitted;
            while setup.stream.completed().unwrap() < submitted {}
            setup.stream.open.lock().last_look = Instant::now() - Duration::from_secs(1);
            setup.record(&[setup.step(&tensor, 0, true)], &tensor);
        }
        setup.stream.submissions()
    };
    assert_eq!(record(1), 1);
    assert_eq!(record(2 + 4 + 8), 4);
    assert_eq!(record(15), 4);
    assert_eq!(record(1 + 16), 6);
    setup.stream.wait(setup.stream.sequence()).unwrap();
    assert_eq!(record(1), 7, "a burst of its own");
}

#[test]
fn the_timer_submits_what_nobody_followed() {
    let setup = setup();
    let tensor = setup.tensor(256);
    let mut seen = 0;
    assert!(!setup.stream.tick(&mut seen), "nothing to do");
    for _ in 0..2 {
        setup.record(&[setup.step(&tensor, 0, true)], &tensor);
        assert!(setup.stream.tick(&mut seen));
        assert_eq!(setup.stream.submissions(), 0, "there may be more");
    }
    assert!(setup.stream.tick(&mut seen));
    assert_eq!(setup.stream.submissions(), 1);
    assert!(!setup.stream.tick(&mut seen));
}

/// All of it was one batch, as long as it may take.
#[test]
fn a_long_plan_is_submitted_in_batches() {
    let setup = setup();
    setup.stream.batch.store(BATCH, Ordering::Relaxed);
    let tensor = setup.tensor(256);
    let adds = |count: u64| -> Vec<Step> {
        let step = |_| {
            let mut step = setup.step(&tensor, 0, true);
            step.args[0].reads = true;
            step.barrier = true;
            step
        };
        (0..count).map(step).collect()
    };
    let count = u64::from(BATCH) * 3 + 5;
    setup.stream.zero(&tensor.buffer).unwrap();
    setup.record(&adds(count), &tensor);
    // The first command of the first batch cleared the tensor.
    assert_eq!(setup.stream.submissions(), 3);
    setup.stream.wait(setup.stream.sequence()).unwrap();
    assert_eq!(setup.stream.sequence(), 1 + count);
    assert_eq!(setup.stream.submissions(), 4);
    let readback = {
        let budget = |heap| Budget::new(&setup.device, Config::from_env().memory, heap);
        Pool::new(&setup.device, Use::Readback, budget).unwrap()
    };
    let copy = readback.alloc(256, None, Patience::Waits).unwrap();
    setup
        .stream
        .copy((&tensor.buffer, 0), (&copy, 0), 256, true)
        .unwrap();
    setup.stream.wait(setup.stream.sequence()).unwrap();
    let at = copy.mapping().unwrap().cast::<u32>();
    // SAFETY: memory for reading back is mapped, and what wrote it is done.
    assert_eq!(u64::from(unsafe { at.read() }), count);
}

#[test]
fn a_profile_has_each_command_once_and_in_order() {
    let setup = setup();
    let stream = &setup.stream;
    let tensor = setup.tensor(512);
    let steps = [setup.step(&tensor, 0, true), setup.step(&tensor, 256, true)];
    setup.record(&steps, &tensor);
    stream.begin_stamps().unwrap();
    let twice = stream.begin_stamps().unwrap_err();
    assert!(twice.to_string().contains("one that is on"), "{twice}");
    stream.zero(&tensor.buffer).unwrap();
    setup.record(&steps, &tensor);
    stream.flush().unwrap();
    setup.record(&steps[1..], &tensor);
    let profile = stream.end_stamps().unwrap();
    let rows = profile.rows.iter();
    let rows: Vec<_> = rows
        .map(|row| (&*row.op, &*row.step, row.index, row.steps, row.groups))
        .collect();
    let own = |index, steps| ("t", "touch", index, steps, Some((1, 1, 1)));
    let fill = ("512 bytes", "fill", 0, 0, None);
    assert_eq!(rows, [fill, own(0, 2), own(1, 2), own(0, 1)]);
    let mut end = 0.0;
    for row in &profile.rows {
        assert!(row.us > 0.0 && row.us < 1e7, "{row:?}");
        assert!(row.start_us >= end - 1e-6, "{profile:?}");
        end = row.start_us + row.us;
    }
    assert!(profile.device_us <= profile.span_us + 1e-6);
    assert_eq!((profile.span_us, profile.dropped), (end, 0));

    stream.begin_stamps().unwrap_err();
    stream.forget_stamps();
    setup.record(&steps, &tensor);
    assert!(stream.open.lock().stamps.is_none(), "it is off");
}

#[test]
fn a_profile_keeps_so_many_commands_and_counts_the_others() {
    let setup = setup();
    let stream = &setup.stream;
    let tensor = setup.tensor(256);
    // More than a pool of stamps has.
    let steps = vec![setup.step(&tensor, 0, true); 1_500];
    for (most, kept) in [(MOST, 1_500), (1_100, 1_100), (0, 0)] {
        stream.begin_stamps().unwrap();
        stream.open.lock().stamps.as_mut().unwrap().most = most;
        setup.record(&steps, &tensor);
        let profile = stream.end_stamps().unwrap();
        assert_eq!(profile.rows.len(), kept);
        assert_eq!(profile.dropped as usize, 1_500 - kept);
        assert!(profile.rows.iter().all(|row| row.us.is_finite()));
        stream.forget_stamps();
    }
    assert_eq!(stream.open.lock().pools.len(), 2, "they are used again");
}
