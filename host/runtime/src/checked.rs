//! Checked mode, for authors of shaders: what the accessors of `tensor.glsl` report, as messages.
//!
//! A shader that includes `tensor.glsl` gets one more binding, in which an access outside of an array leaves its place.
//! Other shaders are compiled as ever, and without the mode so are all.

use crate::{Error, Kind, Result};
use nx_vulkan_abi::glsl;

/// The header whose accessors report.
const HEADER: &str = "tensor.glsl";
/// Accesses of one plan whose place is kept; the others are only counted.
const REPORTS: usize = 64;
/// Words of one report: shader, file, line, whether it is a store, index (two words), length.
const WORDS: usize = 7;
/// Places that a message names.
const SHOWN: usize = 4;

/// Bytes of the buffer that reports go to. It starts as zeros.
pub(crate) const BYTES: usize = 4 * (1 + REPORTS * WORDS);

/// A file that a shader was put together from: what messages call it, and its text.
#[derive(Debug, Clone)]
pub(crate) struct File {
    pub(crate) name: String,
    pub(crate) shown: String,
    pub(crate) text: String,
}

/// The shaders of a plan that report.
#[derive(Debug)]
pub(crate) struct Watched {
    pack: String,
    /// By the shader's number in the plan, its files by their number in `#line` directives.
    shaders: Vec<Vec<File>>,
}

/// Whether a shader of these files can report.
pub(crate) fn reports(files: &[File]) -> bool {
    let ours = |file: &File| {
        let header = glsl::HEADERS.iter().find(|header| header.0 == HEADER);
        file.name == HEADER && header.is_some_and(|header| header.1 == file.text)
    };
    files.iter().any(ours)
}

/// The defines that make the accessors report into `binding`, as shader `number` of the plan.
pub(crate) fn defines(binding: u32, number: usize) -> [(&'static str, String); 3] {
    [
        ("NXV_CHECKED", binding.to_string()),
        ("NXV_SHADER", format!("{number}u")),
        ("NXV_REPORTS", format!("{REPORTS}u")),
    ]
}

/// One kind of access at one place.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    shader: u32,
    file: u32,
    line: u32,
    is_store: u32,
}

impl Watched {
    /// `None` when none of the shaders can report.
    pub(crate) fn new(pack: &str, shaders: Vec<Vec<File>>) -> Option<Watched> {
        let pack = pack.to_owned();
        let any = shaders.iter().any(|files| !files.is_empty());
        any.then_some(Watched { pack, shaders })
    }

    /// What a plan's run left in the buffer of reports.
    ///
    /// # Errors
    /// [`Kind::Pack`] when an access was outside of its array; the message has one line per place in the shaders.
    pub(crate) fn verdict(&self, bytes: &[u8]) -> Result<()> {
        let chunks = bytes.as_chunks::<4>().0.iter();
        let words: Vec<u32> = chunks.map(|word| u32::from_ne_bytes(*word)).collect();
        let Some((&count, reports)) = words.split_first().filter(|(count, _)| **count > 0) else {
            return Ok(());
        };
        let kept = reports.as_chunks::<WORDS>().0.iter().take(count as usize);
        let mut accesses: Vec<(Place, i64, u32)> = kept
            .map(|&[shader, file, line, is_store, low, high, length]| {
                let index = i64::from(high as i32) << 32 | i64::from(low);
                let place = Place {
                    shader,
                    file,
                    line,
                    is_store,
                };
                (place, index, length)
            })
            .collect();
        // Invocations report in any order.
        accesses.sort();
        accesses.dedup_by(|later, first| later.0 == first.0);
        let shown: Vec<String> = accesses.iter().take(SHOWN).map(|a| self.line(a)).collect();
        let more = match count as usize - shown.len() {
            0 => String::new(),
            more => format!("\nand {more} more accesses outside of arrays"),
        };
        let text = shown.join("\n");
        Err(Error::new(Kind::Pack, format!("{text}{more}")))
    }

    fn line(&self, (place, index, length): &(Place, i64, u32)) -> String {
        let file = self
            .shaders
            .get(place.shader as usize)
            .and_then(|files| files.get(place.file as usize));
        let line =
            file.and_then(|file| file.text.lines().nth((place.line as usize).checked_sub(1)?));
        let accessor = ["nxv_load(", "nxv_store("][place.is_store.min(1) as usize];
        let array = match arrays(line.unwrap_or_default(), accessor).join(" or ") {
            none if none.is_empty() => "the array".to_owned(),
            names => names,
        };
        let shown = file.map_or("a shader", |file| &file.shown);
        format!(
            "pack {}, {shown}:{}: index {index} is outside of {array} ({length} elements)",
            self.pack, place.line
        )
    }
}

/// The arrays that a line of GLSL hands to that accessor.
fn arrays<'a>(line: &'a str, accessor: &str) -> Vec<&'a str> {
    let calls = line.split(accessor).skip(1);
    let names = calls.filter_map(|rest| Some(rest.split_once(',')?.0.trim()));
    let mut names: Vec<&str> = names.collect();
    names.sort_unstable();
    names.dedup();
    names
}

#[cfg(test)]
mod tests {
    use super::*;

    fn watched() -> Watched {
        let text = "#version 450\nnxv_store(y, i, nxv_load(a, i) + nxv_load(b, j));\nOTHER(z)\n";
        let file = File {
            name: "k.comp".to_owned(),
            shown: "/p/k.comp".to_owned(),
            text: text.to_owned(),
        };
        Watched::new("p", vec![Vec::new(), vec![file]]).unwrap()
    }

    /// The message that these reports give.
    fn message(count: u32, reports: &[[u32; WORDS]]) -> String {
        let words = std::iter::once(count).chain(reports.as_flattened().iter().copied());
        let mut bytes: Vec<u8> = words.flat_map(u32::to_ne_bytes).collect();
        bytes.resize(BYTES, 0);
        watched().verdict(&bytes).unwrap_err().to_string()
    }

    #[test]
    fn no_report_is_no_error() {
        assert!(watched().verdict(&[0; BYTES]).is_ok());
        assert!(Watched::new("p", vec![Vec::new()]).is_none());
    }

    #[test]
    fn a_report_names_pack_file_line_array_and_index() {
        let text = message(1, &[[1, 0, 2, 1, 7, 0, 5]]);
        assert_eq!(
            text,
            "pack p, /p/k.comp:2: index 7 is outside of y (5 elements)"
        );
        let text = message(1, &[[1, 0, 2, 0, u32::MAX, u32::MAX, 5]]);
        assert_eq!(
            text,
            "pack p, /p/k.comp:2: index -1 is outside of a or b (5 elements)"
        );
        let text = message(1, &[[1, 0, 3, 0, 1, 1, 0]]);
        assert_eq!(
            text,
            "pack p, /p/k.comp:3: index 4294967297 is outside of the array (0 elements)"
        );
    }

    #[test]
    fn one_place_is_named_once_with_its_first_index() {
        let text = message(
            3,
            &[
                [1, 0, 2, 1, 9, 0, 5],
                [1, 0, 2, 1, 8, 0, 5],
                [1, 0, 3, 1, 6, 0, 5],
            ],
        );
        let lines: Vec<&str> = text.lines().collect();
        assert!(lines[0].contains("index 8") && lines[1].contains("k.comp:3: index 6"));
        assert_eq!(lines[2..], ["and 1 more accesses outside of arrays"]);
    }

    /// The words come from a device: a shader may write anything into a buffer that it has.
    #[test]
    fn any_words_give_a_message() {
        let text = message(u32::MAX, &[[u32::MAX; WORDS]; REPORTS]);
        assert!(
            text.starts_with("pack p, a shader:4294967295: index -1"),
            "{text}"
        );
        assert!(message(1, &[[1, 0, 0, 9, 0, 0, 0]]).contains("k.comp:0"));
    }
}
