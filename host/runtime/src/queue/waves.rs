//! Waves: commands that are captured run as early as what they touch allows, side by side with those that do not depend on them.
//! Between two waves is a barrier, and a GPU takes microseconds from one side of it to the other.

use super::step::{Bound, Step};
use crate::memory::Buffer;
use rustc_hash::FxHashMap;
use std::{hash::Hash, ops::Range, sync::Arc};

/// Bytes of three workgroup counts.
const COUNTS: u64 = 12;

/// The waves of commands over buffers, which live as long as it is asked.
#[derive(Debug, Default)]
pub(crate) struct Order(Waves<*const Buffer>);

impl Order {
    /// The waves of the steps of one plan, which comes next.
    pub(crate) fn next(&mut self, steps: &[Step], buffers: &[Bound<'_>]) -> Vec<u32> {
        let next = |step| self.0.next(&accesses(step, buffers));
        steps.iter().map(next).collect()
    }

    /// The first wave in which a command may read that buffer.
    pub(crate) fn readable(&self, buffer: &Arc<Buffer>) -> u32 {
        let uses = self.0.of(Arc::as_ptr(buffer));
        uses.map(|one| one.written).max().unwrap_or(0) + 1
    }

    /// And the first one in which a command may write it.
    pub(crate) fn writable(&self, buffer: &Arc<Buffer>) -> u32 {
        let uses = self.0.of(Arc::as_ptr(buffer));
        uses.map(|one| one.written.max(one.read)).max().unwrap_or(0) + 1
    }
}

/// What a step does with which bytes.
fn accesses(step: &Step, buffers: &[Bound<'_>]) -> Vec<Access<*const Buffer>> {
    let access = |place: usize, [offset, len]: [u64; 2], reads: bool, writes: bool| {
        let Bound { buffer, start } = buffers[place];
        let first = start + offset;
        let end = if len == 0 { buffer.len() } else { first + len };
        Access {
            buffer: Arc::as_ptr(buffer),
            bytes: first..end.max(first + 1),
            reads,
            writes,
        }
    };
    let args = step.args.iter();
    let args = args.map(|arg| access(arg.buffer, [arg.offset, arg.len], arg.reads, arg.writes));
    let counts = step.counts.iter();
    let counts = counts.map(|own| access(own.buffer, [own.offset, COUNTS], true, false));
    args.chain(counts).collect()
}

/// What one command does with bytes of a buffer.
#[derive(Debug, Clone)]
struct Access<B> {
    buffer: B,
    bytes: Range<u64>,
    reads: bool,
    writes: bool,
}

/// The waves of the commands so far, by what these touch.
#[derive(Debug)]
struct Waves<B>(FxHashMap<B, Vec<Use>>);

/// The last waves in which bytes were read and written; waves count from one.
#[derive(Debug)]
struct Use {
    bytes: Range<u64>,
    read: u32,
    written: u32,
}

impl<B> Default for Waves<B> {
    fn default() -> Waves<B> {
        Waves(FxHashMap::default())
    }
}

impl<B: Hash + Eq + Copy> Waves<B> {
    fn of(&self, buffer: B) -> impl Iterator<Item = &Use> {
        self.0.get(&buffer).into_iter().flatten()
    }

    /// The wave of the next command, the first one in which all that it depends on is behind it.
    fn next(&mut self, accesses: &[Access<B>]) -> u32 {
        let behind = |access: &Access<B>| {
            let uses = self.of(access.buffer);
            let touched = uses.filter(|one| overlap(&one.bytes, &access.bytes));
            let waves = touched.map(|one| match access.writes {
                true => one.written.max(one.read),
                false => one.written,
            });
            waves.max().unwrap_or(0)
        };
        let wave = accesses.iter().map(behind).max().unwrap_or(0) + 1;
        for access in accesses {
            self.note(access, wave);
        }
        wave
    }

    fn note(&mut self, access: &Access<B>, wave: u32) {
        let uses = self.0.entry(access.buffer).or_default();
        if access.writes {
            // Whoever would wait for these waits for this one.
            let bytes = &access.bytes;
            uses.retain(|one| {
                one.bytes == *bytes || one.bytes.start < bytes.start || bytes.end < one.bytes.end
            });
        }
        let known = uses.iter().position(|one| one.bytes == access.bytes);
        let place = known.unwrap_or_else(|| {
            uses.push(Use {
                bytes: access.bytes.clone(),
                read: 0,
                written: 0,
            });
            uses.len() - 1
        });
        let one = &mut uses[place];
        if access.reads {
            one.read = one.read.max(wave);
        }
        if access.writes {
            one.written = one.written.max(wave);
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

#[cfg(test)]
mod tests {
    use super::*;

    fn access(buffer: u32, bytes: Range<u64>, reads: bool, writes: bool) -> Access<u32> {
        Access {
            buffer,
            bytes,
            reads,
            writes,
        }
    }

    /// Reads of all of some buffers, and a write of all of one.
    fn command(reads: &[u32], writes: u32) -> Vec<Access<u32>> {
        let read = reads
            .iter()
            .map(|&buffer| access(buffer, 0..8, true, false));
        read.chain([access(writes, 0..8, false, true)]).collect()
    }

    #[test]
    fn what_reads_the_same_runs_side_by_side() {
        let mut waves = Waves::default();
        // Two products of one operand, each with what follows from it, and the sum of both.
        let commands = [
            (&[0, 1][..], 2),
            (&[2], 3),
            (&[0, 4], 5),
            (&[5], 6),
            (&[3, 6], 7),
        ];
        let waves = commands.map(|(reads, writes)| waves.next(&command(reads, writes)));
        assert_eq!(waves, [1, 2, 1, 2, 3]);
    }

    #[test]
    fn memory_is_given_out_again_after_its_last_reader() {
        let mut waves = Waves::default();
        assert_eq!(waves.next(&command(&[0], 1)), 1);
        assert_eq!(waves.next(&command(&[1], 2)), 2);
        assert_eq!(waves.next(&command(&[0], 1)), 3);
        assert_eq!(waves.next(&command(&[0], 3)), 1);
    }

    #[test]
    fn bytes_beside_each_other_are_apart() {
        let mut waves = Waves::default();
        assert_eq!(waves.next(&[access(0, 0..4, false, true)]), 1);
        assert_eq!(waves.next(&[access(0, 4..8, true, true)]), 1);
        assert_eq!(waves.next(&[access(0, 3..5, true, false)]), 2);
        assert_eq!(waves.next(&[access(0, 0..8, false, true)]), 3);
        assert_eq!(waves.next(&[access(0, 7..8, true, false)]), 4);
    }

    /// As many as `depends` says, pair by pair, and no more.
    #[test]
    fn waves_are_the_longest_chains() {
        let mut state = 1u64;
        let mut random = |below: u64| {
            state = state
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1);
            (state >> 33) % below
        };
        for _ in 0..200 {
            let mut commands: Vec<Vec<Access<u32>>> = Vec::new();
            for _ in 0..40 {
                let accesses = 0..1 + random(3);
                let accesses = accesses.map(|_| {
                    let (start, kind) = (random(6), random(3));
                    let bytes = start..start + 1 + random(4);
                    access(random(4) as u32, bytes, kind != 1, kind != 0)
                });
                commands.push(accesses.collect());
            }
            let mut waves = Waves::default();
            let mut expected: Vec<u32> = Vec::new();
            for (index, command) in commands.iter().enumerate() {
                let before = commands[..index].iter().zip(&expected);
                let before = before.filter(|(earlier, _)| depends(earlier, command));
                let last = before.map(|(_, wave)| *wave).max().unwrap_or(0);
                expected.push(last + 1);
                assert_eq!(waves.next(command), last + 1, "{:?}", &commands[..=index]);
            }
        }
    }

    fn depends(earlier: &[Access<u32>], later: &[Access<u32>]) -> bool {
        later.iter().any(|b| {
            earlier.iter().any(|a| {
                let same = a.buffer == b.buffer && (a.bytes.clone()).any(|x| b.bytes.contains(&x));
                same && (a.writes || b.writes)
            })
        })
    }
}
