//! The names of the ops that the host asks for; what they mean stands in `docs/ops.md`.

/// Every op of `docs/ops.md`, in its order.
pub(super) const NAMES: &[&str] = &[
    "exp",
    "expm1",
    "log",
    "log1p",
    "sigmoid",
    "cos",
    "sin",
    "tan",
    "cosh",
    "sinh",
    "tanh",
    "acosh",
    "asinh",
    "atanh",
    "acos",
    "asin",
    "atan",
    "sqrt",
    "rsqrt",
    "cbrt",
    "erf",
    "erfc",
    "erf_inv",
    "abs",
    "negate",
    "sign",
    "round",
    "ceil",
    "floor",
    "bitwise_not",
    "count_leading_zeros",
    "population_count",
    "is_nan",
    "is_infinity",
    "conjugate",
    "real",
    "imag",
    "add",
    "subtract",
    "multiply",
    "divide",
    "atan2",
    "pow",
    "remainder",
    "quotient",
    "min",
    "max",
    "bitwise_and",
    "bitwise_or",
    "bitwise_xor",
    "left_shift",
    "right_shift",
    "equal",
    "not_equal",
    "greater",
    "less",
    "greater_equal",
    "less_equal",
    "logical_and",
    "logical_or",
    "logical_xor",
    "select",
    "clip",
    "as_type",
    "iota",
    "eye",
    "fill",
    "sum",
    "product",
    "all",
    "any",
    "reduce_max",
    "reduce_min",
    "argmax",
    "argmin",
    "dot",
    "leapfrog_normal",
    "leapfrog_exponential",
    "leapfrog_studentt",
    "leapfrog_cauchy",
    "leapfrog_halfnormal",
    "leapfrog_weibull",
    "leapfrog_beta",
    "leapfrog_gamma",
    "leapfrog_lognormal",
];

#[cfg(test)]
mod tests {
    /// The first cell of every table row and every heading of the form `## `op``.
    #[test]
    fn the_list_is_that_of_the_documentation() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/ops.md");
        let text = std::fs::read_to_string(path).unwrap();
        let documented: Vec<&str> = text
            .lines()
            .filter_map(|line| {
                line.strip_prefix("| `")
                    .or_else(|| line.strip_prefix("## `"))
            })
            .filter_map(|rest| rest.split_once('`'))
            .flat_map(|(names, _)| names.split_whitespace())
            .collect();
        assert_eq!(documented, super::NAMES);
    }
}
