//! Routes: who runs a request, found once and kept by everything that the answer depends on.

use super::{MAX_CHOICES, MAX_DISPATCHES, MAX_ROUTES, Runtime, key::with_key};
use crate::{
    Request, Result, Tensor,
    live::{Event, EventKind},
    memory::Patience,
    route::{self, Route},
    tensor::byte_len,
};
use nx_vulkan_registry::{LoadedPack, Table};
use parking_lot::RwLockReadGuard;
use rustc_hash::FxHashMap;
use std::{
    hash::{Hash, Hasher},
    sync::Arc,
};

/// What is in force: a table, and the routes that were found by it.
#[derive(Debug)]
pub(super) struct Current {
    pub(super) table: Arc<Table>,
    pub(super) routes: FxHashMap<Box<[u8]>, Arc<Route>>,
    /// Dispatches of all of them.
    dispatches: usize,
    /// How often they were forgotten.
    epoch: u64,
    /// The packs that run several elementwise ops as one.
    fusing: Vec<String>,
}

impl Current {
    pub(super) fn new(table: Arc<Table>) -> Current {
        let fuses = |pack: &&LoadedPack| pack.kernels.iter().any(|kernel| kernel.op == "fused");
        let fusing = table.packs.iter().filter(fuses);
        Current {
            fusing: fusing.map(|pack| pack.id.clone()).collect(),
            table,
            routes: FxHashMap::default(),
            dispatches: 0,
            epoch: 0,
        }
    }

    /// What is recorded with other routes is of another one: of the table, and of its routes.
    pub(super) fn generation(&self) -> (u64, u64) {
        (self.table.generation, self.epoch)
    }

    /// Whether that is a kernel of such a pack.
    pub(super) fn runs_fused(&self, served_by: &str) -> bool {
        let pack = served_by.split('/').next();
        self.fusing.iter().any(|fuses| Some(&**fuses) == pack)
    }
}

impl Runtime {
    pub(super) fn cached(&self, key: &[u8]) -> Option<Arc<Route>> {
        self.renew_routes();
        self.current().routes.get(key).cloned()
    }

    /// Has all routes found anew once a kernel that was passed over is asked again.
    pub(super) fn renew_routes(&self) {
        if self.expiry.is_over() {
            self.forget_routes(&mut self.current.write());
        }
    }

    pub(super) fn current(&self) -> RwLockReadGuard<'_, Current> {
        self.current.read()
    }

    pub(crate) fn planner<'a>(&'a self, table: &'a Table) -> route::Planner<'a> {
        route::Planner {
            table,
            device: &self.device,
            shaders: &self.shaders,
            pipelines: Some(&self.pipelines),
            measured: &self.measured,
            failures: &self.failures,
            without: &[],
        }
    }

    pub(super) fn find_route(&self, request: &Request<'_, &Tensor>) -> Result<Arc<Route>> {
        // A result the device cannot hold is refused before anybody plans or computes it.
        request.outputs.iter().try_for_each(|(dtype, shape)| {
            self.alloc(byte_len(*dtype, shape)?, None, Patience::Waits)
                .map(drop)
        })?;
        self.sweep_pipelines();
        let table = self.table();
        self.measure(request, &table)?;
        let (route, until) = self
            .planner(&table)
            .find(request, &|bytes| self.write_new(bytes, Patience::Waits))?;
        let route = Arc::new(route);
        with_key(request, |key| {
            self.note_choice(key, &route, &table, request);
            let mut current = self.current.write();
            if current.table.generation != table.generation {
                // The table was replaced meanwhile. This call ends on the old one, the next finds its route anew.
                return Ok(route.clone());
            }
            let dispatches = route.dispatches();
            if current.routes.len() >= MAX_ROUTES
                || current.dispatches + dispatches > MAX_DISPATCHES
                || self.pipelines.are_crowded()
            {
                self.forget_routes(&mut current);
            }
            if let Some(until) = until {
                self.expiry.note(until);
            }
            // Another thread may have found the same route meanwhile: one of them counts for both.
            let Current {
                routes,
                dispatches: all,
                ..
            } = &mut *current;
            let kept = routes.entry(key.into()).or_insert_with(|| {
                *all += dispatches;
                route.clone()
            });
            Ok(kept.clone())
        })
    }

    /// Has the routes found anew.
    pub(super) fn forget_routes(&self, current: &mut Current) {
        self.tally(current.routes.values());
        current.routes.clear();
        current.dispatches = 0;
        current.epoch += 1;
        self.expiry.clear();
        // What is recorded counts its runs with routes that nobody looks at any more.
        self.replays.forget(false);
        self.pipelines.note_let_go();
    }

    /// Keeps the counts of routes that are about to be forgotten.
    pub(super) fn tally<'a>(&self, routes: impl IntoIterator<Item = &'a Arc<Route>>) {
        let mut served = self.served.lock();
        for old in routes {
            let (op, by, count) = old.tally();
            *served.entry((op.to_owned(), by.to_owned())).or_default() += count;
        }
    }

    /// Tells listeners who serves a request, the first time and when that changes.
    pub(super) fn note_choice(
        &self,
        key: &[u8],
        route: &Route,
        table: &Table,
        request: &Request<'_, &Tensor>,
    ) {
        let mut hasher = rustc_hash::FxHasher::default();
        key.hash(&mut hasher);
        let by = route.served_by().clone();
        let before = {
            let mut choices = self.choices.lock();
            if choices.len() >= MAX_CHOICES {
                choices.clear();
            }
            choices.insert(hasher.finish(), by.clone())
        };
        if before.as_ref() == Some(&by) || !self.live.has_listeners() {
            return;
        }
        let message = match before {
            None => format!("{request} is served by {by}"),
            Some(before) => format!("{request} is served by {by}, and was by {before}"),
        };
        self.live.emit(&Event {
            op: Some(request.op.to_string()),
            pack: Some(by.to_string()),
            ..Event::new(EventKind::Chosen, table.generation, message)
        });
    }
}
