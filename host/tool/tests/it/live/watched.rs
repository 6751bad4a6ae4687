//! A runtime that watches a folder of its own.

use crate::{folder::Folder, packs::built};
use nx_vulkan_host::{
    Config, DType, DeviceChoice, Request, Runtime,
    live::{Event, EventKind},
};
use std::{
    fs,
    sync::{Arc, Mutex},
    thread,
    time::{Duration, Instant},
};

/// A square, times `SCALE` so that versions can be told apart.
const SHADER: &str = "#version 450
layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params { uint first, count; };
layout(set = 0, binding = 0) readonly buffer X { float x[]; };
layout(set = 0, binding = 1) writeonly buffer Y { float y[]; };
void main() {
    uint i = gl_GlobalInvocationID.x;
    if (i < count) y[i] = EXPRESSION(x[first + i]) * SCALE;
}
";

pub(super) fn shader(scale: &str) -> String {
    SHADER.replace("SCALE", scale)
}

/// A runtime that watches a folder with the template pack, and what it told.
pub(super) struct Watched {
    pub(super) folder: Folder,
    pub(super) runtime: Arc<Runtime>,
    events: Arc<Mutex<Vec<Event>>>,
}

impl Watched {
    pub(super) fn new() -> Watched {
        Watched::with("")
    }

    fn with(registry: &str) -> Watched {
        let folder = Folder::new();
        folder.write("packs/libtemplate.so", fs::read(built("template")).unwrap());
        fs::create_dir_all(folder.join("shaders/template")).unwrap();
        let text = format!(
            "schema = 1\n[search]\npaths = [\"packs\"]\n[dev]\nwatch = [\"shaders\"]\nsettle_ms = 60\n{registry}"
        );
        let config = Config {
            device: DeviceChoice::parse(
                &std::env::var("NX_VULKAN_DEVICE").unwrap_or_else(|_| "llvmpipe".to_owned()),
            ),
            registry: Some(folder.write("registry.toml", text)),
            cache_dir: Some(folder.join("cache")),
            watch: true,
            ..Config::from_env()
        };
        let runtime = Runtime::open(&Config {
            packs: Vec::new(),
            ..config
        });
        let runtime = runtime.unwrap();
        let events = Arc::new(Mutex::new(Vec::new()));
        let told = events.clone();
        runtime.listen(Box::new(move |event| {
            told.lock().unwrap().push(event.clone())
        }));
        Watched {
            folder,
            runtime,
            events,
        }
    }

    /// The square of 3 as it is computed now.
    pub(super) fn nine(&self) -> f32 {
        square(&self.runtime, 3.0).unwrap()
    }

    #[track_caller]
    pub(super) fn wait_for(&self, kind: EventKind) -> Event {
        let start = Instant::now();
        while start.elapsed() < Duration::from_secs(60) {
            let mut events = self.events.lock().unwrap();
            if let Some(at) = events.iter().position(|event| event.kind == kind) {
                return events.drain(..=at).next_back().unwrap();
            }
            drop(events);
            thread::sleep(Duration::from_millis(5));
        }
        panic!(
            "no {kind:?} within 60 s, but {:?}",
            self.events.lock().unwrap()
        );
    }

    pub(super) fn kinds(&self) -> Vec<EventKind> {
        let events = self.events.lock().unwrap();
        events
            .iter()
            .map(|event| event.kind)
            .filter(|kind| *kind != EventKind::Chosen)
            .collect()
    }
}

pub(super) fn square(runtime: &Runtime, x: f32) -> nx_vulkan_host::Result<f32> {
    let input = runtime.upload(DType::F32, &[1], &x.to_le_bytes())?;
    let outputs = runtime.run(&Request::new(
        "square",
        &[&input],
        &[(DType::F32, vec![1])],
        &[],
    ))?;
    let bytes = runtime.download(&outputs[0], None)?;
    Ok(f32::from_le_bytes(bytes.try_into().unwrap()))
}

/// The template's library with other bytes behind its end: another content, the same code.
pub(super) fn variant(number: u32) -> Vec<u8> {
    let mut bytes = fs::read(built("template")).unwrap();
    bytes.extend(number.to_le_bytes());
    bytes
}
