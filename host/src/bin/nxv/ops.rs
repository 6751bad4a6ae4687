//! `nxv ops`.

use crate::{
    args::Arguments,
    output::{Outcome, Problem, json},
    spec,
};
use nx_vulkan_host::{Runtime, sweep};
use std::fmt::Write;

#[derive(serde::Serialize)]
struct Row {
    op: &'static str,
    dtype: &'static str,
    served_by: Option<String>,
}

/// Explains the request that stands for each op and type.
pub(crate) fn run(arguments: &Arguments) -> Result<Outcome, Problem> {
    let ops = spec::ops(arguments.value("--filter")).map_err(Problem::Usage)?;
    let runtime = Runtime::open(&arguments.config)?;
    let mut rows = Vec::new();
    for op in ops {
        for (dtype, request) in sweep::canonical(op)? {
            let output = [request.output];
            let explanation =
                runtime.explain(&request.op, &request.inputs, &output, &request.attrs)?;
            rows.push(Row {
                op: op.name,
                dtype: dtype.name(),
                served_by: explanation.picked,
            });
        }
    }
    Ok(Outcome {
        text: text(&rows),
        json: json(&rows),
        holds: true,
    })
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
