//! One pass as a step of a plan.

use crate::{
    code,
    line::Line,
    pass::{Of, Pass, Passes, Place, Series},
    roots::Powers,
    split,
};
use nx_vulkan_abi::{BufArg, DType, Refusal, SpecConst, glsl};
use nx_vulkan_pack_kit::{
    grid,
    steps::{Step, bytes_of, number},
};

/// The longest row that one workgroup transforms: two passes take no longer from there on.
const LONGEST_ALONE: u32 = 4096;
/// The longest pass over columns side by side: several have to fit a workgroup.
const LONGEST_BESIDE: u32 = 2048;
/// Elements of a workgroup, where there are so many.
const WORKGROUP: u64 = 4096;

/// How the numbers of a pass are shared out.
struct Shape {
    stages: Vec<u32>,
    staging: code::Staging,
    /// Numbers in shared memory, and whether their parts go through it one after the other.
    staged: u32,
    in_parts: bool,
    roots_staged: bool,
    threads: u32,
}

impl Passes<'_> {
    /// Extents of the passes of a series.
    pub(crate) fn extents(&self, series: &Series) -> Result<Vec<u32>, Refusal> {
        // Parts of numbers, as they may go through shared memory one after the other.
        let parts = self.device.shared_bytes / self.part.size() as u32 * 8 / 9;
        let most = parts.min(self.in_registers());
        let beside = (most / 4).clamp(8, LONGEST_BESIDE);
        let alone = match series.line.inner {
            1 => most.min(LONGEST_ALONE),
            _ => beside,
        };
        let alone = split::passes(series.length, alone)
            .filter(|passes| passes.len() == 1 && self.roots.fit(passes[0].into()));
        let passes = alone.or_else(|| split::passes(series.length, beside));
        passes.ok_or_else(|| Refusal::decline("its length has no small factors"))
    }

    pub(crate) fn pass(
        &mut self,
        pass: &Pass<'_>,
        from: Option<Place>,
        to: Place,
    ) -> Result<(), Refusal> {
        let Pass { series, extent, .. } = *pass;
        let Line { outer, inner, .. } = series.line;
        let span = series.length / u64::from(extent) * inner;
        let count = outer * span;
        let shape = self.shape(pass, count);
        let chirps = (pass.begins || pass.ends).then_some(series.chirp).flatten();
        let result = pass.ends && !matches!(series.of, Of::Filter);
        let inverse = series.line.inverse && series.from.is_some();
        let mut defines = code::types(
            self.part,
            from.map(|from| from.dtype),
            to.dtype.filter(|_| result),
        );
        for (name, is) in [
            ("SPLIT", shape.in_parts),
            ("ROOTS_STAGED", shape.roots_staged),
            ("ROOTS_HALVED", self.roots.are_halved(extent.into())),
            ("LOADS_ROWS", shape.staging.loads_rows),
            ("STORES_ROWS", shape.staging.stores_rows),
            (
                "MIRRORED",
                pass.begins && from.is_some() && series.line.mirrored,
            ),
            ("SWAPPED", pass.begins && inverse),
            ("SWAPPED_BACK", pass.ends && inverse),
            ("CHIRPED", chirps.is_some()),
            (
                "CHIRP_FIRST",
                chirps.is_some() && pass.begins && from.is_some(),
            ),
            ("CHIRP_LAST", chirps.is_some() && result),
            ("FILTERED", pass.convolves),
            ("LAST", result),
        ] {
            defines.push(number(name, u32::from(is)));
        }
        for (name, value) in [
            ("THREADS", shape.threads),
            ("COLUMNS", shape.staging.columns),
            ("EXTENT", extent),
            ("STAGED", shape.staged),
        ] {
            defines.push(number(name, value));
        }
        let transforms = code::transforms(&shape.stages, self.part);
        defines.push(glsl::define("TRANSFORMS", transforms));
        let text = shape.staging.text(&shape.stages, pass.convolves);
        defines.push(glsl::define("STAGES", text));
        let twiddles = match pass.loaded {
            1 => Powers::default(),
            loaded => self.roots.powers(loaded * u64::from(extent)),
        };
        let roots = self.roots.all(extent.into());
        let done = [pass.loaded as u32, pass.stored as u32];
        let mut constants = vec![span as u32, inner as u32, done[0], done[1], roots];
        constants.extend([twiddles.first, twiddles.bits, twiddles.tables]);
        let mut args = vec![BufArg::params(), to.arg];
        args.extend(from.map(|from| from.arg));
        if let (true, Of::Convolution(filter, first)) = (pass.convolves, series.of) {
            args.push(filter);
            constants.push(first);
        } else {
            constants.push(0);
        }
        if let Some(chirp) = chirps {
            constants.extend([chirp.first, chirp.bits, chirp.tables]);
            let whole = 2 * series.line.length;
            let bits = whole.ilog2() + 1;
            constants.extend([bits, ((1 << (2 * bits)) / whole) as u32]);
        }
        let step = Step {
            subgroup_size: 0,
            file: "pass.comp",
            defines,
            constants: (0..)
                .zip(constants)
                .map(|(id, value)| SpecConst { id, value })
                .collect(),
            args,
            push: bytes_of(&self.words(pass, from, count)),
            groups: grid::spread(
                count.div_ceil(u64::from(shape.staging.columns)),
                self.device,
            )?,
        };
        step.add_to(&mut self.plan);
        Ok(())
    }

    /// How so many columns go to workgroups.
    fn shape(&self, pass: &Pass<'_>, count: u64) -> Shape {
        let Pass { series, extent, .. } = *pass;
        let stages = split::stages(extent);
        let alone = series.line.inner == 1;
        let staging = |columns, in_parts| code::Staging {
            columns,
            loads_rows: alone && series.length == u64::from(extent),
            stores_rows: alone && pass.stored == 1,
            banks: (128 / self.part.size()) as u32 / if in_parts { 1 } else { 2 },
        };
        let staged =
            |columns, in_parts| staging(columns, in_parts).numbers(&stages, pass.convolves);
        let room = self.device.shared_bytes / self.part.size() as u32;
        let mut columns = self.columns(extent, count, staging(1, false).loads_rows);
        while columns > 1
            && (staged(columns, true) > room || columns * extent > self.in_registers())
        {
            columns /= 2;
        }
        let in_parts = staged(columns, false) * 2 > room;
        let staged = staged(columns, in_parts);
        // Whole subgroups, and no more: a workgroup waits for the idle ones too.
        let largest = stages.iter().copied().max().unwrap_or(1);
        let threads = (extent * columns).div_ceil(largest);
        let threads = threads.next_multiple_of(self.device.subgroup_size.max(32));
        Shape {
            staging: staging(columns, in_parts),
            staged,
            in_parts,
            // Columns share them; alone, a row reads few of them more than once.
            roots_staged: columns >= 8
                && !in_parts
                && stages.len() > 1
                && (staged + extent) * 2 <= room,
            threads: threads.min(grid::threads(self.device, u32::MAX)),
            stages,
        }
    }

    fn words(&self, pass: &Pass<'_>, from: Option<Place>, count: u64) -> Vec<u32> {
        let series = pass.series;
        let line = &series.line;
        let inverse = if line.inverse {
            line.length as f64
        } else {
            1.0
        };
        let convolution = if series.chirp.is_some() {
            series.length as f64
        } else {
            1.0
        };
        let scale = 1.0 / (inverse * convolution);
        let extent = if pass.begins {
            line.extent
        } else {
            series.length
        };
        let limit = match (pass.begins, line.mirrored) {
            (true, true) => line.extent.min(line.length / 2 + 1),
            (true, false) => line.extent.min(line.length),
            (false, _) => extent,
        };
        let kept = if pass.ends && !matches!(series.of, Of::Filter) {
            line.kept
        } else {
            series.length
        };
        let mut words = Vec::new();
        for value in [scale, line.eps] {
            match self.part == DType::F64 {
                true => words.extend([value.to_bits() as u32, (value.to_bits() >> 32) as u32]),
                false => words.push((value as f32).to_bits()),
            }
        }
        let offset = from.map_or(0, |from| from.offset);
        let rest = [count, extent, limit, kept, offset, line.length];
        words.extend(rest.map(|word| word as u32));
        words
    }

    /// Numbers of a workgroup that its invocations have registers for.
    fn in_registers(&self) -> u32 {
        grid::threads(self.device, u32::MAX) * 16
    }

    /// Columns of a workgroup: a power of two, and where they lie side by side a few even of long ones, as memory is read in
    /// larger pieces than one number.
    fn columns(&self, extent: u32, count: u64, rows: bool) -> u32 {
        let piece = 32 / (2 * self.part.size());
        let (most, least) = match rows {
            true => (WORKGROUP / 4, 1),
            false => (WORKGROUP, 2 * piece),
        };
        let most = (most / u64::from(extent)).clamp(least, 64);
        // Every unit has work.
        let enough = count / u64::from(2 * self.device.compute_units.max(1));
        1 << most.min(enough.max(piece)).min(count).max(1).ilog2()
    }
}
