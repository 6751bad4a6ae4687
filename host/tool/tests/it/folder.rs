//! A folder for one test.

use std::{
    env, fs,
    ops::Deref,
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
    sync::atomic::{AtomicU32, Ordering},
};

/// Created empty, removed when it is dropped.
pub(crate) struct Folder(PathBuf);

impl Folder {
    pub(crate) fn new() -> Folder {
        Folder::below(&base())
    }

    pub(crate) fn below(place: &Path) -> Folder {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let serial = SERIAL.fetch_add(1, Ordering::Relaxed);
        let path = place.join(format!("nxv-test-{}-{serial}", std::process::id()));
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    pub(crate) fn write(&self, name: &str, content: impl AsRef<[u8]>) -> PathBuf {
        let path = self.0.join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, content).unwrap();
        path
    }
}

impl Deref for Folder {
    type Target = Path;

    fn deref(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// A folder that nobody else can write to, nor to any above it: packs elsewhere are warned of, or refused.
fn base() -> PathBuf {
    let home = env::var_os("HOME").map(|home| PathBuf::from(home).join(".cache"));
    let target = PathBuf::from(env!("CARGO_TARGET_TMPDIR"));
    let mut places = [env::temp_dir(), target].into_iter().chain(home);
    let ours = |path: &Path| {
        let mode = |path: &Path| fs::metadata(path).map_or(0o777, |meta| meta.mode());
        path.ancestors().all(|path| mode(path) & 0o022 == 0)
    };
    let place = places.find(|place| fs::create_dir_all(place).is_ok() && ours(place));
    place.unwrap_or_else(env::temp_dir)
}
