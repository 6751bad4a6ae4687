//! The tables of `docs/ops.md` are what the rows of the ops say.

use nx_vulkan_abi::DTypeSet;
use nx_vulkan_ops::{
    Op,
    op::{Contract, Gives},
    ops,
};
use std::{fmt::Write as _, fs, path::Path};

const MARK: &str = "<!-- ops: ";

#[test]
fn the_tables_are_those_of_the_rows() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/ops.md");
    let written = fs::read_to_string(&page).unwrap();
    let mut titles: Vec<&str> = ops().map(|op| op.contract.title).collect();
    titles.dedup();
    let mut expected = written.clone();
    for title in titles {
        let mark = format!("{MARK}{title} -->\n");
        let start = expected.find(&mark).map(|at| at + mark.len());
        let start = start.unwrap_or_else(|| panic!("docs/ops.md has no line {mark:?}"));
        // From the end of the mark's own line on, so that an empty table ends where it starts.
        let end = expected[start - 1..]
            .find("\n\n")
            .map_or(expected.len(), |at| start + at);
        expected.replace_range(start..end, &table(title));
    }
    if std::env::var_os("UPDATE_DOCS").is_some() {
        fs::write(&page, expected).unwrap();
        return;
    }
    assert!(
        expected == written,
        "docs/ops.md is out of date; write it anew with UPDATE_DOCS=1 cargo test --release -p nx-vulkan-ops --test docs"
    );
}

fn table(title: &str) -> String {
    let rows = || ops().filter(|op| op.contract.title == title);
    let mut text =
        "| op | operands | result | f32, f64 | meaning |\n|---|---|---|---|---|\n".to_owned();
    for op in rows() {
        let (ulp32, ulp64) = op.bound.ulp;
        writeln!(
            text,
            "| `{}` | {} | {} | {} | {} |",
            op.name,
            operands(op),
            result(op),
            match (ulp32, ulp64) {
                (0, 0) => "exact".to_owned(),
                _ => format!("{ulp32}, {ulp64} ulp"),
            },
            op.doc
        )
        .unwrap();
    }
    attributes(rows().map(|op| op.contract), &mut text);
    text
}

/// Each attribute once, with the ops that have it.
fn attributes<'a>(contracts: impl Iterator<Item = &'a Contract>, text: &mut String) {
    let mut seen = Vec::new();
    for attribute in contracts.flat_map(|contract| contract.attributes) {
        if !seen.contains(&attribute.name) {
            seen.push(attribute.name);
            let line = format!(
                "| attribute `{}` | | | | {} |",
                attribute.name, attribute.doc
            );
            writeln!(text, "{line}").unwrap();
        }
    }
}

fn operands(op: &Op) -> String {
    let named = op.contract.operands.iter().enumerate();
    let each: Vec<String> = named
        .map(|(index, name)| format!("{name}: {}", types(op.takes_at(index))))
        .collect();
    each.join(", ")
}

fn types(set: DTypeSet) -> String {
    let named = [
        (DTypeSet::ALL, "any"),
        (DTypeSet::REAL, "real"),
        (DTypeSet::INTEGER, "integer"),
        (DTypeSet::FLOAT, "float"),
    ];
    let name = named.iter().find(|(known, _)| *known == set);
    name.map_or_else(
        || {
            let all = nx_vulkan_abi::DType::all().filter(|dtype| set.has(*dtype));
            all.map(|dtype| dtype.name()).collect::<Vec<_>>().join(" ")
        },
        |(_, name)| (*name).to_owned(),
    )
}

fn result(op: &Op) -> &'static str {
    match op.gives {
        Gives::Operand => "as operand",
        Gives::OwnPart => "as operand, of complex ones as their parts",
        Gives::Part => "real",
        Gives::Bool => "u8",
        Gives::Integer => "integer, merged",
        Gives::Float => "float, merged",
        Gives::Complex => "complex",
        Gives::Real if op.contract.infers => "merged",
        Gives::Real => "real, as asked",
        Gives::Any => "any, as asked",
    }
}
