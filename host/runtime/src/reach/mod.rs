//! Leaves out of a GLSL text the functions that `main` cannot reach, since a compiler's time goes with the text it parses.
//!
//! It goes by names alone. A name is reached when anything names it that is reached or is no function: a declaration at the
//! top level, a condition. So overloads stay together, but those for a structure that nothing names, and so does whatever
//! any branch of a condition needs. A macro's names count once its own is reached. Where something is not understood, the text stays as it is.

mod items;
mod lexed;
mod macros;
mod structures;
#[cfg(test)]
mod tests;

use crate::bounds::text::plain;
use items::{Item, What, items};
use lexed::{Kind, Lexed, Name};
use macros::Macros;
use std::ops::Range;
use structures::{Structures, defined_by};

/// The text without comments and without functions that nothing reaches, with every line where it was. `spare` says from
/// which line on functions may be left out and from which they may not. `None` where nothing is, or may be, left out.
pub(crate) fn reachable(text: &str, spare: &[(usize, bool)]) -> Option<String> {
    // Lines are those of '\n'.
    if text.contains('\r') {
        return None;
    }
    let plain = plain(text).ok()?;
    if plain.moves_code && plain.text.contains("__LINE__") {
        return None;
    }
    let text = plain.text;
    let lexed = Lexed::new(&text, spare)?;
    let left_out = Graph::new(&lexed)?.unreached();
    (!left_out.is_empty()).then(|| without(&text, left_out))
}

/// Tokens of the text: those outside of directives, or those of a macro.
#[derive(Debug)]
struct Piece {
    of_macro: Option<usize>,
    range: Range<usize>,
    /// Whether it is a function that may be left out.
    is_function: bool,
    /// Structures without which nobody calls it.
    needs: Vec<Name>,
}

/// Which names name which.
struct Graph<'l, 'a> {
    lexed: &'l Lexed<'a>,
    pieces: Vec<Piece>,
    /// Pieces that each name stands for: bodies of macros, functions.
    stands_for: Vec<Vec<usize>>,
    /// What is reached at first.
    names: Vec<Name>,
    rooted: Vec<usize>,
}

impl<'l, 'a> Graph<'l, 'a> {
    fn new(lexed: &'l Lexed<'a>) -> Option<Graph<'l, 'a>> {
        let mut macros = Macros::new(lexed)?;
        let code = items(&lexed.code, |name| macros.is_closed(name))?.all;
        macros.note_uses(lexed, &code);
        let structures = Structures::new(lexed, &code, &macros);
        let main = lexed.names.iter().position(|&name| name == "main");
        let mut graph = Graph {
            lexed,
            pieces: Vec::new(),
            stands_for: vec![Vec::new(); lexed.names.len()],
            names: lexed.directives.clone(),
            rooted: Vec::new(),
        };
        graph.names.extend(main.map(|main| main as Name));
        graph.names.extend(&macros.pasted);
        for item in &code {
            graph.add(item, None, &macros, &structures);
        }
        for (index, of) in lexed.macros.iter().enumerate() {
            match macros.items(index) {
                Some(items) => {
                    for item in items {
                        graph.add(item, Some(index), &macros, &structures);
                    }
                }
                None => {
                    let whole = graph.push(Some(index), 0..of.body.len());
                    graph.stands_for[of.name as usize].push(whole);
                }
            }
        }
        Some(graph)
    }

    fn push(&mut self, of_macro: Option<usize>, range: Range<usize>) -> usize {
        self.pieces.push(Piece {
            of_macro,
            range,
            is_function: false,
            needs: Vec::new(),
        });
        self.pieces.len() - 1
    }

    fn add(
        &mut self,
        item: &Item,
        of_macro: Option<usize>,
        macros: &Macros,
        structures: &Structures,
    ) {
        let piece = self.push(of_macro, item.range.clone());
        if let Some((name, at)) = macros.function(self.lexed, item, of_macro) {
            self.stands_for[name as usize].push(piece);
            self.pieces[piece].is_function = true;
            if of_macro.is_none() {
                self.pieces[piece].needs = structures.of_parameters(self.lexed, at + 1, macros);
            }
        } else if let Some(index) = of_macro {
            self.stands_for[self.lexed.macros[index].name as usize].push(piece);
        } else {
            // A structure's own name is no use of it.
            let named = usize::from(defined_by(item, self.lexed, macros).is_some());
            self.pieces[piece].range.start += 2 * named;
            self.rooted.push(piece);
        }
    }

    /// Where the functions stand that nothing reaches, in the order of the text.
    fn unreached(mut self) -> Vec<Range<usize>> {
        let mut reached = vec![false; self.lexed.names.len()];
        let mut is_used = vec![false; self.pieces.len()];
        let mut names = self.names;
        let mut pieces = self.rooted;
        while !(names.is_empty() && pieces.is_empty()) {
            for index in pieces.drain(..) {
                let piece = &self.pieces[index];
                let wanted = piece.needs.iter().find(|&&need| !reached[need as usize]);
                match wanted {
                    // It waits for that.
                    Some(&need) => self.stands_for[need as usize].push(index),
                    None => {
                        is_used[index] = true;
                        let lexemes = of(self.lexed, piece)[piece.range.clone()].iter();
                        names.extend(lexemes.filter_map(|lexeme| match lexeme.kind {
                            Kind::Name(name) => Some(name),
                            _ => None,
                        }));
                    }
                }
            }
            for name in names.drain(..) {
                if !std::mem::replace(&mut reached[name as usize], true) {
                    pieces.append(&mut self.stands_for[name as usize]);
                }
            }
        }
        let pieces = self.pieces.iter().zip(is_used);
        let unused = pieces.filter(|(piece, is_used)| piece.is_function && !is_used);
        let mut ranges: Vec<_> = unused
            .map(|(piece, _)| {
                let lexemes = &of(self.lexed, piece)[piece.range.clone()];
                // It ends with a brace or a semicolon.
                lexemes[0].at..lexemes[lexemes.len() - 1].at + 1
            })
            .collect();
        ranges.sort_unstable_by_key(|range| range.start);
        ranges
    }
}

fn of<'l>(lexed: &'l Lexed<'_>, piece: &Piece) -> &'l [lexed::Lexeme] {
    match piece.of_macro {
        None => &lexed.code,
        Some(index) => &lexed.macros[index].body,
    }
}

/// The text without these places. Directives and line ends stay.
fn without(text: &str, places: Vec<Range<usize>>) -> String {
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for place in places {
        out.push_str(&text[at..place.start]);
        at = place.end;
        out.push(' ');
        for (index, line) in text[place].split('\n').enumerate() {
            if index > 0 {
                out.push('\n');
            }
            // A function begins behind the first line's directive, if it stands in one.
            if index > 0 && line.trim_start().starts_with('#') {
                out.push_str(line);
            }
        }
    }
    out.push_str(&text[at..]);
    out
}

/// Whether an item's name is what a statement begins with.
fn is_of_statement(name: &str) -> bool {
    matches!(name, "if" | "for" | "while" | "switch")
}

/// The tokens of an item behind the name that it begins with.
fn arguments(item: &Item) -> Range<usize> {
    match item.what {
        What::Use(_) => item.range.start + 1..item.range.end,
        _ => item.range.clone(),
    }
}
