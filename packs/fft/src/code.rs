//! What the shader of a pass is told of types and stages.

use crate::{roots::root, split};
use nx_vulkan_abi::{DType, Define, dtype::Glsl, glsl};

/// Types of the operand, of the result, and of what is computed with parts of type `part`. Without a type they are pairs of
/// such parts; without an operand there is nothing to load.
pub(crate) fn types(part: DType, from: Option<Option<DType>>, to: Option<DType>) -> Vec<Define> {
    let real = glsl::of(part).map_or("", |glsl| glsl.storage);
    let pair = glsl::vector(real, 2).unwrap_or("");
    let suffix = if part == DType::F64 { "LF" } else { "" };
    let mut defines = vec![
        glsl::define("REAL", real),
        glsl::define("PAIR", pair),
        glsl::define(
            "HALF_ROOT",
            format!("{:?}{suffix}", std::f64::consts::FRAC_1_SQRT_2),
        ),
    ];
    if let Some(from) = from {
        let (storage, load) = match from.map(|dtype| (dtype, pairs(dtype))) {
            None => (pair, "x".to_owned()),
            Some((_, Some(pairs))) => (pairs, format!("{pair}(x)")),
            Some((dtype, None)) => {
                let (storage, load) = real_of(dtype, &mut defines, |glsl| glsl.load);
                (
                    storage,
                    format!("{pair}(nxv_to_{}({load}(x)), 0)", part.name()),
                )
            }
        };
        defines.push(glsl::define("T_STORAGE", storage));
        defines.push(glsl::define("LOAD(x)", load));
    }
    let (storage, store) = match to.map(|dtype| (dtype, pairs(dtype))) {
        None => (pair, "x".to_owned()),
        Some((_, Some(pairs))) => (pairs, format!("{pairs}(x)")),
        Some((dtype, None)) => {
            let (storage, store) = real_of(dtype, &mut defines, |glsl| glsl.store);
            (storage, format!("{store}(nxv_to_{}(x.x))", dtype.name()))
        }
    };
    defines.push(glsl::define("R_STORAGE", storage));
    defines.push(glsl::define("STORE(x)", store));
    defines.extend(glsl::needs(part));
    defines
}

/// An element in memory and the function that `of` picks, for a type that shaders compute with.
fn real_of(
    dtype: DType,
    defines: &mut Vec<Define>,
    of: impl Fn(&Glsl) -> &'static str,
) -> (&'static str, &'static str) {
    defines.extend(glsl::needs(dtype));
    glsl::of(dtype).map_or(("float", ""), |glsl| (glsl.storage, of(glsl)))
}

/// Pairs of a complex type in memory.
fn pairs(dtype: DType) -> Option<&'static str> {
    let complex = glsl::of(dtype).filter(|_| dtype.is_complex());
    complex.map(|glsl| glsl.storage)
}

/// The transforms in registers that these stages call, each behind those that it calls.
pub(crate) fn transforms(stages: &[u32], part: DType) -> String {
    let mut radices = Vec::new();
    for &radix in stages {
        with_parts(radix, &mut radices);
    }
    let suffix = if part == DType::F64 { "LF" } else { "" };
    let each = radices.into_iter().map(|radix| {
        let pair = |k| {
            let [re, im] = root(k, u64::from(radix));
            format!("PAIR({re:?}{suffix}, {im:?}{suffix})")
        };
        let roots: Vec<_> = (0..u64::from(radix)).map(pair).collect();
        let roots = format!(
            "const PAIR roots_{radix}[{radix}] = PAIR[{radix}]({});",
            roots.join(", ")
        );
        match split::halves(radix) {
            None => format!("{roots} ODD({radix}, roots_{radix})"),
            Some((a, b)) => format!("{roots} COMPOSITE({radix}, {a}, {b}, roots_{radix})"),
        }
    });
    each.collect::<Vec<_>>().join(" ")
}

fn with_parts(radix: u32, known: &mut Vec<u32>) {
    if [1, 2, 4, 8].contains(&radix) || known.contains(&radix) {
        return;
    }
    if let Some((a, b)) = split::halves(radix) {
        with_parts(a, known);
        with_parts(b, known);
    }
    known.push(radix);
}

/// Where the numbers of a workgroup lie between two stages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Staging {
    /// Columns of a workgroup, and whether they are rows, one behind the other, where they come from and where they go.
    pub(crate) columns: u32,
    pub(crate) loads_rows: bool,
    pub(crate) stores_rows: bool,
    /// Numbers that lie in different banks.
    pub(crate) banks: u32,
}

impl Staging {
    /// `padding` behind each group of `group` positions, between stages of which the first has `radix`, after `done`.
    fn padding(self, radix: u32, done: u32, is_last: bool) -> (u32, u32) {
        if is_last && self.stores_rows && !self.loads_rows {
            return (1, 1);
        }
        let beside = if self.loads_rows { 1 } else { self.columns };
        let group = done * radix;
        // The next group continues where neighbours of this one end, as far as banks go.
        let padding = match done * beside {
            1 => 1 - radix % 2,
            lanes => {
                (i64::from(lanes) * (1 - i64::from(radix))).rem_euclid(i64::from(self.banks)) as u32
            }
        };
        match padding * 8 <= group * beside {
            true => (group, padding),
            false => (group, 0),
        }
    }

    /// Numbers that these stages need, and those back where there is a convolution.
    pub(crate) fn numbers(self, stages: &[u32], convolves: bool) -> u32 {
        let there = self.most(stages, !convolves);
        let back: Vec<u32> = stages.iter().rev().copied().collect();
        if convolves {
            there.max(self.most(&back, true))
        } else {
            there
        }
    }

    fn most(self, stages: &[u32], are_last: bool) -> u32 {
        let extent = stages.iter().product::<u32>();
        let mut done = 1;
        let mut most = 0;
        for (index, radix) in stages.iter().enumerate().take(stages.len() - 1) {
            let is_last = are_last && index + 2 == stages.len();
            let (group, padding) = self.padding(*radix, done, is_last);
            let padding = extent / group * padding;
            most = most.max(match self.loads_rows {
                true => self.columns * (extent + padding),
                false => self.columns * extent + padding,
            });
            done *= radix;
        }
        most
    }

    /// Stages as the shader's macros.
    pub(crate) fn text(self, stages: &[u32], convolves: bool) -> String {
        let mut text = format!("LOADED(v0, {})", stages[0]);
        let mut last = self.transforms(&mut text, 0, stages, !convolves);
        let mut radix = stages[stages.len() - 1];
        if convolves {
            text += &format!(" CONVOLVED(v{last}, {radix})");
            let back: Vec<u32> = stages.iter().rev().copied().collect();
            last = self.transforms(&mut text, last, &back, true);
            radix = stages[0];
        }
        let done = stages.iter().product::<u32>() / radix;
        let rows = if stages.len() == 1 {
            "LOADS_ROWS"
        } else {
            "STORES_ROWS"
        };
        text + &format!(" STORED(v{last}, {radix}, {done}u, {rows})")
    }

    /// Stages from the numbers `first` on, and the last numbers.
    fn transforms(self, text: &mut String, first: usize, stages: &[u32], are_last: bool) -> usize {
        *text += &format!(" TRANSFORMED(v{first}, {}, 1u, LOADS_ROWS)", stages[0]);
        let mut done = 1;
        for (from, pair) in (first..).zip(stages.windows(2)) {
            let (radix, next, to) = (pair[0], pair[1], from + 1);
            let is_last = are_last && to - first + 1 == stages.len();
            let (group, padding) = self.padding(radix, done, is_last);
            let rows = if is_last { "STORES_ROWS" } else { "LOADS_ROWS" };
            // What was read before it is written anew.
            let wait = if from > 0 { " barrier();" } else { "" };
            *text += &format!(
                "{wait} EXCHANGED(v{from}, {radix}, {done}u, v{to}, {next}, {rows}, {group}u, {padding}u)"
            );
            done *= radix;
            *text += &format!(" TRANSFORMED(v{to}, {next}, {done}u, {rows})");
        }
        first + stages.len() - 1
    }
}
