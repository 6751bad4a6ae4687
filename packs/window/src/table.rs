//! The table of ops, parsed from `pack.toml`; it says what an op is, not how it is run.

use nx_vulkan_abi::{DType, DTypeSet, Features, Offers, Row};
use nx_vulkan_pack_kit::table as kit;
use serde::Deserialize;

/// A reduction of windows, as written in `pack.toml`, which explains the columns.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Fold {
    pub(crate) op: String,
    takes: Vec<String>,
    start: String,
    glsl: String,
    complex: Option<[String; 2]>,
}

impl Fold {
    /// The identity of the op for values of `dtype`, and how two of them combine.
    pub(crate) fn combination(&self, dtype: DType) -> [&str; 2] {
        match &self.complex {
            Some([start, glsl]) if dtype.is_complex() => [start, glsl],
            Some(_) | None => [&self.start, &self.glsl],
        }
    }
}

/// A scatter of windows, as written in `pack.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scatter {
    pub(crate) op: String,
    takes: Vec<String>,
    pub(crate) glsl: String,
}

/// A way to run `conv`, as written in `pack.toml`.
#[derive(Debug, Clone, Deserialize)]
#[serde(deny_unknown_fields)]
struct Conv {
    id: String,
    method: Method,
    rank: u32,
    gives: Option<Vec<String>>,
    #[serde(default)]
    needs: Vec<String>,
    #[serde(default)]
    precision: bool,
}

/// What plans a convolution.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Method {
    /// As direct, and only where the device is a CPU, which gains nothing from shared memory.
    Cpu,
    /// As direct, where a model has it that this takes less than tiles.
    Few,
    /// On matrix units.
    Matrix,
    /// Staged through shared memory.
    Tiled,
    /// Straight from memory.
    Direct,
}

/// How a row is planned.
#[derive(Debug, Clone)]
pub(crate) enum Way {
    /// Windows fold.
    Fold(Fold),
    /// Windows choose.
    Scatter(Scatter),
    /// A convolution.
    Conv(Method),
}

/// A row with its types resolved.
#[derive(Debug, Clone)]
pub(crate) struct TableRow {
    id: String,
    /// Name of the op.
    pub(crate) op: String,
    /// Types of the operands.
    pub(crate) takes: DTypeSet,
    /// Types of the result.
    pub(crate) gives: DTypeSet,
    rank: Option<u32>,
    /// What modules of its plans may need.
    pub(crate) needs: Features,
    offers: Offers,
    /// How it is planned.
    pub(crate) way: Way,
}

impl TableRow {
    /// The row as the host wants it described.
    pub(crate) fn described(&self) -> Row {
        let row = Row {
            id: self.id.clone(),
            op: self.op.clone(),
            inputs: self.takes,
            outputs: self.gives,
            needs: self.needs,
            offers: self.offers,
            ..Row::default()
        };
        match self.rank {
            Some(rank) => Row { rank, ..row },
            None => row,
        }
    }
}

#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    window: Vec<Fold>,
    scatter: Vec<Scatter>,
    conv: Vec<Conv>,
}

/// Every row of `pack.toml`; the index of a row is the row number of the ABI.
pub(crate) fn rows() -> Result<&'static [TableRow], String> {
    static TABLE: kit::Cached<Vec<TableRow>> = kit::Cached::new();
    let rows = TABLE.get(|| parse(include_str!("../pack.toml")))?;
    Ok(rows.as_slice())
}

fn parse(text: &str) -> Result<Vec<TableRow>, String> {
    let file: File = kit::parse(text)?;
    let row = |op: &str, takes: &[String], way: Way| {
        let takes = kit::types(takes, op)?;
        Ok(TableRow {
            id: op.to_owned(),
            op: op.to_owned(),
            takes,
            gives: takes,
            rank: None,
            needs: Features::NONE,
            offers: Offers::NONE,
            way,
        })
    };
    let windows = file.window.into_iter();
    let windows = windows.map(|fold| row(&fold.op.clone(), &fold.takes.clone(), Way::Fold(fold)));
    let scatters = file.scatter.into_iter();
    let scatters = scatters.map(|one| row(&one.op.clone(), &one.takes.clone(), Way::Scatter(one)));
    let convs = file.conv.into_iter().map(|conv| {
        let floats = DTypeSet(DTypeSet::FLOAT.0 | DTypeSet::COMPLEX.0);
        let gives = conv.gives.map(|gives| kit::types(&gives, &conv.id));
        let needs = conv.needs.iter().try_fold(Features::NONE, |all, name| {
            let feature = Features::from_name(name);
            let unknown = || format!("pack.toml: {}: no capability is called {name}", conv.id);
            Ok::<_, String>(all.with(feature.ok_or_else(unknown)?))
        });
        Ok(TableRow {
            takes: DTypeSet::NUMBER,
            gives: gives.transpose()?.unwrap_or(floats),
            rank: Some(conv.rank),
            needs: needs?,
            offers: match conv.precision {
                true => Offers::EPILOGUE.with(Offers::PRECISION),
                false => Offers::EPILOGUE,
            },
            way: Way::Conv(conv.method),
            op: "conv".to_owned(),
            id: conv.id,
        })
    });
    windows.chain(scatters).chain(convs).collect()
}
