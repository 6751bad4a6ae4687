//! How deep the control flow of a function nests.

use std::collections::HashMap;

/// How deep loops and selections, and loops alone, may nest in a module of others, through calls too.
///
/// The packs' 4,103 variants of a quick sweep reach 8 and 5. On lavapipe (Mesa 25.0.7) the compiler ends a process at 120
/// selections on the stack of a scheduler, and compiles 60 loops for more than 100 s.
pub(super) const BOUNDED: Nesting = Nesting { all: 40, loops: 12 };
/// The same in a library's module, and in generated log densities, which nest as deep as their expressions.
pub(super) const LIBRARY: Nesting = Nesting {
    all: 256,
    loops: 40,
};

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Nesting {
    all: u32,
    loops: u32,
}

impl Nesting {
    pub(super) fn plus(self, other: Nesting) -> Nesting {
        Nesting {
            all: self.all + other.all,
            loops: self.loops + other.loops,
        }
    }

    pub(super) fn max(self, other: Nesting) -> Nesting {
        Nesting {
            all: self.all.max(other.all),
            loops: self.loops.max(other.loops),
        }
    }

    pub(super) fn check(self, most: Nesting) -> Result<(), String> {
        if self.loops > most.loops {
            return Err(format!("its loops nest deeper than {}", most.loops));
        }
        match self.all > most.all {
            true => Err(format!("its control flow nests deeper than {}", most.all)),
            false => Ok(()),
        }
    }
}

#[derive(Debug)]
pub(super) struct Block {
    pub(super) label: u32,
    /// Where the construct that it heads ends, and where a loop goes on.
    pub(super) merge: Option<(u32, Option<u32>)>,
    pub(super) targets: Vec<u32>,
}

/// How deep each block lies in loops and selections: what a merge names lies where the construct's head does, and what a
/// head branches to lies one deeper. In structured control flow every way to a block gives it the same depth.
pub(super) fn nesting(blocks: &[Block], most: Nesting) -> Result<Vec<Nesting>, String> {
    let mut place = HashMap::with_capacity(blocks.len());
    for (at, block) in blocks.iter().enumerate() {
        place.insert(block.label, at);
    }
    let find = |label: &u32| {
        let found = place.get(label).copied();
        found.ok_or_else(|| format!("a branch to {label}, which is no block of its function"))
    };
    let mut is_end = vec![false; blocks.len()];
    let mut depths: Vec<Option<Nesting>> = vec![None; blocks.len()];
    for (first, _) in blocks.iter().enumerate() {
        // After the first, blocks that nothing reaches.
        if depths[first].is_none() {
            depths[first] = Some(Nesting::default());
        } else {
            continue;
        }
        let mut work = vec![first];
        while let Some(at) = work.pop() {
            let block = &blocks[at];
            let depth = depths[at].unwrap_or_default();
            depth.check(most)?;
            let mut inside = depth;
            let mut next = Vec::with_capacity(block.targets.len() + 2);
            if let Some((merge, goes_on)) = &block.merge {
                inside.all += 1;
                inside.loops += u32::from(goes_on.is_some());
                let ends = [(Some(merge), depth), (goes_on.as_ref(), inside)];
                for (label, depth) in ends {
                    let Some(label) = label else { continue };
                    let end = find(label)?;
                    is_end[end] = true;
                    next.push((end, depth, true));
                }
            }
            for label in &block.targets {
                let target = find(label)?;
                // A loop's own head is reached again from inside of it.
                let is_head = matches!(blocks[target].merge, Some((_, Some(_))));
                next.push((target, inside, !is_end[target] && !is_head));
            }
            for (target, depth, must_agree) in next {
                match depths[target] {
                    None => {
                        depths[target] = Some(depth);
                        work.push(target);
                    }
                    Some(known) if known != depth && must_agree && first == 0 => {
                        return Err("its control flow is not structured".to_owned());
                    }
                    Some(_) => {}
                }
            }
        }
    }
    Ok(depths.into_iter().map(Option::unwrap_or_default).collect())
}
