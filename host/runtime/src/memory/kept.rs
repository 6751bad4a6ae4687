//! What kernels made of tensors' content and will need again, such as packed operands: kept with the tensor's buffer from its
//! second use on, freed with it, and given up before anything else when memory is short.

use super::Buffer;
use crate::config::MemoryBudget;
use parking_lot::Mutex;
use std::{
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::{Duration, Instant},
};

/// What tells a form of a buffer's content from all others.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Key {
    /// How it is made.
    pub(crate) steps: [u8; 32],
    /// Of what: the bytes of the buffer from this one on.
    pub(crate) start: u64,
}

/// Of the runtime's memory, in thousandths, where nothing else is said.
const SHARE: u16 = 125;
/// Forms of one buffer that are remembered: a buffer may hold the weights of many layers.
const MOST_FORMS: usize = 256;
/// Part of the limit that a shortage leaves at least.
const LEAST_PART: u64 = 64;
/// Once memory was short less is kept; twice as much after each such time without shortage.
const RECOVERY: Duration = Duration::from_secs(30);

/// What is kept of all buffers together.
#[derive(Debug)]
pub(crate) struct Kept {
    limit: u64,
    total: Arc<Total>,
    all: Mutex<Vec<Weak<Form>>>,
    /// Counts uses.
    turn: AtomicU64,
    reused: AtomicU64,
    /// What might be kept after memory was short, and when that was.
    shortage: Mutex<Option<(u64, Instant)>>,
}

/// What is kept of operands in the form in which kernels read them, in bytes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, serde::Serialize)]
pub struct KeptStats {
    /// What may be kept at most; less for a while after memory was short.
    pub limit: u64,
    /// What is kept; it counts as tensor memory too.
    pub bytes: u64,
    /// In so many buffers.
    pub buffers: u64,
    /// How often one of them took the place of steps that would have made it.
    pub reused: u64,
}

#[derive(Debug, Default)]
struct Total {
    bytes: AtomicU64,
    buffers: AtomicU64,
}

/// What is known of the forms of one buffer's content.
#[derive(Debug, Default)]
pub(super) struct Forms {
    known: Mutex<Vec<Arc<Form>>>,
    /// Whether somebody may write the content behind the queue's back.
    is_lent: AtomicBool,
}

/// A form of a buffer's content that was asked for.
#[derive(Debug)]
pub(crate) struct Form {
    key: Key,
    /// The last write of the buffer before.
    version: u64,
    turn: AtomicU64,
    made: Mutex<Option<Made>>,
}

#[derive(Debug)]
struct Made {
    buffer: Arc<Buffer>,
    total: Arc<Total>,
}

impl Drop for Made {
    fn drop(&mut self) {
        let bytes = self.buffer.block();
        self.total.bytes.fetch_sub(bytes, Ordering::Relaxed);
        self.total.buffers.fetch_sub(1, Ordering::Relaxed);
    }
}

/// What came of looking for a form.
#[derive(Debug)]
pub(crate) enum Found {
    /// It is not to be kept.
    Nothing,
    /// Nobody made it before of what the buffer holds since the write of that number: [`Kept::note`] is told once somebody did.
    First(u64),
    /// It was asked for before: what is made now may be kept.
    Again(Arc<Form>),
    /// It is there.
    Made(Arc<Buffer>),
}

impl Kept {
    /// Keeps at most what `wanted` says of a runtime whose memory is `budget`.
    pub(crate) fn new(wanted: MemoryBudget, budget: u64) -> Kept {
        let part = |share: u16| (u128::from(budget) * u128::from(share.min(1000)) / 1000) as u64;
        let limit = match wanted {
            MemoryBudget::Auto => part(SHARE),
            MemoryBudget::Share(share) => part(share),
            MemoryBudget::Bytes(bytes) => bytes.min(budget),
        };
        Kept {
            limit,
            total: Arc::default(),
            all: Mutex::default(),
            turn: AtomicU64::new(0),
            reused: AtomicU64::new(0),
            shortage: Mutex::default(),
        }
    }

    pub(crate) fn stats(&self) -> KeptStats {
        KeptStats {
            limit: self.limit,
            bytes: self.total.bytes.load(Ordering::Relaxed),
            buffers: self.total.buffers.load(Ordering::Relaxed),
            reused: self.reused.load(Ordering::Relaxed),
        }
    }

    /// Looks for a form of `of`. It is asked before what would make the form is recorded, so that a write that comes between
    /// makes it count as old.
    pub(crate) fn find(&self, of: &Buffer, key: &Key) -> Found {
        let forms = &of.forms;
        if self.limit == 0 || of.is_shared() || of.is_lent() {
            return Found::Nothing;
        }
        let version = of.last_write.load(Ordering::Relaxed);
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let mut known = forms.known.lock();
        // What is made of content that was written over is of no use.
        known.retain(|form| form.version == version);
        if let Some(form) = known.iter().find(|form| form.key == *key) {
            form.turn.store(turn, Ordering::Relaxed);
            return match &*form.made.lock() {
                Some(made) => {
                    self.reused.fetch_add(1, Ordering::Relaxed);
                    Found::Made(made.buffer.clone())
                }
                None => Found::Again(form.clone()),
            };
        }
        Found::First(version)
    }

    /// Remembers that a form of `of` was made, so that the next time it may be kept. Of too many the one is forgotten that is
    /// not kept and was used longest ago.
    pub(crate) fn note(&self, of: &Buffer, key: Key, version: u64) {
        let mut known = of.forms.known.lock();
        if known.iter().any(|form| form.key == key) {
            return;
        }
        if known.len() >= MOST_FORMS {
            let age = |form: &Arc<Form>| {
                (
                    form.made.lock().is_some(),
                    form.turn.load(Ordering::Relaxed),
                )
            };
            let oldest = (0..known.len()).min_by_key(|&at| age(&known[at]));
            oldest.map(|at| known.swap_remove(at));
        }
        known.push(Arc::new(Form {
            key,
            version,
            turn: AtomicU64::new(self.turn.fetch_add(1, Ordering::Relaxed)),
            made: Mutex::default(),
        }));
    }

    /// Keeps `buffer`, into which the form of `of` was recorded to be made, where there is room or others used longer ago make
    /// some.
    pub(crate) fn keep(&self, of: &Buffer, form: &Arc<Form>, buffer: &Arc<Buffer>) {
        let bytes = buffer.block();
        let limit = self.limit_now();
        if bytes > limit {
            return;
        }
        {
            let mut all = self.all.lock();
            if form.made.lock().is_some() {
                return;
            }
            all.retain(|form| form.strong_count() > 0);
            while self.total.bytes.load(Ordering::Relaxed) + bytes > limit {
                let live = all.iter().filter_map(Weak::upgrade);
                let made = live.filter(|form| form.made.lock().is_some());
                let Some(oldest) = made.min_by_key(|form| form.turn.load(Ordering::Relaxed)) else {
                    break;
                };
                oldest.made.lock().take();
            }
            self.total.bytes.fetch_add(bytes, Ordering::Relaxed);
            self.total.buffers.fetch_add(1, Ordering::Relaxed);
            *form.made.lock() = Some(Made {
                buffer: buffer.clone(),
                total: self.total.clone(),
            });
            if !all
                .iter()
                .any(|known| std::ptr::eq(known.as_ptr(), &**form))
            {
                all.push(Arc::downgrade(form));
            }
        }
        if of.is_lent() {
            of.lend();
        }
    }

    /// Gives everything up.
    pub(crate) fn clear(&self) {
        let all = std::mem::take(&mut *self.all.lock());
        for form in all.iter().filter_map(Weak::upgrade) {
            form.made.lock().take();
        }
    }

    /// Gives everything up since memory is short, and keeps less for a while; whether there was anything.
    pub(crate) fn shed(&self) -> bool {
        let bytes = self.total.bytes.load(Ordering::Relaxed);
        if bytes == 0 {
            return false;
        }
        let less = (bytes.min(self.limit_now()) / 2).max(self.limit / LEAST_PART);
        *self.shortage.lock() = Some((less, Instant::now()));
        self.clear();
        true
    }

    fn limit_now(&self) -> u64 {
        let Some((less, since)) = *self.shortage.lock() else {
            return self.limit;
        };
        let doubled = (since.elapsed().as_secs() / RECOVERY.as_secs()).min(63);
        less.saturating_mul(1 << doubled).min(self.limit)
    }
}

impl Buffer {
    /// Whether somebody may write it at any time.
    pub(crate) fn is_lent(&self) -> bool {
        self.forms.is_lent.load(Ordering::SeqCst)
    }

    /// Notes that somebody may write it at any time, so that no form of its content is kept.
    pub(crate) fn lend(&self) {
        self.forms.is_lent.store(true, Ordering::SeqCst);
        self.forms.known.lock().clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_eighth_of_the_memory_is_kept_unless_told_otherwise() {
        let limit = |wanted| Kept::new(wanted, 8000).limit;
        assert_eq!(limit(MemoryBudget::Auto), 1000);
        assert_eq!(limit(MemoryBudget::Share(500)), 4000);
        assert_eq!(limit(MemoryBudget::Bytes(0)), 0);
        assert_eq!(limit(MemoryBudget::Bytes(u64::MAX)), 8000);
    }

    #[test]
    fn less_is_kept_for_a_while_once_memory_was_short() {
        let kept = Kept::new(MemoryBudget::Bytes(8000), 8000);
        assert!(!kept.shed(), "there is nothing to give up");
        assert_eq!(kept.limit_now(), 8000);
        kept.total.bytes.store(1000, Ordering::Relaxed);
        assert!(kept.shed());
        assert_eq!(kept.limit_now(), 500);
        let later = |times: u32| {
            let since = Instant::now().checked_sub(RECOVERY * times).unwrap();
            *kept.shortage.lock() = Some((500, since));
            kept.limit_now()
        };
        assert_eq!([1, 2, 4, 1000].map(later), [1000, 2000, 8000, 8000]);
    }
}
