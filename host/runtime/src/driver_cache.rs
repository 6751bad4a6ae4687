//! The driver's own cache of compiled pipelines, and the file that keeps it from one process to the next.

use crate::{Error, Kind, Result, device::Device};
use ash::vk;
use nx_vulkan_registry::{cache::Cache, hex};
use parking_lot::{Mutex, MutexGuard, RwLock, RwLockWriteGuard};
use sha2::{Digest, Sha256};
use std::{
    io::ErrorKind,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::{Duration, Instant},
};

/// Bytes of the checksum in front of the driver's data.
const SUM: usize = 32;
/// Bytes of `VkPipelineCacheHeaderVersionOne`: length, version, vendor, device, UUID.
const HEADER: usize = 32;
/// How long a thread waits for another one before it looks whether the device is lost.
const LOOK: Duration = Duration::from_millis(10);
/// `VK_DRIVER_ID_NVIDIA_PROPRIETARY`. Where several threads made pipelines with one cache while the device was at work, of eleven
/// runs of Nx's tests on an H200, driver 580.159.04, six ended in a trivial command that never did, each time another one; of
/// thirteen in which one thread at a time made them none did, nor of two without a cache.
const NVIDIA: i64 = 4;
/// Largest file that is read.
const MAX_BYTES: u64 = 1 << 30;
/// Bytes that the driver keeps before its cache starts anew: what is in it once stays, and there may be ever new shaders.
const MAX_KEPT: usize = 256 << 20;
/// How long a file that could not be written is left alone; twice as long each time, up to an hour.
const REST: Duration = Duration::from_secs(60);
const LONGEST_REST: Duration = Duration::from_secs(3600);

/// The cache of one device.
#[derive(Debug)]
pub(crate) struct DriverCache {
    device: Arc<Device>,
    /// Merging needs it alone; making pipelines and reading do not, unless `is_shared` says otherwise.
    cache: RwLock<vk::PipelineCache>,
    /// Whether the driver lets several threads use it at once, as Vulkan says that all do.
    is_shared: bool,
    files: Arc<Cache>,
    /// Name of the file.
    name: String,
    dirty: AtomicBool,
    /// Until when it is not written unless that is asked for, and for how long since it failed last.
    rest: Mutex<Option<(Instant, Duration)>>,
    /// Held from reading the driver's data until it is in the file: what is older must not be written later.
    writing: Mutex<()>,
}

impl DriverCache {
    /// With what the file has. A damaged or foreign one counts as absent.
    pub(crate) fn open(device: &Arc<Device>, files: &Arc<Cache>) -> Result<DriverCache> {
        let summary = device.summary();
        let driver = format!("{} {}", summary.driver, device.info().driver);
        let driver = &hex(&Sha256::digest(driver))[..12];
        let name = format!("pipelines-{}-{driver}.bin", summary.uuid);
        let initial = read(files, &name, device).ok().flatten();
        Ok(DriverCache {
            is_shared: device.info().fact("driver_id") != [NVIDIA],
            cache: RwLock::new(create(device, initial.as_deref().unwrap_or_default())?),
            device: device.clone(),
            files: files.clone(),
            name,
            dirty: AtomicBool::new(false),
            rest: Mutex::new(None),
            writing: Mutex::new(()),
        })
    }

    /// Where it is kept.
    ///
    /// # Errors
    /// [`Kind::Io`] without a cache folder.
    pub(crate) fn file(&self) -> Result<PathBuf> {
        Ok(self.files.folder()?.path().join(&self.name))
    }

    /// Gives `make` the cache to make pipelines with.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`], also while another thread has it alone.
    pub(crate) fn with<T>(&self, make: impl FnOnce(vk::PipelineCache) -> T) -> Result<T> {
        match self.is_shared {
            true => Ok(make(*self.cache.read())),
            false => Ok(make(*self.alone()?)),
        }
    }

    /// Says that pipelines were made with it.
    pub(crate) fn grew(&self) {
        self.dirty.store(true, Ordering::Relaxed);
    }

    /// Writes the file if there is a folder for it, pipelines were made since the last time, and nobody else does. Later, where that
    /// would have to wait: whoever asks has more to do.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be written.
    pub(crate) fn persist_new(&self) -> Result<()> {
        let Some(_turn) = self.writing.try_lock() else {
            return Ok(());
        };
        let would_wait = !self.is_shared && self.cache.is_locked();
        let rests = self
            .rest
            .lock()
            .is_some_and(|(until, _)| Instant::now() < until);
        if would_wait
            || rests
            || self.files.folder().is_err()
            || !self.dirty.swap(false, Ordering::Relaxed)
            || self.device.is_lost()
        {
            return Ok(());
        }
        self.write()
    }

    /// Writes the file.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be written; [`Kind::DeviceLost`].
    pub(crate) fn persist(&self) -> Result<()> {
        let _turn = self.turn()?;
        self.write()
    }

    fn write(&self) -> Result<()> {
        let folder = self.files.folder()?;
        let _inside = self.device.enter()?;
        self.dirty.store(false, Ordering::Relaxed);
        let data = self.data()?;
        if data.len() > MAX_KEPT {
            self.start_anew()?;
            let file = folder.path().join(&self.name);
            let why = format!("is not written with {} bytes, but begun anew", data.len());
            return Err(trouble(&file, why));
        }
        let sum = Sha256::digest(&data);
        let parts = [sum.as_slice(), &data];
        let written = folder.write(&self.name, &parts, false);
        self.note(written.is_ok());
        written.map_err(|error| {
            self.grew();
            let file = folder.path().join(&self.name);
            trouble(&file, format_args!("cannot be written: {error}"))
        })
    }

    /// Remembers whether the file could be written: where it could not, it is left alone for a while.
    fn note(&self, is_written: bool) {
        let mut rest = self.rest.lock();
        let time = rest.map_or(REST, |(_, time)| (2 * time).min(LONGEST_REST));
        *rest = (!is_written).then(|| (Instant::now() + time, time));
    }

    /// Goes on with an empty cache; the file stays as it is.
    fn start_anew(&self) -> Result<()> {
        let _inside = self.device.enter()?;
        let fresh = create(&self.device, &[])?;
        let destroy = self.device.vk.fns().v1_0.destroy_pipeline_cache;
        let old = {
            let mut cache = self.alone()?;
            std::mem::replace(&mut *cache, fresh)
        };
        // SAFETY: nobody else knows the handle any more.
        unsafe { destroy(self.device.handle(), old, std::ptr::null()) };
        Ok(())
    }

    /// Adds what the file has. No file is no error.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be read, is damaged, or comes from another device or driver.
    pub(crate) fn load(&self) -> Result<()> {
        let Some(data) = read(&self.files, &self.name, &self.device)? else {
            return Ok(());
        };
        self.add(&data)
    }

    /// Adds what a child process made with this device's driver.
    ///
    /// # Errors
    /// [`Kind::Vulkan`] when it comes from another device or driver, or the driver does not take it.
    pub(crate) fn merge(&self, data: &[u8]) -> Result<()> {
        if data.len() == HEADER {
            return Ok(());
        }
        let sound = is_of(data, &self.device.pipeline_cache_uuid());
        sound.map_err(|why| Error::new(Kind::Vulkan, format!("the pipeline cache {why}")))?;
        self.add(data)
    }

    fn add(&self, data: &[u8]) -> Result<()> {
        let _inside = self.device.enter()?;
        let fns = self.device.vk.fns();
        let read = create(&self.device, data)?;
        let cache = self.alone()?;
        // SAFETY: the lock keeps everybody else off the cache that grows; nobody but this function knows the other one.
        let code = unsafe {
            let code = (fns.v1_0.merge_pipeline_caches)(self.device.handle(), *cache, 1, &read);
            (fns.v1_0.destroy_pipeline_cache)(self.device.handle(), read, std::ptr::null());
            code
        };
        self.device.check("vkMergePipelineCaches", code)
    }

    /// Removes the file. No file is no error.
    ///
    /// # Errors
    /// [`Kind::Io`] when it cannot be removed.
    pub(crate) fn clear(&self) -> Result<()> {
        let folder = self.files.folder()?;
        // Also of a lost device, whose last writer may be stuck.
        let _turn = self.turn();
        match folder.remove(&self.name) {
            Err(error) if error.kind() != ErrorKind::NotFound => {
                let file = folder.path().join(&self.name);
                Err(trouble(&file, format_args!("cannot be removed: {error}")))
            }
            _ => Ok(()),
        }
    }

    /// Lets nobody else write the file, once nobody does.
    fn turn(&self) -> Result<MutexGuard<'_, ()>> {
        loop {
            if let Some(turn) = self.writing.try_lock_for(LOOK) {
                return Ok(turn);
            }
            self.device.usable()?;
        }
    }

    /// The cache for this thread alone, once nobody makes a pipeline with it. Whoever does may be stuck in the driver.
    fn alone(&self) -> Result<RwLockWriteGuard<'_, vk::PipelineCache>> {
        loop {
            if let Some(cache) = self.cache.try_write_for(LOOK) {
                return Ok(cache);
            }
            self.device.usable()?;
        }
    }

    /// What the driver keeps.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`], [`Kind::DeviceLost`].
    pub(crate) fn data(&self) -> Result<Vec<u8>> {
        let get = self.device.vk.fns().v1_0.get_pipeline_cache_data;
        self.with(|cache| {
            let mut size = 0;
            // SAFETY: the cache is live; the second call gets a buffer of the size the first one named.
            unsafe {
                let code = get(self.device.handle(), cache, &mut size, std::ptr::null_mut());
                self.device.check("vkGetPipelineCacheData", code)?;
                let mut data = vec![0u8; size];
                let code = get(
                    self.device.handle(),
                    cache,
                    &mut size,
                    data.as_mut_ptr().cast(),
                );
                if code != vk::Result::INCOMPLETE {
                    self.device.check("vkGetPipelineCacheData", code)?;
                }
                data.truncate(size);
                Ok(data)
            }
        })?
    }
}

impl Drop for DriverCache {
    fn drop(&mut self) {
        // A cache that cannot be written costs the next start some time, nothing else. Now or never.
        *self.rest.get_mut() = None;
        drop(self.persist_new());
        let Some(_inside) = self.device.enter_to_destroy() else {
            return;
        };
        let cache = *self.cache.get_mut();
        // SAFETY: the handle is ours, and nothing else holds it any more.
        unsafe {
            (self.device.vk.fns().v1_0.destroy_pipeline_cache)(
                self.device.handle(),
                cache,
                std::ptr::null(),
            );
        }
    }
}

fn create(device: &Device, data: &[u8]) -> Result<vk::PipelineCache> {
    let _inside = device.enter()?;
    let info = vk::PipelineCacheCreateInfo::default().initial_data(data);
    let mut cache = vk::PipelineCache::null();
    let create = device.vk.fns().v1_0.create_pipeline_cache;
    // SAFETY: the data is empty or passed `read`, so it is what this device's driver once wrote.
    let code = unsafe { create(device.handle(), &info, std::ptr::null(), &mut cache) };
    device.check("vkCreatePipelineCache", code)?;
    Ok(cache)
}

/// The driver's data out of a file, if there is one.
fn read(files: &Cache, name: &str, device: &Device) -> Result<Option<Vec<u8>>> {
    let folder = files.folder()?;
    let file = folder.path().join(name);
    let unread = |error| trouble(&file, format_args!("cannot be read: {error}"));
    let Some(bytes) = folder.read(name, MAX_BYTES).map_err(unread)? else {
        return Ok(None);
    };
    let data = check(&bytes, &device.pipeline_cache_uuid()).map_err(|why| trouble(&file, why))?;
    Ok(Some(data.to_vec()))
}

/// The driver's data out of the bytes of a file, or why they are not used.
pub(crate) fn check<'a>(bytes: &'a [u8], uuid: &[u8; 16]) -> std::result::Result<&'a [u8], String> {
    let whole = bytes.split_at_checked(SUM);
    let Some((sum, data)) = whole.filter(|(_, data)| data.len() >= HEADER) else {
        return Err(format!(
            "is damaged: its {} bytes are less than its header",
            bytes.len()
        ));
    };
    if Sha256::digest(data).as_slice() != sum {
        return Err("is damaged: its checksum is wrong".to_owned());
    }
    is_of(data, uuid).map(|()| data)
}

/// Whether the driver's data is that of a device.
fn is_of(data: &[u8], uuid: &[u8; 16]) -> std::result::Result<(), String> {
    if data.len() < HEADER {
        return Err("is shorter than its header".to_owned());
    }
    if data[4..8] != 1u32.to_le_bytes() {
        return Err("has a header of another version".to_owned());
    }
    if data[16..32] != *uuid {
        return Err(format!(
            "comes from another device or driver: its UUID is {}, and this device's is {}",
            hex(&data[16..32]),
            hex(uuid)
        ));
    }
    Ok(())
}

fn trouble(file: &Path, why: impl std::fmt::Display) -> Error {
    let shown = file.display();
    Error::new(Kind::Io, format!("the pipeline cache {shown} {why}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(data: &[u8]) -> Vec<u8> {
        [Sha256::digest(data).as_slice(), data].concat()
    }

    fn data(version: u32, uuid: [u8; 16], body: &[u8]) -> Vec<u8> {
        let words = [32, version, 7, 8].map(u32::to_le_bytes);
        [words.as_flattened(), &uuid, body].concat()
    }

    #[test]
    fn only_whole_files_of_the_device_are_used() {
        let good = data(1, [5; 16], b"pipelines");
        let refusal = |bytes: &[u8]| check(bytes, &[5; 16]).map(<[u8]>::to_vec);
        assert_eq!(refusal(&file(&good)), Ok(good.clone()));
        assert!(refusal(&file(&data(1, [5; 16], b""))).is_ok());
        let whole = file(&good);
        for len in 0..whole.len() {
            assert!(
                refusal(&whole[..len]).unwrap_err().contains("damaged"),
                "{len}"
            );
        }
        for at in 0..whole.len() {
            let mut flipped = whole.clone();
            flipped[at] ^= 1;
            assert!(refusal(&flipped).unwrap_err().contains("checksum"), "{at}");
        }
        let foreign = refusal(&file(&data(1, [6; 16], b"pipelines"))).unwrap_err();
        assert!(foreign.contains("another device"), "{foreign}");
        let other = refusal(&file(&data(2, [5; 16], b"pipelines"))).unwrap_err();
        assert!(other.contains("version"), "{other}");
    }
}
