//! From passes to dispatches: shader variants, push constants, the list of axes, buffer arguments and scratch.

use crate::{
    pass::{Pass, Pattern, Tuning},
    problem::Axis,
    variant::{PUSH_BYTES, Typed},
    window::{Bytes, Window, windows},
};
use nx_vulkan_abi::{
    Access, BufArg, Dispatch, InputAs, Plan, Refusal, Request, ShaderVariant, SpecConst,
};
use nx_vulkan_pack_kit::{
    grid,
    steps::{self, bytes_of},
};
use std::ops::Range;

/// Scratch buffers that hold the states of a pass: values, then second fields where states have them.
#[derive(Debug)]
pub(crate) struct States {
    buffers: Range<u32>,
}

impl States {
    fn args(&self, access: Access) -> impl Iterator<Item = BufArg> {
        self.buffers
            .clone()
            .map(move |buffer| BufArg::scratch(buffer, access))
    }
}

/// A plan in the making.
#[derive(Debug)]
pub(crate) struct Emitter<'a> {
    request: &'a Request<'a>,
    typed: &'a Typed<'a>,
    tuning: Tuning,
    plan: Plan,
    axes: Vec<u32>,
}

impl<'a> Emitter<'a> {
    pub(crate) fn new(request: &'a Request<'a>, typed: &'a Typed<'a>, tuning: Tuning) -> Self {
        Emitter {
            request,
            typed,
            tuning,
            plan: Plan::default(),
            axes: Vec::new(),
        }
    }

    /// Adds dispatches that store the result of no elements `results` times.
    pub(crate) fn empty(&mut self, results: u64) {
        let size = self.typed.result.size();
        let shader = self.shader(self.typed.empty(self.request, &self.tuning));
        let chunk = self.request.device.max_buffer_range / 256 * 256 / size;
        for first in (0..results).step_by(chunk.max(1) as usize) {
            let count = chunk.min(results - first);
            let groups = count.div_ceil(self.tuning.workgroup);
            self.plan.steps.push(Dispatch {
                shader,
                groups: grid::along_x(groups, self.request.device),
                args: [BufArg::output(0).range(first * size, count * size)]
                    .into_iter()
                    .collect(),
                push: bytes_of(&[count as u32]),
                ..Dispatch::default()
            });
        }
    }

    /// Adds the pass over the operand. Gives the states that are left to merge, if any.
    pub(crate) fn first(&mut self, pass: &mut Pass) -> Result<Option<States>, Refusal> {
        let operand = &self.request.inputs[0];
        let bytes = Bytes {
            operand: self.typed.operand.size(),
            operand_total: operand.storage_len,
            result: self.typed.result.size(),
            limit: self.request.device.max_buffer_range,
        };
        let windows = windows(pass, bytes).ok_or_else(|| {
            if operand.is_contiguous() {
                self.too_large()
            } else {
                Refusal::InputsAs(vec![InputAs::new(0, operand.dtype)])
            }
        })?;
        let states = self.states(pass)?;
        let variant = self.variant(pass, false);
        let shader = self.shader(variant);
        let axes = self.spaces(pass);
        for window in windows {
            let at = pass.offset - (window.operand.start / bytes.operand) as i64;
            let len = window.operand.end - window.operand.start;
            let from = BufArg::input(0).range(window.operand.start, len);
            let (to, result_at) = match &states {
                Some(states) => (states.args(Access::WRITE).collect(), 0),
                None => {
                    let len = window.result.end - window.result.start;
                    let to = BufArg::output(0).range(window.result.start, len);
                    (vec![to], -((window.result.start / bytes.result) as i64))
                }
            };
            self.dispatch(
                shader,
                pass,
                &window,
                [at, result_at],
                axes,
                [vec![from], to].concat(),
            );
        }
        Ok(states)
    }

    /// Adds the pass over the states `from`. Gives the states that are left to merge, if any.
    pub(crate) fn next(&mut self, pass: &Pass, from: States) -> Result<Option<States>, Refusal> {
        let states = self.states(pass)?;
        let variant = self.variant(pass, true);
        let shader = self.shader(variant);
        let axes = self.spaces(pass);
        let mut args: Vec<BufArg> = from.args(Access::READ).collect();
        match &states {
            Some(states) => args.extend(states.args(Access::WRITE)),
            None if pass.results * self.typed.result.size()
                > self.request.device.max_buffer_range =>
            {
                return Err(self.too_large());
            }
            None => args.push(BufArg::output(0)),
        }
        let window = Window {
            outer: 0..crate::problem::elements(&pass.outer),
            parts: 0..pass.parts(),
            operand: 0..0,
            result: 0..0,
        };
        self.dispatch(shader, pass, &window, [pass.offset, 0], axes, args);
        Ok(states)
    }

    /// The plan.
    pub(crate) fn finish(mut self) -> Plan {
        let uses_axes = self.plan.steps.iter().any(|step| step.args.len() > 1);
        if uses_axes && self.axes.is_empty() {
            // A buffer argument has at least one byte.
            self.axes.resize(4, 0);
        }
        self.plan.params = bytes_of(&self.axes);
        self.plan
    }

    fn dispatch(
        &mut self,
        shader: u32,
        pass: &Pass,
        window: &Window,
        at: [i64; 2],
        spaces: [[u32; 5]; 2],
        buffers: Vec<BufArg>,
    ) {
        let outer = window.outer.end - window.outer.start;
        let groups = pass.groups(outer, self.tuning.workgroup);
        let [groups, ..] = grid::along_x(groups, self.request.device);
        let mut push = vec![
            at[0] as u32,
            at[1] as u32,
            window.outer.start as u32,
            window.outer.end as u32,
            pass.extent() as u32,
            pass.part_extent as u32,
            window.parts.start as u32,
            pass.part_stride as u32,
            pass.column.extent as u32,
            pass.column.operand as u32,
            pass.column.result as u32,
        ];
        push.extend(spaces.as_flattened());
        debug_assert_eq!(push.len() * 4, PUSH_BYTES as usize);
        self.plan.steps.push(Dispatch {
            shader,
            groups: [groups, (window.parts.end - window.parts.start) as u32, 1],
            // Rows have one reduced axis.
            spec: [(0, pass.lanes), (1, pass.reduced.len() as u64 - 1)]
                .into_iter()
                .filter(|(id, _)| *id == 0 || pass.pattern == Pattern::Columns)
                .map(|(id, value)| SpecConst {
                    id,
                    value: value as u32,
                })
                .collect(),
            args: std::iter::once(BufArg::params()).chain(buffers).collect(),
            push: bytes_of(&push),
            ..Dispatch::default()
        });
    }

    /// The outer and the reduced space of `pass`: where the list has their inner axes, how many those are, and the
    /// strides of the outermost.
    fn spaces(&mut self, pass: &Pass) -> [[u32; 5]; 2] {
        [&pass.outer, &pass.reduced].map(|axes| {
            let outermost = axes.first().copied().unwrap_or(Axis::ONE);
            let inner = axes.get(1..).unwrap_or(&[]);
            let at = self.axes.len() / 4;
            for axis in inner {
                let strides = [axis.operand, axis.result, axis.index].map(|stride| stride as u32);
                self.axes.push(axis.extent as u32);
                self.axes.extend(strides);
            }
            let strides = [outermost.operand, outermost.result, outermost.index].map(|s| s as u32);
            [
                at as u32,
                inner.len() as u32,
                strides[0],
                strides[1],
                strides[2],
            ]
        })
    }

    /// Scratch for the states that `pass` gives, if it gives states.
    fn states(&mut self, pass: &Pass) -> Result<Option<States>, Refusal> {
        if !pass.is_partial() {
            return Ok(None);
        }
        let first = self.plan.scratch.len() as u32;
        for bytes in self.typed.state_bytes() {
            if pass.states() * bytes > self.request.device.max_buffer_range {
                return Err(self.too_large());
            }
            self.plan.scratch.push(pass.states() * bytes);
        }
        Ok(Some(States {
            buffers: first..self.plan.scratch.len() as u32,
        }))
    }

    fn variant(&self, pass: &Pass, merges: bool) -> ShaderVariant {
        self.typed.pass(self.request, &self.tuning, pass, merges)
    }

    fn shader(&mut self, variant: ShaderVariant) -> u32 {
        steps::shader(&mut self.plan, variant)
    }

    fn too_large(&self) -> Refusal {
        Refusal::decline(format!(
            "{} of {:?} {} does not fit this device's buffer range of {} bytes in parts",
            self.typed.row.op.op,
            self.request.inputs[0].shape,
            self.typed.operand,
            self.request.device.max_buffer_range
        ))
    }
}
