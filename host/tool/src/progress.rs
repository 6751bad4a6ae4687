//! How far a long verb is, on a terminal. Where standard error is none, or the answer is JSON, nothing is shown.

use crate::global::Global;
use indicatif::{ProgressBar, ProgressStyle};

/// A bar without a length yet, which is gone from the terminal when it is dropped.
pub(crate) fn bar(global: &Global) -> ProgressBar {
    if global.json {
        return ProgressBar::hidden();
    }
    let style = ProgressStyle::with_template("{bar:30} {pos} of {len}  {wide_msg}");
    ProgressBar::no_length().with_style(style.expect("the template is well formed"))
}
