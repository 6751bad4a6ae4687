//! Which elements of a cooperative matrix a lane holds. Vulkan leaves it open, and kernels that fill fragments themselves rely
//! on it, so that it is measured: once for a driver, on a device of its own, whose failure is nobody else's.

mod order;

pub use crate::device::fragments::Fragments;
use crate::{
    Result,
    config::{Config, MemoryBudget},
    device::{Device, DeviceChoice, DeviceSummary},
    exit,
    memory::{Budget, Patience, Pool, Use},
    pipeline::{Pipelines, spec::PipelineSpec},
    queue::{Bound, Label, Quiet, Step, StepArg, Stream},
    shader::Shaders,
};
use nx_vulkan_abi::{DType, Features, glsl};
use nx_vulkan_registry::{Glsl, Origin, cache::Cache, hex};
use order::{LANES, MOST, PRODUCTS, Product, WORDS, difference};
use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::HashMap,
    sync::{Arc, mpsc::sync_channel},
    thread::Builder,
    time::Duration,
};

/// What is measured, and how. Files of another version count as absent.
const VERSION: u32 = 1;
/// How long all of it may take, and one command of it.
const PATIENCE: Duration = Duration::from_secs(10);
const TIMEOUT: Duration = Duration::from_secs(2);
/// Memory that it may take.
const MEMORY: u64 = 1 << 20;
const MAX_FILE: u64 = 1 << 16;

/// The file of the cache folder.
#[derive(Serialize, Deserialize)]
struct File {
    version: u32,
    driver: String,
    #[serde(flatten)]
    fragments: Fragments,
}

/// What is known of the fragments of one of the machine's devices; `None` for one without cooperative matrices.
pub fn of_summary(config: &Config, summary: &DeviceSummary) -> Option<Fragments> {
    let has = |name: &&str| Features::from_name(name) == Some(Features::COOPMAT);
    if summary.unusable.is_some() || !summary.features.iter().any(has) {
        return None;
    }
    let validation = config.validates(false);
    match Device::open(&DeviceChoice::Index(summary.index), validation) {
        Ok(device) => of(&device, &Cache::open(config.cache(false)), validation),
        Err(why) => Some(Fragments::Unknown(why.to_string())),
    }
}

/// What is known of the fragments of `device`, from this process, the cache folder, or by a measurement; `None` where it has no
/// cooperative matrices. Whatever fails, the order is unknown then.
pub(crate) fn of(device: &Device, cache: &Arc<Cache>, validation: bool) -> Option<Fragments> {
    static FOUND: Mutex<Option<HashMap<String, Fragments>>> = Mutex::new(None);
    let info = device.info();
    if !info.features.has(Features::COOPMAT) {
        return None;
    }
    let summary = device.summary();
    let driver = format!(
        "{} {} {} {}",
        summary.uuid,
        summary.driver,
        info.driver,
        hex(&device.pipeline_cache_uuid())
    );
    // Whoever comes second waits for what the first one finds.
    let mut found = FOUND.lock();
    let found = found.get_or_insert_default();
    if let Some(known) = found.get(&driver) {
        return Some(known.clone());
    }
    let file = format!("fragments-{}.json", &hex(&Sha256::digest(&driver))[..24]);
    let fragments = read(cache, &file, &driver).unwrap_or_else(|| {
        let fragments = measured(summary.index, validation, PATIENCE);
        log::info!("{}: fragments are {fragments}", summary.name);
        // A failure may be one of the moment.
        if !matches!(fragments, Fragments::Unknown(_)) {
            write(cache, &file, &driver, &fragments);
        }
        fragments
    });
    found.insert(driver, fragments.clone());
    Some(fragments)
}

fn read(cache: &Cache, name: &str, driver: &str) -> Option<Fragments> {
    let bytes = cache.folder().ok()?.read(name, MAX_FILE).ok()??;
    let file: File = serde_json::from_slice(&bytes).ok()?;
    let is_answer = !matches!(file.fragments, Fragments::Unknown(_));
    (file.version == VERSION && file.driver == driver && is_answer).then_some(file.fragments)
}

/// A cache that cannot be written costs the next start some time, nothing else.
fn write(cache: &Cache, name: &str, driver: &str, fragments: &Fragments) {
    let file = File {
        version: VERSION,
        driver: driver.to_owned(),
        fragments: fragments.clone(),
    };
    if let (Ok(folder), Ok(text)) = (cache.folder(), serde_json::to_vec(&file)) {
        drop(folder.write(name, &[&text], false));
    }
}

/// Measures on a thread of its own, which nobody waits for longer than `patience` when it is stuck in the driver.
fn measured(index: usize, validation: bool, patience: Duration) -> Fragments {
    let opened: Arc<Mutex<Option<Arc<Device>>>> = Arc::default();
    let (sender, receiver) = sync_channel(1);
    let own = opened.clone();
    let work = move || {
        let found = Device::open(&DeviceChoice::Index(index), validation).and_then(|device| {
            own.lock().replace(device.clone());
            measure(&device)
        });
        // It is closed on this thread, while somebody still waits for it.
        close(&own);
        drop(sender.send(found.unwrap_or_else(|why| Fragments::Unknown(why.to_string()))));
    };
    let thread = Builder::new().name("nx_vulkan-order".to_owned());
    if let Err(error) = exit::spawn(thread, work) {
        return Fragments::Unknown(format!("there is no thread for it: {error}"));
    }
    receiver.recv_timeout(patience).unwrap_or_else(|_| {
        if let Some(own) = &*opened.lock() {
            own.mark_lost("its fragments were measured for too long");
        }
        Fragments::Unknown("the driver takes too long, or fails".to_owned())
    })
}

/// Closes what was opened, without the lock: whoever has waited for long enough takes it.
fn close<T>(opened: &Mutex<Option<T>>) {
    let opened = opened.lock().take();
    drop(opened);
}

fn measure(device: &Arc<Device>) -> Result<Fragments> {
    let info = device.info();
    let lanes = info.min_subgroup_size..=info.max_subgroup_size;
    let is_chosen = info.features.has(Features::SUBGROUP_SIZE_CONTROL);
    if !(is_chosen && lanes.contains(&LANES) || info.subgroup_size == LANES) {
        let why = format!("subgroups of {LANES} are not to be had");
        return Ok(Fragments::Other(why));
    }
    // What is found out is kept, so that what it takes need not be.
    let shaders = Shaders::new(None).with_target(device.target());
    let pipelines = Pipelines::new(device, &Cache::open(None))?;
    let budget = |heap| Budget::new(device, MemoryBudget::Bytes(MEMORY), heap);
    let pool = Pool::new(device, Use::Readback, budget)?;
    let stream = Stream::new(device, TIMEOUT, true, Quiet(Box::new(|| {})))?;
    let listed = |product: &Product| {
        let Product {
            element,
            sum,
            depth,
        } = *product;
        info.multiplies([element, element, sum], [16, 16, depth])
    };
    let mut any = false;
    for product in PRODUCTS.into_iter().filter(listed) {
        any = true;
        let buffer = pool.alloc(4 * WORDS as u64, None, Patience::Waits)?;
        // Memory that was another product's may hold what would be right for this one.
        let words = buffer.mapped()?;
        // SAFETY: the mapping covers the buffer, which has as many words, and no command uses it yet.
        unsafe { words.write_bytes(0xff, 4 * WORDS) };
        let find = |_: &str| Some(Glsl::new(include_str!("order.comp"), Origin::Library));
        let defines = defines(product);
        let defines = defines
            .each_ref()
            .map(|(name, value)| (*name, value.as_str()));
        let module = shaders.compile("order.comp", &defines, &find)?;
        let pipeline = pipelines.get(&PipelineSpec {
            module: &module,
            bindings: 1,
            push_bytes: 0,
            subgroup_size: if is_chosen { LANES } else { 0 },
            constants: &[],
        })?;
        let to = StepArg {
            buffer: 0,
            offset: 0,
            len: 0,
            reads: false,
            writes: true,
        };
        let step = Step {
            pipeline,
            groups: [1; 3],
            counts: None,
            args: vec![to],
            push: Vec::new(),
            barrier: false,
            reports: true,
            label: Label::new(&"host".into(), "order.comp"),
        };
        stream.record(
            &pipelines,
            &"order.comp".into(),
            &[step],
            &[Bound::whole(&buffer)],
        )?;
        stream.wait(stream.sequence())?;
        let mut found = vec![0u32; WORDS];
        // SAFETY: as above, and the device is done with it.
        unsafe {
            std::ptr::copy_nonoverlapping(words.cast(), found.as_mut_ptr(), WORDS);
        }
        if let Some(why) = difference(product, &found) {
            return Ok(Fragments::Other(why));
        }
    }
    Ok(match any {
        true => Fragments::Known,
        false => {
            Fragments::Other("the driver lists none of the products that kernels fill".to_owned())
        }
    })
}

fn defines(product: Product) -> [(&'static str, String); 6] {
    let name = |dtype| match dtype {
        DType::F16 => "float16_t",
        DType::BF16 => "bfloat16_t",
        other => glsl::of(other).map_or("void", |glsl| glsl.storage),
    };
    let is_bf16 = u32::from(product.element == DType::BF16);
    [
        ("ELEMENT", name(product.element).to_owned()),
        ("SUM", name(product.sum).to_owned()),
        ("DEPTH", product.depth.to_string()),
        ("LANES", LANES.to_string()),
        ("MOST", MOST.to_string()),
        ("ELEMENT_IS_BF16", is_bf16.to_string()),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_registry::private::Rule;

    fn device() -> Arc<Device> {
        let config = Config::from_env();
        Device::open(&config.device, config.validates(false)).unwrap()
    }

    #[test]
    fn a_device_without_matrices_is_not_asked() {
        let device = device();
        let has = device.info().features.has(Features::COOPMAT);
        let found = of(&device, &Cache::open(None), false);
        assert_eq!(found.is_some(), has);
        let summary = of_summary(&Config::from_env(), device.summary());
        assert_eq!(summary, found);
    }

    #[test]
    fn packs_see_the_order_where_it_is_the_known_one() {
        let why = || "told".to_owned();
        for (fragments, seen) in [
            (Fragments::Known, true),
            (Fragments::Other(why()), false),
            (Fragments::Unknown(why()), false),
        ] {
            let device = device();
            let before = device.info().features;
            assert!(!before.has(Features::COOPMAT_ORDER));
            device.learn(fragments);
            let order = if seen {
                Features::COOPMAT_ORDER
            } else {
                Features::NONE
            };
            assert_eq!(device.info().features, before.with(order));
        }
    }

    #[test]
    fn whatever_fails_makes_the_order_unknown() {
        let missing = measured(usize::MAX, false, PATIENCE);
        assert!(
            matches!(&missing, Fragments::Unknown(why) if why.contains("no device")),
            "{missing}"
        );
        let index = device().summary().index;
        let late = measured(index, false, Duration::ZERO);
        assert!(
            matches!(&late, Fragments::Unknown(why) if why.contains("too long")),
            "{late}"
        );
        let device = device();
        if !device.info().features.has(Features::COOPMAT) {
            let none = measured(index, false, PATIENCE);
            assert!(matches!(none, Fragments::Other(_)), "{none}");
        }
    }

    #[test]
    fn nobody_waits_for_a_device_that_hangs_as_it_is_closed() {
        struct Hangs(Arc<Mutex<Option<Hangs>>>, Arc<Mutex<Option<bool>>>);
        impl Drop for Hangs {
            fn drop(&mut self) {
                self.1.lock().replace(self.0.try_lock().is_some());
            }
        }
        let (opened, is_free): (Arc<Mutex<Option<Hangs>>>, _) = (Arc::default(), Arc::default());
        opened
            .lock()
            .replace(Hangs(opened.clone(), Arc::clone(&is_free)));
        close(&opened);
        assert_eq!(*is_free.lock(), Some(true));
    }

    #[test]
    fn shaders_of_all_products_compile() {
        for product in PRODUCTS {
            let find = |_: &str| Some(Glsl::new(include_str!("order.comp"), Origin::Library));
            let defines = defines(product);
            let defines = defines
                .each_ref()
                .map(|(name, value)| (*name, value.as_str()));
            let module = Shaders::new(None)
                .compile("order.comp", &defines, &find)
                .unwrap();
            assert!(module.needs.has(Features::COOPMAT));
        }
    }

    #[test]
    fn the_file_is_read_for_its_driver_and_version_only() {
        let path = std::env::temp_dir().join(format!("nxv-fragments-{}", std::process::id()));
        let cache = Cache::open(Some((path.clone(), Rule::Sticky)));
        for found in [Fragments::Known, Fragments::Other("told".to_owned())] {
            write(&cache, "f.json", "driver 1", &found);
            assert_eq!(read(&cache, "f.json", "driver 1"), Some(found));
        }
        // What could not be found out may be another time.
        write(
            &cache,
            "g.json",
            "driver 1",
            &Fragments::Unknown("told".to_owned()),
        );
        assert_eq!(read(&cache, "g.json", "driver 1"), None);
        assert_eq!(read(&cache, "f.json", "driver 2"), None);
        assert_eq!(read(&cache, "h.json", "driver 1"), None);
        let file = path.join("f.json");
        let good = std::fs::read_to_string(&file).unwrap();
        let newer = good.replace("\"version\":1", "\"version\":2");
        assert_ne!(newer, good);
        for bad in [newer, good[..good.len() - 1].to_owned(), String::new()] {
            std::fs::write(&file, bad).unwrap();
            assert_eq!(read(&cache, "f.json", "driver 1"), None);
        }
        std::fs::remove_dir_all(path).unwrap();
    }
}
