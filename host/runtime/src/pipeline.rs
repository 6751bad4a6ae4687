//! Compute pipelines: made raw, kept by content.

mod build;
mod layout;
pub(crate) mod spec;
pub(crate) mod statistics;
#[cfg(test)]
mod tests;

use crate::{Result, builder::Builder, device::Device, driver_cache::DriverCache, exit};
use ash::vk;
pub(crate) use build::Pipeline;
use layout::Layout;
use nx_vulkan_registry::{Origin, cache::Cache};
use parking_lot::{Mutex, MutexGuard};
use spec::PipelineSpec;
use statistics::Compiled;
use std::{collections::HashMap, sync::Arc};

/// Stack on which drivers compile: they recurse as deep as a shader nests, and schedulers of a VM have little.
pub(crate) const STACK: usize = 64 << 20;

/// Every pipeline of a device.
#[derive(Debug)]
pub(crate) struct Pipelines {
    device: Arc<Device>,
    cache: Arc<DriverCache>,
    /// What builds the modules of strangers first.
    builder: Option<Arc<Builder>>,
    stack: usize,
    most_held: usize,
    /// What the driver tells of those that were made, where that is wanted.
    told: Option<Mutex<Vec<Compiled>>>,
    push_descriptors: vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    pipelines: HashMap<[u8; 32], Kept>,
    generation: u64,
    /// How often a pipeline was asked for.
    turn: u64,
    /// Number of pipelines at which those that nobody holds are looked for.
    sweep_at: usize,
    /// Number at which holders have to let go of them.
    crowded_at: usize,
    /// Whether they have, since the last look.
    let_go: bool,
    /// Pipelines that nobody can use any more, with the number of the last command that may still do.
    unused: Vec<(u64, Arc<Pipeline>)>,
    layouts: HashMap<(u32, u32), Layout>,
}

/// A pipeline, and when it was asked for last: the generation of the table, and the turn.
#[derive(Debug)]
struct Kept {
    pipeline: Arc<Pipeline>,
    generation: u64,
    turn: u64,
}

impl Kept {
    /// Whether nobody else holds it.
    fn is_spare(&self) -> bool {
        Arc::strong_count(&self.pipeline) == 1
    }
}

impl State {
    fn find(&mut self, key: &[u8; 32]) -> Option<Arc<Pipeline>> {
        self.turn += 1;
        let kept = self.pipelines.get_mut(key)?;
        (kept.generation, kept.turn) = (self.generation, self.turn);
        Some(kept.pipeline.clone())
    }
}

/// Pipelines that nobody holds, of which about as many may wait to be used again.
const MOST_SPARE: usize = 256;
/// Pipelines that may be held: each may be some megabytes of a driver on a CPU.
const MOST_HELD: usize = 1_024;
/// Tables after which a pipeline is dropped that none of them used.
const KEPT_GENERATIONS: u64 = 3;

impl Pipelines {
    /// With the file of the driver's cache in that folder. A damaged or foreign one counts as absent.
    pub(crate) fn new(device: &Arc<Device>, files: &Arc<Cache>) -> Result<Pipelines> {
        Ok(Pipelines {
            device: device.clone(),
            cache: Arc::new(DriverCache::open(device, files)?),
            builder: None,
            stack: STACK,
            most_held: MOST_HELD,
            told: None,
            push_descriptors: device
                .vk
                .fns()
                .khr_push_descriptor
                .cmd_push_descriptor_set_with_template_khr,
            state: Mutex::new(State {
                sweep_at: MOST_SPARE,
                crowded_at: MOST_HELD,
                ..State::default()
            }),
        })
    }

    /// The same, with what builds the modules of strangers first.
    pub(crate) fn with_builder(mut self, builder: &Arc<Builder>) -> Pipelines {
        self.builder = Some(builder.clone());
        self
    }

    /// The same, with another stack than [`STACK`] for the driver.
    pub(crate) fn with_stack(mut self, stack: usize) -> Pipelines {
        self.stack = stack;
        self
    }

    /// The same, to be told what the driver says of each pipeline. Such pipelines may be slower.
    pub(crate) fn telling(mut self) -> Pipelines {
        self.told = Some(Mutex::default());
        self
    }

    /// What the driver said of the pipelines that were made so far, each once.
    pub(crate) fn told(&self) -> Vec<Compiled> {
        let told = self.told.as_ref();
        told.map_or_else(Vec::new, |told| told.lock().clone())
    }

    /// Asks the driver about a pipeline of `file`, where that is wanted.
    ///
    /// # Errors
    /// When the driver does not answer.
    pub(crate) fn tell(&self, file: &str, pipeline: &Pipeline) -> Result<()> {
        let Some(told) = &self.told else {
            return Ok(());
        };
        let (subgroup_size, figures) = statistics::read(&self.device, pipeline.handle())?;
        let compiled = Compiled {
            file: file.to_owned(),
            subgroup_size,
            figures,
        };
        let mut told = told.lock();
        if !told.contains(&compiled) {
            told.push(compiled);
        }
        Ok(())
    }

    pub(crate) fn push_descriptors(&self) -> vk::PFN_vkCmdPushDescriptorSetWithTemplateKHR {
        self.push_descriptors
    }

    /// The pipeline for `spec`, made on first use.
    ///
    /// # Errors
    /// [`Kind::Shader`] when the driver refuses the module.
    pub(crate) fn get(&self, spec: &PipelineSpec<'_>) -> Result<Arc<Pipeline>> {
        self.get_by(spec, spec.key())
    }

    /// The same, with the spec's key.
    ///
    /// # Errors
    /// As [`Pipelines::get`].
    pub(crate) fn get_by(&self, spec: &PipelineSpec<'_>, key: [u8; 32]) -> Result<Arc<Pipeline>> {
        self.device.usable()?;
        if let Some(found) = self.state.lock().find(&key) {
            return Ok(found);
        }
        let layout = self.layout(spec.bindings, spec.push_bytes)?;
        if spec.module.origin() == Origin::Stranger
            && let Some(builder) = &self.builder
            && let Some(built) = builder.admit(spec, &self.device)?
        {
            // Without it the driver compiles once more.
            drop(self.cache.merge(&built.cache));
        }
        let made = Arc::new(build::build(
            &self.device,
            &self.cache,
            spec,
            layout,
            (self.stack, self.told.is_some()),
        )?);
        self.cache.grew();
        let mut state = self.state.lock();
        if let Some(found) = state.find(&key) {
            // Another thread was faster. This one is destroyed without the lock: drivers may take a while.
            drop(state);
            return Ok(found);
        }
        let (generation, turn) = (state.generation, state.turn);
        state.pipelines.insert(
            key,
            Kept {
                pipeline: made.clone(),
                generation,
                turn,
            },
        );
        Ok(made)
    }

    /// How many there are.
    pub(crate) fn len(&self) -> usize {
        self.state.lock().pipelines.len()
    }

    /// Whether there are so many that whoever can plan anew should let go of theirs.
    pub(crate) fn are_crowded(&self) -> bool {
        let state = self.state.lock();
        state.pipelines.len() >= state.crowded_at
    }

    /// What could let go of its pipelines has done so. What is still in use is asked for again before the next sweep.
    pub(crate) fn note_let_go(&self) {
        let mut state = self.state.lock();
        // Whoever does so again and again must not put the sweep off.
        if std::mem::replace(&mut state.let_go, true) {
            return;
        }
        let len = state.pipelines.len();
        (state.sweep_at, state.crowded_at) = (len + MOST_SPARE, len + self.most_held);
    }

    /// Drops the pipelines that the last tables did not use.
    pub(crate) fn forget_unused(&self, generation: u64, recorded: impl FnOnce() -> u64, done: u64) {
        let old = |kept: &Kept| kept.generation + KEPT_GENERATIONS < generation;
        let mut state = self.state.lock();
        state.generation = generation;
        self.retire(state, old, recorded, done);
    }

    /// Drops the pipelines that nobody holds any more and whose last use is longest ago, where there are many. Tables may
    /// stay as they are for ever, while shapes and callers' modules come and go.
    pub(crate) fn forget_spare(&self, recorded: impl FnOnce() -> u64, done: u64) {
        let mut state = self.state.lock();
        let waiting = state.unused.iter().any(|(last, _)| *last <= done);
        if state.pipelines.len() < state.sweep_at {
            if waiting {
                self.retire(state, |_| false, recorded, done);
            }
            return;
        }
        let spare = state.pipelines.values().filter(|kept| kept.is_spare());
        let mut turns: Vec<u64> = spare.map(|kept| kept.turn).collect();
        turns.sort_unstable_by_key(|turn| std::cmp::Reverse(*turn));
        let held = state.pipelines.len() - turns.len();
        let mut kept = MOST_SPARE / 2;
        state.sweep_at = held + MOST_SPARE;
        if std::mem::take(&mut state.let_go) {
            // The others are in use, or held by who cannot let go: those do not count.
            state.crowded_at = held + self.most_held;
            kept = self.most_held / 2;
            state.sweep_at += kept;
        }
        let oldest = turns.get(kept).copied();
        self.retire(
            state,
            |kept| oldest.is_some_and(|turn| kept.turn <= turn),
            recorded,
            done,
        );
    }

    /// Takes out those that nobody holds and `goes` names, and destroys those that were taken out before command `done`.
    /// `recorded` gives the number of the last command that was recorded.
    fn retire(
        &self,
        mut state: MutexGuard<'_, State>,
        goes: impl Fn(&Kept) -> bool,
        recorded: impl FnOnce() -> u64,
        done: u64,
    ) {
        let unused = state
            .pipelines
            .extract_if(|_, kept| kept.is_spare() && goes(kept));
        let unused: Vec<_> = unused.map(|(_, kept)| kept.pipeline).collect();
        // Whoever had one has recorded its commands by now.
        let recorded = recorded();
        let free: Vec<_> = state
            .unused
            .extract_if(.., |(last, _)| *last <= done)
            .collect();
        let unused = unused.into_iter().map(|pipeline| (recorded, pipeline));
        state.unused.extend(unused);
        drop(state);
        if !free.is_empty() {
            // A driver may wait for whatever runs just now.
            let thread = std::thread::Builder::new().name("nx_vulkan-free".to_owned());
            drop(exit::spawn(thread, move || drop(free)));
        }
    }

    /// The driver's cache.
    pub(crate) fn cache(&self) -> &Arc<DriverCache> {
        &self.cache
    }

    fn layout(&self, bindings: u32, push_bytes: u32) -> Result<Layout> {
        let mut state = self.state.lock();
        if let Some(found) = state.layouts.get(&(bindings, push_bytes)) {
            return Ok(*found);
        }
        let layout = Layout::new(&self.device, bindings, push_bytes)?;
        state.layouts.insert((bindings, push_bytes), layout);
        Ok(layout)
    }
}

impl Drop for Pipelines {
    fn drop(&mut self) {
        let Some(_inside) = self.device.enter_to_destroy() else {
            return;
        };
        for (_, layout) in self.state.lock().layouts.drain() {
            // SAFETY: layouts may go before the pipelines made with them.
            unsafe { layout.destroy(&self.device) };
        }
    }
}
