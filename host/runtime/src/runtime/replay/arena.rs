//! Memory of a program that is recorded once: its buffers stay its own from one run to the next.

use super::super::{Runtime, running::Memory};
use crate::{
    Result,
    faults::{self, Site, Word},
    memory::{Buffer, Found, Key, Patience, would_wait},
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes that are given out before a buffer is given out again: whoever writes it waits for those that read it, and steps that
/// depend on nothing else run side by side. More of them would leave a GPU's cache.
const APART: u64 = 16 << 20;

/// The buffers of one program. One that nothing holds any more is given out again.
pub(super) struct Arena<'a> {
    runtime: &'a Runtime,
    pub(super) buffers: Vec<Arc<Buffer>>,
    /// Bytes that were given out until each of them was used last.
    used: Vec<u64>,
    given: u64,
    places: FxHashMap<*const Buffer, usize>,
    pub(super) words: Vec<Arc<Word>>,
    pub(super) bytes: u64,
    limit: u64,
    /// Whether something is not there that may be later, such as a kept form of an operand, or room.
    pub(super) is_early: bool,
}

impl<'a> Arena<'a> {
    pub(super) fn new(runtime: &'a Runtime, limit: u64) -> Arena<'a> {
        Arena {
            runtime,
            buffers: Vec::new(),
            used: Vec::new(),
            given: 0,
            places: FxHashMap::default(),
            words: Vec::new(),
            bytes: 0,
            limit,
            is_early: false,
        }
    }

    /// Which of its own buffers that is.
    pub(super) fn place(&self, buffer: &Arc<Buffer>) -> Option<usize> {
        self.places.get(&Arc::as_ptr(buffer)).copied()
    }

    /// Notes that a step uses this one of its own buffers.
    pub(super) fn note_use(&mut self, place: usize) {
        self.used[place] = self.given;
    }

    fn own(&mut self, buffer: &Arc<Buffer>) -> Result<()> {
        self.bytes += buffer.block();
        if self.bytes > self.limit {
            self.is_early = true;
            return Err(would_wait());
        }
        self.places.insert(Arc::as_ptr(buffer), self.buffers.len());
        self.buffers.push(buffer.clone());
        self.used.push(self.given);
        Ok(())
    }
}

impl Memory for Arena<'_> {
    fn buffer(&mut self, len: u64) -> Result<Arc<Buffer>> {
        self.given += len;
        let all = self.buffers.iter().zip(&self.used);
        let free = all.filter(|(buffer, _)| buffer.len() == len && Arc::strong_count(buffer) == 1);
        if let Some((free, used)) = free.min_by_key(|(_, used)| **used)
            && (self.given - used > APART || self.bytes + free.block() > self.limit)
        {
            return Ok(free.clone());
        }
        let buffer = self.runtime.alloc(len, None, Patience::Waits)?;
        self.own(&buffer)?;
        Ok(buffer)
    }

    fn word(&mut self, site: &Arc<Site>) -> Result<Arc<Word>> {
        let readback = &self.runtime.readback;
        let buffer = self
            .runtime
            .alloc_in(readback, faults::BYTES, None, Patience::Waits)?;
        self.own(&buffer)?;
        let word = Word::draft(buffer, site);
        self.words.push(word.clone());
        Ok(word)
    }

    /// What is made of its own buffers is made anew in each run.
    fn find(&mut self, of: &Arc<Buffer>, key: &Key) -> Found {
        if self.place(of).is_some() {
            return Found::Nothing;
        }
        match self.runtime.kept.find(of, key) {
            Found::Made(buffer) => Found::Made(buffer),
            Found::Nothing => Found::Nothing,
            Found::First(_) | Found::Again(_) => {
                self.is_early = true;
                Found::Nothing
            }
        }
    }
}
