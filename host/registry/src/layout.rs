//! The layout check between the host's contract and a pack's, in both directions, and its verdict in one line.

use abi_stable::{
    abi_stability::abi_checking::{
        AbiInstability, AbiInstabilityErrors, CheckingGlobals, ExpectedFound,
        check_layout_compatibility_with_globals,
    },
    type_layout::TypeLayout,
};
use std::fmt::Display;

/// Whether either side may be the older one: prefix types grow at the end, and abi_stable's own check
/// accepts only a pack that is at least as new as the host.
pub(super) fn check(host: &'static TypeLayout, pack: &'static TypeLayout) -> Result<(), String> {
    // What abi_stable remembers of the packs before would refuse one with more fields than they have.
    let alone = |interface, implementation| {
        let nothing = CheckingGlobals::new();
        check_layout_compatibility_with_globals(interface, implementation, &nothing)
    };
    match alone(host, pack) {
        Ok(()) => Ok(()),
        Err(newer) => alone(pack, host).map_err(|_| one_line(&newer)),
    }
}

/// The deepest difference, as `describe.kernels: size 32 expected, 40 found`.
fn one_line(errors: &AbiInstabilityErrors) -> String {
    let deepest = errors
        .errors
        .iter()
        .max_by_key(|error| error.stack_trace.len());
    let Some(error) = deepest else {
        return "its types differ from the host's".to_owned();
    };
    // A field prints over many lines, of which the first is `field_name:…`; parameters have no name, pointers
    // are field 0.
    let steps = error.stack_trace.iter().filter_map(|step| {
        let text = step.found.to_string();
        text.lines()
            .next()?
            .strip_prefix("field_name:")
            .map(str::to_owned)
    });
    let named = |step: &String| step.starts_with(|c: char| c.is_alphabetic() || c == '_');
    let path: Vec<String> = steps.filter(named).collect();
    let place = if path.is_empty() {
        "the root module".to_owned()
    } else {
        path.join(".")
    };
    let what = error
        .errs
        .iter()
        .map(describe)
        .next()
        .unwrap_or_else(|| "differs".to_owned());
    format!("{place}: {what}")
}

fn describe(error: &AbiInstability) -> String {
    match error {
        AbiInstability::Name(names) => {
            format!(
                "type {} expected, {} found",
                names.expected.name(),
                names.found.name()
            )
        }
        AbiInstability::Package(packages) => pair("crate", packages),
        AbiInstability::PackageVersion(v) => {
            format!(
                "crate version {} expected, {} found",
                v.expected.version, v.found.version
            )
        }
        AbiInstability::Size(sizes) => pair("size", sizes),
        AbiInstability::Alignment(alignments) => pair("alignment", alignments),
        AbiInstability::FieldCountMismatch(counts) => pair("number of fields", counts),
        AbiInstability::UnexpectedField(fields) => {
            format!(
                "field {} expected, {} found",
                fields.expected.name(),
                fields.found.name()
            )
        }
        AbiInstability::MismatchedPrimitive(_) => "another primitive type".to_owned(),
        AbiInstability::FnLifetimeMismatch(_) | AbiInstability::FieldLifetimeMismatch(_) => {
            "other lifetimes".to_owned()
        }
        _ => "an incompatible definition".to_owned(),
    }
}

fn pair<T: Display>(what: &str, values: &ExpectedFound<T>) -> String {
    format!(
        "{what} {} expected, {} found",
        values.expected, values.found
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use abi_stable::{StableAbi, abi_stability::abi_checking::check_layout_compatibility};
    use nx_vulkan_abi::{HostApiRef, PackRef, pack::Described};

    /// A root module as some version of a contract has it, and a use of each of its fields.
    macro_rules! contract {
        ($name:ident, $code:ty, $run:ident, [$($added:ident)?]) => {
            mod $name {
                #[repr(C)]
                #[derive(abi_stable::StableAbi)]
                #[sabi(kind(Prefix(prefix_ref = RootRef)))]
                #[sabi(missing_field(option))]
                pub(super) struct Root {
                    pub(super) $run: extern "C" fn(Value) -> u64,
                    #[sabi(last_prefix_field)]
                    pub(super) rank: u64,
                    $(pub(super) $added: u64,)?
                }

                #[repr(C)]
                #[derive(abi_stable::StableAbi)]
                pub(super) struct Value {
                    pub(super) code: $code,
                }

                extern "C" fn code(value: Value) -> u64 {
                    value.code.into()
                }

                pub(super) fn root() -> RootRef {
                    use abi_stable::prefix_type::PrefixTypeTrait as _;
                    Root { $run: code, rank: 20, $($added: 300)? }.leak_into_prefix()
                }

                pub(super) fn sum(root: RootRef) -> u64 {
                    root.$run()(Value { code: 1 }) + root.rank() $(+ root.$added().unwrap_or(4000))?
                }
            }
        };
    }

    contract!(old, u32, run, []);
    contract!(new, u32, run, [added]);
    contract!(renamed, u32, start, []);
    contract!(retyped, u64, run, []);

    #[test]
    fn a_pack_may_be_older_or_newer_than_the_host() {
        let (old, new) = (old::RootRef::LAYOUT, new::RootRef::LAYOUT);
        assert_eq!(check(old, new), Ok(()));
        assert_eq!(check(new, old), Ok(()));
        assert!(
            check_layout_compatibility(new, old).is_err(),
            "abi_stable accepts it alone now"
        );
    }

    #[test]
    fn a_field_the_other_side_does_not_have_reads_as_absent() {
        assert_eq!((old::sum(old::root()), new::sum(new::root())), (21, 321));
        // SAFETY: the layout check accepts both directions, and fields after the prefix are optional.
        let as_new = unsafe { std::mem::transmute::<old::RootRef, new::RootRef>(old::root()) };
        // SAFETY: as above.
        let as_old = unsafe { std::mem::transmute::<new::RootRef, old::RootRef>(new::root()) };
        assert_eq!((new::sum(as_new), old::sum(as_old)), (4021, 21));
    }

    #[test]
    fn what_is_not_an_addition_at_the_end_is_refused_with_its_path() {
        assert_eq!(
            (renamed::sum(renamed::root()), retyped::sum(retyped::root())),
            (21, 21)
        );
        let refusal = |pack| check(old::RootRef::LAYOUT, pack).unwrap_err();
        assert_eq!(
            refusal(renamed::RootRef::LAYOUT),
            "the root module: field run expected, start found"
        );
        assert_eq!(
            refusal(retyped::RootRef::LAYOUT),
            "run.code: type u32 expected, u64 found"
        );
    }

    #[test]
    fn the_contract_passes_and_other_types_fail_in_one_short_line() {
        assert_eq!(check(PackRef::LAYOUT, PackRef::LAYOUT), Ok(()));
        for other in [HostApiRef::LAYOUT, Described::LAYOUT, u32::LAYOUT] {
            let error = check(PackRef::LAYOUT, other).unwrap_err();
            assert!(error.len() < 200 && !error.contains('\n'), "{error}");
            assert!(error.contains("expected"), "{error}");
        }
    }
}
