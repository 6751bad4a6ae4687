//! What stands for shared memory on systems without POSIX's: nothing but an error.

use crate::{Error, Kind, Result};

/// A segment, of which there are none.
#[derive(Debug)]
pub enum Segment {}

impl Segment {
    /// # Errors
    /// [`Kind::Unsupported`].
    pub fn new(_bytes: &[u8], _permissions: u32) -> Result<Segment> {
        Err(unsupported())
    }

    /// What others open it by.
    pub fn name(&self) -> &str {
        match *self {}
    }
}

/// # Errors
/// [`Kind::Unsupported`].
pub fn read(_name: &str, _len: u64) -> Result<Vec<u8>> {
    Err(unsupported())
}

pub(crate) fn unlink_all() {}

fn unsupported() -> Error {
    let text = "this system has no shared memory with names";
    Error::new(Kind::Unsupported, text)
}
