//! The text of a shader with its includes and defines in place, and messages that name the files it came from.

use crate::{Error, Kind, Result};
use nx_vulkan_registry::{Glsl, Origin};

/// Files that include one another, at most: each takes some of the stack.
const DEEPEST: usize = 32;

/// A shader with its includes and defines in place.
pub(super) struct Expanded {
    pub(super) text: String,
    /// File of each source-string number in `#line` directives: its name, and what messages call it.
    pub(super) files: Vec<(String, String)>,
    /// The least trusted author of a file.
    pub(super) origin: Origin,
    /// From which line on functions that nothing reaches may be left out, and from which they may not.
    pub(super) spare: Vec<(usize, bool)>,
    lines: usize,
}

impl Expanded {
    /// A sentence about the whole shader, with its file in front.
    pub(super) fn blamed(&self, why: &str) -> String {
        let file = self.files.first().map_or("shader", |file| &file.1);
        format!("{file}: {why}")
    }

    fn push(&mut self, line: &str) {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
    }
}

pub(super) fn expand<'a>(
    file: &str,
    defines: &[(&str, &str)],
    find: &dyn Fn(&str) -> Option<Glsl<'a>>,
) -> Result<Expanded> {
    let mut expanded = Expanded {
        text: String::new(),
        files: Vec::new(),
        origin: Origin::Library,
        spare: Vec::new(),
        lines: 0,
    };
    append(&mut expanded, (file, 1), None, defines, find)?;
    if expanded.text.contains('\0') {
        let why = expanded.blamed("it contains a NUL character");
        return Err(Error::new(Kind::Shader, why));
    }
    Ok(expanded)
}

fn append<'a>(
    out: &mut Expanded,
    (file, depth): (&str, usize),
    included_at: Option<(&str, usize)>,
    defines: &[(&str, &str)],
    find: &dyn Fn(&str) -> Option<Glsl<'a>>,
) -> Result<()> {
    let refused = |why: String| {
        let place = included_at.map_or(String::new(), |(from, line)| format!("{from}:{line}: "));
        Error::new(Kind::Shader, place + &why)
    };
    if depth > DEEPEST {
        return Err(refused(format!(
            "{file:?} would be included through more than {DEEPEST} files"
        )));
    }
    let Some(glsl) = find(file) else {
        return Err(refused(format!("there is no shader source named {file:?}")));
    };
    let Glsl { text, path, .. } = glsl;
    out.origin = out.origin.max(glsl.origin);
    // Whoever writes a shader wants to see all of its errors, and whoever has it as a file may be writing it.
    let is_spare = glsl.is_generated || (glsl.origin == Origin::Library && path.is_none());
    out.spare.push((out.lines, is_spare));
    let index = out.files.len();
    let shown = path.map_or_else(|| file.to_owned(), |path| path.display().to_string());
    out.files.push((file.to_owned(), shown.clone()));
    if included_at.is_some() {
        line(out, 1, index);
    }
    for (number, text) in (1..).zip(text.lines()) {
        if included_at.is_none() && text.trim_start().starts_with("#version") {
            out.push(text);
            for (name, value) in defines {
                line(out, number, index);
                let value = value.replace(['\n', '\r'], " ");
                out.push(&format!("#define {name} {value}"));
            }
            line(out, number + 1, index);
        } else if let Some(name) = include(text) {
            // Beside the file, in a folder above it, or by its whole name.
            let folders = std::iter::successors(parent(file), |folder| parent(folder));
            let mut near = folders.map(|folder| format!("{folder}/{name}"));
            let near = near.find(|name| find(name).is_some());
            let name = near.as_deref().unwrap_or(name);
            if !out.files.iter().any(|f| f.0 == name) {
                append(
                    out,
                    (name, depth + 1),
                    Some((&shown, number)),
                    defines,
                    find,
                )?;
                out.spare.push((out.lines, is_spare));
            }
            line(out, number + 1, index);
        } else {
            out.push(text);
        }
    }
    Ok(())
}

fn line(out: &mut Expanded, number: usize, file: usize) {
    out.push(&format!("#line {number} {file}"));
}

fn parent(path: &str) -> Option<&str> {
    path.rsplit_once('/').map(|(folder, _)| folder)
}

fn include(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("#include")?.trim();
    rest.strip_prefix('"')?.strip_suffix('"')
}

/// The compiler's log with file names in place of source-string numbers: `ERROR: 1:20: …` becomes `unary.glsl:20: …`.
/// What names no place is about the shader as a whole, the first file.
pub(super) fn readable(log: &str, files: &[(String, String)]) -> String {
    let whole = files.first().map_or("shader", |file| &file.1);
    let lines = log.lines().filter_map(|line| {
        let text = line.strip_prefix("ERROR: ").unwrap_or(line).trim();
        let noise = text.is_empty() || text.contains("compilation errors.  No code generated");
        if noise || line.starts_with("WARNING") {
            return None;
        }
        let named = text.split_once(':').and_then(|(number, rest)| {
            Some(format!(
                "{}:{rest}",
                files.get(number.parse::<usize>().ok()?)?.1
            ))
        });
        Some(named.unwrap_or_else(|| match text.starts_with(whole) {
            true => text.to_owned(),
            false => format!("{whole}: {text}"),
        }))
    });
    let text = lines.take(8).collect::<Vec<_>>().join("\n");
    if text.is_empty() {
        format!("{whole} does not compile")
    } else {
        text
    }
}
