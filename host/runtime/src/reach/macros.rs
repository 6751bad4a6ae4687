//! What macros can stand for at the top level, as far as it decides what may be left out.

use super::{
    arguments, is_of_statement,
    items::{Item, What, items},
    lexed::{Kind, Lexed, Lexeme, Macro, Name},
};

/// How often it is found out which macros stand for whole items.
const MAX_ROUNDS: usize = 4;
/// Fragments of names beside `##`.
const MAX_FRAGMENTS: usize = 64;

#[derive(Debug)]
pub(super) struct Macros {
    /// Whether a name is a macro's.
    defined: Vec<bool>,
    /// Whether it has parameters and stands, each time, for whole items.
    closed: Vec<bool>,
    /// Whether it may stand for more than words of a declaration.
    structural: Vec<bool>,
    /// Whether it stands anywhere but between items.
    used_inside: Vec<bool>,
    /// Names that `##` may give.
    pub(super) pasted: Vec<Name>,
    /// Items of each definition of a closed one.
    items: Vec<Option<Vec<Item>>>,
    /// Definitions' names.
    names: Vec<Name>,
}

impl Macros {
    /// `None` where nothing is sure: brackets of a macro do not match, or `##` makes any name.
    pub(super) fn new(lexed: &Lexed<'_>) -> Option<Macros> {
        let none = vec![false; lexed.names.len()];
        let mut macros = Macros {
            defined: none.clone(),
            closed: none.clone(),
            structural: none.clone(),
            used_inside: none.clone(),
            pasted: Vec::new(),
            items: Vec::new(),
            names: lexed.macros.iter().map(|of| of.name).collect(),
        };
        let mut barred = none;
        let mut rounds = 0;
        while !macros.find_closed(lexed, &mut barred)? {
            rounds += 1;
            if rounds == MAX_ROUNDS {
                return None;
            }
        }
        macros.find_structural(lexed);
        macros.paste(lexed)?;
        Some(macros)
    }

    pub(super) fn is_defined(&self, name: Name) -> bool {
        self.defined[name as usize]
    }

    pub(super) fn is_closed(&self, name: Name) -> bool {
        self.closed[name as usize]
    }

    /// The items of a definition, where each use of the macro stands for these.
    pub(super) fn items(&self, definition: usize) -> Option<&[Item]> {
        let items = self.items[definition].as_deref()?;
        (!self.used_inside[self.names[definition] as usize]).then_some(items)
    }

    /// The name of the function that an item defines or declares and where it stands, where it may be left out if nobody
    /// reaches that.
    pub(super) fn function(
        &self,
        lexed: &Lexed<'_>,
        item: &Item,
        of_macro: Option<usize>,
    ) -> Option<(Name, usize)> {
        let of_macro = of_macro.map(|index| &lexed.macros[index]);
        let code = of_macro.map_or(&lexed.code, |of| &of.body);
        let at = match (item.what, of_macro) {
            (What::Function(at), _) | (What::Prototype(at), None) => at,
            // In a macro it may as well be a statement: return f(x);
            (What::Prototype(_), Some(_)) | (What::Use(_) | What::Other, _) => return None,
        };
        let Kind::Name(name) = code[at].kind else {
            return None;
        };
        let is_free = !self.defined[name as usize]
            && !is_of_statement(lexed.names[name as usize])
            && !of_macro.is_some_and(|of| parameters(of).contains(&name));
        let are_spare = code[item.range.clone()].iter().all(|l| l.is_spare);
        let stands_alone = code[item.range.start..at]
            .iter()
            .all(|lexeme| !self.is_structural(lexeme));
        (is_free && are_spare && stands_alone).then_some((name, at))
    }

    /// Notes which macros stand inside of items of the code, of macros or of directives.
    pub(super) fn note_uses(&mut self, lexed: &Lexed<'_>, code: &[Item]) {
        for item in code {
            self.note_use(&lexed.code, item);
        }
        for (index, of) in lexed.macros.iter().enumerate() {
            match self.items[index].take() {
                Some(items) => {
                    items.iter().for_each(|item| self.note_use(&of.body, item));
                    self.items[index] = Some(items);
                }
                None => self.note_inside(&of.body),
            }
        }
        for &name in lexed.directives.iter().chain(&self.pasted) {
            self.used_inside[name as usize] = true;
        }
        self.pass_on(lexed);
    }

    /// What a macro that stands anywhere names stands anywhere.
    fn pass_on(&mut self, lexed: &Lexed<'_>) {
        let mut bodies: Vec<Vec<usize>> = vec![Vec::new(); lexed.names.len()];
        for (index, of) in lexed.macros.iter().enumerate() {
            bodies[of.name as usize].push(index);
        }
        let used = (0..).zip(&self.used_inside).filter(|(_, used)| **used);
        let mut names: Vec<Name> = used.map(|(name, _)| name).collect();
        while let Some(name) = names.pop() {
            for index in std::mem::take(&mut bodies[name as usize]) {
                for lexeme in &lexed.macros[index].body {
                    if let Kind::Name(name) = lexeme.kind
                        && !std::mem::replace(&mut self.used_inside[name as usize], true)
                    {
                        names.push(name);
                    }
                }
            }
        }
    }

    fn note_use(&mut self, code: &[Lexeme], item: &Item) {
        let arguments = &code[arguments(item)];
        // What they hold ends up in front of functions.
        if let What::Use(name) = item.what
            && arguments.iter().any(|lexeme| self.is_structural(lexeme))
        {
            self.used_inside[name as usize] = true;
        }
        self.note_inside(arguments);
    }

    fn note_inside(&mut self, code: &[Lexeme]) {
        for lexeme in code {
            if let Kind::Name(name) = lexeme.kind {
                self.used_inside[name as usize] = true;
            }
        }
    }

    fn is_structural(&self, lexeme: &Lexeme) -> bool {
        match lexeme.kind {
            Kind::Name(name) => self.structural[name as usize],
            Kind::Number => false,
            Kind::Mark(mark) => b"=;{}#".contains(&mark),
            Kind::Paste | Kind::If | Kind::Else | Kind::EndIf => true,
        }
    }

    /// Finds the macros that stand for whole items. Those that do by one definition only are barred, and if there are more of
    /// these than before, it was `false`.
    fn find_closed(&mut self, lexed: &Lexed<'_>, barred: &mut [bool]) -> Option<bool> {
        self.items.clear();
        self.closed.fill(false);
        self.defined.fill(false);
        let before = barred.to_vec();
        for of in &lexed.macros {
            let name = of.name as usize;
            let items = items(&of.body, |name| self.closed[name as usize])?;
            let is_closed = items.are_whole
                && !items.all.is_empty()
                && of.parameters.is_some()
                && !before[name]
                && !is_qualifier(lexed.names[name]);
            barred[name] |= self.defined[name] && self.closed[name] != is_closed;
            self.defined[name] = true;
            self.closed[name] = is_closed;
            self.items.push(is_closed.then_some(items.all));
        }
        Some(*barred == before)
    }

    /// Finds the macros that hold what ends a declaration, and those that hold these.
    fn find_structural(&mut self, lexed: &Lexed<'_>) {
        let mut held_by: Vec<Vec<Name>> = vec![Vec::new(); lexed.names.len()];
        let mut found = Vec::new();
        for of in &lexed.macros {
            for lexeme in &of.body {
                match lexeme.kind {
                    Kind::Name(name) if self.defined[name as usize] => {
                        held_by[name as usize].push(of.name);
                    }
                    _ if self.is_structural(lexeme) => found.push(of.name),
                    _ => {}
                }
            }
        }
        while let Some(name) = found.pop() {
            if !std::mem::replace(&mut self.structural[name as usize], true) {
                found.append(&mut held_by[name as usize]);
            }
        }
    }

    /// Finds the names that begin or end as what is pasted does.
    fn paste(&mut self, lexed: &Lexed<'_>) -> Option<()> {
        let is_paste = |lexeme: &Lexeme| lexeme.kind == Kind::Paste;
        if lexed.code.iter().any(is_paste) {
            return None;
        }
        let mut fragments: Vec<(&str, bool)> = Vec::new();
        for of in lexed
            .macros
            .iter()
            .filter(|of| of.body.iter().any(is_paste))
        {
            let mut from = 0;
            while from < of.body.len() {
                // a ## b ## c
                let mut to = from;
                while of.body.get(to + 1).is_some_and(is_paste) {
                    to += 2;
                }
                if to > from {
                    let fragment = self.fragment(lexed, of, of.body.get(from..=to)?)?;
                    if !fragments.contains(&fragment) {
                        fragments.push(fragment);
                    }
                }
                if is_paste(&of.body[from]) || fragments.len() > MAX_FRAGMENTS {
                    return None;
                }
                from = to + 1;
            }
        }
        let names = (0..).zip(&lexed.names).filter(|(_, name)| {
            let mut fragments = fragments.iter();
            fragments.any(|&(fragment, is_first)| match is_first {
                true => name.starts_with(fragment),
                false => name.ends_with(fragment),
            })
        });
        self.pasted = names.map(|(name, _)| name).collect();
        Some(())
    }

    /// How a pasted name begins, or else how it ends.
    fn fragment<'a>(
        &self,
        lexed: &Lexed<'a>,
        of: &Macro,
        chain: &[Lexeme],
    ) -> Option<(&'a str, bool)> {
        let word = |lexeme: &Lexeme| match lexeme.kind {
            Kind::Name(name) if self.defined[name as usize] || parameters(of).contains(&name) => {
                None
            }
            Kind::Name(_) | Kind::Number => Some(lexed.word(lexeme.at)),
            _ => None,
        };
        let first = word(chain.first()?).map(|word| (word, true));
        first.or_else(|| Some((word(chain.last()?)?, false)))
    }
}

fn parameters(of: &Macro) -> &[Name] {
    of.parameters.as_deref().unwrap_or_default()
}

/// Whether the macro takes the place of what stands in front of declarations, with parentheses behind it.
fn is_qualifier(name: &str) -> bool {
    matches!(name, "layout" | "subroutine") || name.starts_with("spirv_")
}
