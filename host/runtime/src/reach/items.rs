//! What stands one behind the other at the top level of a text: functions, declarations, uses of macros.

use super::lexed::{Kind, Lexeme, Name};
use std::ops::Range;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum What {
    /// A function, with where its name stands.
    Function(usize),
    /// The declaration of one, likewise.
    Prototype(usize),
    /// A macro with its arguments that stands for whole items.
    Use(Name),
    Other,
}

#[derive(Debug, Clone)]
pub(super) struct Item {
    pub(super) range: Range<usize>,
    pub(super) what: What,
}

#[derive(Debug)]
pub(super) struct Items {
    pub(super) all: Vec<Item>,
    /// Whether the last one ends with what ends one.
    pub(super) are_whole: bool,
}

/// Splits code into items. `is_closed` tells which macros with parameters stand for whole items. `None` where brackets do
/// not match, or where the branches of a condition do not all begin and end in the same item and as deep in it.
pub(super) fn items(code: &[Lexeme], is_closed: impl Fn(Name) -> bool) -> Option<Items> {
    let mut all = Vec::new();
    let mut open: Vec<u8> = Vec::new();
    let mut conditions: Vec<(usize, Option<usize>)> = Vec::new();
    // The item that goes on, the brace that its function begins with, and the token before.
    let (mut first, mut brace, mut before) = (None, None, Kind::Number);
    for (index, lexeme) in code.iter().enumerate() {
        let state = (open.len(), first);
        let mark = match lexeme.kind {
            Kind::If => {
                conditions.push(state);
                continue;
            }
            Kind::Else if conditions.last() == Some(&state) => continue,
            Kind::EndIf if conditions.pop() == Some(state) => continue,
            Kind::Else | Kind::EndIf => return None,
            Kind::Mark(mark) => mark,
            Kind::Name(_) | Kind::Number | Kind::Paste => 0,
        };
        let from = *first.get_or_insert(index);
        match mark {
            b'(' | b'[' | b'{' => {
                if mark == b'{' && open.is_empty() && before == Kind::Mark(b')') {
                    brace = brace.or(Some(index));
                }
                open.push(mark);
            }
            b')' | b']' | b'}' => {
                let opened = open.pop()?;
                if !matches!((opened, mark), (b'(', b')') | (b'[', b']') | (b'{', b'}')) {
                    return None;
                }
            }
            _ => {}
        }
        before = lexeme.kind;
        if !open.is_empty() {
            continue;
        }
        let what = match (mark, brace) {
            (b';', _) => name_of(code, from..index).map_or(What::Other, What::Prototype),
            (b'}', Some(brace)) => name_of(code, from..brace).map_or(What::Other, What::Function),
            // The first group of the item, or else the item had ended there.
            (b')', _) => match (code[from].kind, code[from + 1].kind) {
                (Kind::Name(name), Kind::Mark(b'(')) if is_closed(name) => What::Use(name),
                _ => continue,
            },
            _ => continue,
        };
        let range = from..index + 1;
        all.push(Item { range, what });
        (first, brace) = (None, None);
    }
    if !open.is_empty() || !conditions.is_empty() {
        return None;
    }
    let are_whole = first.is_none();
    if let Some(from) = first {
        all.push(Item {
            range: from..code.len(),
            what: What::Other,
        });
    }
    Some(Items { all, are_whole })
}

/// Where the name stands in `type name(parameters)`, if that is what code is.
fn name_of(code: &[Lexeme], head: Range<usize>) -> Option<usize> {
    let kinds = || code[head.clone()].iter().map(|lexeme| lexeme.kind);
    let group = kinds().position(|kind| kind == Kind::Mark(b'('))?;
    let may_stand_before = |kind| match kind {
        Kind::Name(_) | Kind::Number => true,
        Kind::Mark(mark) => !b"=;{}#\"\\".contains(&mark),
        Kind::Paste | Kind::If | Kind::Else | Kind::EndIf => false,
    };
    let mut depth = 0_usize;
    let end = kinds().skip(group).position(|kind| {
        depth += usize::from(kind == Kind::Mark(b'('));
        depth -= usize::from(kind == Kind::Mark(b')'));
        depth == 0
    })?;
    let name = group.checked_sub(1).filter(|&name| name > 0)?;
    let is_name = matches!(code[head.start + name].kind, Kind::Name(_));
    let is_head =
        is_name && kinds().take(name).all(may_stand_before) && group + end + 1 == head.len();
    is_head.then_some(head.start + name)
}
