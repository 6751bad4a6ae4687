//! The cases that run, in a file, so that they are known after what ends the process.

use super::cases::Case;
use nx_vulkan_host::{Error, Kind, Result};
use std::{fs::File, os::unix::fs::FileExt as _, path::Path};

/// Bytes of the line that each thread has.
const LINE: usize = 512;

/// A file with a line for each thread, or nothing.
#[derive(Debug)]
pub(super) struct Running(Option<File>);

impl Running {
    pub(super) fn create(path: Option<&Path>) -> Result<Running> {
        let file = path.map(File::create).transpose();
        let file = file.map_err(|error| Error::new(Kind::Io, error.to_string()))?;
        Ok(Running(file))
    }

    /// Writes down what a thread is about to run.
    pub(super) fn begin(&self, thread: usize, case: &Case, kernel: Option<&str>) {
        if self.0.is_none() {
            return;
        }
        let inputs: Vec<String> = case.inputs.iter().map(ToString::to_string).collect();
        let by = kernel.map_or(String::new(), |kernel| format!(" by {kernel}"));
        let inputs = inputs.join(", ");
        self.write(thread, &format!("{}({inputs}){by}", case.op.name));
    }

    /// Writes down that a thread runs nothing.
    pub(super) fn end(&self, thread: usize) {
        self.write(thread, "");
    }

    fn write(&self, thread: usize, text: &str) {
        let Some(file) = &self.0 else {
            return;
        };
        let mut line = [b' '; LINE];
        let length = text.len().min(LINE - 1);
        line[..length].copy_from_slice(&text.as_bytes()[..length]);
        line[LINE - 1] = b'\n';
        // Without the file no more is lost than where a crash came from.
        drop(file.write_all_at(&line, (thread * LINE) as u64));
    }
}

/// The cases that were running when the process that wrote the file ended.
pub fn running(path: &Path) -> Vec<String> {
    let bytes = std::fs::read(path).unwrap_or_default();
    let text = String::from_utf8_lossy(&bytes).replace('\0', " ");
    let lines = text.lines().map(str::trim);
    lines
        .filter(|line| !line.is_empty())
        .map(str::to_owned)
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_registry::private::Temporary;

    #[test]
    fn the_cases_that_did_not_end_are_read() {
        let folder = Temporary::new().unwrap();
        let path = folder.write("running", b"").unwrap();
        let file = Running::create(Some(&path)).unwrap();
        file.write(3, &"long ".repeat(LINE));
        file.write(0, "negate(f32[8]) by pack/kernel");
        file.write(1, "add(f32[8], f32[8])");
        file.end(1);
        let cases = running(&path);
        assert_eq!(cases.len(), 2, "{cases:?}");
        assert_eq!(cases[0], "negate(f32[8]) by pack/kernel");
        assert!(cases[1].starts_with("long long"));
    }
}
