//! `nxv pack watch`: what was reloaded, what the kernels cost now, and what they cost before.

use super::file::path;
use crate::{
    contest,
    global::Global,
    output::{Answer, Outcome, Problem, print, print_aside},
    spec::{self, Filter},
};
use nx_vulkan_conformance::sweep;
use nx_vulkan_host::{
    Config, DType, Runtime,
    live::{Event, EventKind},
};
use nx_vulkan_ops::Op;
use nx_vulkan_registry::{LoadedPack, private::Temporary};
use std::{
    collections::BTreeMap,
    fmt::Write,
    io::IsTerminal,
    path::{Path, PathBuf},
    sync::mpsc::{RecvTimeoutError, channel},
    time::{Duration, Instant},
};

/// Elements of an operand, as a power of two.
const POWER: u32 = 16;
const BATCHES: usize = 5;
/// Kernels that are measured; `--op` chooses others.
const MOST_ROWS: usize = 16;
/// Events that stay on the screen.
const SHOWN_EVENTS: usize = 6;
/// How long nothing must happen before the kernels are measured again.
const PAUSE: Duration = Duration::from_millis(150);

/// What a kernel costs now and cost before, in microseconds.
#[derive(Debug, Clone, Copy, Default)]
struct Cost {
    now: Option<f64>,
    before: Option<f64>,
}

/// Show what the kernels of a folder cost now and cost before, while they are edited.
///
/// Reloads the packs and shaders of the folder as they are saved, until it is interrupted.
#[derive(Debug, clap::Args)]
pub(crate) struct Watch {
    /// A folder with packs and their sources
    #[arg(value_parser = path())]
    folder: PathBuf,

    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long)]
    op: Option<Filter>,

    /// Watch for so long
    #[arg(long = "for", value_name = "SECONDS", value_parser = spec::seconds)]
    limit: Option<Duration>,
}

impl Watch {
    /// Watches a folder with packs and shaders.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        if !self.folder.is_dir() {
            let missing = format!("there is no folder {}", self.folder.display());
            return Err(Problem::Usage(missing));
        }
        if global.registry.is_some() {
            let own =
                "it serves the packs of the folder by a registry of its own; leave out --registry";
            return Err(Problem::Usage(own.to_owned()));
        }
        let temporary = Temporary::new()?;
        let mut document = toml_edit::DocumentMut::new();
        document.insert("schema", toml_edit::value(1));
        let path = self.folder.to_string_lossy();
        for (table, key) in [("search", "paths"), ("dev", "watch")] {
            document[table][key] = toml_edit::value(toml_edit::Array::from_iter([path.as_ref()]));
        }
        let registry = temporary.write("registry.toml", document.to_string().as_bytes())?;
        let config = Config {
            registry: Some(registry),
            registry_override: None,
            watch: true,
            ..global.config()
        };
        let limit = self.limit.map(|limit| Instant::now() + limit);
        // What is shown while JSON is made goes where that does not.
        let screen = match global.json {
            true => (print_aside as fn(&str), std::io::stderr().is_terminal()),
            false => (print as fn(&str), std::io::stdout().is_terminal()),
        };
        watch(&config, &self.folder, self.op.as_ref(), limit, screen)
    }
}

fn watch(
    config: &Config,
    folder: &Path,
    filter: Option<&Filter>,
    limit: Option<Instant>,
    (print, is_terminal): (fn(&str), bool),
) -> Answer {
    let runtime = Runtime::open(config)?;
    let (sender, events) = channel();
    runtime.listen(Box::new(move |event| {
        if event.kind != EventKind::Chosen {
            // The receiver lives as long as the loop below.
            drop(sender.send(event.clone()));
        }
    }));
    let mut costs: BTreeMap<String, Cost> = BTreeMap::new();
    let mut seen: Vec<Event> = Vec::new();
    let mut measured = None;
    let mut changed = true;
    loop {
        if changed {
            // Where nothing new serves, another time would differ by noise alone.
            let generation = Some(runtime.table().generation);
            if measured != generation {
                measure(&runtime, folder, filter, &mut costs)?;
                measured = generation;
            }
            let clear = if is_terminal { CLEAR } else { "" };
            print(&format!(
                "{clear}{}",
                shown(&runtime, folder, &costs, &seen)
            ));
            changed = false;
        }
        let left = limit.map_or(Duration::from_secs(3600), |limit| {
            limit.saturating_duration_since(Instant::now())
        });
        match events.recv_timeout(left) {
            Ok(event) => {
                seen.push(event);
                while let Ok(event) = events.recv_timeout(PAUSE) {
                    seen.push(event);
                }
                changed = true;
            }
            Err(RecvTimeoutError::Timeout) if limit.is_none_or(|at| Instant::now() < at) => {}
            Err(_) => break,
        }
    }
    let rows: Vec<_> = costs
        .iter()
        .map(|(name, cost)| {
            serde_json::json!({ "kernel": name, "now_us": cost.now, "before_us": cost.before })
        })
        .collect();
    let json = serde_json::json!({ "kernels": rows, "events": seen });
    Ok(Outcome::good(String::new(), json))
}

/// Whether the pack lies in the folder, or has sources that do.
fn is_here(pack: &LoadedPack, folder: &Path) -> bool {
    pack.path.starts_with(folder) || pack.edited.iter().any(|edit| edit.path.starts_with(folder))
}

fn measure(
    runtime: &Runtime,
    folder: &Path,
    filter: Option<&Filter>,
    costs: &mut BTreeMap<String, Cost>,
) -> Result<(), Problem> {
    let table = runtime.table();
    let here: Vec<&LoadedPack> = table
        .packs
        .iter()
        .filter(|pack| is_here(pack, folder))
        .collect();
    let has = |op: &Op| {
        let mut kernels = here.iter().flat_map(|pack| &pack.kernels);
        kernels.any(|kernel| kernel.op == op.name)
    };
    let mut fresh = BTreeMap::new();
    for op in spec::ops(filter).into_iter().filter(|op| has(op)) {
        let types: Vec<DType> = sweep::canonical(op)?.into_iter().map(|row| row.0).collect();
        let preferred = types.iter().find(|dtype| **dtype == DType::F32);
        let Some(&dtype) = preferred.or(types.first()) else {
            continue;
        };
        let request = contest::request(op, dtype, POWER)?;
        for entry in contest::run(runtime, &request, BATCHES, None, &|_| true)? {
            let own = here
                .iter()
                .any(|pack| entry.rival.name.starts_with(&format!("{}/", pack.id)));
            if own && fresh.len() < MOST_ROWS {
                fresh.insert(format!("{} {dtype}", entry.rival.name), entry.us());
            }
        }
    }
    let old = std::mem::take(costs);
    for (name, now) in fresh {
        let before = old.get(&name).and_then(|cost| cost.now);
        costs.insert(name, Cost { now, before });
    }
    Ok(())
}

/// Home, then clear to the end of the screen.
const CLEAR: &str = "\x1b[H\x1b[J";

fn shown(
    runtime: &Runtime,
    folder: &Path,
    costs: &BTreeMap<String, Cost>,
    seen: &[Event],
) -> String {
    let mut text = String::new();
    let _ = writeln!(
        text,
        "{} on {}, table {}",
        folder.display(),
        runtime.device().summary().name,
        runtime.table().generation
    );
    let width = costs.keys().map(String::len).max().unwrap_or(6);
    let _ = writeln!(
        text,
        "  {:width$}  {:>12}  {:>12}",
        "kernel", "now", "before"
    );
    let time = |us: Option<f64>| us.map_or_else(|| "-".to_owned(), |us| format!("{us:.2} us"));
    for (name, cost) in costs {
        let ratio = match (cost.now, cost.before) {
            (Some(now), Some(before)) if now > 0.0 => format!("  {:.2}x as fast", before / now),
            _ => String::new(),
        };
        let (now, before) = (time(cost.now), time(cost.before));
        let _ = writeln!(text, "  {name:width$}  {now:>12}  {before:>12}{ratio}");
    }
    for event in seen.iter().rev().take(SHOWN_EVENTS).rev() {
        let _ = writeln!(text, "  {event} ({} ms)", event.took_us / 1000);
    }
    text
}
