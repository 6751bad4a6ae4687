//! A GLSL text as numbered names and marks, with its macros apart.

use crate::bounds::text::{Token, definition, tokens};
use std::collections::HashMap;

/// Largest text that is looked at.
const MAX_TEXT: usize = 4 << 20;

/// A name, counted in the order in which they come.
pub(super) type Name = u32;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Kind {
    Name(Name),
    Number,
    /// `##`
    Paste,
    /// Any other punctuation.
    Mark(u8),
    /// `#if`, `#ifdef` and `#ifndef`.
    If,
    /// `#elif` and `#else`.
    Else,
    EndIf,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Lexeme {
    /// Its first byte in the text.
    pub(super) at: usize,
    pub(super) kind: Kind,
    /// Whether its line may be left out.
    pub(super) is_spare: bool,
}

/// A definition of a macro.
#[derive(Debug)]
pub(super) struct Macro {
    pub(super) name: Name,
    pub(super) parameters: Option<Vec<Name>>,
    pub(super) body: Vec<Lexeme>,
}

#[derive(Debug)]
pub(super) struct Lexed<'a> {
    pub(super) text: &'a str,
    pub(super) names: Vec<&'a str>,
    /// What stands outside of directives, and where conditions begin and end.
    pub(super) code: Vec<Lexeme>,
    pub(super) macros: Vec<Macro>,
    /// What other directives name.
    pub(super) directives: Vec<Name>,
}

impl<'a> Lexed<'a> {
    /// Takes a text without comments and continued lines. `None` where it is too large.
    pub(super) fn new(text: &'a str, spare: &[(usize, bool)]) -> Option<Lexed<'a>> {
        if text.len() > MAX_TEXT {
            return None;
        }
        let mut lexed = Lexed {
            text,
            names: Vec::new(),
            code: Vec::with_capacity(text.len() / 4),
            macros: Vec::new(),
            directives: Vec::new(),
        };
        // Names are strangers': a hash that they cannot foresee.
        let mut known: HashMap<&str, Name> = HashMap::new();
        let mut stretches = spare.iter().peekable();
        let (mut at, mut is_spare) = (0, false);
        for (number, line) in text.split('\n').enumerate() {
            while let Some(&(_, next)) = stretches.next_if(|stretch| stretch.0 <= number) {
                is_spare = next;
            }
            match line.trim_start().strip_prefix('#') {
                None => {
                    let found = lexemes(line, at, is_spare, &mut lexed.names, &mut known);
                    lexed.code.extend(found);
                }
                Some(directive) => lexed.directive(
                    directive,
                    at + line.len() - directive.len(),
                    is_spare,
                    &mut known,
                ),
            }
            at += line.len() + 1;
        }
        Some(lexed)
    }

    fn directive(
        &mut self,
        directive: &'a str,
        at: usize,
        is_spare: bool,
        known: &mut HashMap<&'a str, Name>,
    ) {
        let names = &mut self.names;
        if let Some(define) = definition(directive) {
            let parameters = define.parameters.into_iter().flatten();
            let parameters: Vec<Name> = parameters.map(|p| number(p, names, known)).collect();
            let is_call = directive[..directive.len() - define.body.len()].ends_with(')');
            let at = at + directive.len() - define.body.len();
            self.macros.push(Macro {
                name: number(define.name, names, known),
                parameters: is_call.then_some(parameters),
                body: lexemes(define.body, at, is_spare, names, known).collect(),
            });
            return;
        }
        let mut words = tokens(directive).map(|(_, token)| token);
        let kind = match words.next() {
            Some(Token::Name("if" | "ifdef" | "ifndef")) => Some(Kind::If),
            Some(Token::Name("elif" | "else")) => Some(Kind::Else),
            Some(Token::Name("endif")) => Some(Kind::EndIf),
            // Numbers of lines and files; the names of extensions are no functions'.
            Some(Token::Name("line" | "extension" | "version")) => return,
            _ => None,
        };
        self.code
            .extend(kind.map(|kind| Lexeme { at, kind, is_spare }));
        for token in words {
            if let Token::Name(name) = token {
                self.directives.push(number(name, names, known));
            }
        }
    }

    /// The word that begins there.
    pub(super) fn word(&self, at: usize) -> &'a str {
        match tokens(&self.text[at..]).next() {
            Some((_, Token::Name(word) | Token::Number(word))) => word,
            _ => "",
        }
    }
}

fn lexemes<'s, 'a>(
    text: &'a str,
    from: usize,
    is_spare: bool,
    names: &'s mut Vec<&'a str>,
    known: &'s mut HashMap<&'a str, Name>,
) -> impl Iterator<Item = Lexeme> + use<'s, 'a> {
    tokens(text).map(move |(at, token)| Lexeme {
        at: from + at,
        kind: match token {
            Token::Name(name) => Kind::Name(number(name, names, known)),
            Token::Number(_) => Kind::Number,
            Token::Open => Kind::Mark(b'('),
            Token::Close => Kind::Mark(b')'),
            Token::Comma => Kind::Mark(b','),
            Token::Paste => Kind::Paste,
            Token::Mark(mark) => Kind::Mark(mark),
        },
        is_spare,
    })
}

fn number<'a>(name: &'a str, names: &mut Vec<&'a str>, known: &mut HashMap<&'a str, Name>) -> Name {
    *known.entry(name).or_insert_with(|| {
        names.push(name);
        (names.len() - 1) as Name
    })
}
