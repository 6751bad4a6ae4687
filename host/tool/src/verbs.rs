//! How an enum of verbs is declared: a verb is one variant, which holds its arguments.

/// An enum of verbs. What a variant holds has `run(&self, &Global)`, or is such an enum itself.
macro_rules! verbs {
    (
        $(#[$outer:meta])*
        $visible:vis enum $name:ident {
            $($(#[$inner:meta])* $variant:ident($arguments:ty),)+
        }
    ) => {
        $(#[$outer])*
        #[derive(Debug, clap::Subcommand)]
        #[command(subcommand_value_name = "VERB", subcommand_help_heading = "Verbs")]
        $visible enum $name {
            $($(#[$inner])* $variant($arguments),)+
        }

        impl $name {
            /// Does what the verb is for.
            $visible fn run(&self, global: &$crate::global::Global) -> $crate::output::Answer {
                match self {
                    $($name::$variant(arguments) => arguments.run(global),)+
                }
            }
        }
    };
}

pub(crate) use verbs;
