//! What `pack.toml` may contain, as tables by which the reader checks; what depends on other keys is checked elsewhere.

use crate::{
    kernel::MAX_RANK,
    schema::{Block, Format, Key, NUMERICS, Value, keys, optional, required},
};

/// The version of the contract that tables are written for.
pub(super) const VERSION: &str = "1";
/// Entries of a list that has no limit of its own.
pub(super) const MAX_ENTRIES: usize = 64;

const LIST: Value = Value::List(0, &Value::Any);
const TYPES: Value = Value::List(0, &Value::Text(Format::TypeSet));
/// Where `types` is a list.
pub(super) const SIGNATURES: Value = Value::List(0, &Value::Text(Format::Any));

pub(super) const FILE: Block = Block {
    name: "the file",
    keys: keys! {
        required "pack": Value::Table(&PACK);
        required "kernel": Value::List(0, &Value::Table(&KERNEL));
    },
};

const PACK: Block = Block {
    name: "[pack]",
    keys: keys! {
        required "id": Value::Text(Format::PackId);
        required "version": Value::Text(Format::Version);
        required "abi": Value::Text(Format::Any);
    },
};

/// A kernel, with the keys of its step where that stands in its own table.
const KERNEL: Block = Block {
    name: "[[kernel]]",
    keys: keys! {
        required "id": Value::Text(Format::Printable);
        required "op": Value::Text(Format::Printable);
        optional "inputs": TYPES;
        optional "outputs": TYPES;
        optional "types": Value::Any;
        optional "needs": Value::List(0, &Value::Text(Format::Feature));
        optional "numerics": NUMERICS;
        optional "rank": Value::Integer(0, MAX_RANK as i64);
        optional "contiguous": Value::Boolean;
        optional "let": Value::Entries;
        optional "when": LIST;
        optional "scratch": LIST;
        optional "step": Value::List(0, &Value::Table(&STEP));
        optional "shader": Value::Text(Format::Any);
        optional "bindings": LIST;
        optional "defines": Value::Entries;
        optional "push": LIST;
        optional "groups": LIST;
        optional "constants": Value::Entries;
        optional "subgroup_size": Value::Any;
        optional "repeat": Value::Table(&REPEAT);
    },
};

pub(super) const STEP: Block = Block {
    name: "[[kernel.step]]",
    keys: keys! {
        required "shader": Value::Text(Format::Any);
        optional "bindings": LIST;
        optional "defines": Value::Entries;
        optional "push": LIST;
        required "groups": LIST;
        optional "constants": Value::Entries;
        optional "subgroup_size": Value::Any;
        optional "repeat": Value::Table(&REPEAT);
    },
};

/// A range of steps that runs several times.
const REPEAT: Block = Block {
    name: "`repeat`",
    keys: keys! {
        optional "steps": Value::Integer(1, MAX_ENTRIES as i64);
        required "times": Value::Any;
    },
};

/// A push constant that grows with each repetition.
pub(super) const COUNTING: Block = Block {
    name: "a push constant",
    keys: keys! {
        required "from": Value::Any;
        required "by": Value::Any;
    },
};

/// An entry of `when` that is no expression itself.
pub(super) const CONDITION: Block = Block {
    name: "a condition",
    keys: keys! {
        required "check": Value::Any;
        required "reason": Value::Text(Format::Any);
    },
};
