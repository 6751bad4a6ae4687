//! The pack's table, `pack.toml`: ways to run `dot` and tile shapes.

use nx_vulkan_abi::{Features, Numerics, Offers, Row};
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// The whole table.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// Ways to run the op.
    pub kernel: Vec<Kernel>,
    /// Shapes for the tiled way.
    pub tile: Vec<Tile>,
    /// What units of known devices do; the last row is for all others.
    pub rates: Vec<Rates>,
}

/// What one compute unit of a device does, in 10^9 floating-point operations per second.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rates {
    /// Beginnings of a word in the device's name; empty for any device.
    pub device: Vec<String>,
    /// By `tile.comp` on f32.
    pub plain: f64,
    /// By `cores.comp` on f16 and bf16.
    pub matrix: f64,
}

impl Rates {
    fn are_of(&self, name: &str) -> bool {
        let begins = |word: &str| self.device.iter().any(|start| word.starts_with(start));
        self.device.is_empty() || name.split_whitespace().any(begins)
    }
}

/// One way to run the op.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Kernel {
    /// Id of the kernel.
    pub id: String,
    /// Name of the op.
    pub op: String,
    /// What plans it.
    pub method: Method,
    /// Element types of operands and result.
    pub takes: Vec<String>,
    /// Preference; higher is asked first.
    pub rank: u32,
    /// Capabilities of a device without which it is not asked.
    #[serde(default)]
    pub needs: Vec<String>,
    /// Whether it is less exact than the op's tolerance, and asked only where the registry allows that.
    #[serde(default)]
    pub relaxed: bool,
    /// Whether it takes epilogues.
    #[serde(default)]
    pub epilogue: bool,
    /// Whether it is less exact where a request allows that.
    #[serde(default)]
    pub precision: bool,
    /// Whether it asks for packed operands sooner where a request says that they last.
    #[serde(default)]
    pub lasting: bool,
}

/// What plans a kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Method {
    /// Large, of narrow floats or of bytes: on matrix units.
    Cores,
    /// As cores, where nobody knows the order of elements in a fragment: staged through shared memory.
    Matrix,
    /// Large, of f32: on matrix units for bf16, each element in parts.
    Split,
    /// Attention of narrow floats: on matrix units.
    Attention,
    /// Small, of narrow floats: summed in f64.
    Short,
    /// Few rows or few columns: bound by memory.
    Skinny,
    /// Large: staged through shared memory.
    Tiled,
    /// Anything: straight from memory.
    Direct,
    /// As direct, and only where the device is a CPU, which gains nothing from shared memory.
    Cpu,
}

impl Method {
    /// Whether an element is loaded from memory more than once, and converted as often.
    pub(crate) fn reads_again(self) -> bool {
        matches!(self, Method::Short | Method::Direct | Method::Cpu)
    }
}

/// A shape for `tile.comp`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Tile {
    /// Bytes of an element in registers, 4 or 8.
    pub register: u32,
    /// m, n and k of one workgroup.
    pub block: [u32; 3],
    /// m and n of one subgroup.
    pub warp: [u32; 2],
    /// Packs of one invocation along m and n.
    pub packs: [u32; 2],
    /// Parts of k that as many slices of a workgroup have, 1, 2, 4 or 8.
    #[serde(default = "one")]
    pub slices: u32,
    /// Rate in relation to the other tiles of the same register size, by how many operands are read along k.
    pub speed: [f64; 3],
    /// The part of it that is left where an operand is narrower in memory than in registers.
    #[serde(default = "whole")]
    pub narrow: f64,
    /// The part of it that is left where an operand is not read in packs.
    #[serde(default = "whole")]
    pub single: f64,
    /// Contracted elements that take as long as the beginning and the end of a workgroup, at the best rate.
    #[serde(default)]
    pub start: f64,
    /// Workgroups of a compute unit that it takes to pay.
    #[serde(default)]
    pub rounds: u32,
}

fn whole() -> f64 {
    1.0
}

fn one() -> u32 {
    1
}

impl Tile {
    /// Elements of a pack: 16 bytes of registers.
    pub fn width(&self) -> u32 {
        16 / self.register
    }

    /// Invocations of one workgroup.
    pub fn threads(&self) -> u32 {
        self.slices * self.threads_of_slice()
    }

    fn threads_of_slice(&self) -> u32 {
        let (own_m, own_n) = (self.packs[0] * self.width(), self.packs[1] * self.width());
        self.block[0] / own_m * (self.block[1] / own_n)
    }

    /// Shared memory of one workgroup, in bytes.
    pub fn shared_bytes(&self) -> u32 {
        let [m, n, k] = self.block;
        self.slices * 2 * k * (m + n + 2 * self.width()) * self.register
    }

    /// Whether blocks divide into subgroups, subgroups into invocations, and loads evenly among invocations.
    fn is_sound(&self) -> bool {
        let divides = |part: u32, whole: u32| part > 0 && whole.is_multiple_of(part);
        let [m, n, k] = self.block;
        let own = self.packs.map(|packs| packs * self.width());
        let lanes = self.warp[0] / own[0].max(1) * (self.warp[1] / own[1].max(1));
        // Rows of a block that its share of shared memory holds at once, of each invocation as many.
        let held = m / own[0].max(1);
        matches!(self.register, 4 | 8)
            && divides(self.warp[0], m)
            && divides(self.warp[1], n)
            && divides(2 * own[0], self.warp[0])
            && divides(own[1], self.warp[1])
            && (self.warp[1] / own[1]).is_power_of_two()
            && lanes.is_power_of_two()
            && divides(self.width(), k)
            && held > 0
            && divides((2 * k / held).min(own[0]), own[0])
            && divides(self.threads_of_slice() * self.width(), m * k)
            && divides(self.threads_of_slice() * self.width(), n * k)
            && matches!(self.slices, 1 | 2 | 4 | 8)
            && divides(self.slices, own[0])
            // Where slices add up, each invocation has room for a pack in the share of the rows.
            && (self.slices == 1 || 2 * k * (m / self.width() + 1) >= self.threads_of_slice())
            // Those that store a row together.
            && divides(n.min(32), n)
            && (self.slices > 1 || divides(n.min(32), self.threads()))
    }
}

impl Table {
    /// The pack's own table.
    pub(crate) fn get() -> Result<&'static Table, String> {
        static TABLE: kit::Cached<Table> = kit::Cached::new();
        TABLE.get(|| Table::parse(include_str!("../pack.toml")))
    }

    /// The rates of the device of that name.
    pub(crate) fn rates(&self, name: &str) -> &Rates {
        let known = self.rates.iter().find(|rates| rates.are_of(name));
        known.expect("the last row is for any device")
    }

    /// Reads a table; the error names the row that is wrong.
    pub fn parse(text: &str) -> Result<Table, String> {
        let table: Table = kit::parse(text)?;
        if !table
            .rates
            .last()
            .is_some_and(|rates| rates.device.is_empty())
        {
            return Err("pack.toml: the last row of rates has to be for any device".to_owned());
        }
        match table.tile.iter().find(|tile| !tile.is_sound()) {
            Some(tile) => Err(format!(
                "pack.toml: a tile does not divide evenly: {tile:?}"
            )),
            None => Ok(table),
        }
    }

    /// The kernels as the host wants them described.
    pub(crate) fn rows(&self) -> Result<Vec<Row>, String> {
        self.kernel
            .iter()
            .map(|kernel| {
                let types = kit::types(&kernel.takes, &kernel.id)?;
                let needs = kernel.needs.iter().try_fold(Features::NONE, |all, name| {
                    let feature = Features::from_name(name);
                    feature.map(|feature| all.with(feature)).ok_or_else(|| {
                        format!("pack.toml: {}: no capability is called {name}", kernel.id)
                    })
                })?;
                Ok(Row {
                    id: kernel.id.clone(),
                    op: kernel.op.clone(),
                    inputs: types,
                    outputs: types,
                    needs,
                    numerics: match kernel.relaxed {
                        true => Numerics::RELAXED,
                        false => Numerics::IEEE,
                    },
                    rank: kernel.rank,
                    offers: [
                        (kernel.epilogue, Offers::EPILOGUE),
                        (kernel.precision, Offers::PRECISION),
                        (kernel.lasting, Offers::LASTING),
                    ]
                    .into_iter()
                    .filter(|(offers, _)| *offers)
                    .fold(Offers::NONE, |all, (_, offer)| all.with(offer)),
                })
            })
            .collect()
    }
}
