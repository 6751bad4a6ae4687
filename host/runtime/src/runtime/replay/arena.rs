//! Memory of a program that is recorded once: its buffers stay its own from one run to the next.

use super::super::{Runtime, running::Memory};
use crate::{
    Result, Tensor,
    faults::{self, Site, Word},
    memory::{Buffer, Found, Key, Patience, would_wait},
    queue::Order,
};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Bytes that are given out before a buffer is given out again to a step that has to wait for it, which would run earlier otherwise.
/// More of them would leave a GPU's cache.
const APART: u64 = 16 << 20;
/// Bytes of memory that a program has more for that.
const MORE: u64 = 128 << 20;
/// Words of a board.
pub(super) const BOARD: usize = 16;

/// The buffers of one program. One that nothing holds any more is given out again.
pub(super) struct Arena<'a> {
    runtime: &'a Runtime,
    pub(super) order: Order,
    pub(super) buffers: Vec<Arc<Buffer>>,
    /// Bytes that were given out until each of them was.
    given_at: Vec<u64>,
    given: u64,
    /// Bytes of its own buffers beside which another one of that length was free.
    more: u64,
    /// The wave of the next request, by what it reads.
    wave: u32,
    /// Whether steps run one after the other, as memory is given out at once.
    in_turn: bool,
    places: FxHashMap<*const Buffer, usize>,
    pub(super) words: Vec<Arc<Word>>,
    /// Buffers of words, each full but the last: a GPU takes microseconds to set a word to 0, and no longer for a board.
    pub(super) boards: Vec<Arc<Buffer>>,
    pub(super) bytes: u64,
    limit: u64,
    /// Whether something is not there that may be later, such as a kept form of an operand, or room.
    pub(super) is_early: bool,
    pub(super) is_full: bool,
}

impl<'a> Arena<'a> {
    pub(super) fn new(runtime: &'a Runtime, limit: u64, in_turn: bool) -> Arena<'a> {
        Arena {
            runtime,
            order: Order::default(),
            buffers: Vec::new(),
            given_at: Vec::new(),
            given: 0,
            more: 0,
            wave: 1,
            in_turn,
            places: FxHashMap::default(),
            words: Vec::new(),
            boards: Vec::new(),
            bytes: 0,
            limit,
            is_early: false,
            is_full: false,
        }
    }

    /// Notes what the request reads that buffers are for.
    pub(super) fn expect<'t>(&mut self, inputs: impl Iterator<Item = &'t Tensor>) {
        let waves = inputs.map(|input| self.order.readable(&input.buffer));
        self.wave = waves.max().unwrap_or(1);
    }

    /// A buffer that nothing holds any more, whose last use the request that is expected waits for anyway; otherwise the one that was
    /// given out before all others, where that is long ago or there is no more memory for it.
    fn free(&mut self, len: u64) -> Option<usize> {
        let all = self.buffers.iter().enumerate();
        let free = all
            .filter(|(_, buffer)| buffer.len() == len && Arc::strong_count(buffer) == 1)
            .map(|(place, _)| place);
        let at_once =
            |place: &usize| self.in_turn || self.order.writable(&self.buffers[*place]) <= self.wave;
        if let Some(place) = free.clone().find(at_once) {
            return Some(place);
        }
        let first = free.min_by_key(|place| self.given_at[*place])?;
        let block = self.buffers[first].block();
        let is_apart = self.given - self.given_at[first] > APART;
        if is_apart || self.more + block > MORE || self.bytes + block > self.limit {
            return Some(first);
        }
        self.more += block;
        None
    }

    /// Which of its own buffers that is.
    pub(super) fn place(&self, buffer: &Arc<Buffer>) -> Option<usize> {
        self.places.get(&Arc::as_ptr(buffer)).copied()
    }

    fn own(&mut self, buffer: &Arc<Buffer>) -> Result<()> {
        self.bytes += buffer.block();
        if self.bytes > self.limit {
            (self.is_early, self.is_full) = (true, true);
            return Err(would_wait());
        }
        self.places.insert(Arc::as_ptr(buffer), self.buffers.len());
        self.buffers.push(buffer.clone());
        self.given_at.push(self.given);
        Ok(())
    }
}

impl Memory for Arena<'_> {
    fn buffer(&mut self, len: u64) -> Result<Arc<Buffer>> {
        self.given += len;
        if let Some(place) = self.free(len) {
            self.given_at[place] = self.given;
            return Ok(self.buffers[place].clone());
        }
        let buffer = self.runtime.alloc(len, None, Patience::Waits)?;
        self.own(&buffer)?;
        Ok(buffer)
    }

    fn word(&mut self, site: &Arc<Site>) -> Result<Arc<Word>> {
        let place = self.words.len() % BOARD;
        if place == 0 {
            let board = self.runtime.board(BOARD, Patience::Waits)?;
            self.own(&board)?;
            self.boards.push(board);
        }
        let board = &self.boards[self.words.len() / BOARD];
        let word = Word::draft(board.clone(), place as u64 * faults::STRIDE, site);
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
