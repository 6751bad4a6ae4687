//! Requests run by one kernel that the caller names, whatever the registry says: what measuring and testing need.

use super::{Ran, Runtime, describe, key::with_key};
use crate::{
    Error, Kind, Request, Result, Spec,
    memory::Patience,
    pipeline::{Pipelines, statistics::Compiled},
    route::{Planner, Route},
    tensor::{Tensor, operands},
};
use nx_vulkan_abi::DType;
use nx_vulkan_ops::kernels;
use nx_vulkan_registry::{Table, cache::Cache, request::Operand};
use std::sync::atomic::{AtomicU32, AtomicU64};

/// Name of the CPU kernels among the kernels of an op.
pub(super) const HOST: &str = "host";

/// A kernel that competes for an op.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rival {
    /// `pack/kernel`, or `host`.
    pub name: String,
    /// sha256 of the pack's file; empty for the host.
    pub sha256: String,
}

/// A request planned by one kernel.
#[derive(Debug)]
pub struct Forced {
    route: Route,
    /// Layouts and types that the plan is made for.
    key: Vec<u8>,
    /// What is asked of the operands, whichever they are.
    request: Request<'static, ()>,
}

impl Runtime {
    /// Every kernel that takes these types on this device, packs by their ids, the host last. Rules are not looked at,
    /// and a kernel may still decline.
    pub fn rivals(&self, op: &str, inputs: &[DType], outputs: &[DType]) -> Vec<Rival> {
        let device = self.device_info().features;
        let table = self.table();
        let mut rivals = Vec::new();
        for pack in &table.packs {
            for kernel in pack.kernels.iter().filter(|kernel| kernel.op == op) {
                if kernel.takes(inputs, outputs, device).is_ok() {
                    rivals.push(Rival {
                        name: format!("{}/{}", pack.id, kernel.id),
                        sha256: pack.sha256.clone(),
                    });
                }
            }
        }
        if kernels::supports(op, inputs, outputs).is_ok() {
            rivals.push(Rival {
                name: HOST.to_owned(),
                sha256: String::new(),
            });
        }
        rivals
    }

    /// Plans a request with the kernel of that name, `pack/kernel` or `host`.
    ///
    /// # Errors
    /// Bad input that breaks the op's contract or names no loaded kernel; [`Kind::Unsupported`] when the kernel
    /// declines; [`Kind::Pack`] and [`Kind::Shader`] when its plan is invalid.
    pub fn plan_with(&self, kernel: &str, request: &Request<'_, &Tensor>) -> Result<Forced> {
        let route = if kernel == HOST {
            let (given, wanted) = request.types();
            kernels::supports(&request.op, &given, &wanted)
                .map_err(|why| Error::new(Kind::Unsupported, why))?;
            Route::Host {
                op: request.op.to_string(),
                served_by: HOST.into(),
                is_fallback: true,
                micros: AtomicU32::new(u32::MAX),
                count: AtomicU64::new(0),
            }
        } else {
            let table = self.table();
            let planner = self.planner(&table);
            let place = place(&table, kernel, &request.op)?;
            let asked = request.over(operands(request));
            planner.find_with(place, &asked, &|bytes| {
                self.write_new(bytes, Patience::Waits)
            })?
        };
        Ok(Forced {
            route,
            key: with_key(request, <[u8]>::to_vec),
            request: request.over(&[]).into_owned(),
        })
    }

    /// What the driver's compiler tells of each shader of the plan that the kernel of that name makes for a request with
    /// operands in row-major order. The shaders are compiled once more for that.
    ///
    /// # Errors
    /// As [`Runtime::plan_with`]; [`Kind::Unsupported`] for the host's kernels, and where the driver tells nothing.
    pub fn compiled_by(&self, kernel: &str, request: &Request<'_, Spec>) -> Result<Vec<Compiled>> {
        let unsupported = |why: &str| Err(Error::new(Kind::Unsupported, why));
        if kernel == HOST {
            return unsupported("the host's kernels have no shaders");
        }
        if !self.device.tells_of_pipelines() {
            return unsupported(
                "the driver tells nothing of its shaders: it has no VK_KHR_pipeline_executable_properties",
            );
        }
        let pipelines = Pipelines::new(&self.device, &Cache::open(None))?;
        let pipelines = pipelines.with_builder(&self.builder).telling();
        let table = self.table();
        let planner = Planner {
            pipelines: Some(&pipelines),
            ..self.planner(&table)
        };
        let place = place(&table, kernel, &request.op)?;
        let operands = request.inputs.iter();
        let operands = operands.map(|(dtype, shape)| Operand::contiguous(*dtype, shape));
        let asked = request.over(operands.collect::<Vec<_>>());
        planner.find_with(place, &asked, &|bytes| {
            self.write_new(bytes, Patience::Waits)
        })?;
        Ok(pipelines.told())
    }

    /// Runs a request as it was planned, on operands of the same layouts.
    ///
    /// # Errors
    /// As [`Runtime::run`]; bad input when the operands differ in type, shape or layout from those it was planned for.
    pub fn run_planned(&self, forced: &Forced, inputs: &[&Tensor]) -> Result<Ran> {
        let request = forced.request.over(inputs);
        if with_key(&request, |own| own != &forced.key[..]) {
            return Err(Error::bad_input(format!(
                "{} was planned for operands of other types, shapes or layouts",
                request.op
            )));
        }
        self.execute(&forced.route, &request, Patience::Waits)
            .map_err(|e| describe(e, &request))
    }
}

/// Numbers of the pack and the kernel that are called `pack/kernel`.
fn place(table: &Table, name: &str, op: &str) -> Result<(usize, usize)> {
    let found = table.packs.iter().enumerate().find_map(|(p, pack)| {
        let id = name.strip_prefix(&pack.id)?.strip_prefix('/')?;
        let mut kernels = pack.kernels.iter();
        let found = kernels.position(|kernel| kernel.id == id && kernel.op == op)?;
        Some((p, found))
    });
    found.ok_or_else(|| Error::bad_input(format!("no loaded pack has a kernel {name} for {op}")))
}
