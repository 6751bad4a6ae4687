//! `nxv`: what is on this machine, who runs what, is it right, how fast is it. It only calls the host runtime.

mod asked;
mod bench;
mod check;
mod contest;
mod devices;
mod explain;
mod global;
mod operands;
mod ops;
mod output;
mod pack;
mod progress;
mod registry;
mod spec;
mod sweep;
mod timing;
mod tune;
mod verbs;
mod workloads;

use clap::Parser;
use global::Global;
use nx_vulkan_host::stderr;
use nx_vulkan_registry::child;
use std::{ffi::OsString, process::ExitCode};
use verbs::verbs;

/// Looks at nx_vulkan from the command line: devices, kernels, correctness, speed.
#[derive(Debug, Parser)]
#[command(
    name = "nxv",
    version,
    // Where an option is given twice, the last one counts, but for those that are lists: requests, attributes, results.
    args_override_self = true,
    after_help = "\
`nxv help VERB` says more.

$NX_VULKAN_DEVICE, $NX_VULKAN_REGISTRY, $NX_VULKAN_PACKS, $NX_VULKAN_CACHE, $NX_VULKAN_VALIDATION=1 and \
$NX_VULKAN_CHECKED=1 say the same as the options; under a registry in mode locked only the first does.

Exit code: 0 on success, 1 on failure, 2 on a command line that makes no sense."
)]
struct Cli {
    #[command(subcommand)]
    verb: Verb,
    #[command(flatten, next_help_heading = "Options of every verb")]
    global: Global,
}

verbs! {
    enum Verb {
        Devices(devices::Devices),
        Ops(ops::Ops),
        Explain(explain::Explain),
        Check(check::Check),
        Bench(bench::Bench),
        Tune(tune::Tune),
        #[command(subcommand)]
        Pack(pack::Verb),
        #[command(subcommand)]
        Registry(registry::Verb),
    }
}

fn main() -> ExitCode {
    stderr::install();
    let words: Vec<OsString> = std::env::args_os().skip(1).collect();
    if let Some(code) = nx_vulkan_child::run(&words) {
        return code;
    }
    child::hear_children();
    let cli = Cli::parse();
    output::finish(cli.verb.run(&cli.global), cli.global.json)
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::error::ErrorKind;

    fn parsed(line: &str) -> Result<Cli, clap::Error> {
        Cli::try_parse_from(["nxv"].into_iter().chain(line.split_whitespace()))
    }

    #[test]
    fn options_stand_anywhere_and_with_or_without_equals() {
        let line = "--json explain dot f32[2,2] --attr axes=0,1 f32[2,2] --out=f32[2] --device 1";
        let cli = parsed(line).unwrap();
        let Verb::Explain(explain) = &cli.verb else {
            panic!("{cli:?}");
        };
        assert!(cli.global.json);
        assert_eq!(explain.op, "dot");
        assert_eq!((explain.operands.len(), explain.attrs.len()), (2, 1));
        assert_eq!(explain.out.len(), 1);
        assert_eq!(cli.global.device.as_deref(), Some("1"));
    }

    #[test]
    fn of_an_option_that_is_given_twice_the_last_one_counts() {
        let cli = parsed("--device a tune --budget 1 --budget 2 --device b --json --json").unwrap();
        let Verb::Tune(tune) = &cli.verb else {
            panic!("{cli:?}");
        };
        assert_eq!(tune.budget.as_secs(), 2);
        assert_eq!(cli.global.device.as_deref(), Some("b"));
    }

    #[test]
    fn mistakes_are_told_apart() {
        for (line, kind) in [
            ("expalin", ErrorKind::InvalidSubcommand),
            ("bench --fliter x", ErrorKind::UnknownArgument),
            ("bench --filter", ErrorKind::InvalidValue),
            ("check --json=yes", ErrorKind::TooManyValues),
            ("check --seed x", ErrorKind::ValueValidation),
            ("devices --seed 1", ErrorKind::UnknownArgument),
            ("ops f32[2]", ErrorKind::UnknownArgument),
            ("help nothing", ErrorKind::InvalidSubcommand),
        ] {
            assert_eq!(parsed(line).unwrap_err().kind(), kind, "{line}");
        }
    }
}
