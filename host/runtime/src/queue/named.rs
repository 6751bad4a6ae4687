//! What the commands are that were recorded, so that a lost device can say which of them did not finish.

use std::{collections::VecDeque, sync::Arc};

/// Most names that a message shows.
const SHOWN: usize = 4;

/// The names of what was recorded and was not seen done, oldest first, each with the number of its last command.
#[derive(Debug, Default)]
pub(super) struct Names(VecDeque<(u64, Arc<str>)>);

impl Names {
    /// Notes that the commands up to `last` are `name`'s, and forgets those up to `done`.
    pub(super) fn note(&mut self, last: u64, name: &Arc<str>, done: u64) {
        while self.0.front().is_some_and(|(last, _)| *last <= done) {
            self.0.pop_front();
        }
        self.0.push_back((last, name.clone()));
    }

    /// What has commands after `done` and not after `last`, in brackets after a space; nothing where none of it has a name.
    pub(super) fn between(&self, done: u64, last: u64) -> String {
        let mut names: Vec<&str> = Vec::new();
        let mut before = 0;
        for (end, name) in &self.0 {
            if *end > done && before < last && !names.contains(&&**name) {
                names.push(name);
            }
            before = *end;
        }
        let more = match names.len().saturating_sub(SHOWN) {
            0 => String::new(),
            more => format!("; and {more} more"),
        };
        names.truncate(SHOWN);
        match names.is_empty() {
            true => String::new(),
            false => format!(" ({}{more})", names.join("; ")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_batch_is_told_by_what_has_commands_in_it() {
        let mut names = Names::default();
        for (last, name) in [(2, "add"), (3, "dot"), (7, "sort"), (8, "add"), (9, "exp")] {
            names.note(last, &name.into(), 0);
        }
        assert_eq!(names.between(0, 2), " (add)");
        assert_eq!(names.between(1, 3), " (add; dot)");
        assert_eq!(names.between(2, 4), " (dot; sort)");
        assert_eq!(names.between(3, 8), " (sort; add)");
        assert_eq!(names.between(9, 12), "");
        names.note(10, &"log".into(), 0);
        names.note(11, &"tan".into(), 0);
        assert_eq!(names.between(0, 11), " (add; dot; sort; exp; and 2 more)");
        names.note(12, &"cos".into(), 9);
        assert_eq!(names.between(0, 12), " (log; tan; cos)");
    }
}
