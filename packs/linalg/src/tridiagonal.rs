//! Eigenvalues and eigenvectors of large symmetric and Hermitian matrices: reflections make them tridiagonal and real, and those are divided and put
//! together again. How many steps that takes follows from the size alone.

use crate::{
    Shape,
    emit::{COPIES, Emit, change},
    jacobi::{self, SWEEPS},
};
use nx_vulkan_abi::{BufArg, Define, DeviceKind, Refusal, glsl::define};
use nx_vulkan_pack_kit::{
    grid,
    steps::{number, read},
};

/// Rows of the first systems, at most: rotations of many take longer than putting few together, until that takes long too.
const LEAF: u32 = 32;
const LEAF_OF_SMALL: u32 = 16;
/// Rows of a small matrix, at most.
const SMALL: u32 = 1024;
/// Rows of a matrix that a workgroup reflects at once.
const ROWS: u32 = 4;
/// Rows and columns of a tile of a product.
const BLOCK: u32 = 32;
/// Invocations that go along them, at most, and how many elements one may hold on to before it knows what to do with them.
const REDUCES: u32 = 256;
const RESTORES: u32 = 128;
const RESTORES_BLOCKS: u32 = 256;
/// Reflections of a block that real vectors go through at once.
const WIDTH: u32 = 8;
/// Rows and columns of real matrices that one workgroup reduces in its registers, and how many invocations go down and across;
/// small matrices, and CPUs and devices with few invocations have their own.
const LAST: [u32; 3] = [128, 16, 16];
const LAST_OF_SMALL: [u32; 3] = [64, 16, 16];
const LAST_OF_FEW: [u32; 3] = [32, 1, 8];
const EARLY: u32 = 4;
/// Lists in the buffer of that name, of poles, and of marks.
const LISTS: u64 = 5;
const POLES: u64 = 3;
const MARKS: u64 = 2;
const COLUMNS: u64 = 3;

/// Buffers that the steps share.
#[derive(Debug, Clone, Copy)]
struct System {
    /// The matrices, and how many rows each has in lists.
    shape: Shape,
    padded: u32,
    /// Rows of the first systems.
    leaf: u32,
    lists: BufArg,
    poles: BufArg,
    marks: BufArg,
    /// The reflectors.
    v: BufArg,
    /// What matrices were divided by.
    scales: BufArg,
    /// Of complex matrices products with reflectors, and what makes the tridiagonal ones real.
    columns: Option<BufArg>,
}

impl System {
    fn rows(&self) -> u64 {
        self.shape.batch * u64::from(self.padded)
    }
}

/// Where results go: values, and vectors as columns, or as rows with `as_rows`.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Results {
    pub(crate) values: BufArg,
    pub(crate) vectors: BufArg,
    pub(crate) as_rows: bool,
}

/// Solves for matrices of at least 3 rows, of which lower triangles are read. What is not finite becomes NaN.
/// Gives what they were divided by: 0 for zeros, NaN for what is not finite.
pub(crate) fn solve(
    emit: &mut Emit<'_>,
    shape: Shape,
    a: BufArg,
    results: Results,
) -> Result<BufArg, Refusal> {
    let (batch, n) = (shape.batch, shape.rows);
    let leaf = if n <= SMALL { LEAF_OF_SMALL } else { LEAF };
    let leaves = n.div_ceil(leaf).next_power_of_two();
    let leaf = n.div_ceil(leaves);
    let padded = leaf * leaves;
    let rows = batch * u64::from(padded);
    let real = emit.wide().part().size();
    let square = rows * u64::from(padded) * real;
    let (list, v) = (rows * real, shape.elements() * emit.size());
    let is_complex = emit.wide().is_complex();
    let columns = u64::from(is_complex) * COLUMNS * rows * emit.size();
    let [one, other, mixture, v, lists, poles, marks, scales, columns] = emit.pieces([
        // The matrices at first.
        square.max(v),
        square,
        square,
        v,
        LISTS * list,
        POLES * list,
        MARKS * rows * 4,
        batch * real,
        columns.max(4),
    ])?;
    let system = System {
        shape,
        padded,
        leaf,
        lists,
        poles,
        marks,
        v,
        scales,
        columns: is_complex.then_some(columns),
    };
    reduce(emit, &system, a, one)?;
    let vectors = emit.in_reals(|emit| conquer(emit, &system, [one, other], mixture))?;
    restore(emit, &system, vectors, results)?;
    Ok(read(system.scales))
}

/// Makes matrices tridiagonal, on `work`.
fn reduce(emit: &mut Emit<'_>, system: &System, a: BufArg, work: BufArg) -> Result<(), Refusal> {
    let (batch, n) = (system.shape.batch, system.shape.rows);
    let (groups, total) = (batch * u64::from(n), system.rows() as u32);
    let push = [n, groups as u32, system.padded, total];
    let tile = vec![number("TILE", emit.threads(COPIES))];
    let args = vec![read(a), system.lists];
    emit.step("largest.comp", tile.clone(), args, &push, groups)?;
    let args = vec![read(a), work, read(system.lists), system.scales, system.v];
    emit.step("scaled.comp", tile, args, &push, groups)?;

    if system.columns.is_some() {
        return step_by_step(emit, system, work, n);
    }
    let fits = |[size, down, across]: [u32; 3]| {
        let elements = down * across + 16 + size * (across + 4);
        u64::from(elements) * emit.size() < u64::from(emit.device().shared_bytes)
    };
    let last @ [size, down, across] = match emit.device().kind {
        DeviceKind::CPU => LAST_OF_FEW,
        _ if grid::invocations(emit.device()) < LAST[1] * LAST[2] => LAST_OF_FEW,
        _ if n <= LAST_OF_SMALL[0] || !fits(LAST) => LAST_OF_SMALL,
        _ => LAST,
    };
    let first = n.saturating_sub(size);
    if first > 0 {
        step_by_step(emit, system, work, first)?;
    }
    let defines = ["SIZE", "DOWN", "ACROSS"]
        .into_iter()
        .zip(last)
        .map(|(name, value)| number(name, value))
        .chain([number("TILE", down * across)]);
    let push = [n, batch as u32, first, system.padded, total];
    let args = [read(work), change(system.v), change(system.lists)].to_vec();
    emit.step("rest.comp", defines.collect(), args, &push, batch)
}

/// Reflects so many rows, one in a step.
fn step_by_step(
    emit: &mut Emit<'_>,
    system: &System,
    work: BufArg,
    steps: u32,
) -> Result<(), Refusal> {
    let (batch, n) = (system.shape.batch, system.shape.rows);
    let tiles = n.div_ceil(ROWS);
    let groups = batch * u64::from(tiles);
    let total = system.rows() as u32;
    let push = [n, groups as u32, 0, tiles, system.padded, total];
    let args = [work, system.v, system.lists]
        .into_iter()
        .chain(system.columns);
    let args = args.map(change).collect();
    let place = emit.place();
    let mut defines = along(emit, n, REDUCES);
    if n.div_ceil(emit.threads(REDUCES)) <= EARLY {
        defines.push(number("EARLY", 1u32));
    }
    emit.step("tridiagonal.comp", defines, args, &push, groups)?;
    emit.repeat(place, steps, 1);
    Ok(())
}

/// Divides and conquers; gives the eigenvectors of the tridiagonal matrices, as rows.
fn conquer(
    emit: &mut Emit<'_>,
    system: &System,
    [mut from, mut to]: [BufArg; 2],
    mixture: BufArg,
) -> Result<BufArg, Refusal> {
    let (n, padded, total) = (system.shape.rows, system.padded, system.rows());
    let System {
        lists,
        poles,
        marks,
        ..
    } = *system;
    let leaves = total / u64::from(system.leaf);
    let push = [system.leaf, leaves as u32, n, padded, total as u32];
    let defines = vec![
        number("TILE", emit.threads(jacobi::TILE)),
        number("SIZE", system.leaf.next_multiple_of(2)),
        number("SWEEPS", SWEEPS),
    ];
    let args = vec![change(lists), from];
    emit.step("leaf.comp", defines, args, &push, leaves)?;

    let mut rows = system.leaf;
    // Where the eigenvalues of the systems are: those of leaves must not be where others still read the matrix.
    let mut section = 4;
    while rows < padded {
        let block = rows;
        rows *= 2;
        let systems = total / u64::from(rows);
        let tile = |emit: &Emit<'_>, most| vec![number("TILE", emit.threads(most))];
        let push = [n, systems as u32, rows, padded, total as u32, section];
        section = 0;
        let args = vec![read(lists), read(from), poles, marks];
        emit.step("poles.comp", tile(emit, 256), args, &push, systems)?;
        let push = [n, total as u32, rows, padded, total as u32];
        let args = vec![lists, read(poles), change(marks)];
        emit.step("roots.comp", tile(emit, 64), args, &push, total)?;
        let args = vec![change(lists), read(poles), read(marks)];
        emit.step("weights.comp", tile(emit, 64), args, &push, total)?;
        let args = vec![read(lists), read(poles), read(marks), mixture];
        emit.step("mixture.comp", tile(emit, 64), args, &push, total)?;
        Product {
            batch: systems,
            parts: 2,
            size: [rows, block, block],
            a: [rows, 1, rows * rows, block],
            b: [block, 1, rows * block, block * block],
            x: [rows, rows * rows, block],
            end: None,
        }
        .step(emit, [mixture, from, to])?;
        std::mem::swap(&mut from, &mut to);
    }
    Ok(from)
}

/// Takes eigenvectors of tridiagonal matrices to those of the matrices.
fn restore(
    emit: &mut Emit<'_>,
    system: &System,
    vectors: BufArg,
    results: Results,
) -> Result<(), Refusal> {
    let (batch, n) = (system.shape.batch, system.shape.rows);
    let tiles = n.div_ceil(ROWS);
    let groups = batch * u64::from(tiles);
    let push = [n, groups as u32, tiles, system.padded, system.rows() as u32];
    let mut args = vec![
        read(vectors),
        read(system.v),
        read(system.lists),
        read(system.scales),
        results.values,
        results.vectors,
    ];
    let mut defines = match system.columns {
        Some(columns) => {
            args.push(read(columns));
            along(emit, n, RESTORES)
        }
        None => {
            args.push(triangles(emit, system)?);
            let most = emit.threads(n.next_power_of_two().min(RESTORES_BLOCKS));
            let count = u64::from(WIDTH * ROWS);
            // `sums.glsl` of one and of four, `totals.glsl`, the turns, the products and the shares of them.
            let tile = emit.summing(most, |tile, groups| {
                5 * (tile + 16) + (groups + 2) * count + 4
            })?;
            [block(emit, tile, ROWS), items(emit, n, tile)].concat()
        }
    };
    defines.push(jacobi::key(emit));
    if results.as_rows {
        defines.push(number("AS_ROWS", 1u32));
    }
    emit.step("restore.comp", defines, args, &push, groups)
}

/// What makes products of the reflections of each block.
fn triangles(emit: &mut Emit<'_>, system: &System) -> Result<BufArg, Refusal> {
    let (batch, n) = (system.shape.batch, system.shape.rows);
    let blocks = n.div_ceil(WIDTH);
    let groups = batch * u64::from(blocks);
    let ts = emit.scratch(groups * u64::from(WIDTH * WIDTH))?;
    let total = system.rows() as u32;
    let push = [n, groups as u32, blocks, system.padded, total];
    let args = vec![read(system.v), read(system.lists), ts];
    let count = u64::from(WIDTH * WIDTH);
    // `totals.glsl` and products of all pairs.
    let tile = emit.summing(emit.threads(REDUCES), |_, groups| (groups + 1) * count)?;
    let defines = block(emit, tile, WIDTH);
    emit.step("triangles.comp", defines, args, &push, groups)?;
    Ok(read(ts))
}

/// How a workgroup of `tile` invocations takes `columns` through a block of reflections.
fn block(emit: &Emit<'_>, tile: u32, columns: u32) -> Vec<Define> {
    vec![
        number("TILE", tile),
        number("WIDTH", WIDTH),
        number("COUNT", WIDTH * columns),
        number("SUBGROUP", emit.subgroup()),
    ]
}

/// How a workgroup of at most `most` invocations shares rows of n elements.
fn along(emit: &Emit<'_>, n: u32, most: u32) -> Vec<Define> {
    let tile = emit.threads(n.next_power_of_two().min(most));
    let mut defines = items(emit, n, tile);
    defines.push(number("TILE", tile));
    defines
}

/// How many of n elements each of `tile` invocations has.
fn items(emit: &Emit<'_>, n: u32, tile: u32) -> Vec<Define> {
    let unroll = match emit.device().kind {
        DeviceKind::CPU => "",
        _ => "[[unroll]]",
    };
    vec![number("ITEMS", n.div_ceil(tile)), define("UNROLL", unroll)]
}

/// Products of matrices, `parts` for each of a batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Product {
    pub(crate) batch: u64,
    pub(crate) parts: u32,
    /// Rows and columns of the result, and terms of each element.
    pub(crate) size: [u32; 3],
    /// Elements of an operand from a row to the next, from a column, a matrix and a part.
    pub(crate) a: [u32; 4],
    pub(crate) b: [u32; 4],
    /// Elements of the result from a row to the next, from a matrix and a part.
    pub(crate) x: [u32; 3],
    /// Rows of all parts of a result, where the last one has fewer than the others.
    pub(crate) end: Option<u32>,
}

impl Product {
    /// The dispatch for it, from the first two of these to the third.
    pub(crate) fn step(self, emit: &mut Emit<'_>, [a, b, x]: [BufArg; 3]) -> Result<(), Refusal> {
        let [rows, columns, depth] = self.size;
        let tiles = u64::from(rows.div_ceil(BLOCK)) * u64::from(columns.div_ceil(BLOCK));
        let groups = self.batch * u64::from(self.parts) * tiles;
        let mut push = vec![rows, groups as u32, columns, depth, self.parts];
        push.extend(self.a.iter().chain(&self.b).chain(&self.x));
        push.push(self.end.unwrap_or(rows * self.parts));
        let args = vec![read(a), read(b), x];
        let block = vec![number("BLOCK", BLOCK)];
        emit.step("product.comp", block, args, &push, groups)
    }
}
