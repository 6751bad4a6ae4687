//! Running a request on its route: a pack's dispatches on the device, or a kernel on the CPU.

use super::{
    Ran, Runtime,
    host_memory::{Draft, Held},
};
use crate::{
    Request, Result, Tensor, checked,
    faults::{Faults, Site, Word},
    memory::{Buffer, Found, Key, Patience, would_wait},
    plan::Compiled,
    queue::Bound,
    route::Route,
    tensor::byte_len,
};
use nx_vulkan_ops::kernels;
use smallvec::SmallVec;
use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Instant,
};

/// One of the kernels that run on the CPU, whatever becomes of it.
struct Busy<'a>(&'a AtomicU32);

impl Drop for Busy<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Where the buffers of a call come from.
pub(super) trait Memory {
    /// One of `len` bytes with undefined content.
    fn buffer(&mut self, len: u64) -> Result<Arc<Buffer>>;
    /// A word of 0 that the host can read once the call is done.
    fn word(&mut self, site: &Arc<Site>) -> Result<Arc<Word>>;
    /// What is known of a form of an operand's content.
    fn find(&mut self, of: &Arc<Buffer>, key: &Key) -> Found;
}

/// New buffers for each call.
struct Fresh<'a>(&'a Runtime, Patience);

impl Memory for Fresh<'_> {
    fn buffer(&mut self, len: u64) -> Result<Arc<Buffer>> {
        self.0.alloc(len, None, self.1)
    }

    fn word(&mut self, site: &Arc<Site>) -> Result<Arc<Word>> {
        self.0.fault_word(site, self.1)
    }

    fn find(&mut self, of: &Arc<Buffer>, key: &Key) -> Found {
        self.0.kept.find(of, key)
    }
}

/// What a plan runs over beside its operands.
pub(super) struct Allotted {
    pub(super) results: Vec<Tensor>,
    pub(super) word: Option<Arc<Word>>,
    scratch: Vec<Arc<Buffer>>,
    found: SmallVec<[Found; 2]>,
    /// The derivations that are there already, a bit for each.
    pub(super) made: usize,
}

impl Allotted {
    /// The buffers in the order in which plans number them.
    pub(super) fn bound<'a>(
        &'a self,
        compiled: &'a Compiled,
        inputs: &'a [&Tensor],
        reports: Option<&'a Arc<Buffer>>,
    ) -> SmallVec<[Bound<'a>; 8]> {
        let operands = inputs.iter();
        let operands = operands.map(|t| Bound::from_byte(&t.buffer, t.part().start));
        let results = self.results.iter().map(|t| &t.buffer);
        let own = compiled.params.iter().chain(reports);
        let others = results.chain(&self.scratch).chain(own);
        let word = self.word.iter();
        let word = word.map(|word| Bound::from_byte(&word.buffer, word.start));
        operands
            .chain(others.map(Bound::whole))
            .chain(word)
            .collect()
    }
}

impl Runtime {
    pub(super) fn execute(
        &self,
        route: &Route,
        request: &Request<'_, &Tensor>,
        patience: Patience,
    ) -> Result<Ran> {
        self.make_room(patience)?;
        let ran = self.execute_now(route, request, patience)?;
        route.count();
        Ok(ran)
    }

    fn execute_now(
        &self,
        route: &Route,
        request: &Request<'_, &Tensor>,
        patience: Patience,
    ) -> Result<Ran> {
        match route {
            Route::Device {
                compiled,
                prepare,
                served_by,
                ..
            } => {
                let outputs = if prepare.is_empty() {
                    self.record(compiled, request, patience)?
                } else {
                    let inputs = request.inputs.iter();
                    let mut prepared: Vec<Tensor> = inputs.map(|t| (*t).clone()).collect();
                    for as_type in prepare {
                        let tensor = &mut prepared[as_type.index as usize];
                        *tensor = self.as_type(tensor, as_type.dtype)?;
                    }
                    let prepared: Vec<&Tensor> = prepared.iter().collect();
                    self.record(compiled, &request.over(prepared), patience)?
                };
                Ok(Ran {
                    outputs,
                    served_by: served_by.clone(),
                    is_fallback: false,
                })
            }
            Route::Split {
                program,
                served_by,
                waited,
                ..
            } => {
                let ran = match patience {
                    Patience::Waits => self.run_program(program, &request.inputs)?,
                    Patience::Never => match self.try_run_program(program, &request.inputs)? {
                        Ok(ran) => {
                            waited.store(0, Ordering::Relaxed);
                            ran
                        }
                        Err(_) => {
                            waited.fetch_add(1, Ordering::Relaxed);
                            return Err(would_wait());
                        }
                    },
                };
                Ok(Ran {
                    outputs: ran.results,
                    served_by: served_by.clone(),
                    is_fallback: !ran.fallbacks.is_empty(),
                })
            }
            Route::Host {
                served_by,
                is_fallback,
                micros,
                ..
            } => {
                let outputs = self.run_timed_on_host(request, micros, patience)?;
                if *is_fallback {
                    self.fallbacks.fetch_add(1, Ordering::Relaxed);
                }
                Ok(Ran {
                    outputs,
                    served_by: served_by.clone(),
                    is_fallback: *is_fallback,
                })
            }
        }
    }

    pub(super) fn record(
        &self,
        compiled: &Compiled,
        request: &Request<'_, &Tensor>,
        patience: Patience,
    ) -> Result<Vec<Tensor>> {
        let inputs = &*request.inputs;
        if compiled.site.is_some() {
            self.catch_up(inputs, patience)?;
        }
        let mut allotted = self.allot(compiled, request, &mut Fresh(self, patience))?;
        let reports = compiled
            .watched
            .as_ref()
            .map(|_| self.write_new(&[0; checked::BYTES], patience));
        let reports = reports.transpose()?;
        if !compiled.steps.is_empty() {
            let buffers = allotted.bound(compiled, inputs, reports.as_ref());
            let steps = compiled.steps_without(allotted.made);
            self.stream
                .record(&self.pipelines, &compiled.name, steps, &buffers)?;
        }
        let found = std::mem::take(&mut allotted.found);
        for (one, found) in compiled.derived.all.iter().zip(found) {
            let of = &inputs[one.input].buffer;
            match found {
                Found::First(version) => self.kept.note(of, one.key(inputs), version),
                Found::Again(form) => self.kept.keep(of, &form, &allotted.scratch[one.scratch]),
                Found::Made(_) | Found::Nothing => {}
            }
        }
        if let (Some(watched), Some(reports)) = (&compiled.watched, &reports) {
            watched.verdict(&self.read(reports, 0, checked::BYTES as u64)?)?;
        }
        self.inherit(request, allotted.word.as_ref(), &mut allotted.results);
        Ok(allotted.results)
    }

    /// Waits until few words of faults of these operands are open.
    fn catch_up(&self, inputs: &[&Tensor], patience: Patience) -> Result<()> {
        let faults = inputs.iter().map(|input| &input.faults);
        let Some(number) = Faults::crowd(faults, self.stream.completed_hint()) else {
            return Ok(());
        };
        match patience {
            Patience::Waits => self.stream.wait(number),
            Patience::Never if self.stream.completed()? < number => Err(would_wait()),
            Patience::Never => Ok(()),
        }
    }

    /// What a plan runs over beside its operands, from `memory`.
    pub(super) fn allot(
        &self,
        compiled: &Compiled,
        request: &Request<'_, &Tensor>,
        memory: &mut impl Memory,
    ) -> Result<Allotted> {
        let inputs = &*request.inputs;
        let results = request
            .outputs
            .iter()
            .map(|(dtype, shape)| {
                let buffer = memory.buffer(byte_len(*dtype, shape)?)?;
                Ok(Tensor::contiguous(buffer, *dtype, shape))
            })
            .collect::<Result<Vec<Tensor>>>()?;
        let site = compiled.site.as_ref();
        let word = site.map(|site| memory.word(site)).transpose()?;
        let derived = &compiled.derived.all;
        let found: SmallVec<[Found; 2]> = derived
            .iter()
            .map(|one| memory.find(&inputs[one.input].buffer, &one.key(inputs)))
            .collect();
        let mut made = 0;
        let mut there: SmallVec<[(usize, Arc<Buffer>); 2]> = SmallVec::new();
        for (bit, (one, found)) in derived.iter().zip(&found).enumerate() {
            if let Found::Made(buffer) = found {
                made |= 1 << bit;
                there.push((one.scratch, buffer.clone()));
            }
        }
        let scratch = compiled
            .scratch
            .iter()
            .enumerate()
            .map(
                |(index, &len)| match there.iter().find(|(made, _)| *made == index) {
                    Some((_, buffer)) => Ok(buffer.clone()),
                    None => memory.buffer(len),
                },
            )
            .collect::<Result<Vec<_>>>()?;
        Ok(Allotted {
            results,
            word,
            scratch,
            found,
            made,
        })
    }

    /// Notes which words speak of `results`.
    pub(super) fn inherit(
        &self,
        request: &Request<'_, &Tensor>,
        own: Option<&Arc<Word>>,
        results: &mut [Tensor],
    ) {
        let inputs = &*request.inputs;
        if own.is_none() && inputs.iter().all(|input| input.faults.is_empty()) {
            return;
        }
        let completed = self.stream.completed_hint();
        let types: Vec<_> = inputs.iter().map(|input| input.dtype()).collect();
        let Some(made) = nx_vulkan_ops::made(&request.op, &types, &request.attrs) else {
            let faults = Faults::of(inputs.iter().map(|t| &t.faults), own, completed);
            for result in results {
                result.faults = faults.clone();
            }
            return;
        };
        for (result, made) in results.iter_mut().zip(&made) {
            let read = inputs.iter().zip(&made.of).filter(|(_, is_read)| **is_read);
            let own = own.filter(|_| made.is_partial);
            result.faults = Faults::of(read.map(|(input, _)| &input.faults), own, completed);
        }
    }

    /// Runs a kernel on the CPU and notes how long it took. Without patience none begins while another one is busy: their
    /// parts wait for the same threads.
    fn run_timed_on_host(
        &self,
        request: &Request<'_, &Tensor>,
        micros: &AtomicU32,
        patience: Patience,
    ) -> Result<Vec<Tensor>> {
        let others = self.on_host.fetch_add(1, Ordering::Relaxed);
        let _busy = Busy(&self.on_host);
        if patience == Patience::Never && others > 0 {
            return Err(would_wait());
        }
        let start = Instant::now();
        let results = self.run_on_host(request, patience)?;
        let took = u32::try_from(start.elapsed().as_micros()).unwrap_or(u32::MAX);
        micros.store(took, Ordering::Relaxed);
        Ok(results)
    }

    fn run_on_host(
        &self,
        request: &Request<'_, &Tensor>,
        patience: Patience,
    ) -> Result<Vec<Tensor>> {
        let (inputs, outputs) = (&*request.inputs, &*request.outputs);
        let held = inputs
            .iter()
            .map(|t| self.hold(&t.buffer, t.part(), patience))
            .collect::<Result<Vec<Held<'_>>>>()?;
        let views: Vec<_> = inputs
            .iter()
            .zip(&held)
            .map(|(t, held)| kernels::View {
                dtype: t.dtype(),
                shape: t.shape(),
                strides: t.strides(),
                offset: t.part().first,
                bytes: held,
            })
            .collect();
        let blank = !kernels::writes_all(&request.op);
        let mut drafts = outputs
            .iter()
            .map(|(dtype, shape)| self.draft(*dtype, shape, blank, patience))
            .collect::<Result<Vec<Draft>>>()?;
        let mut outs: Vec<_> = outputs
            .iter()
            .zip(&mut drafts)
            .map(|((dtype, shape), draft)| kernels::Out {
                dtype: *dtype,
                shape,
                bytes: draft.bytes(),
            })
            .collect();
        kernels::run_fast(&request.op, &views, &mut outs, &request.attrs)?;
        let mut tensors = outputs
            .iter()
            .zip(drafts)
            .map(|((dtype, shape), draft)| self.finish(draft, *dtype, shape))
            .collect::<Result<Vec<Tensor>>>()?;
        self.inherit(request, None, &mut tensors);
        Ok(tensors)
    }
}
