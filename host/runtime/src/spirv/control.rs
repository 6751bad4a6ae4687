//! The functions of a module: how deep their control flow nests and how large they are once they are inlined, which is
//! what compilers of drivers do, most of them by recursion.

mod nesting;

use super::opcode;
use nesting::{BOUNDED, Block, LIBRARY, Nesting, nesting};
use std::collections::HashMap;

/// How large a module may be once it is inlined: an instruction counts as many as its result has scalars.
/// The packs' variants reach 17,089.
const MAX_SIZE: u64 = 1 << 20;
/// How deep functions may call each other. The packs' variants reach 8.
const MAX_CALLS: u32 = 64;

/// A function while it is read.
#[derive(Debug)]
struct Open {
    id: u32,
    kind: u32,
    result: u32,
    parameters: Vec<u32>,
    seen: usize,
    blocks: Vec<Block>,
    in_block: bool,
    size: u64,
    variables: Vec<u32>,
    /// Function, and the block that calls it.
    calls: Vec<(u32, usize)>,
}

/// A function that was read.
#[derive(Debug)]
struct Function {
    id: u32,
    kind: u32,
    nesting: Nesting,
    size: u64,
    /// Types of its variables.
    variables: Vec<u32>,
    calls: Vec<(u32, Nesting)>,
}

/// How a function is applied to the elements of a matrix, all of one type, which it also gives.
#[derive(Debug)]
pub(super) struct Applied {
    pub(super) function: u32,
    pub(super) element: u32,
    /// Types of what it takes after row, column and element; `None` where it takes two elements.
    pub(super) further: Option<Vec<u32>>,
}

#[derive(Debug, Default)]
pub(super) struct Control {
    open: Option<Open>,
    functions: Vec<Function>,
    place: HashMap<u32, usize>,
    /// Functions that are called, with the types that the call gives and takes.
    calls: Vec<(u32, u32, Vec<u32>)>,
    /// Functions that are applied to the elements of matrices.
    applied: Vec<Applied>,
    /// Functions with those that they call before them, once all were read.
    order: Vec<usize>,
    most: Nesting,
}

impl Control {
    /// For a module whose nesting is bounded as strangers' are, or as libraries'.
    pub(super) fn new(is_bounded: bool) -> Control {
        Control {
            most: if is_bounded { BOUNDED } else { LIBRARY },
            ..Control::default()
        }
    }

    pub(super) fn in_function(&self) -> bool {
        self.open.is_some()
    }

    pub(super) fn begin(&mut self, id: u32, kind: u32, result: u32, parameters: &[u32]) {
        self.open = Some(Open {
            id,
            kind,
            result,
            parameters: parameters.to_vec(),
            seen: 0,
            blocks: Vec::new(),
            in_block: false,
            size: 0,
            variables: Vec::new(),
            calls: Vec::new(),
        });
    }

    pub(super) fn parameter(&mut self, kind: u32) -> Result<(), String> {
        let open = self.open()?;
        let expected = open.parameters.get(open.seen);
        if expected != Some(&kind) || !open.blocks.is_empty() {
            return Err(format!(
                "function {} has other parameters than its type",
                open.id
            ));
        }
        open.seen += 1;
        Ok(())
    }

    pub(super) fn label(&mut self, label: u32) -> Result<(), String> {
        let open = self.open()?;
        if open.in_block || open.seen != open.parameters.len() {
            return Err(format!(
                "block {label} begins inside of another, or without parameters"
            ));
        }
        open.in_block = true;
        open.blocks.push(Block {
            label,
            merge: None,
            targets: Vec::new(),
        });
        Ok(())
    }

    /// An instruction inside of a block, whose result has that many scalars.
    pub(super) fn instruction(&mut self, scalars: u64) -> Result<(), String> {
        let open = self.open()?;
        open.size = open.size.saturating_add(scalars.max(1));
        match open.in_block && open.blocks.last().is_some_and(|b| b.merge.is_none()) {
            true => Ok(()),
            false => Err(
                "an instruction is outside of a block, or between a merge and its branch"
                    .to_owned(),
            ),
        }
    }

    pub(super) fn variable(&mut self, kind: u32) -> Result<(), String> {
        self.open()?.variables.push(kind);
        Ok(())
    }

    pub(super) fn call(
        &mut self,
        function: u32,
        result: u32,
        arguments: Vec<u32>,
    ) -> Result<(), String> {
        let open = self.open()?;
        open.calls
            .push((function, open.blocks.len().saturating_sub(1)));
        self.calls.push((function, result, arguments));
        Ok(())
    }

    /// A call for elements of a matrix.
    pub(super) fn apply(&mut self, applied: Applied) -> Result<(), String> {
        let open = self.open()?;
        open.calls
            .push((applied.function, open.blocks.len().saturating_sub(1)));
        self.applied.push(applied);
        Ok(())
    }

    pub(super) fn merge(&mut self, merge: u32, goes_on: Option<u32>) -> Result<(), String> {
        self.instruction(1)?;
        if let Some(block) = self.open()?.blocks.last_mut() {
            block.merge = Some((merge, goes_on));
        }
        Ok(())
    }

    /// The end of a block.
    pub(super) fn branch(&mut self, opcode: u32, targets: Vec<u32>) -> Result<(), String> {
        let open = self.open()?;
        let ends = open.in_block.then(|| open.blocks.last_mut()).flatten();
        let block = ends.ok_or("a branch is outside of a block")?;
        let branches = matches!(
            opcode,
            opcode::BRANCH | opcode::BRANCH_CONDITIONAL | opcode::SWITCH
        );
        if block.merge.is_some() && !branches {
            return Err("a merge is not followed by a branch".to_owned());
        }
        block.targets = targets;
        open.in_block = false;
        open.size = open.size.saturating_add(1);
        Ok(())
    }

    /// Type of what the function gives.
    pub(super) fn result(&mut self) -> Result<u32, String> {
        Ok(self.open()?.result)
    }

    pub(super) fn end(&mut self) -> Result<(), String> {
        let open = self
            .open
            .take()
            .ok_or("a function ends that did not begin")?;
        if open.in_block || open.blocks.is_empty() {
            return Err(format!(
                "function {} ends inside of a block, or has none",
                open.id
            ));
        }
        let nesting = nesting(&open.blocks, self.most)?;
        let calls = open
            .calls
            .iter()
            .map(|(function, block)| (*function, nesting[*block]));
        let calls = calls.collect();
        let deepest = nesting
            .iter()
            .fold(Nesting::default(), |deepest, n| deepest.max(*n));
        self.place.insert(open.id, self.functions.len());
        self.functions.push(Function {
            id: open.id,
            kind: open.kind,
            nesting: deepest,
            size: open.size,
            variables: open.variables,
            calls,
        });
        Ok(())
    }

    /// Whether a function of that id was read.
    pub(super) fn has(&self, function: u32) -> bool {
        self.place.contains_key(&function)
    }

    /// Checks calls and sizes once every function was read; `signature` gives result and parameters of a type,
    /// `is_index` tells whether a row or a column may be of a type.
    pub(super) fn finish(
        &mut self,
        signature: impl Fn(u32) -> Option<(u32, Vec<u32>)>,
        is_index: impl Fn(u32) -> bool,
    ) -> Result<(), String> {
        let missing = || "it ends before all of its functions are defined".to_owned();
        if self.open.is_some() {
            return Err(missing());
        }
        for (function, result, arguments) in &self.calls {
            let place = self.place.get(function).ok_or_else(missing)?;
            let found = signature(self.functions[*place].kind);
            if found.is_none_or(|found| found.0 != *result || found.1 != *arguments) {
                return Err(format!("function {function} is called as another type"));
            }
        }
        for Applied {
            function,
            element,
            further,
        } in &self.applied
        {
            let place = self.place.get(function).ok_or_else(missing)?;
            let found = signature(self.functions[*place].kind);
            let fits = found.is_some_and(|(result, parameters)| {
                let takes = match (parameters.as_slice(), further) {
                    ([row, column, own, rest @ ..], Some(further)) => {
                        is_index(*row) && is_index(*column) && own == element && rest == further
                    }
                    ([left, right], None) => left == element && right == element,
                    _ => false,
                };
                result == *element && takes
            });
            if !fits {
                return Err(format!("function {function} is no function of elements"));
            }
        }
        self.sort()?;
        let mut totals = vec![(0u64, Nesting::default(), 0u32); self.functions.len()];
        for &at in &self.order {
            let function = &self.functions[at];
            let (mut size, mut nesting, mut depth) = (function.size, function.nesting, 0);
            for (called, inside) in &function.calls {
                let (more, deeper, calls) = totals[self.place[called]];
                size = size.saturating_add(more);
                nesting = nesting.max(inside.plus(deeper));
                depth = depth.max(calls + 1);
            }
            nesting.check(self.most)?;
            if size > MAX_SIZE {
                return Err(format!(
                    "it has more than {MAX_SIZE} instructions once its functions are inlined"
                ));
            }
            if depth > MAX_CALLS {
                return Err(format!(
                    "its functions call each other deeper than {MAX_CALLS}"
                ));
            }
            totals[at] = (size, nesting, depth);
        }
        Ok(())
    }

    /// Bytes of the variables of the largest function once what it calls is inlined; `size` gives those of a type.
    pub(super) fn variables(&self, size: impl Fn(u32) -> u64) -> u64 {
        let mut totals = vec![0u64; self.functions.len()];
        for &at in &self.order {
            let function = &self.functions[at];
            let own = function.variables.iter().map(|kind| size(*kind));
            let called = function
                .calls
                .iter()
                .map(|(called, _)| totals[self.place[called]]);
            totals[at] = own.chain(called).fold(0, u64::saturating_add);
        }
        totals.into_iter().max().unwrap_or(0)
    }

    /// Orders the functions, those that are called first.
    fn sort(&mut self) -> Result<(), String> {
        let mut waiting = vec![0usize; self.functions.len()];
        let mut callers = vec![Vec::new(); self.functions.len()];
        for (at, function) in self.functions.iter().enumerate() {
            waiting[at] = function.calls.len();
            for (called, _) in &function.calls {
                callers[self.place[called]].push(at);
            }
        }
        let ready = |n: &usize| waiting[*n] == 0;
        self.order = (0..self.functions.len()).filter(ready).collect();
        let mut next = 0;
        while let Some(&at) = self.order.get(next) {
            next += 1;
            for &caller in &callers[at] {
                waiting[caller] -= 1;
                if waiting[caller] == 0 {
                    self.order.push(caller);
                }
            }
        }
        match waiting.iter().position(|n| *n > 0) {
            Some(at) => Err(format!("function {} calls itself", self.functions[at].id)),
            None => Ok(()),
        }
    }

    fn open(&mut self) -> Result<&mut Open, String> {
        let outside = "an instruction of a function is outside of one";
        self.open.as_mut().ok_or_else(|| outside.to_owned())
    }
}
