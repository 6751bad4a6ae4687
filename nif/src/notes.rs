//! The thread that sends messages to processes: schedulers must not.

use crate::reply::Failure;
use std::sync::{
    OnceLock,
    mpsc::{Sender, channel},
};

/// A message to send.
pub(crate) type Note = Box<dyn FnOnce() + Send>;

/// What goes to the thread, which lives as long as the VM.
pub(crate) fn notes() -> Result<&'static Sender<Note>, Failure> {
    static NOTES: OnceLock<Sender<Note>> = OnceLock::new();
    if let Some(notes) = NOTES.get() {
        return Ok(notes);
    }
    let (sender, notes) = channel::<Note>();
    let thread = std::thread::Builder::new().name("nx_vulkan-events".to_owned());
    let spawned = thread.spawn(move || notes.into_iter().for_each(|note| note()));
    spawned.map_err(|error| {
        Failure::bad_input(format!(
            "the thread that sends events could not be started: {error}"
        ))
    })?;
    Ok(NOTES.get_or_init(|| sender))
}
