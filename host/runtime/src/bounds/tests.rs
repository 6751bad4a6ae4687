use super::*;
use std::{
    fmt::Write as _,
    time::{Duration, Instant},
};

/// `rows` times twice the row before, and a use of the last one with `end`.
fn doubling(rows: usize, head: &str, row: &str, end: &str) -> String {
    let mut text = format!("#version 450\n#define M0{head}\n");
    for i in 1..=rows {
        let row = row.replace('N', &(i - 1).to_string());
        writeln!(text, "#define M{i}{row}").unwrap();
    }
    text + &format!("void main() {{ float a = 1; a = M{rows}{end}; }}\n")
}

#[track_caller]
fn refused(text: &str, why: &str) {
    let error = check(text).unwrap_err();
    assert!(error.contains(why), "{error}");
}

#[test]
fn macros_that_double_are_counted_as_what_they_grow_to() {
    let bomb = |rows| doubling(rows, " a", " MN+MN", "");
    assert!(bomb(20).len() <= 517);
    check(&bomb(10)).unwrap();
    refused(&bomb(20), "operators");
    refused(&bomb(62), "operators");
    for (head, row, end) in [
        ("(x) x", "(x) MN(x)+MN(x)", "(a)"),
        ("(x) x", "(x) MN(x + x)", "(a)"),
        ("(f, x) f(x)", "(f, x) MN(f, f(x))+MN(f, x)", "(M1, a)"),
        (" a", " M ## N+ M ## N", ""),
    ] {
        refused(&doubling(40, head, row, end), "operators");
    }
}

#[test]
fn arguments_count_as_often_as_they_stand_in_the_body() {
    let nested = |n: usize| {
        let calls = "T(".repeat(n) + "a" + &")".repeat(n);
        format!("#version 450\n#define T(x) (x)+(x)\nvoid main() {{ float a = {calls}; }}\n")
    };
    check(&nested(10)).unwrap();
    refused(&nested(30), "operators");
    refused(&nested(1000), "nest deeper");
    let other_name = nested(30).replace("#define", "#define U T\n#define");
    refused(&other_name.replace("T(T(", "U(U("), "operators");
}

#[test]
fn what_is_hidden_from_a_naive_reader_is_found() {
    let bomb = doubling(30, " a", " MN+MN", "");
    for (from, to) in [
        ("#define M2 ", "#define \\\nM2 "),
        ("#define M2 ", "/* x */ # /* y\n */ define M2 "),
        ("#define M2 ", "#if 0\n#define M2 a\n#endif\n#define M2 "),
        ("#define M2 ", "#define M2 a\n#undef M2\n#define M2 "),
        ("#define M2 ", "// /*\n#define M2 "),
        ("#define M2 ", "#pragma \"/*\"\n#define M2 "),
        ("#define M2 ", "/\\\n* */#define M2 "),
        ("\n#define M2 ", "\r#define M2 "),
    ] {
        assert!(bomb.contains(from));
        refused(&bomb.replacen(from, to, 1), "operators");
    }
    refused(
        &bomb
            .replacen("#define M2 ", "// \\\n#define M2 ", 1)
            .replace("450", "330"),
        "backslash",
    );
    let commented = bomb.replacen("#define M30 ", "// \\\n#define M30 ", 1);
    check(&commented).unwrap();
}

#[test]
fn a_call_that_only_shows_when_it_is_looked_at_again_is_refused() {
    let text = "#version 450\n#define T(x) x+x\n#define ID(x) x\n#define OPEN (\n#define CLOSE )\n\
        void main() { float a = ID(T OPEN 1 CLOSE); }\n";
    refused(text, "without its arguments");
}

#[test]
fn macros_as_packs_write_them_pass() {
    let text = "#version 450\n#define self self\n#define exp(x) nxv_exp(x)\n#define TYPE f32\n\
        #define CAT_(a, b) a ## b\n#define CAT(a, b) CAT_(a, b)\n#define load_f32(x) x[0]\n\
        #define ITEMS(F) F(1) F(2) F(3)\n#define ADD(n) sum += n;\n#define NAME add_ ## TYPE\n\
        #define MAX(a, b) ((a) > (b) ? (a) : (b))\n\
        void main() { float sum = MAX(MAX(exp(1.0), self), MAX(MAX(1, 2), 3)); ITEMS(ADD)\n\
        sum = CAT(load_, TYPE)(b) + NAME(1) + exp(self); }\n";
    check(text).unwrap();
}

#[test]
fn members_and_blocks_count() {
    let main = |body: &str| format!("#version 450\nvoid main() {{ vec4 v = vec4(1.5); {body} }}\n");
    check(&main(&("v = v".to_owned() + &".xyzw".repeat(1000) + ";"))).unwrap();
    refused(
        &main(&("v = v".to_owned() + &".xyzw".repeat(400_001) + ";")),
        "operators",
    );
    let blocks = |n: usize| main(&("if (v.x > 0) {".repeat(n) + &"}".repeat(n)));
    check(&blocks(100)).unwrap();
    refused(&blocks(300), "blocks nest deeper");
    let opened = main(&("B ".repeat(300) + &"}".repeat(300)));
    refused(
        &opened.replacen('\n', "\n#define B if (v.x > 0) {\n", 1),
        "blocks nest deeper",
    );
    refused(
        &main(&("v.x = ".to_owned() + &"(".repeat(5000) + "1" + &")".repeat(5000) + ";")),
        "parentheses",
    );
}

/// Each took minutes before it was let through or refused.
#[test]
fn names_that_are_looked_for_again_and_again_are_counted() {
    let many =
        |name: &str, count: usize| (0..count).map(|i| format!("{name}{i}")).collect::<Vec<_>>();
    let defined = format!(
        "{}{}\n",
        "#define X\n".repeat(20_000),
        "X\n".repeat(160_000)
    );
    let parameters = many("p", 30_000).join(",");
    let given = format!(
        "#define M({parameters}) {}\nM({})\n",
        "p29999 ".repeat(100_000),
        many("", 30_000).join(",")
    );
    let macros: String = many("A", 30_000)
        .iter()
        .map(|name| format!("#define {name}\n"))
        .collect();
    let pasted = format!("{macros}#define P {}\nP\n", "B ## 1 ".repeat(100_000));
    for text in [defined, given, pasted] {
        let start = Instant::now();
        refused(&format!("#version 450\n{text}"), "macros grow");
        let took = start.elapsed();
        assert!(took < Duration::from_secs(20), "{took:?}");
    }
}
