//! `nxv pack`: what an author of a kernel pack needs. Each verb has a file of its own.

mod bench;
mod check;
mod compile;
mod file;
mod new;
mod pin;
mod quarantine;
mod sign;
mod test;
mod watch;

use crate::verbs::verbs;

verbs! {
    /// Write, check, test, measure, pin and sign a kernel pack.
    ///
    /// What an author of a kernel pack needs. docs/writing-a-pack.md goes through all of it.
    pub(crate) enum Verb {
        New(new::New),
        Check(check::Check),
        Compile(compile::Compile),
        Test(test::Test),
        Bench(bench::Bench),
        Watch(watch::Watch),
        Pin(pin::Pin),
        Keygen(sign::Keygen),
        Sign(sign::Sign),
        Quarantine(quarantine::List),
        Release(quarantine::Release),
    }
}
