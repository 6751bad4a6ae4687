//! Where an id's entry lies in a list.

/// Places by id: a table of all ids while a module is read, and only what it holds afterwards.
#[derive(Debug)]
pub(super) struct Places {
    /// Places, counted from 1.
    table: Vec<u32>,
    sorted: Vec<(u32, u32)>,
}

impl Places {
    pub(super) fn new(bound: usize) -> Places {
        Places {
            table: vec![0; bound],
            sorted: Vec::new(),
        }
    }

    /// Notes a place for an id below the bound.
    pub(super) fn set(&mut self, id: u32, place: usize) {
        if let Some(entry) = self.table.get_mut(id as usize) {
            *entry = place as u32 + 1;
        }
    }

    pub(super) fn get(&self, id: u32) -> Option<usize> {
        if self.table.is_empty() {
            let at = self.sorted.binary_search_by_key(&id, |entry| entry.0);
            return at.ok().map(|at| self.sorted[at].1 as usize);
        }
        let place = *self.table.get(id as usize)?;
        (place as usize).checked_sub(1)
    }

    /// Gives the table's memory back.
    pub(super) fn shrink(&mut self) {
        let entries = (0..).zip(&self.table).filter(|entry| *entry.1 > 0);
        self.sorted = entries.map(|(id, place)| (id, place - 1)).collect();
        self.table = Vec::new();
    }
}
