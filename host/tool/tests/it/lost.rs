//! Devices that are slow, far behind, or never finish: who waits, for how long, and what every call says afterwards.

use crate::folder::Folder;
use nx_vulkan_chains::{Chain, Layout, Refusal};
use nx_vulkan_host::{
    Config, DType, Kind, Request, Result, Runtime, Tensor,
    module::{Binding, Launch, Module},
};
use std::{
    process::{Command, Output, Stdio},
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

/// Runs until the count is down; for a count of 0 for ever.
const SPIN: &str = "#version 450
layout(local_size_x = 1) in;
layout(set = 0, binding = 0) buffer Data { uint x[]; };
layout(push_constant) uniform Push { uint count; };
void main() {
    uint state = x[0] | 1u;
    for (uint i = 0u; count == 0u ? state != 0u : i < count; i++) {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
    }
    x[0] = state;
}";

fn open(timeout: Duration) -> Arc<Runtime> {
    let packs = std::env::var_os("NXV_LOST_PACKS").map(Into::into);
    Runtime::open(&Config {
        packs: packs.into_iter().collect(),
        timeout: Some(timeout),
        ..Config::from_env()
    })
    .unwrap()
}

fn data(runtime: &Runtime) -> Tensor {
    runtime
        .upload(DType::U32, &[64], &[1; 256])
        .expect("a small tensor")
}

fn spin(runtime: &Runtime, module: &Module, tensor: &Tensor, count: u32) -> Result<()> {
    runtime.launch(
        module,
        &Launch {
            bindings: &[Binding::write(tensor)],
            constants: &[],
            push: &count.to_ne_bytes(),
            groups: [1, 1, 1],
        },
    )
}

/// A count that takes about `wanted` where nobody else is at work.
fn count_for(runtime: &Runtime, module: &Module, wanted: Duration) -> u32 {
    let (tensor, tried) = (data(runtime), 20_000_000);
    spin(runtime, module, &tensor, 1000).unwrap();
    runtime.sync().unwrap();
    let times = (0..8).map(|_| {
        let start = Instant::now();
        spin(runtime, module, &tensor, tried).unwrap();
        runtime.sync().unwrap();
        start.elapsed()
    });
    let took = times.min().unwrap().as_secs_f64();
    (f64::from(tried) * wanted.as_secs_f64() / took) as u32
}

/// Runs [`child`] in a process of its own, since a lost device stays lost.
fn run_child(mode: &str) -> Output {
    let cache = Folder::new();
    let pack = std::fs::read(crate::packs::built("bad")).unwrap();
    let pack = cache.write("given/bad.so", pack);
    Command::new(std::env::current_exe().unwrap())
        .args(["lost::child", "--exact", "--ignored", "--nocapture"])
        .env("NXV_LOST_MODE", mode)
        .env("NXV_LOST_PACKS", pack.parent().unwrap())
        .env("NX_VULKAN_CACHE", cache.join("cache"))
        .stderr(Stdio::inherit())
        .output()
        .unwrap()
}

fn succeeds(mode: &str) {
    let output = run_child(mode);
    let text = String::from_utf8_lossy(&output.stdout);
    assert!(output.status.success(), "{}: {text}", output.status);
}

#[test]
#[ignore = "other tests run it in a process of its own"]
fn child() {
    match std::env::var("NXV_LOST_MODE").unwrap().as_str() {
        "healthy" => healthy(),
        "behind" => behind(),
        "lost" => lost(),
        mode => panic!("{mode}"),
    }
}

#[test]
fn a_queue_that_advances_is_not_lost_however_long_it_is() {
    succeeds("healthy");
}

fn healthy() {
    let timeout = Duration::from_secs(5);
    let runtime = open(timeout);
    let module = runtime.module_of(SPIN).unwrap();
    let tensor = data(&runtime);
    let count = count_for(&runtime, &module, timeout / 12);
    let start = Instant::now();
    for _ in 0..16 {
        spin(&runtime, &module, &tensor, count).unwrap();
    }
    let recorded = start.elapsed();
    runtime.sync().unwrap();
    assert!(start.elapsed() > timeout, "{:?}", start.elapsed());
    assert!(recorded < timeout / 4, "{recorded:?}");
    assert_eq!(runtime.stats().ahead, 0);
}

#[test]
fn a_caller_far_ahead_of_the_device_waits_and_a_scheduler_does_not() {
    succeeds("behind");
}

fn behind() {
    let runtime = open(Duration::from_secs(60));
    let module = runtime.module_of(SPIN).unwrap();
    let (tensor, input) = (data(&runtime), data(&runtime));
    let outputs = [(DType::U32, vec![64])];
    let now = || runtime.try_run_cached(&Request::new("bad_nothing", &[&input], &outputs, &[]));
    runtime
        .run(&Request::new("bad_nothing", &[&input], &outputs, &[]))
        .unwrap();
    assert!(now().unwrap().is_some());
    let count = count_for(&runtime, &module, Duration::from_secs(4));
    let start = Instant::now();
    spin(&runtime, &module, &tensor, count).unwrap();
    thread::scope(|scope| {
        let caller = scope.spawn(|| {
            for _ in 0..10_000 {
                spin(&runtime, &module, &tensor, 1).unwrap();
            }
        });
        let mut most = 0;
        let mut refused = 0;
        while !caller.is_finished() {
            most = most.max(runtime.stats().ahead);
            let asked = Instant::now();
            refused += u32::from(now().unwrap().is_none());
            // Not until the long command is done, with time to spare for a busy machine.
            assert!(asked.elapsed() < Duration::from_secs(2));
            thread::sleep(Duration::from_millis(5));
        }
        // Behind a long command submissions are small, so that their number is the limit.
        assert!((200..=4_200).contains(&most), "{most} commands ahead");
        assert!(refused > 0);
        assert!(start.elapsed() > Duration::from_secs(2));
    });
    runtime.sync().unwrap();
    assert!(now().unwrap().is_some());
}

#[test]
fn after_a_shader_without_end_every_call_says_so_at_once_and_the_process_ends() {
    crate::packs::built("bad");
    let start = Instant::now();
    let output = run_child("lost");
    let text = String::from_utf8_lossy(&output.stdout);
    assert_eq!(output.status.code(), Some(7), "{text}");
    let left = text.rsplit("left at ").next().unwrap();
    let left: u128 = left.lines().next().unwrap().parse().expect(&text);
    let took = since_epoch().saturating_sub(left);
    assert!(took < 20_000, "{took} ms from the last line to the end");
    assert!(start.elapsed() < Duration::from_secs(60));
}

fn since_epoch() -> u128 {
    std::time::SystemTime::UNIX_EPOCH
        .elapsed()
        .unwrap()
        .as_millis()
}

fn lost() {
    let runtime = open(Duration::from_secs(3));
    let module = runtime.module_of(SPIN).unwrap();
    let (tensor, other) = (data(&runtime), data(&runtime));
    let view = tensor.slice(&[0], &[32], &[2]).unwrap();
    let outputs = [(DType::U32, vec![64])];
    runtime
        .run(&Request::new("bad_nothing", &[&other], &outputs, &[]))
        .unwrap();
    let profiling = runtime.begin_profile().unwrap();
    spin(&runtime, &module, &tensor, 0).unwrap();
    // lavapipe makes no pipeline while a shader runs.
    let builder = thread::spawn({
        let (runtime, other) = (runtime.clone(), other.clone());
        move || {
            let text = SPIN.replace("<< 13", "<< 11");
            let module = runtime.module_of(&text)?;
            spin(&runtime, &module, &other, 1)?;
            runtime.sync()
        }
    });
    let start = Instant::now();
    let error = runtime.download(&tensor, None).unwrap_err();
    assert_eq!(error.kind(), Kind::DeviceLost);
    let text = error.to_string();
    let unfinished = format!("a command ({}) did not finish within 3 s", module.name());
    assert!(text.contains(&unfinished), "{text}");
    assert!(start.elapsed() < Duration::from_secs(20), "{text}");
    let error = builder.join().unwrap().unwrap_err();
    assert_eq!(error.kind(), Kind::DeviceLost, "{error}");

    let error = profiling.end().unwrap_err();
    assert_eq!(error.kind(), Kind::DeviceLost, "{error}");

    let calls: [(&str, &dyn Fn() -> Result<()>); 21] = [
        ("check", &|| runtime.check()),
        ("upload", &|| {
            runtime.upload(DType::U8, &[1], &[1]).map(drop)
        }),
        ("try_upload", &|| {
            runtime.try_upload(DType::U8, &[1], &[1]).map(drop)
        }),
        ("zeros", &|| runtime.zeros(DType::U8, &[1 << 20]).map(drop)),
        ("constant", &|| {
            runtime.constant(DType::U8, &[9], &[1]).map(drop)
        }),
        ("try_constant", &|| {
            runtime.try_constant(DType::U8, &[9], &[1]).map(drop)
        }),
        ("download", &|| runtime.download(&other, None).map(drop)),
        ("try_download", &|| {
            runtime
                .try_download(&other, None, Duration::from_micros(50))
                .map(drop)
        }),
        ("copy", &|| runtime.copy(&other).map(drop)),
        ("contiguous", &|| runtime.contiguous(&view).map(drop)),
        ("run", &|| {
            runtime
                .run(&Request::new("bad_nothing", &[&other], &outputs, &[]))
                .map(drop)
        }),
        ("run, new", &|| {
            runtime
                .run(&Request::new("negate", &[&other], &outputs, &[]))
                .map(drop)
        }),
        ("try_run_cached", &|| {
            runtime
                .try_run_cached(&Request::new("bad_nothing", &[&other], &outputs, &[]))
                .map(drop)
        }),
        ("launch", &|| spin(&runtime, &module, &other, 1)),
        ("module_of", &|| {
            runtime.module_of(&SPIN.replace("13", "12")).map(drop)
        }),
        ("sync", &|| runtime.sync()),
        ("try_sync", &|| runtime.try_sync(Duration::ZERO).map(drop)),
        ("flush", &|| runtime.flush()),
        ("begin_profile", &|| runtime.begin_profile().map(drop)),
        ("trim", &|| runtime.trim()),
        ("persist_pipelines", &|| runtime.persist_pipelines()),
    ];
    for (name, call) in calls {
        // The shader still runs, on all cores of a machine that may be busy besides: one of several calls is soon over.
        let times = [(); 5].map(|()| {
            let start = Instant::now();
            let error = call().expect_err(name);
            assert_eq!(error.kind(), Kind::DeviceLost, "{name}: {error}");
            start.elapsed()
        });
        let least = times.iter().min();
        assert!(
            least < Some(&Duration::from_millis(200)),
            "{name} took {times:?}"
        );
    }
    let chain = Chain {
        q: &[0; 4],
        p: &[0; 4],
        extras: &[0; 4],
        push: &[1u32, 0, 1, 1, 0].map(u32::to_le_bytes).concat(),
        k: 1,
        dtype: DType::F32,
        layout: Layout::Single,
    };
    let refusal = nx_vulkan_chains::run(&runtime, &module, &chain, |_| ()).unwrap_err();
    let Refusal::Failed(error) = refusal else {
        panic!("{refusal:?}");
    };
    assert_eq!(error.kind(), Kind::DeviceLost);

    let start = Instant::now();
    drop((tensor, other, view, module));
    drop(runtime);
    let took = start.elapsed();
    assert!(took < Duration::from_secs(20), "dropping took {took:?}");
    println!("left at {}", since_epoch());
    std::process::exit(7);
}
