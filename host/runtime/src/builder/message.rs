//! What a builder and its child say to each other, as bytes: frames with their length in front, little-endian.

use crate::pipeline::spec::PipelineSpec;
use std::io::{self, Read, Write};

pub(super) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// Longest frame that is read.
const MAX_FRAME: u32 = 256 << 20;

/// What the child is asked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Job {
    /// To open the device of that UUID, or without one the best: the first of all, and without an answer.
    Open(String),
    /// SPIR-V of a GLSL text whose includes are in place.
    Compile(String),
    /// To make a pipeline.
    Build(Spec),
}

/// A [`PipelineSpec`] that owns its parts.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Spec {
    pub(super) words: Vec<u32>,
    pub(super) bindings: u32,
    pub(super) push_bytes: u32,
    pub(super) subgroup_size: u32,
    pub(super) constants: Vec<(u32, u32)>,
}

/// What the child answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Reply {
    /// First of all: its version, and the number of its process, which older ones leave out.
    Hello(String, Option<u32>),
    /// The words of a module.
    Words(Vec<u32>),
    /// The pipeline was made; what the driver keeps of that.
    Built(Built),
    /// The compiler or the driver refuses it, in its own words.
    Refused(String),
    /// It could not be tried.
    Trouble(String),
}

/// What is left of a pipeline that was made in a child.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Built {
    /// What the driver keeps of it, as `vkGetPipelineCacheData` gives it.
    pub(crate) cache: Vec<u8>,
}

impl From<&PipelineSpec<'_>> for Spec {
    fn from(spec: &PipelineSpec<'_>) -> Spec {
        Spec {
            words: spec.module.words().to_vec(),
            bindings: spec.bindings,
            push_bytes: spec.push_bytes,
            subgroup_size: spec.subgroup_size,
            constants: spec.constants.to_vec(),
        }
    }
}

impl Job {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Job::Open(device) => frame(2, &[device.as_bytes()]),
            Job::Compile(text) => frame(0, &[text.as_bytes()]),
            Job::Build(spec) => {
                let constants = spec.constants.iter().flat_map(|(id, value)| [*id, *value]);
                let numbers = [spec.bindings, spec.push_bytes, spec.subgroup_size];
                let numbers: Vec<u32> = numbers.into_iter().chain(constants).collect();
                frame(1, &[&bytes(&numbers), &bytes(&spec.words)])
            }
        }
    }

    pub(super) fn decode(frame: &[u8]) -> Option<Job> {
        let (kind, parts) = parts(frame)?;
        match (kind, parts.as_slice()) {
            (2, [device]) => Some(Job::Open(String::from_utf8(device.to_vec()).ok()?)),
            (0, [text]) => Some(Job::Compile(String::from_utf8(text.to_vec()).ok()?)),
            (1, [numbers, words_]) => {
                let numbers = words(numbers)?;
                let [bindings, push_bytes, subgroup_size, constants @ ..] = numbers.as_slice()
                else {
                    return None;
                };
                let (constants, []) = constants.as_chunks::<2>() else {
                    return None;
                };
                let spec = Spec {
                    words: words(words_)?,
                    bindings: *bindings,
                    push_bytes: *push_bytes,
                    subgroup_size: *subgroup_size,
                    constants: constants.iter().map(|&[id, value]| (id, value)).collect(),
                };
                Some(Job::Build(spec))
            }
            _ => None,
        }
    }
}

impl Reply {
    pub(super) fn encode(&self) -> Vec<u8> {
        match self {
            Reply::Hello(version, process) => {
                let process = process.map(u32::to_le_bytes).unwrap_or_default();
                frame(0, &[version.as_bytes(), &process])
            }
            Reply::Words(words) => frame(1, &[&bytes(words)]),
            Reply::Built(Built { cache }) => frame(2, &[cache]),
            Reply::Refused(why) => frame(3, &[why.as_bytes()]),
            Reply::Trouble(why) => frame(4, &[why.as_bytes()]),
        }
    }

    pub(super) fn decode(frame: &[u8]) -> Option<Reply> {
        let (kind, parts) = parts(frame)?;
        let (part, others) = parts.split_first()?;
        if kind > 0 && !others.is_empty() {
            return None;
        }
        let text = || String::from_utf8_lossy(part).into_owned();
        match kind {
            0 => {
                let process = others.first().and_then(|part| (*part).try_into().ok());
                Some(Reply::Hello(text(), process.map(u32::from_le_bytes)))
            }
            1 => Some(Reply::Words(words(part)?)),
            2 => Some(Reply::Built(Built {
                cache: part.to_vec(),
            })),
            3 => Some(Reply::Refused(text())),
            4 => Some(Reply::Trouble(text())),
            _ => None,
        }
    }
}

/// Length of the frame that begins like this, its own length included; `None` while too little is there.
///
/// # Errors
/// When no frame is that long.
pub(super) fn frame_len(start: &[u8]) -> io::Result<Option<usize>> {
    let Some(len) = start.first_chunk::<4>().map(|len| u32::from_le_bytes(*len)) else {
        return Ok(None);
    };
    match len <= MAX_FRAME {
        true => Ok(Some(4 + len as usize)),
        false => Err(io::Error::other(format!("a frame of {len} bytes"))),
    }
}

/// The next frame without its length, waiting for it; `None` at the end.
pub(super) fn read_frame(from: &mut impl Read) -> io::Result<Option<Vec<u8>>> {
    let mut len = [0; 4];
    match from.read_exact(&mut len) {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(None),
        read => read?,
    }
    let whole = frame_len(&len)?.unwrap_or(4);
    let mut frame = vec![0; whole - 4];
    from.read_exact(&mut frame)?;
    Ok(Some(frame))
}

/// Writes what [`Reply::encode`] gives.
pub(super) fn write_frame(to: &mut impl Write, reply: &Reply) -> io::Result<()> {
    to.write_all(&reply.encode())
}

fn frame(kind: u8, parts: &[&[u8]]) -> Vec<u8> {
    let len: usize = 1 + parts.iter().map(|part| 4 + part.len()).sum::<usize>();
    let mut frame = Vec::with_capacity(4 + len);
    frame.extend((len as u32).to_le_bytes());
    frame.push(kind);
    for part in parts {
        frame.extend((part.len() as u32).to_le_bytes());
        frame.extend(*part);
    }
    frame
}

/// Kind and parts of a frame without its length.
fn parts(frame: &[u8]) -> Option<(u8, Vec<&[u8]>)> {
    let (kind, mut rest) = frame.split_first()?;
    let mut parts = Vec::new();
    while !rest.is_empty() {
        let (len, after) = rest.split_first_chunk::<4>()?;
        let (part, after) = after.split_at_checked(u32::from_le_bytes(*len) as usize)?;
        parts.push(part);
        rest = after;
    }
    Some((*kind, parts))
}

fn bytes(words: &[u32]) -> Vec<u8> {
    words.iter().flat_map(|word| word.to_le_bytes()).collect()
}

fn words(bytes: &[u8]) -> Option<Vec<u32>> {
    let (words, rest) = bytes.as_chunks::<4>();
    rest.is_empty()
        .then(|| words.iter().map(|word| u32::from_le_bytes(*word)).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_said_is_understood() {
        let spec = Spec {
            words: vec![1, 2, 3],
            bindings: 4,
            push_bytes: 8,
            subgroup_size: 0,
            constants: vec![(7, 9), (8, u32::MAX)],
        };
        for job in [
            Job::Compile("void main() {}".to_owned()),
            Job::Open("ab12".to_owned()),
            Job::Build(spec),
        ] {
            let frame = job.encode();
            assert_eq!(frame_len(&frame).unwrap(), Some(frame.len()));
            assert_eq!(Job::decode(&frame[4..]), Some(job));
            for len in 0..frame.len() - 4 {
                assert_eq!(Job::decode(&frame[4..4 + len]), None, "{len}");
            }
        }
        for reply in [
            Reply::Hello("1".to_owned(), Some(7)),
            Reply::Words(vec![5]),
            Reply::Built(Built { cache: vec![6] }),
            Reply::Refused("no".to_owned()),
            Reply::Trouble(String::new()),
        ] {
            let frame = reply.encode();
            let mut from = frame.as_slice();
            let read = read_frame(&mut from).unwrap().unwrap();
            assert_eq!(Reply::decode(&read), Some(reply));
            assert_eq!(read_frame(&mut from).unwrap(), None);
        }
        assert!(frame_len(&[0xff; 4]).is_err());
        assert_eq!(frame_len(&[1, 2, 3]).unwrap(), None);
    }
}
