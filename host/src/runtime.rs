//! The runtime: takes op requests, finds out once who runs them, and runs them.

use crate::{
    Attr, AttrValue, Error, Kind, Result,
    config::Config,
    device::Device,
    explain::{self, Explanation},
    kernels, log,
    memory::{Buffer, Pool, Stats, Use},
    pipeline::Pipelines,
    plan::Compiled,
    queue::{Quiet, Stream},
    registry::{self, Table},
    route::{self, Route},
    shader::Shaders,
    tensor::{Tensor, checked_elements, show_shape},
};
use nx_vulkan_abi::{DType, DeviceInfo};
use std::{
    cell::RefCell,
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, PoisonError, RwLock,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

/// Routes kept before the cache starts anew.
const MAX_ROUTES: usize = 16_384;
const SHOWN_WARNINGS: usize = 3;
const MAX_CONSTANTS: usize = 4_096;
/// Piece in which large tensors are read back.
const READBACK: u64 = 32 << 20;
/// Largest write that travels inside the command buffer.
const INLINE: usize = 65_536;

/// A device with its packs. Safe to use from any number of threads.
#[derive(Debug)]
pub struct Runtime {
    // The order of the fields is the order in which they are dropped: the queue stops first.
    stream: Arc<Stream>,
    routes: RwLock<HashMap<Box<[u8]>, Arc<Route>>>,
    constants: Mutex<HashMap<(DType, Vec<u8>), Tensor>>,
    tensors: Arc<Pool>,
    readback: Arc<Pool>,
    upload: Arc<Pool>,
    shaders: Shaders,
    pipelines: Pipelines,
    table: Arc<Table>,
    served: Mutex<HashMap<(String, String), u64>>,
    fallbacks: AtomicU64,
    device: Arc<Device>,
}

/// Result of an op, with who ran it.
#[derive(Debug)]
pub struct Ran {
    /// Results, in the op's order.
    pub outputs: Vec<Tensor>,
    /// `pack/kernel`, or `host`.
    pub served_by: Arc<str>,
}

/// What a runtime did so far, and what it holds.
#[derive(Debug, Clone, serde::Serialize)]
pub struct RuntimeStats {
    /// Tensor memory.
    pub memory: Stats,
    /// Ops that the host's CPU kernels ran because no pack did.
    pub fallbacks: u64,
    /// Ops by `(op, pack/kernel)`.
    pub served: Vec<(String, String, u64)>,
    /// Requests whose plan is known.
    pub plans: usize,
    /// Submissions to the queue.
    pub submissions: u64,
    /// Why compiled shaders cannot be kept on disk, if so.
    pub cache_trouble: Option<String>,
}

impl Runtime {
    /// Opens the device and loads the packs.
    ///
    /// # Errors
    /// [`Kind::NoDevice`] without a usable device, [`Kind::Registry`] when the registry file is missing or wrong.
    pub fn open(config: &Config) -> Result<Arc<Runtime>> {
        let table = registry::load(&registry::Options {
            registry: config.registry.clone(),
            packs: config.packs.clone(),
            store: config.store_dir(),
        })?;
        for rejected in &table.rejected {
            log::error(&format!("the pack {rejected}"));
        }
        for warning in table.warnings.iter().take(SHOWN_WARNINGS) {
            log::warning(warning);
        }
        if let Some(more) = table.warnings.len().checked_sub(SHOWN_WARNINGS + 1) {
            log::warning(&format!("and {} more like these", more + 1));
        }
        let device = Device::open(&config.device, config.validation)?;
        let cache = config.cache_dir();
        let tensors = Pool::new(&device, Use::Tensors)?;
        let pipelines = Pipelines::new(&device, cache.clone())?;
        let writer = pipelines.writer();
        // A cache that cannot be written costs the next start some time, nothing else.
        let when_quiet = Quiet(Box::new(move || drop(writer.persist())));
        Ok(Arc::new(Runtime {
            stream: Stream::new(&device, config.timeout, tensors.is_cached(), when_quiet)?,
            routes: RwLock::default(),
            constants: Mutex::default(),
            tensors,
            readback: Pool::new(&device, Use::Readback)?,
            upload: Pool::new(&device, Use::Upload)?,
            shaders: Shaders::new(cache.as_ref().map(|dir| dir.join("shaders"))),
            pipelines,
            table: Arc::new(table),
            served: Mutex::default(),
            fallbacks: AtomicU64::new(0),
            device,
        }))
    }

    /// The device.
    pub fn device(&self) -> &Device {
        &self.device
    }

    /// Limits and capabilities, as packs see them.
    pub fn device_info(&self) -> DeviceInfo<'_> {
        self.device.info()
    }

    /// The packs and rules in force.
    pub fn table(&self) -> &Table {
        &self.table
    }

    /// A tensor with the given elements, row-major, native byte order.
    ///
    /// # Errors
    /// Bad input when `bytes` has the wrong size; [`Kind::OutOfMemory`].
    pub fn upload(&self, dtype: DType, shape: &[u64], bytes: &[u8]) -> Result<Tensor> {
        let expected = byte_len(dtype, shape)?;
        if bytes.len() as u64 != expected {
            return Err(Error::bad_input(format!(
                "a tensor {dtype}{} has {expected} bytes, got: {}",
                show_shape(shape),
                bytes.len()
            )));
        }
        Ok(Tensor::contiguous(self.write_new(bytes)?, dtype, shape))
    }

    /// A tensor of zeros.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`].
    pub fn zeros(&self, dtype: DType, shape: &[u64]) -> Result<Tensor> {
        let buffer = self.alloc(byte_len(dtype, shape)?, None)?;
        if buffer.len() > 0 {
            self.stream.zero(&buffer)?;
        }
        Ok(Tensor::contiguous(buffer, dtype, shape))
    }

    /// A tensor whose elements are all `element`; it takes the memory of one.
    ///
    /// # Errors
    /// Bad input when `element` is not one element of `dtype`; [`Kind::OutOfMemory`].
    pub fn constant(&self, dtype: DType, shape: &[u64], element: &[u8]) -> Result<Tensor> {
        checked_elements(shape)?;
        let key = (dtype, element.to_vec());
        let known = lock(&self.constants).get(&key).cloned();
        let scalar = match known {
            Some(scalar) => scalar,
            None => {
                let scalar = self.upload(dtype, &[], element)?;
                let mut constants = lock(&self.constants);
                if constants.len() >= MAX_CONSTANTS {
                    constants.clear();
                }
                constants.insert(key, scalar.clone());
                scalar
            }
        };
        scalar.broadcast(shape, &[])
    }

    /// The first `limit` elements (all without a limit), row-major. Waits for the work they depend on.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`], [`Kind::OutOfMemory`].
    pub fn download(&self, tensor: &Tensor, limit: Option<u64>) -> Result<Vec<u8>> {
        let packed;
        let tensor = if tensor.is_contiguous() {
            tensor
        } else {
            packed = self.contiguous(tensor)?;
            &packed
        };
        let size = tensor.dtype().size();
        let count = tensor.elements().min(limit.unwrap_or(u64::MAX));
        self.read(&tensor.buffer, tensor.offset() * size, count * size)
    }

    /// Like [`Runtime::download`], but gives up after spinning for `budget`; `None` then, and whenever the
    /// elements are not contiguous.
    ///
    /// # Errors
    /// As [`Runtime::download`].
    pub fn try_download(&self, tensor: &Tensor, limit: Option<u64>, budget: Duration) -> Result<Option<Vec<u8>>> {
        if !tensor.is_contiguous() {
            return Ok(None);
        }
        let size = tensor.dtype().size();
        let len = tensor.elements().min(limit.unwrap_or(u64::MAX)) * size;
        let (from, start) = (&*tensor.buffer, tensor.offset() * size);
        let mut bytes = Vec::with_capacity(len as usize);
        if self.tensors.is_cached() {
            if !self.stream.spin(from.last_write.load(Ordering::Relaxed), budget)? {
                return Ok(None);
            }
            append(&mut bytes, from, start, len)?;
            return Ok(Some(bytes));
        }
        if len == 0 {
            return Ok(Some(bytes));
        }
        let staging = self.readback.alloc(len, None)?;
        self.stream.copy((from, start), (&staging, 0), len, true)?;
        if !self.stream.spin(staging.last_use(), budget)? {
            return Ok(None);
        }
        append(&mut bytes, &staging, 0, len)?;
        Ok(Some(bytes))
    }

    /// Waits for all recorded work, spinning for at most `budget`; whether it is done.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn try_sync(&self, budget: Duration) -> Result<bool> {
        self.stream.spin(self.stream.sequence(), budget)
    }

    /// The same elements in row-major order in a buffer of their own; the tensor itself if it is that already.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`], [`Kind::DeviceLost`].
    pub fn contiguous(&self, tensor: &Tensor) -> Result<Tensor> {
        if tensor.is_contiguous() && tensor.offset() == 0 && tensor.byte_len() == tensor.storage_len() {
            return Ok(tensor.clone());
        }
        self.copy(tensor)
    }

    /// A copy of the elements in a buffer of their own.
    ///
    /// # Errors
    /// [`Kind::OutOfMemory`], [`Kind::DeviceLost`].
    pub fn copy(&self, tensor: &Tensor) -> Result<Tensor> {
        self.run_one("as_type", &[tensor], tensor.dtype(), tensor.shape(), &[])
    }

    /// The tensor with another shape; a view where the layout allows it, else a copy.
    ///
    /// # Errors
    /// Bad input when the number of elements differs; [`Kind::OutOfMemory`].
    pub fn reshape(&self, tensor: &Tensor, shape: &[u64]) -> Result<Tensor> {
        if let Some(view) = tensor.reshape(shape)? {
            return Ok(view);
        }
        let copy = self.copy(tensor)?;
        copy.reshape(shape)?.ok_or_else(|| Error::bad_input("a contiguous tensor takes every shape"))
    }

    /// Runs an op. Returns at once when a pack runs it; reading a result waits.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract; [`Kind::Unsupported`] when nobody runs it on these types;
    /// [`Kind::FallbackForbidden`]; [`Kind::OutOfMemory`]; [`Kind::DeviceLost`].
    pub fn run(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Vec<Tensor>> {
        self.run_reported(op, inputs, outputs, attrs).map(|ran| ran.outputs)
    }

    /// Like [`Runtime::run`], and says who ran it.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn run_reported(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Ran> {
        let route = match with_key(op, inputs, outputs, attrs, |key| self.cached(key)) {
            Some(route) => route,
            None => self.find_route(op, inputs, outputs, attrs)?,
        };
        self.execute(&route, op, inputs, outputs, attrs).map_err(|e| describe(e, op, inputs, outputs))
    }

    /// Runs an op whose plan is known, without ever waiting or compiling; `None` when [`Runtime::run`] is needed.
    ///
    /// # Errors
    /// As [`Runtime::run`].
    pub fn try_run_cached(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Option<Ran>> {
        let Some(route) = with_key(op, inputs, outputs, attrs, |key| self.cached(key)) else {
            return Ok(None);
        };
        match &*route {
            Route::Device { prepare, .. } if prepare.is_empty() => self
                .execute(&route, op, inputs, outputs, attrs)
                .map(Some)
                .map_err(|e| describe(e, op, inputs, outputs)),
            _ => Ok(None),
        }
    }

    /// Who would run an op, and why the others would not. Plans it, but runs nothing.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract.
    pub fn explain(
        &self,
        op: &str,
        inputs: &[(DType, Vec<u64>)],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Explanation> {
        explain::explain(&self.planner(), op, inputs, outputs, attrs)
    }

    /// Submits recorded work without waiting.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn flush(&self) -> Result<()> {
        self.stream.flush()
    }

    /// Waits for all recorded work.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn sync(&self) -> Result<()> {
        self.stream.wait(self.stream.sequence())
    }

    /// Gives unused memory back to the driver.
    ///
    /// # Errors
    /// [`Kind::DeviceLost`].
    pub fn trim(&self) -> Result<()> {
        lock(&self.constants).clear();
        self.sync()?;
        let done = self.stream.completed()?;
        [&self.tensors, &self.readback, &self.upload].iter().for_each(|pool| pool.trim(done));
        Ok(())
    }

    /// What was done so far, and what is held.
    pub fn stats(&self) -> RuntimeStats {
        let mut served: Vec<_> =
            lock(&self.served).iter().map(|((op, by), n)| (op.clone(), by.clone(), *n)).collect();
        let routes = self.routes.read().unwrap_or_else(PoisonError::into_inner);
        for route in routes.values() {
            let (op, by, count) = route.tally();
            match served.iter_mut().find(|row| row.0 == op && row.1 == by) {
                Some(row) => row.2 += count,
                None => served.push((op.to_owned(), by.to_owned(), count)),
            }
        }
        served.retain(|row| row.2 > 0);
        served.sort();
        RuntimeStats {
            memory: self.tensors.stats(),
            fallbacks: self.fallbacks.load(Ordering::Relaxed),
            served,
            plans: routes.len(),
            submissions: self.stream.submissions(),
            cache_trouble: self.shaders.disk_trouble(),
        }
    }

    fn run_one(
        &self,
        op: &str,
        inputs: &[&Tensor],
        dtype: DType,
        shape: &[u64],
        attrs: &[Attr],
    ) -> Result<Tensor> {
        let mut outputs = self.run(op, inputs, &[(dtype, shape.to_vec())], attrs)?;
        outputs.pop().ok_or_else(|| Error::new(Kind::Pack, format!("{op} gave no result")))
    }

    fn cached(&self, key: &[u8]) -> Option<Arc<Route>> {
        self.routes.read().unwrap_or_else(PoisonError::into_inner).get(key).cloned()
    }

    fn planner(&self) -> route::Planner<'_> {
        route::Planner {
            table: &self.table,
            device: &self.device,
            shaders: &self.shaders,
            pipelines: &self.pipelines,
        }
    }

    fn find_route(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Arc<Route>> {
        let route = self.planner().find(op, inputs, outputs, attrs, &|bytes| self.write_new(bytes))?;
        let route = Arc::new(route);
        let mut routes = self.routes.write().unwrap_or_else(PoisonError::into_inner);
        if routes.len() >= MAX_ROUTES {
            let mut served = lock(&self.served);
            for old in routes.values() {
                let (op, by, count) = old.tally();
                *served.entry((op.to_owned(), by.to_owned())).or_default() += count;
            }
            routes.clear();
        }
        // Another thread may have found the same route meanwhile: one of them counts for both.
        Ok(with_key(op, inputs, outputs, attrs, |key| routes.entry(key.into()).or_insert(route).clone()))
    }

    fn execute(
        &self,
        route: &Route,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Ran> {
        route.count();
        match route {
            Route::Device { compiled, prepare, served_by, .. } => {
                let outputs = if prepare.is_empty() {
                    self.record(compiled, inputs, outputs)?
                } else {
                    let mut prepared: Vec<Tensor> = inputs.iter().map(|t| (*t).clone()).collect();
                    for as_type in prepare {
                        let tensor = &mut prepared[as_type.index as usize];
                        *tensor = self.run_one("as_type", &[tensor], as_type.dtype, &tensor.shape().to_vec(), &[])?;
                    }
                    self.record(compiled, &prepared.iter().collect::<Vec<_>>(), outputs)?
                };
                Ok(Ran { outputs, served_by: served_by.clone() })
            }
            Route::Host { served_by, .. } => {
                self.fallbacks.fetch_add(1, Ordering::Relaxed);
                let outputs = self.run_on_host(op, inputs, outputs, attrs)?;
                Ok(Ran { outputs, served_by: served_by.clone() })
            }
        }
    }

    fn record(
        &self,
        compiled: &Compiled,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
    ) -> Result<Vec<Tensor>> {
        let results = outputs
            .iter()
            .map(|(dtype, shape)| {
                let buffer = self.alloc(byte_len(*dtype, shape)?, None)?;
                Ok(Tensor::contiguous(buffer, *dtype, shape))
            })
            .collect::<Result<Vec<_>>>()?;
        let scratch =
            compiled.scratch.iter().map(|&len| self.alloc(len, None)).collect::<Result<Vec<_>>>()?;
        let mut buffers: Vec<&Buffer> =
            Vec::with_capacity(inputs.len() + results.len() + scratch.len() + 1);
        buffers.extend(inputs.iter().map(|t| &*t.buffer));
        buffers.extend(results.iter().map(|t| &*t.buffer));
        buffers.extend(scratch.iter().map(|b| &**b));
        buffers.extend(compiled.params.as_deref());
        if !compiled.steps.is_empty() {
            self.stream.record(&self.pipelines, &compiled.steps, &buffers)?;
        }
        Ok(results)
    }

    fn run_on_host(
        &self,
        op: &str,
        inputs: &[&Tensor],
        outputs: &[(DType, Vec<u64>)],
        attrs: &[Attr],
    ) -> Result<Vec<Tensor>> {
        // A result the device cannot hold is refused before the machine's memory is asked for it.
        outputs.iter().try_for_each(|(dtype, shape)| self.alloc(byte_len(*dtype, shape)?, None).map(drop))?;
        let bytes = inputs
            .iter()
            .map(|t| self.read(&t.buffer, 0, t.storage_len()))
            .collect::<Result<Vec<_>>>()?;
        let views: Vec<_> = inputs
            .iter()
            .zip(&bytes)
            .map(|(t, bytes)| kernels::View {
                dtype: t.dtype(),
                shape: t.shape(),
                strides: t.strides(),
                offset: t.offset(),
                bytes,
            })
            .collect();
        let mut results = outputs
            .iter()
            .map(|(dtype, shape)| Ok(vec![0u8; byte_len(*dtype, shape)? as usize]))
            .collect::<Result<Vec<_>>>()?;
        let mut outs: Vec<_> = outputs
            .iter()
            .zip(&mut results)
            .map(|((dtype, shape), bytes)| kernels::Out { dtype: *dtype, shape, bytes })
            .collect();
        kernels::run(op, &views, &mut outs, attrs)?;
        outputs
            .iter()
            .zip(&results)
            .map(|((dtype, shape), bytes)| self.upload(*dtype, shape, bytes))
            .collect()
    }

    /// A buffer, after giving memory back and waiting if need be.
    fn alloc(&self, len: u64, idle_at: Option<u64>) -> Result<Arc<Buffer>> {
        match self.tensors.alloc(len, idle_at) {
            Err(error) if error.kind() == Kind::OutOfMemory => {
                self.trim()?;
                self.tensors.alloc(len, idle_at)
            }
            result => result,
        }
    }

    fn write_new(&self, bytes: &[u8]) -> Result<Arc<Buffer>> {
        let len = bytes.len() as u64;
        let hint = self.tensors.is_mapped().then(|| self.stream.completed_hint());
        let buffer = self.alloc(len, hint)?;
        if bytes.is_empty() {
            return Ok(buffer);
        }
        if let Some(to) = buffer.mapping()
            && (buffer.last_use() <= self.stream.completed_hint()
                || buffer.last_use() <= self.stream.completed()?)
        {
            // SAFETY: the mapping covers the buffer's `len` bytes, and no recorded command touches them any more.
            unsafe { std::ptr::copy_nonoverlapping(bytes.as_ptr(), to, bytes.len()) };
        } else if bytes.len() < INLINE {
            // Blocks are multiples of 256 bytes, so the padding stays inside.
            let mut padded = bytes.to_vec();
            padded.resize(bytes.len().next_multiple_of(4), 0);
            self.stream.update(&buffer, &padded)?;
        } else {
            self.write_staged(&buffer, bytes)?;
        }
        Ok(buffer)
    }

    fn write_staged(&self, to: &Buffer, bytes: &[u8]) -> Result<()> {
        for (index, piece) in bytes.chunks(READBACK as usize).enumerate() {
            let staging = self.upload.alloc(piece.len() as u64, Some(self.stream.completed()?))?;
            self.stream.wait(staging.last_use())?;
            let mapping = mapping(&staging)?;
            // SAFETY: the staging buffer is mapped, as long as `piece`, and idle.
            unsafe { std::ptr::copy_nonoverlapping(piece.as_ptr(), mapping, piece.len()) };
            self.stream.copy((&staging, 0), (to, index as u64 * READBACK), piece.len() as u64, false)?;
        }
        Ok(())
    }

    fn read(&self, from: &Buffer, start: u64, len: u64) -> Result<Vec<u8>> {
        let mut bytes = Vec::with_capacity(len as usize);
        if self.tensors.is_cached() {
            self.stream.wait(from.last_write.load(Ordering::Relaxed))?;
            append(&mut bytes, from, start, len)?;
            return Ok(bytes);
        }
        for at in (0..len).step_by(READBACK as usize) {
            let piece = READBACK.min(len - at);
            let staging = self.readback.alloc(piece, None)?;
            self.stream.copy((from, start + at), (&staging, 0), piece, true)?;
            self.stream.wait(staging.last_use())?;
            append(&mut bytes, &staging, 0, piece)?;
        }
        Ok(bytes)
    }
}

impl Drop for Runtime {
    fn drop(&mut self) {
        self.stream.stop_timer();
    }
}

fn append(to: &mut Vec<u8>, from: &Buffer, start: u64, len: u64) -> Result<()> {
    let mapping = mapping(from)?;
    if start.checked_add(len).is_none_or(|end| end > from.len()) {
        return Err(Error::bad_input(format!("bytes {start}+{len} of a buffer of {}", from.len())));
    }
    // SAFETY: the range lies inside the mapped buffer, and the caller waited for its last write.
    to.extend_from_slice(unsafe { std::slice::from_raw_parts(mapping.add(start as usize), len as usize) });
    Ok(())
}

fn mapping(buffer: &Buffer) -> Result<*mut u8> {
    buffer.mapping().ok_or_else(|| Error::new(Kind::Vulkan, "the device has no memory that the host can map"))
}

fn byte_len(dtype: DType, shape: &[u64]) -> Result<u64> {
    if !dtype.is_known() {
        return Err(Error::bad_input(format!("{dtype} is not an element type")));
    }
    Ok(checked_elements(shape)? * dtype.size())
}

/// Names the op, its types and shapes in errors that lack them.
fn describe(error: Error, op: &str, inputs: &[&Tensor], outputs: &[(DType, Vec<u64>)]) -> Error {
    match error.kind() {
        Kind::BadInput => error,
        _ => error.context(route::show_request(
            op,
            inputs.iter().map(|t| (t.dtype(), t.shape())),
            outputs.iter().map(|(d, s)| (*d, s.as_slice())),
        )),
    }
}

/// Everything that a plan depends on, as bytes.
fn with_key<T>(
    op: &str,
    inputs: &[&Tensor],
    outputs: &[(DType, Vec<u64>)],
    attrs: &[Attr],
    f: impl FnOnce(&[u8]) -> T,
) -> T {
    thread_local! { static KEY: RefCell<Vec<u8>> = const { RefCell::new(Vec::new()) } }
    let mut key = KEY.take();
    key.clear();
    let number = |key: &mut Vec<u8>, n: u64| key.extend_from_slice(&n.to_ne_bytes());
    key.extend_from_slice(op.as_bytes());
    for tensor in inputs {
        key.extend_from_slice(&[0xff, tensor.dtype().0 as u8, tensor.shape().len() as u8]);
        tensor.shape().iter().for_each(|&n| number(&mut key, n));
        tensor.strides().iter().for_each(|&n| number(&mut key, n as u64));
        number(&mut key, tensor.offset());
        number(&mut key, tensor.storage_len());
    }
    for (dtype, shape) in outputs {
        key.extend_from_slice(&[0xfe, dtype.0 as u8, shape.len() as u8]);
        shape.iter().for_each(|&n| number(&mut key, n));
    }
    for attr in attrs {
        key.push(0xfd);
        key.extend_from_slice(attr.name.as_bytes());
        match &attr.value {
            AttrValue::Ints(ints) => {
                key.push(1);
                number(&mut key, ints.len() as u64);
                ints.iter().for_each(|&n| number(&mut key, n as u64));
            }
            AttrValue::Floats(floats) => {
                key.push(2);
                number(&mut key, floats.len() as u64);
                floats.iter().for_each(|n| number(&mut key, n.to_bits()));
            }
            AttrValue::Text(text) => {
                key.push(3);
                number(&mut key, text.len() as u64);
                key.extend_from_slice(text.as_bytes());
            }
        }
    }
    let result = f(&key);
    KEY.set(key);
    result
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
