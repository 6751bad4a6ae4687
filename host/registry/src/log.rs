//! The host's log: one line each on standard error.

/// Something is wrong that the caller may not see otherwise.
pub fn error(message: &str) {
    eprintln!("[nx_vulkan] error: {message}");
}

/// Something a user should know and what stops nothing.
pub fn warning(message: &str) {
    eprintln!("[nx_vulkan] warning: {message}");
}

/// Something happened that a developer waits for.
pub fn info(message: &str) {
    eprintln!("[nx_vulkan] {message}");
}
