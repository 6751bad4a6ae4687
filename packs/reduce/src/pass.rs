//! Passes: how a reduction is walked and shared out among workgroups, without buffers and bytes.

use crate::problem::{Axis, Problem, collapse, elements};
use nx_vulkan_abi::{DeviceInfo, DeviceKind};
use nx_vulkan_pack_kit::grid;

/// Adjacent elements that make 16-byte loads worthwhile, and a dispatch of their own over the other reduced axes.
const LONG_ROW: u64 = 64;
/// Elements of a vector load where fewer bytes than 16 have to do.
const NARROW: u64 = 4;
/// Loads that an invocation shall have to do, at least, before a result is split further.
const LOADS: u64 = 8;
/// Loads of an invocation up to which another pass costs more than it saves, for ops that give numbers and ones that give indices,
/// whose steps take longer: on an H200, driver 580.159.04, 16,384 f32 in one pass take 3.8 us and in two 6.7.
const ALONE: u64 = 32;
const ALONE_PICKING: u64 = 16;
/// Workgroups for each compute unit from which on invocations do not share columns of less than `LONG_ROW` elements, whose
/// states take longer to exchange than the elements to load; longer columns wait until the device is filled so many times.
const BUSY: u64 = 2;
/// Bytes side by side that columns should at least have, and elements of a column up to which that is enough: what is longer has
/// memory busy for longer than a second pass takes to start.
const SECTOR: u64 = 32;
const SHORT_COLUMN: u64 = 512;
/// Compute units of a device that does not say how many it has; few on a CPU.
const SOME_UNITS: u64 = 64;
const CPU_UNITS: u64 = 2;

/// What the shape of a pass depends on, beside the problem.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Tuning {
    /// Invocations of a workgroup, a power of two.
    pub(crate) workgroup: u64,
    /// Compute units of the device.
    pub(crate) units: u64,
    /// Workgroups that fill it.
    pub(crate) fill: u64,
    /// Elements of a vector load, at most.
    pub(crate) width: u64,
    /// Bytes of an element.
    pub(crate) size: u64,
    /// States that a pass may leave.
    pub(crate) max_states: u64,
    /// Loads of an invocation up to which nothing is split.
    pub(crate) alone: u64,
}

impl Tuning {
    /// For `device`, with vectors of up to `width` elements of `size` bytes, states whose fields take `state_bytes`, a buffer for each,
    /// and as many workgroups at once in each compute unit as there are registers for.
    pub(crate) fn new(
        device: &DeviceInfo<'_>,
        (width, size): (u64, u64),
        state_bytes: Vec<u64>,
        groups_per_unit: u64,
        picks: bool,
    ) -> Tuning {
        let largest = state_bytes.into_iter().max().unwrap_or(1);
        let units = match (device.compute_units, device.kind) {
            (0, DeviceKind::CPU) => CPU_UNITS,
            (0, _) => SOME_UNITS,
            (units, _) => u64::from(units),
        };
        Tuning {
            workgroup: grid::threads(device, 256).into(),
            units,
            fill: units * groups_per_unit,
            width,
            size,
            max_states: device.max_buffer_range / largest,
            alone: if picks { ALONE_PICKING } else { ALONE },
        }
    }

    /// Parts of so many elements that fill the device, where `groups` workgroups do not and each has enough to do.
    fn split(&self, groups: u64, extent: u64, stride: u64) -> u64 {
        (self.fill / groups).min(extent / (stride * LOADS))
    }
}

/// How the elements of a pass lie; each is a shader.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Pattern {
    /// The reduced axis is that of adjacent elements.
    Rows,
    /// The reduced axes run across the column axis.
    Columns,
}

/// One walk over elements, or over the partial results of the walk before.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Pass {
    pub(crate) pattern: Pattern,
    /// Elements of a vector load.
    pub(crate) width: u64,
    /// The shaders' first specialization constant: invocations of a row, or vectors side by side.
    pub(crate) lanes: u64,
    /// Position of the first element.
    pub(crate) offset: i64,
    /// Rows, or what there is beside columns; the axis of the largest stride comes first.
    pub(crate) outer: Vec<Axis>,
    pub(crate) column: Axis,
    pub(crate) reduced: Vec<Axis>,
    /// Reduced elements that one workgroup handles.
    pub(crate) part_extent: u64,
    /// Results from one part to the next: all results, each as often as `outer` has reduced axes left over.
    pub(crate) part_stride: u64,
    /// Results of the reduction.
    pub(crate) results: u64,
}

impl Pass {
    /// The first pass over the elements of `problem`.
    pub(crate) fn first(problem: &Problem, tuning: &Tuning) -> Pass {
        Pass::rows(problem, tuning).unwrap_or_else(|| Pass::columns(problem, tuning))
    }

    /// The pass over the states that this one leaves.
    pub(crate) fn next(&self, tuning: &Tuning) -> Pass {
        let results = self.results;
        let states = self.part_stride / results * self.parts();
        let reduced = Axis {
            extent: states,
            operand: results as i64,
            result: 0,
            index: 0,
        };
        let kept = Axis {
            extent: results,
            operand: 1,
            result: 1,
            index: 0,
        };
        let problem = Problem {
            offset: 0,
            kept: collapse(&[kept]),
            reduced: vec![reduced],
        };
        Pass::columns(
            &problem,
            // Of states, in buffers of 4 bytes each or more.
            &Tuning {
                width: 1,
                size: 4,
                ..*tuning
            },
        )
    }

    /// Parts that every result is split into.
    pub(crate) fn parts(&self) -> u64 {
        self.extent().div_ceil(self.part_extent)
    }

    /// Reduced elements of this pass, for one of its results.
    pub(crate) fn extent(&self) -> u64 {
        elements(&self.reduced)
    }

    /// Whether the results are states that another pass has to merge.
    pub(crate) fn is_partial(&self) -> bool {
        self.states() > self.results
    }

    /// Number of states that the pass gives.
    pub(crate) fn states(&self) -> u64 {
        self.part_stride * self.parts()
    }

    /// Whether it leaves units without a workgroup.
    pub(crate) fn is_small(&self, tuning: &Tuning) -> bool {
        let outer = elements(&self.outer);
        self.groups(outer, tuning.workgroup) * self.parts() < tuning.units
    }

    /// Workgroups along x for `outer` indices of the outer space.
    pub(crate) fn groups(&self, outer: u64, workgroup: u64) -> u64 {
        match self.pattern {
            Pattern::Rows => outer.div_ceil(workgroup / self.lanes),
            Pattern::Columns => {
                (outer * self.column.extent.div_ceil(self.width)).div_ceil(self.lanes)
            }
        }
    }

    /// Reduces one axis of adjacent elements; other reduced axes are left to the next pass. `None` where the layout
    /// has no such axis, or too much would be left.
    fn rows(problem: &Problem, tuning: &Tuning) -> Option<Pass> {
        let at = problem.reduced.iter().position(|axis| axis.operand == 1)?;
        let row = problem.reduced[at];
        let left = problem.extent() / row.extent;
        let results = problem.results();
        let states = left * results;
        if left > 1 && (row.extent < LONG_ROW || states > tuning.max_states) {
            return None;
        }
        let mut outer = problem.kept.clone();
        let mut step = results as i64;
        for (_, &axis) in problem
            .reduced
            .iter()
            .enumerate()
            .rev()
            .filter(|(k, _)| *k != at)
        {
            outer.push(Axis {
                result: step,
                ..axis
            });
            step *= axis.extent as i64;
        }
        let width = if row.extent < LONG_ROW {
            tuning.width.min(NARROW)
        } else {
            tuning.width
        };
        let mut pass = Pass {
            pattern: Pattern::Rows,
            width,
            lanes: 1,
            offset: problem.offset,
            outer: in_memory_order(outer),
            column: Axis::ONE,
            reduced: vec![row],
            part_extent: row.extent,
            part_stride: states,
            results,
        };
        let loads = row.extent.div_ceil(width);
        let enough = floor_power_of_two(loads / LOADS).min(tuning.workgroup);
        let filling = (tuning.fill * tuning.workgroup)
            .div_ceil(states)
            .next_power_of_two();
        pass.lanes = enough
            .max(filling.min(loads.next_power_of_two()))
            .min(tuning.workgroup);
        if pass.lanes == tuning.workgroup {
            pass.split(states, tuning.workgroup * width, tuning);
        }
        Some(pass)
    }

    /// Reduces every reduced axis at once, whatever the strides are.
    fn columns(problem: &Problem, tuning: &Tuning) -> Pass {
        let mut outer = problem.kept.clone();
        let distance = |axis: &Axis| axis.operand.unsigned_abs().wrapping_sub(1);
        let nearest = (0..outer.len()).min_by_key(|&k| distance(&outer[k]));
        let column = nearest.map_or(Axis::ONE, |k| outer.remove(k));
        let reduced = if problem.reduced.is_empty() {
            vec![Axis::ONE]
        } else {
            problem.reduced.clone()
        };
        let results = problem.results();
        let mut pass = Pass {
            pattern: Pattern::Columns,
            width: 1,
            lanes: 1,
            offset: problem.offset,
            outer: in_memory_order(outer),
            column,
            reduced,
            part_extent: problem.extent(),
            part_stride: results,
            results,
        };
        let steps = [column.extent as i64, pass.offset];
        let inner = pass
            .outer
            .iter()
            .chain(&pass.reduced)
            .map(|axis| axis.operand);
        let steps: Vec<i64> = inner.chain(steps).collect();
        let fits =
            |width: &u64| column.operand == 1 && steps.iter().all(|step| step % *width as i64 == 0);
        pass.width = [tuning.width, tuning.width.min(NARROW)]
            .into_iter()
            .find(fits)
            .unwrap_or(1);
        let extent = problem.extent();
        let across = pass.reduced.iter().map(distance).min() < Some(distance(&column));
        let slices = if across {
            extent
        } else {
            extent.div_ceil(LOADS)
        };
        let slices = slices.next_power_of_two().min(tuning.workgroup);
        let outer = elements(&pass.outer);
        let vectors = outer * column.extent.div_ceil(pass.width);
        let most = vectors.next_power_of_two().min(tuning.workgroup);
        let least = if across { 1 } else { most.min(32) };
        pass.lanes = (tuning.workgroup / slices).clamp(least, most);
        let is_short = extent < LONG_ROW;
        let enough = match is_short {
            true => tuning.units * BUSY,
            false => tuning.fill * BUSY,
        };
        let groups = |lanes: u64| vectors.div_ceil(lanes);
        while !across && pass.lanes < most && groups(pass.lanes * 2) >= enough {
            pass.lanes *= 2;
        }
        let splits = |lanes: u64| tuning.split(groups(lanes), extent, tuning.workgroup / lanes) > 1;
        if !across && !is_short && extent <= SHORT_COLUMN && splits(pass.lanes) {
            // Fewer columns side by side, where that saves a second pass.
            let narrowest = (SECTOR / (tuning.size * pass.width)).max(tuning.workgroup / slices);
            let narrower = std::iter::successors(Some(pass.lanes), |lanes| Some(lanes / 2));
            let mut fitting = narrower.take_while(|lanes| *lanes >= narrowest.max(1));
            if let Some(lanes) = fitting.find(|lanes| groups(*lanes) >= tuning.units * BUSY) {
                pass.lanes = lanes;
                return pass;
            }
        }
        let groups = groups(pass.lanes);
        if !is_short || groups < enough {
            pass.split(groups, tuning.workgroup / pass.lanes, tuning);
        }
        pass
    }

    /// Splits the reduced elements among workgroups, if the `groups` that there are do not fill the device. A load
    /// of every invocation of a workgroup takes `stride` elements.
    fn split(&mut self, groups: u64, stride: u64, tuning: &Tuning) {
        let extent = self.extent();
        let room = tuning.max_states / self.part_stride;
        let parts = tuning.split(groups, extent, stride).min(room).max(1);
        if parts > 1 && extent > stride * tuning.alone {
            self.part_extent = extent.div_ceil(parts).next_multiple_of(stride);
        }
    }
}

/// The axes with the largest stride first, so that neighbours in the space are neighbours in memory.
fn in_memory_order(mut axes: Vec<Axis>) -> Vec<Axis> {
    axes.sort_by_key(|axis| std::cmp::Reverse(axis.operand.unsigned_abs()));
    collapse(&axes)
}

fn floor_power_of_two(x: u64) -> u64 {
    1 << x.max(1).ilog2()
}
