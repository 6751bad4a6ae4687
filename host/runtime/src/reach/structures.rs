//! Structures, and which of them a function takes: without a value of one nobody calls it, and without its name there is no
//! value of it.

use super::{
    items::Item,
    lexed::{Kind, Lexed, Name},
    macros::Macros,
};

#[derive(Debug)]
pub(super) struct Structures {
    /// Whether a name is one's.
    is_one: Vec<bool>,
}

impl Structures {
    pub(super) fn new(lexed: &Lexed<'_>, code: &[Item], macros: &Macros) -> Structures {
        let mut is_one = vec![false; lexed.names.len()];
        for name in code
            .iter()
            .filter_map(|item| defined_by(item, lexed, macros))
        {
            is_one[name as usize] = true;
        }
        Structures { is_one }
    }

    /// Structures among the types of parameters, whose parenthesis opens at that place of the code.
    pub(super) fn of_parameters(&self, lexed: &Lexed<'_>, at: usize, macros: &Macros) -> Vec<Name> {
        let mut found = Vec::new();
        let (mut depth, mut is_begun) = (0_usize, true);
        for lexeme in &lexed.code[at..] {
            match lexeme.kind {
                Kind::Mark(b'(' | b'[') => depth += 1,
                Kind::Mark(b')' | b']') => depth -= 1,
                Kind::Mark(b',') if depth == 1 => {
                    is_begun = true;
                    continue;
                }
                // The type is the first word that is no qualifier; macros may be either.
                Kind::Name(name) if is_begun && depth == 1 => {
                    is_begun = !macros.is_defined(name) && is_qualifier(lexed.names[name as usize]);
                    if self.is_one[name as usize] {
                        found.push(name);
                    }
                    continue;
                }
                _ => {}
            }
            if depth == 0 {
                break;
            }
            is_begun &= lexeme.kind == Kind::Mark(b'(');
        }
        found
    }
}

/// The name of the structure that an item defines, if that is all it does.
pub(super) fn defined_by(item: &Item, lexed: &Lexed<'_>, macros: &Macros) -> Option<Name> {
    let code = &lexed.code[item.range.clone()];
    let [first, second, third, .., before, last] = code else {
        return None;
    };
    let (Kind::Name(word), Kind::Name(name)) = (first.kind, second.kind) else {
        return None;
    };
    let marks = [third.kind, before.kind, last.kind] == b"{};".map(Kind::Mark);
    let is_structure = lexed.names[word as usize] == "struct" && marks;
    let is_free = !macros.is_defined(word) && !macros.is_defined(name);
    (is_structure && is_free).then_some(name)
}

fn is_qualifier(name: &str) -> bool {
    matches!(
        name,
        "const" | "in" | "out" | "inout" | "precise" | "highp" | "mediump" | "lowp"
    )
}
