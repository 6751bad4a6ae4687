//! `nxv ops`.

use crate::{
    global::Global,
    output::{Answer, Outcome, json},
    spec::{self, Filter},
};
use nx_vulkan_conformance::sweep;
use nx_vulkan_host::{DType, Runtime};
use std::fmt::Write;

/// Every op on every element type it takes, and the kernel that runs it on a [64, 64] tensor.
#[derive(Debug, clap::Args)]
#[command(after_help = "\
JSON: a list of {op, dtype, served_by}; served_by is \"pack/kernel\", \"host\" or null.")]
pub(crate) struct Ops {
    /// Only this op, or with a trailing *, those that begin with it
    #[arg(long, value_name = "OP")]
    filter: Option<Filter>,

    /// A table of ops and types, as in docs/support.md
    #[arg(long)]
    markdown: bool,
}

#[derive(serde::Serialize)]
struct Row {
    op: &'static str,
    dtype: &'static str,
    served_by: Option<String>,
}

impl Ops {
    /// Asks who runs the request that stands for each op and type.
    pub(crate) fn run(&self, global: &Global) -> Answer {
        let runtime = Runtime::open(&global.config())?;
        let mut rows = Vec::new();
        for op in spec::ops(self.filter.as_ref()) {
            for (dtype, request) in sweep::canonical(op)? {
                rows.push(Row {
                    op: op.name,
                    dtype: dtype.name(),
                    served_by: runtime.picked(&request)?,
                });
            }
        }
        let text = match self.markdown {
            true => markdown(&rows),
            false => text(&rows),
        };
        Ok(Outcome::good(text, json(&rows)))
    }
}

/// A table with a line for each op and a column for each type; a cell holds the letter of who runs it.
fn markdown(rows: &[Row]) -> String {
    let who = |row: &Row| -> String {
        let by = row.served_by.as_deref().unwrap_or("nobody");
        by.split('/').next().unwrap_or(by).to_owned()
    };
    let mut servers: Vec<String> = rows.iter().map(who).collect();
    servers.sort_unstable();
    servers.dedup();
    let types: Vec<&str> = DType::all()
        .map(DType::name)
        .filter(|name| rows.iter().any(|row| row.dtype == *name))
        .collect();
    let mut text = String::new();
    let letters = letters(&servers);
    let counts = servers.iter().zip(&letters).map(|(server, letter)| {
        let count = rows.iter().filter(|row| who(row) == *server).count();
        format!("**{letter}** {server} ({count})")
    });
    let _ = writeln!(text, "{}\n", counts.collect::<Vec<_>>().join(", "));
    let _ = writeln!(text, "| op | {} |", types.join(" | "));
    let _ = writeln!(text, "|---|{}", ":-:|".repeat(types.len()));
    let mut ops: Vec<&str> = rows.iter().map(|row| row.op).collect();
    ops.dedup();
    for op in ops {
        let cells = types.iter().map(|dtype| {
            let row = rows.iter().find(|row| row.op == op && row.dtype == *dtype);
            let by = row.and_then(|row| servers.iter().position(|server| *server == who(row)));
            by.map_or(' ', |by| letters[by])
        });
        let cells: Vec<String> = cells.map(String::from).collect();
        let _ = writeln!(text, "| {op} | {} |", cells.join(" | "));
    }
    text
}

/// A letter for each: the first of a pack's id that no other has, `h` for the host and `-` for nobody.
fn letters(servers: &[String]) -> Vec<char> {
    let mut taken = vec!['h'];
    let mut letter = |server: &String| match server.as_str() {
        "nobody" => '-',
        "host" => 'h',
        id => {
            let free = id.chars().chain('a'..='z').find(|c| !taken.contains(c));
            taken.extend(free);
            free.unwrap_or('?')
        }
    };
    servers.iter().map(&mut letter).collect()
}

/// One line for each op and kernel, with the types it serves.
fn text(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut lines: Vec<(&str, &str, Vec<&str>)> = Vec::new();
    for row in rows {
        let by = row.served_by.as_deref().unwrap_or("nobody");
        match lines
            .iter_mut()
            .find(|line| line.0 == row.op && line.1 == by)
        {
            Some(line) => line.2.push(row.dtype),
            None => lines.push((row.op, by, vec![row.dtype])),
        }
    }
    let width =
        |column: fn(&(&str, &str, Vec<&str>)) -> usize| lines.iter().map(column).max().unwrap_or(0);
    let (op, by) = (width(|line| line.0.len()), width(|line| line.1.len()));
    for line in &lines {
        let _ = writeln!(text, "{:op$}  {:by$}  {}", line.0, line.1, line.2.join(" "));
    }
    text
}
