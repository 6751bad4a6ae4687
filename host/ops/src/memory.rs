//! The memory that the system has left for this process: what is free, and what its control groups allow.

use std::{
    fs,
    path::{Path, PathBuf},
};

/// Bytes that this process can still take; half of all memory where the system tells no more than its size, and `None` where it tells
/// nothing.
pub fn available() -> Option<u64> {
    at_most(free().or_else(|| Some(physical()? / 2)))
}

/// The same, `None` unless the system tells what is free.
pub fn told() -> Option<u64> {
    at_most(Some(free()?))
}

/// What of `free` the control groups allow.
fn at_most(free: Option<u64>) -> Option<u64> {
    let allowed = groups().into_iter().filter_map(|group| group.left()).min();
    match (free, allowed) {
        (Some(free), Some(allowed)) => Some(free.min(allowed)),
        (free, allowed) => free.or(allowed),
    }
}

/// What could be taken without swapping, where the system says so, as Linux does.
fn free() -> Option<u64> {
    mem_available(&fs::read_to_string("/proc/meminfo").ok()?)
}

fn mem_available(meminfo: &str) -> Option<u64> {
    let line = meminfo
        .lines()
        .find_map(|line| line.strip_prefix("MemAvailable:"))?;
    let kib: u64 = line.trim().strip_suffix("kB")?.trim().parse().ok()?;
    kib.checked_mul(1024)
}

#[cfg(unix)]
fn physical() -> Option<u64> {
    // SAFETY: it reads numbers of the system.
    let (pages, size) = unsafe {
        (
            libc::sysconf(libc::_SC_PHYS_PAGES),
            libc::sysconf(libc::_SC_PAGESIZE),
        )
    };
    u64::try_from(pages)
        .ok()?
        .checked_mul(u64::try_from(size).ok()?)
}

#[cfg(not(unix))]
fn physical() -> Option<u64> {
    None
}

/// A control group that this process is in.
#[derive(Debug, PartialEq, Eq)]
struct Group {
    folder: PathBuf,
    limit: &'static str,
    used: &'static str,
}

/// The groups of this process and those above them, of both versions of the interface.
fn groups() -> Vec<Group> {
    let own = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    own.lines().flat_map(groups_of).collect()
}

fn groups_of(line: &str) -> Vec<Group> {
    let mut fields = line.splitn(3, ':');
    let (Some(_), Some(controllers), Some(path)) = (fields.next(), fields.next(), fields.next())
    else {
        return Vec::new();
    };
    let (mount, limit, used) = match controllers {
        "" => ("/sys/fs/cgroup", "memory.max", "memory.current"),
        list if list.split(',').any(|name| name == "memory") => (
            "/sys/fs/cgroup/memory",
            "memory.limit_in_bytes",
            "memory.usage_in_bytes",
        ),
        _ => return Vec::new(),
    };
    // Inside a container the path may be that outside of it, and the mount's root is the group.
    let inside = Path::new(path.trim_start_matches('/'));
    inside
        .ancestors()
        .map(|above| Group {
            folder: Path::new(mount).join(above),
            limit,
            used,
        })
        .collect()
}

impl Group {
    /// What its limit leaves; `None` without one. The page cache gives way, so it does not count as used.
    fn left(&self) -> Option<u64> {
        let read = |name| fs::read_to_string(self.folder.join(name)).ok();
        let number = |name| read(name)?.trim().parse::<u64>().ok();
        let (limit, used) = (number(self.limit)?, number(self.used)?);
        let cache = read("memory.stat").and_then(|text| inactive_file(&text));
        Some(limit.saturating_sub(used.saturating_sub(cache.unwrap_or(0))))
    }
}

fn inactive_file(stat: &str) -> Option<u64> {
    let of = |name| {
        let value = |line: &str| line.strip_prefix(name)?.strip_prefix(' ')?.parse().ok();
        stat.lines().find_map(value)
    };
    of("total_inactive_file").or_else(|| of("inactive_file"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_the_kernel_says_is_read() {
        let meminfo = "MemTotal:       24684084 kB\nMemAvailable:   23122352 kB\n";
        assert_eq!(mem_available(meminfo), Some(23_122_352 * 1024));
        assert_eq!(mem_available("MemTotal: 5 kB\n"), None);
        assert_eq!(mem_available("MemAvailable: many kB\n"), None);
        assert_eq!(inactive_file("cache 9\ninactive_file 7\n"), Some(7));
        let first = "inactive_file 7\ntotal_inactive_file 8\n";
        assert_eq!(inactive_file(first), Some(8));
    }

    #[test]
    fn groups_of_both_versions_and_those_above_are_found() {
        let folders = |line| -> Vec<_> {
            let groups = groups_of(line).into_iter();
            groups.map(|g| (g.folder, g.limit)).collect()
        };
        let expected = ["/sys/fs/cgroup/a/b", "/sys/fs/cgroup/a", "/sys/fs/cgroup/"];
        let expected = expected.map(|folder| (PathBuf::from(folder), "memory.max"));
        assert_eq!(folders("0::/a/b"), expected);
        let old = PathBuf::from("/sys/fs/cgroup/memory/a");
        assert_eq!(
            folders("4:cpu,memory:/a")[0],
            (old, "memory.limit_in_bytes")
        );
        assert_eq!(folders("4:cpuset:/a"), []);
        assert_eq!(folders("nonsense"), []);
    }

    #[test]
    fn a_group_leaves_its_limit_less_what_is_in_use() {
        let folder = std::env::temp_dir().join(format!("nx_vulkan-group-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let group = Group {
            folder: folder.clone(),
            limit: "memory.max",
            used: "memory.current",
        };
        let write = |name: &str, text: &str| fs::write(folder.join(name), text).unwrap();
        assert_eq!(group.left(), None);
        write("memory.max", "max\n");
        write("memory.current", "300\n");
        assert_eq!(group.left(), None);
        write("memory.max", "1000\n");
        assert_eq!(group.left(), Some(700));
        write("memory.stat", "inactive_file 100\n");
        assert_eq!(group.left(), Some(800));
        write("memory.current", "2000\n");
        assert_eq!(group.left(), Some(0));
        fs::remove_dir_all(&folder).unwrap();
    }

    #[test]
    fn this_machine_has_memory() {
        assert!(available().is_some_and(|bytes| bytes > 1 << 20));
        assert_eq!(told().is_some(), cfg!(target_os = "linux"));
    }
}
