//! Measured times of kernels on one device, kept in the cache folder. `nxv tune` writes the file, as does
//! a runtime that measures (`runtime/measuring.rs`), and a runtime reads it when it is opened.

use crate::{Device, Error, Kind, Result};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::{find, kernels::SOURCES, op};
use nx_vulkan_registry::{cache::Cache, hex, private::Folder};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    sync::Arc,
};

/// The layout of the file. A file of another version counts as absent.
const VERSION: u32 = 1;
/// Largest distance, in powers of two summed over all dimensions, at which a measurement still speaks for a request.
const REACH: u32 = 4;
/// Larger files are not ours.
const MAX_BYTES: u64 = 64 << 20;

/// Element type and shape of an operand or a result.
pub type Shaped<'a> = (DType, &'a [u64]);

/// Times by op, types and size.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    file: Option<PathBuf>,
    folder: Option<Arc<Folder>>,
    /// Name of the file in the folder.
    name: String,
    device: String,
    /// By op and types, then by size, then by kernel.
    times: BTreeMap<String, BTreeMap<Bucket, BTreeMap<String, Time>>>,
}

/// A size: powers of two, of the element counts or of the extents of a product.
type Bucket = Vec<u32>;

#[derive(Debug, Clone, Serialize, Deserialize)]
struct Time {
    /// Of the pack's file; empty for the host.
    sha256: String,
    /// Nothing where the kernel declines.
    us: Option<f64>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    version: u32,
    device: String,
    times: Vec<Row>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Row {
    request: String,
    bucket: Bucket,
    kernel: String,
    sha256: String,
    us: Option<f64>,
}

impl Measured {
    /// The times for a device, from the cache folder. A file that is missing, damaged, of another version of this library or
    /// of other sources of its own kernels, which may be faster, or of another device counts as empty.
    pub(crate) fn open(cache: &Cache, device: &Device) -> Measured {
        let summary = device.summary();
        let (version, driver) = (env!("CARGO_PKG_VERSION"), device.info().driver);
        let name = format!("{} {} {driver} {version}", summary.uuid, summary.driver);
        let hash = hex(&Sha256::digest(&name)[..6]);
        let file = format!("measured-{}-{hash}.json", summary.uuid);
        Measured::read(cache.folder().ok(), file, format!("{name} {SOURCES}"))
    }

    fn read(folder: Option<Arc<Folder>>, name: String, device: String) -> Measured {
        let bytes = folder
            .as_ref()
            .and_then(|folder| folder.read(&name, MAX_BYTES).ok()?);
        let rows = bytes.and_then(|bytes| rows(&bytes, &device));
        let mut measured = Measured {
            file: folder.as_ref().map(|folder| folder.path().join(&name)),
            folder,
            name,
            device,
            times: BTreeMap::new(),
        };
        for row in rows.unwrap_or_default() {
            let Row {
                request,
                bucket,
                kernel,
                sha256,
                us,
            } = row;
            measured.put(request, bucket, kernel, Time { sha256, us });
        }
        measured
    }

    /// The file, where there is a place for it.
    pub fn file(&self) -> Option<&Path> {
        self.file.as_deref()
    }

    /// Whether nothing was measured.
    pub fn is_empty(&self) -> bool {
        self.times.is_empty()
    }

    /// Keeps a time, or that the kernel declines. An earlier one of the same kernel for the same size makes way.
    pub fn record(
        &mut self,
        op: &str,
        inputs: &[Shaped<'_>],
        outputs: &[Shaped<'_>],
        (kernel, sha256): (&str, &str),
        us: Option<f64>,
    ) {
        let time = Time {
            sha256: sha256.to_owned(),
            us,
        };
        let (request, bucket) = (signature(op, inputs, outputs), bucket(op, inputs, outputs));
        self.put(request, bucket, kernel.to_owned(), time);
    }

    fn put(&mut self, request: String, bucket: Bucket, kernel: String, time: Time) {
        let sizes = self.times.entry(request).or_default();
        sizes.entry(bucket).or_default().insert(kernel, time);
    }

    /// Microseconds of `pack/kernel` for a request of about this size; `None` when it was not measured, or measured
    /// with another file of the pack than the one with this sha256.
    pub fn time(
        &self,
        op: &str,
        inputs: &[Shaped<'_>],
        outputs: &[Shaped<'_>],
        (kernel, sha256): (&str, &str),
    ) -> Option<f64> {
        let sizes = self.times.get(&signature(op, inputs, outputs))?;
        let wanted = bucket(op, inputs, outputs);
        // All candidates are compared at one size: the closest one that was measured, whoever was measured there.
        let near = sizes.iter().filter_map(|(size, times)| {
            let away = distance(size, &wanted)?;
            (away <= REACH).then_some((away, times))
        });
        let (_, times) = near.min_by_key(|(away, _)| *away)?;
        let time = times.get(kernel)?;
        time.us.filter(|_| time.sha256 == sha256)
    }

    /// Whether exactly this size was measured for the kernel as it is now.
    pub fn knows(
        &self,
        op: &str,
        inputs: &[Shaped<'_>],
        outputs: &[Shaped<'_>],
        (kernel, sha256): (&str, &str),
    ) -> bool {
        let sizes = self.times.get(&signature(op, inputs, outputs));
        let times = sizes.and_then(|sizes| sizes.get(&bucket(op, inputs, outputs)));
        let time = times.and_then(|times| times.get(kernel));
        time.is_some_and(|time| time.sha256 == sha256)
    }

    /// Whether exactly this size was measured for `kernel`, and there for no file that a pack no longer is: `now` has sha256.
    pub(crate) fn is_current<'a>(
        &self,
        op: &str,
        (inputs, outputs): (&[Shaped<'_>], &[Shaped<'_>]),
        kernel: &str,
        now: impl Fn(&str) -> Option<&'a str>,
    ) -> bool {
        let sizes = self.times.get(&signature(op, inputs, outputs));
        let times = sizes.and_then(|sizes| sizes.get(&bucket(op, inputs, outputs)));
        times.is_some_and(|times| {
            times.contains_key(kernel) && times.iter().all(|(name, time)| is_of(name, time, &now))
        })
    }

    /// Forgets times at exactly this size of files that packs no longer are.
    pub(crate) fn forget_others<'a>(
        &mut self,
        op: &str,
        (inputs, outputs): (&[Shaped<'_>], &[Shaped<'_>]),
        now: impl Fn(&str) -> Option<&'a str>,
    ) {
        let sizes = self.times.get_mut(&signature(op, inputs, outputs));
        if let Some(times) = sizes.and_then(|sizes| sizes.get_mut(&bucket(op, inputs, outputs))) {
            times.retain(|name, time| is_of(name, time, &now));
        }
    }

    /// Writes the file under a temporary name and renames it.
    ///
    /// # Errors
    /// [`Kind::Io`] when there is no place for it or it cannot be written.
    pub fn write(&self) -> Result<()> {
        let failed = |what: String| Error::new(Kind::Io, format!("measured times: {what}"));
        let folder = self.folder.as_ref();
        let folder = folder.ok_or_else(|| failed("there is no cache folder".to_owned()))?;
        let mut times = Vec::new();
        for (request, sizes) in &self.times {
            for (bucket, kernels) in sizes {
                times.extend(kernels.iter().map(|(kernel, time)| Row {
                    request: request.clone(),
                    bucket: bucket.clone(),
                    kernel: kernel.clone(),
                    sha256: time.sha256.clone(),
                    us: time.us,
                }));
            }
        }
        let content = File {
            version: VERSION,
            device: self.device.clone(),
            times,
        };
        let text = serde_json::to_vec(&content).map_err(|error| failed(error.to_string()))?;
        let written = folder.write(&self.name, &[&text], false);
        written.map_err(|error| {
            let file = folder.path().join(&self.name);
            failed(format!("{}: {error}", file.display()))
        })
    }
}

/// Whether a time is of what the kernel's pack is now; true of packs that are not there.
fn is_of<'a>(kernel: &str, time: &Time, now: &impl Fn(&str) -> Option<&'a str>) -> bool {
    let pack = kernel.split_once('/').and_then(|(pack, _)| now(pack));
    pack.is_none_or(|sha256| time.sha256 == sha256)
}

/// The rows in the bytes of a file, if it is one of ours for this device.
fn rows(bytes: &[u8], device: &str) -> Option<Vec<Row>> {
    let file: File = serde_json::from_slice(bytes).ok()?;
    let sound =
        |row: &Row| row.us.is_none_or(|us| us.is_finite() && us >= 0.0) && row.bucket.len() <= 3;
    (file.version == VERSION && file.device == device && file.times.iter().all(sound))
        .then_some(file.times)
}

/// `add f32,f32->f32`
fn signature(op: &str, inputs: &[Shaped<'_>], outputs: &[Shaped<'_>]) -> String {
    let names = |list: &[Shaped<'_>]| {
        let names: Vec<&str> = list.iter().map(|one| one.0.name()).collect();
        names.join(",")
    };
    format!("{op} {}->{}", names(inputs), names(outputs))
}

/// What the op's time depends on; for one that nobody knows the elements of the largest operand and of the result.
fn bucket(op: &str, inputs: &[Shaped<'_>], outputs: &[Shaped<'_>]) -> Bucket {
    let shapes = |list: &[Shaped<'_>]| list.iter().map(|one| one.1.to_vec()).collect::<Vec<_>>();
    let (inputs, outputs) = (shapes(inputs), shapes(outputs));
    let inputs: Vec<&[u64]> = inputs.iter().map(Vec::as_slice).collect();
    let output = outputs.first().map_or(&[][..], Vec::as_slice);
    let work = match find(op).filter(|op| op.arity() == inputs.len()) {
        Some(op) => op.work(&inputs, output),
        None => op::elements(&inputs, output),
    };
    work.into_iter().map(power).collect()
}

/// The power of two that is closest; 0 for nothing.
fn power(elements: f64) -> u32 {
    elements.max(1.0).log2().round() as u32
}

fn distance(a: &[u32], b: &[u32]) -> Option<u32> {
    let apart = |(x, y): (&u32, &u32)| x.abs_diff(*y);
    (a.len() == b.len()).then(|| a.iter().zip(b).map(apart).fold(0, u32::saturating_add))
}

/// A door for the fuzz target of the caches' readers.
pub(crate) mod fuzzing {
    use super::{VERSION, rows};

    /// The times in a file for the device `fuzz`, and what is written of them again; `None` for what counts as absent.
    pub fn measured(bytes: &[u8]) -> Option<(Vec<Option<f64>>, Vec<u8>)> {
        let times = rows(bytes, "fuzz")?;
        let us = times.iter().map(|row| row.us).collect();
        let file = super::File {
            version: VERSION,
            device: "fuzz".to_owned(),
            times,
        };
        Some((us, serde_json::to_vec(&file).ok()?))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nx_vulkan_registry::private::{Rule, open_folder};
    use std::sync::LazyLock;

    const F32: DType = DType::F32;

    fn fresh(name: &str) -> Measured {
        static FOLDER: LazyLock<Arc<Folder>> = LazyLock::new(|| {
            let path = std::env::temp_dir().join(format!("nxv-measured-{}", std::process::id()));
            let folder = open_folder(&path, Rule::Sticky, true).unwrap();
            Arc::new(folder.unwrap())
        });
        let name = format!("{name}.json");
        drop(FOLDER.remove(&name));
        Measured::read(Some(FOLDER.clone()), name, "device 1".to_owned())
    }

    fn with_one(name: &str) -> Measured {
        let mut measured = fresh(name);
        let x: [Shaped<'_>; 2] = [(F32, &[1 << 12]); 2];
        measured.record("add", &x, &x[..1], ("p/add", "aa"), Some(3.5));
        measured.write().unwrap();
        measured
    }

    fn time(measured: &Measured, elements: u64, sha256: &str) -> Option<f64> {
        let shape = [elements];
        let x: [Shaped<'_>; 2] = [(F32, &shape); 2];
        measured.time("add", &x, &x[..1], ("p/add", sha256))
    }

    fn again(measured: &Measured, device: &str) -> Measured {
        Measured::read(
            measured.folder.clone(),
            measured.name.clone(),
            device.to_owned(),
        )
    }

    #[test]
    fn a_time_is_read_back_for_its_file_its_device_and_sizes_close_by() {
        let written = with_one("back");
        let read = again(&written, "device 1");
        assert_eq!(time(&read, 1 << 12, "aa"), Some(3.5));
        assert_eq!(time(&read, 5000, "aa"), Some(3.5));
        assert_eq!(time(&read, 1 << 20, "aa"), None, "too far away");
        assert_eq!(time(&read, 1 << 12, "bb"), None, "another file of the pack");
        assert!(again(&written, "device 2").is_empty());
        std::fs::remove_file(written.file().unwrap()).unwrap();
    }

    #[test]
    fn a_damaged_file_counts_as_absent_wherever_it_is_cut() {
        let written = with_one("damaged");
        let path = written.file().unwrap().to_owned();
        let good = std::fs::read(&path).unwrap();
        for len in 0..good.len() {
            std::fs::write(&path, &good[..len]).unwrap();
            assert!(again(&written, "device 1").is_empty(), "{len} bytes");
        }
        let text = String::from_utf8(good).unwrap();
        for (from, to) in [
            ("\"version\":1", "\"version\":2"),
            ("3.5", "-1"),
            ("3.5", "1e999"),
        ] {
            std::fs::write(&path, text.replace(from, to)).unwrap();
            assert!(again(&written, "device 1").is_empty(), "{to}");
        }
        std::fs::remove_file(path).unwrap();
    }

    #[test]
    fn products_are_told_apart_by_their_three_extents() {
        let product = |m: u64, k: u64, n: u64| {
            let (a, b, c) = ([m, k], [k, n], [m, n]);
            bucket("dot", &[(F32, &a), (F32, &b)], &[(F32, &c)])
        };
        assert_eq!(product(64, 256, 1024), [6, 10, 8]);
        assert_eq!(product(1, 1024, 1024), [0, 10, 10]);
        assert_eq!(bucket("sum", &[(F32, &[64, 64])], &[(F32, &[64])]), [12, 6]);
        assert_eq!(bucket("sum", &[(F32, &[0])], &[(F32, &[])]), [0, 0]);
        assert_eq!(bucket("iota", &[], &[(F32, &[1 << 10])]), [0, 10]);
    }

    #[test]
    fn candidates_are_compared_at_one_size_only() {
        let mut measured = with_one("one-size");
        let shape = [1u64 << 14];
        let x: [Shaped<'_>; 2] = [(F32, &shape); 2];
        measured.record("add", &x, &x[..1], ("q/add", "cc"), Some(9.0));
        assert_eq!(time(&measured, 1 << 14, "aa"), None);
        assert_eq!(time(&measured, 1 << 12, "aa"), Some(3.5));
        assert!(!measured.knows("add", &x, &x[..1], ("p/add", "aa")));
        assert!(measured.knows("add", &x, &x[..1], ("q/add", "cc")));
        std::fs::remove_file(measured.file().unwrap()).unwrap();
    }
}
