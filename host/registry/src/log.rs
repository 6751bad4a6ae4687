//! The host's log: one line each on standard error.

use std::{
    collections::BTreeSet,
    sync::{Mutex, PoisonError},
};

/// Warnings that are told once.
const MOST_TOLD: usize = 100;

/// Something is wrong that the caller may not see otherwise.
pub fn error(message: &str) {
    eprintln!("[nx_vulkan] error: {message}");
}

/// Something a user should know and what stops nothing.
pub fn warning(message: &str) {
    eprintln!("[nx_vulkan] warning: {message}");
}

/// As [`warning`], for what a process is told once however often it comes up.
pub fn warning_once(message: &str) {
    static TOLD: Mutex<BTreeSet<String>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    if told.len() < MOST_TOLD && told.insert(message.to_owned()) {
        warning(message);
    }
}

/// Something happened that a developer waits for.
pub fn info(message: &str) {
    eprintln!("[nx_vulkan] {message}");
}
