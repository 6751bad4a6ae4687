//! Requests for which memory is short: the kernel that takes scratch buffers makes way for one that takes less.

use super::{Ran, Runtime};
use crate::{
    Error, Kind, Request, Result, Tensor,
    memory::Patience,
    route::{Planner, Route},
    tensor::byte_len,
};
use std::sync::Arc;

impl Runtime {
    /// Runs a request whose `route` failed with `error`, by the next kernel, where that was for want of scratch buffers alone.
    ///
    /// # Errors
    /// `error`, unless another kernel takes the request; then those of [`Runtime::run`].
    pub(super) fn run_in_less(
        &self,
        route: Arc<Route>,
        request: &Request<'_, &Tensor>,
        patience: Patience,
        error: Error,
    ) -> Result<Ran> {
        let mut left_out = Vec::new();
        let mut route = route;
        loop {
            let is_short = error.kind() == Kind::OutOfMemory && patience == Patience::Waits;
            if !is_short || !route.has_scratch() || !self.holds_results_of(request) {
                return Err(error);
            }
            left_out.push(route.served_by().clone());
            let table = self.table();
            let planner = Planner {
                without: &left_out,
                ..self.planner(&table)
            };
            // That another kernel runs it is not remembered: the next time there may be room.
            let write = |bytes: &[u8]| self.write_new(bytes, patience);
            // The host is not asked: its kernels may take a thousand times as long, which nobody who is short of memory expects.
            let Ok((next @ Route::Device { .. }, _)) = planner.find(request, &write) else {
                return Err(error);
            };
            route = Arc::new(next);
            let ran = self.execute(&route, request, patience);
            // Nobody finds the route again, so what it counted is added up now.
            self.tally([&route]);
            match ran {
                Err(again) if again.kind() == Kind::OutOfMemory => {}
                ran => return ran,
            }
        }
    }

    /// Whether there is room for the results at least.
    fn holds_results_of(&self, request: &Request<'_, &Tensor>) -> bool {
        let outputs = request.outputs.iter();
        let buffers = outputs.map(|(dtype, shape)| {
            let len = byte_len(*dtype, shape)?;
            self.alloc(len, None, Patience::Waits)
        });
        buffers.collect::<Result<Vec<_>>>().is_ok()
    }
}
