//! Compiled shaders on disk, a file each. Where there are very many, those that were written longest ago go: texts change with
//! every number in them.

use nx_vulkan_registry::private::Folder;
use sha2::{Digest, Sha256};
use std::{
    io,
    sync::atomic::{AtomicUsize, Ordering},
    time::SystemTime,
};

/// Largest file that is read.
const MAX_FILE: u64 = 64 << 20;
/// Files beyond which some are removed, and how many stay; some ten kilobytes each.
const MOST: usize = 16_384;
const STAY: usize = 12_288;
/// Files that a process writes from one look at their number to the next.
const BETWEEN: usize = 512;

/// The words that were written as `name`.
pub(super) fn read(folder: &Folder, name: &str) -> Option<Vec<u32>> {
    words(name, &folder.read(name, MAX_FILE).ok()??)
}

/// A module in a file: 32 bytes of sha256 of the file's name and the words, then these. Anything damaged, or written for another
/// name, reads as absent and is written anew.
pub(crate) fn words(name: &str, bytes: &[u8]) -> Option<Vec<u32>> {
    let (found, body) = bytes.split_at_checked(32)?;
    if sum(name, body) != found || body.len() % 4 != 0 {
        return None;
    }
    let chunks = body.as_chunks::<4>().0.iter();
    Some(chunks.map(|chunk| u32::from_le_bytes(*chunk)).collect())
}

/// Keeps the words as `name`.
///
/// # Errors
/// Where the file cannot be written.
pub(super) fn write(folder: &Folder, name: &str, words: &[u32]) -> io::Result<()> {
    static WRITTEN: AtomicUsize = AtomicUsize::new(0);
    let body: Vec<u8> = words.iter().flat_map(|w| w.to_le_bytes()).collect();
    folder.write(name, &[&sum(name, &body), &body], false)?;
    if WRITTEN
        .fetch_add(1, Ordering::Relaxed)
        .is_multiple_of(BETWEEN)
    {
        thin_out(folder, MOST, STAY);
    }
    Ok(())
}

/// Removes all but the `stay` newest files where there are more than `most`.
fn thin_out(folder: &Folder, most: usize, stay: usize) {
    let names = folder.names().into_iter();
    let names: Vec<String> = names.filter(|name| name.ends_with(".spv")).collect();
    if names.len() <= most {
        return;
    }
    // What cannot be looked at goes first.
    let written = |name: &String| {
        let file = folder.open(name).and_then(|file| file.metadata());
        file.and_then(|file| file.modified())
            .unwrap_or(SystemTime::UNIX_EPOCH)
    };
    let mut files: Vec<(SystemTime, String)> = names
        .into_iter()
        .map(|name| (written(&name), name))
        .collect();
    files.sort();
    for (_, name) in &files[..files.len() - stay] {
        // Another process may have done so.
        drop(folder.remove(name));
    }
}

fn sum(name: &str, body: &[u8]) -> [u8; 32] {
    let hash = Sha256::new().chain_update(name).chain_update([0]);
    hash.chain_update(body).finalize().into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_registry::private::{Rule, open_folder};
    use std::{fs::File, time::Duration};

    #[test]
    fn the_newest_stay() {
        let path = std::env::temp_dir().join(format!("nx_vulkan-thin-{}", std::process::id()));
        let folder = open_folder(&path, Rule::Sticky, true).unwrap().unwrap();
        for age in 0..5 {
            let name = format!("{age}.spv");
            write(&folder, &name, &[age]).unwrap();
            let at = SystemTime::now() - Duration::from_secs(3_600 * u64::from(age));
            let file = File::options().write(true).open(path.join(name)).unwrap();
            file.set_modified(at).unwrap();
        }
        std::fs::write(path.join("other"), "").unwrap();
        thin_out(&folder, 5, 2);
        assert_eq!(folder.names().len(), 6);
        thin_out(&folder, 4, 2);
        let mut names = folder.names();
        names.sort();
        assert_eq!(names, ["0.spv", "1.spv", "other"]);
        assert_eq!(read(&folder, "1.spv"), Some(vec![1]));
        std::fs::remove_dir_all(path).unwrap();
    }
}
