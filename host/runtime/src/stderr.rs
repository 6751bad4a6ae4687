//! Lines of the log, and the log on standard error: for programs that keep none of their own.

use log::{Level, LevelFilter, Log, Metadata, Record};
use parking_lot::Mutex;
use std::{collections::BTreeSet, fmt, io::Write};

/// Target of what the host itself says.
const HOST: &str = "nx_vulkan";

/// Target of what the validation layers say.
pub(crate) const VALIDATION: &str = "vulkan validation";

/// What the host, a pack or a validation layer says.
#[derive(Debug, Clone)]
pub struct Line {
    /// How much it matters.
    pub level: Level,
    /// Who says it: `nx_vulkan`, `vulkan validation` or the id of a pack.
    pub target: String,
    /// What.
    pub message: String,
}

impl Line {
    /// The line of a record, unless it is that of a library below the host.
    pub fn of(record: &Record<'_>) -> Option<Line> {
        let module = record.module_path()?;
        module.starts_with("nx_vulkan_").then(|| Line {
            level: record.level(),
            target: match record.target() {
                own if own == module => HOST.to_owned(),
                other => other.to_owned(),
            },
            message: record.args().to_string(),
        })
    }

    /// Writes it to standard error. A reader that went away is no error.
    pub fn write(&self) {
        let _ = writeln!(std::io::stderr(), "{self}");
    }
}

impl fmt::Display for Line {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let message = &self.message;
        match (self.target.as_str(), self.level) {
            (HOST, Level::Error) => write!(f, "[{HOST}] error: {message}"),
            (HOST, Level::Warn) => write!(f, "[{HOST}] warning: {message}"),
            (HOST, _) => write!(f, "[{HOST}] {message}"),
            (VALIDATION, _) => write!(f, "{VALIDATION}: {message}"),
            (pack, _) => write!(f, "{HOST} pack {pack}: {message}"),
        }
    }
}

struct Stderr;

impl Log for Stderr {
    fn enabled(&self, _: &Metadata<'_>) -> bool {
        true
    }

    fn log(&self, record: &Record<'_>) {
        if let Some(line) = Line::of(record).filter(is_new) {
            line.write();
        }
    }

    fn flush(&self) {}
}

/// Whether the host did not warn of the same before: a program that opens a device many times says it once.
fn is_new(line: &Line) -> bool {
    const MOST: usize = 1000;
    static WARNINGS: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    if (line.level, &*line.target) != (Level::Warn, HOST) {
        return true;
    }
    let mut known = WARNINGS.lock();
    known.len() >= MOST || known.insert(line.message.clone())
}

/// From now on the log goes to standard error, unless something else takes it already.
pub fn install() {
    take(&Stderr);
}

/// From now on `logger` takes the log, unless something else does already.
pub fn take(logger: &'static dyn Log) {
    if log::set_logger(logger).is_ok() {
        log::set_max_level(LevelFilter::Trace);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(level: Level, target: &str, module: &str) -> Option<String> {
        let mut record = Record::builder();
        let record = record.level(level).target(target).module_path(Some(module));
        let line = Line::of(&record.args(format_args!("it broke")).build());
        line.map(|line| line.to_string())
    }

    #[test]
    fn a_line_says_who_speaks() {
        let host = "nx_vulkan_host::route";
        for (level, target, want) in [
            (Level::Error, host, "[nx_vulkan] error: it broke"),
            (Level::Warn, host, "[nx_vulkan] warning: it broke"),
            (Level::Info, host, "[nx_vulkan] it broke"),
            (Level::Warn, VALIDATION, "vulkan validation: it broke"),
            (Level::Error, "swish", "nx_vulkan pack swish: it broke"),
        ] {
            assert_eq!(line(level, target, host).as_deref(), Some(want));
        }
    }

    #[test]
    fn a_warning_is_given_once() {
        let line = |level, message: &str| Line {
            level,
            target: HOST.to_owned(),
            message: message.to_owned(),
        };
        assert!(is_new(&line(Level::Warn, "first of two")));
        assert!(!is_new(&line(Level::Warn, "first of two")));
        assert!(is_new(&line(Level::Warn, "second of two")));
        assert!(is_new(&line(Level::Error, "first of two")));
        assert!(is_new(&line(Level::Error, "first of two")));
    }

    #[test]
    fn libraries_below_are_not_heard() {
        assert_eq!(line(Level::Error, "notify", "notify::inotify"), None);
    }
}
