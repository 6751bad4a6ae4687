//! What only the device sees of an op on integers: that an operand has no result. It sets a word, which whoever reads a
//! result that depends on it looks at.

use crate::{Error, Request, Result, memory::Buffer, queue::Stream};
use nx_vulkan_ops::{Spec, find, partial::Partial, split};
use nx_vulkan_registry::request::Operand;
use std::sync::{Arc, atomic::Ordering};

/// What shaders call to set the word; see `tensor.glsl`.
const CALL: &str = "nxv_fault(";
/// Bytes of a word.
pub(crate) const BYTES: u64 = 4;
/// Bytes from one word to the next where they share a buffer: no device may ask for more (Vulkan, `minStorageBufferOffsetAlignment`).
pub(crate) const STRIDE: u64 = 256;
/// Words of an operand that are not known to be 0, from which on an op that has one of its own waits for some of them.
const OPEN: usize = 16;

/// The op that a word speaks of.
#[derive(Debug)]
pub(crate) struct Site {
    partial: &'static Partial,
    request: String,
}

impl Site {
    /// What a device may find wrong with the values of a request's operands.
    pub(crate) fn of(request: &Request<'_, Operand>) -> Option<Site> {
        let (inputs, _) = request.types();
        let partial = find(&request.op)?.partial_of(&inputs, &request.attrs)?;
        let specs = request.inputs.iter();
        let specs: Vec<Spec> = specs
            .map(|input| (input.dtype, input.shape.clone()))
            .collect();
        let request = split::partial(&request.over(specs)).unwrap_or_else(|| request.to_string());
        Some(Site { partial, request })
    }
}

/// Whether a shader made of these texts may set the word.
pub(crate) fn may_set<'a>(mut texts: impl Iterator<Item = &'a str>) -> bool {
    texts.any(|text| text.contains(CALL))
}

/// The define that tells a shader where the word is.
pub(crate) fn define(binding: u32) -> (&'static str, String) {
    ("NXV_FAULTS", binding.to_string())
}

/// A word on the device; not 0 when the op met an operand that it has no result for.
#[derive(Debug)]
pub(crate) struct Word {
    pub(crate) buffer: Arc<Buffer>,
    /// The byte of the buffer where it begins.
    pub(crate) start: u64,
    site: Arc<Site>,
    /// Whether it is set by runs that are yet to come, so that nothing is known of it.
    is_draft: bool,
}

impl Word {
    /// The one at the start of the buffer.
    pub(crate) fn new(buffer: Arc<Buffer>, site: &Arc<Site>) -> Arc<Word> {
        Arc::new(Word {
            buffer,
            start: 0,
            site: site.clone(),
            is_draft: false,
        })
    }

    /// One of a program that is being recorded.
    pub(crate) fn draft(buffer: Arc<Buffer>, start: u64, site: &Arc<Site>) -> Arc<Word> {
        Arc::new(Word {
            buffer,
            start,
            site: site.clone(),
            is_draft: true,
        })
    }

    /// A word of the same op at the same place of another buffer, which a run sets.
    pub(crate) fn moved(&self, buffer: Arc<Buffer>) -> Arc<Word> {
        Arc::new(Word {
            buffer,
            start: self.start,
            site: self.site.clone(),
            is_draft: false,
        })
    }

    /// The last command that may set it.
    fn end(&self) -> u64 {
        self.buffer.last_write.load(Ordering::Relaxed)
    }

    /// Whether all that may set it was done by `completed`.
    fn is_settled(&self, completed: u64) -> bool {
        !self.is_draft && self.end() <= completed
    }

    fn is_set(&self) -> bool {
        let start = self.start as usize;
        // SAFETY: the mapping covers the word's four bytes, aligned to their size; a device may write it meanwhile.
        let word = |at: *mut u8| unsafe { at.add(start).cast::<u32>().read_volatile() };
        self.buffer.mapping().is_some_and(|at| word(at) != 0)
    }

    fn error(&self) -> Error {
        let (partial, request) = (self.site.partial, &self.site.request);
        Error::new(partial.kind, format!("{request}: {}", partial.reason))
    }
}

/// The words of all ops that a tensor was computed by, but for those that were found to be 0.
#[derive(Debug, Clone, Default)]
pub(crate) struct Faults(Option<Arc<[Arc<Word>]>>);

impl From<&Arc<Word>> for Faults {
    fn from(word: &Arc<Word>) -> Faults {
        Faults(Some([word.clone()].into()))
    }
}

impl Faults {
    /// Those of a result of operands with `inputs`, whose own op sets `own`.
    pub(crate) fn of<'a>(
        inputs: impl Iterator<Item = &'a Faults> + Clone,
        own: Option<&'a Arc<Word>>,
        completed: u64,
    ) -> Faults {
        if own.is_none()
            && let Some(all) = Faults::covering(inputs.clone())
            && all
                .words()
                .first()
                .is_some_and(|first| !first.is_settled(completed))
        {
            return all.clone();
        }
        let mut words: Vec<Arc<Word>> = Vec::new();
        for word in inputs.flat_map(Faults::words).chain(own) {
            if word.is_settled(completed) {
                if word.is_set() {
                    // Whatever the others say, nobody reads such a result.
                    return Faults::from(word);
                }
            } else if !words.iter().any(|known| Arc::ptr_eq(known, word)) {
                words.push(word.clone());
            }
        }
        Faults((!words.is_empty()).then(|| words.into()))
    }

    /// Whether one of them is that word.
    pub(crate) fn has(&self, word: &Arc<Word>) -> bool {
        self.words().iter().any(|own| Arc::ptr_eq(own, word))
    }

    /// Those of `inputs` that begin with the words of all others. What is computed of one tensor in many ways has its words,
    /// and most results need no list of their own.
    fn covering<'a>(inputs: impl Iterator<Item = &'a Faults>) -> Option<&'a Faults> {
        let mut longest: Option<&Faults> = None;
        for input in inputs.filter(|input| !input.is_empty()) {
            longest = match longest {
                None => Some(input),
                Some(most) if input.words().len() > most.words().len() => {
                    most.begins(input).then_some(input)
                }
                Some(most) => input.begins(most).then_some(most),
            };
            longest?;
        }
        longest
    }

    /// Whether `longer` begins with the same words.
    fn begins(&self, longer: &Faults) -> bool {
        let (these, those) = (self.words(), longer.words());
        let same = |(a, b): (&Arc<Word>, &Arc<Word>)| Arc::ptr_eq(a, b);
        these.as_ptr() == those.as_ptr()
            || these.len() <= those.len() && these.iter().zip(those).all(same)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.0.is_none()
    }

    /// The command to wait for before an op of operands with `inputs` adds a word of its own, where they carry many that are open.
    pub(crate) fn crowd<'a>(
        inputs: impl Iterator<Item = &'a Faults>,
        completed: u64,
    ) -> Option<u64> {
        let crowd = |words: &[Arc<Word>]| {
            let open = words.iter().filter(|word| !word.is_settled(completed));
            let mut ends: Vec<u64> = open.map(|word| word.end()).collect();
            ends.sort_unstable();
            (ends.len() >= OPEN).then(|| ends[ends.len() / 2])
        };
        let lists = inputs.map(Faults::words);
        let long = lists.filter(|words| words.len() >= OPEN);
        long.filter_map(crowd).max()
    }

    fn words(&self) -> &[Arc<Word>] {
        self.0.as_deref().unwrap_or_default()
    }

    /// Waits for what the tensor was computed by.
    ///
    /// # Errors
    /// That of the first word that is set; those of waiting.
    pub(crate) fn check(&self, stream: &Stream) -> Result<()> {
        for word in self.words() {
            stream.wait(word.end())?;
        }
        self.verdict()
    }

    /// As [`Faults::check`], without waiting; false when that is needed.
    pub(crate) fn check_now(&self, stream: &Stream) -> Result<bool> {
        let completed = stream.completed_hint();
        if self.words().iter().all(|word| word.is_settled(completed)) {
            return self.verdict().map(|()| true);
        }
        Ok(false)
    }

    fn verdict(&self) -> Result<()> {
        let mut words = self.words().iter();
        match words.find(|word| word.is_set()) {
            Some(word) => Err(word.error()),
            None => Ok(()),
        }
    }
}
