//! What a kernel that was picked does about its request, in words.

use super::ask::Ready;

/// Its dispatches, the memory it takes, how it wants operands, and why.
pub(super) fn summary(ready: &Ready) -> String {
    let Ready {
        compiled,
        prepare,
        why,
        ..
    } = ready;
    let plural = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
    let mut text = plural(compiled.steps.len(), "dispatch").replace("dispatchs", "dispatches");
    if !compiled.scratch.is_empty() {
        text += &format!(
            ", {} bytes of scratch",
            compiled.scratch.iter().sum::<u64>()
        );
    }
    for derivation in &compiled.derived.all {
        text += &format!(", input {} kept as it is packed", derivation.input);
    }
    for as_type in prepare {
        text += &format!(
            ", input {} made contiguous as {}",
            as_type.index, as_type.dtype
        );
    }
    if !why.is_empty() {
        text += &format!(": {why}");
    }
    text
}
