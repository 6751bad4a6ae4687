use super::*;
use std::fmt::Write as _;

/// What is left of a text, with the lines that may be left out.
fn left_of(text: &str, spare: &[(usize, bool)]) -> String {
    let left = reachable(text, spare).unwrap_or_else(|| text.to_owned());
    let lines = |text: &str| text.split('\n').count();
    assert_eq!(lines(&left), lines(text), "every line is where it was");
    left
}

/// Which of the names `gone_…` are left, and whether all of `kept_…` are.
fn check(text: &str) {
    let left = left_of(text, &[(0, true)]);
    let words = |text: &str| -> Vec<String> {
        let words = text.split(|c: char| !c.is_ascii_alphanumeric() && c != '_');
        words.map(str::to_owned).collect()
    };
    let (before, after) = (words(text), words(&left));
    for name in &before {
        if name.starts_with("kept") {
            let count = |words: &[String]| words.iter().filter(|word| *word == name).count();
            assert_eq!(
                count(&before),
                count(&after),
                "{name} of {text}\nis not in {left}"
            );
        }
        assert!(
            !(name.starts_with("gone") && after.contains(name)),
            "{name} is in {left}"
        );
    }
}

fn with_main(items: &str, body: &str) -> String {
    format!("#version 450\n{items}\nvoid main() {{ {body} }}\n")
}

#[test]
fn what_main_cannot_reach_is_left_out() {
    check(&with_main(
        "float gone(float x) { return x; }\nfloat kept(float x) { return x; }\n\
         precise highp float gone2(const in float x[2], inout vec3 y) {\n  return gone(x[0]);\n}\n\
         float[2] gone3() { return float[2](1, 2); }\nfloat kept2() { return kept(1); }",
        "kept2();",
    ));
}

#[test]
fn overloads_stay_or_go_together() {
    check(&with_main(
        "float kept(float x) { return x; }\ndouble kept(double x) { return kept_too(x); }\n\
         double kept_too(double x) { return x; }\n\
         int gone(int x) { return x; }\nuint gone(uint x) { return gone(int(x)); }",
        "kept(1.0);",
    ));
}

/// No value of a structure can be without its name, and nothing is converted to one.
#[test]
fn overloads_for_structures_that_nothing_names_go() {
    check(&with_main(
        "#define FORM Kept\nstruct Kept { float x; };\nstruct Idle { float[kept_size] x; };\nstruct In { Kept k; } in_;\n\
         const int kept_size = 1;\nfloat kept(const inout Kept k, float Idle) { return gone_not(k.x); }\n\
         float kept(float Idle);\nfloat kept(float[2] a, FORM b) { return 1; }\nfloat gone_not(float x) { return x; }",
        "FORM f; kept(f, 1);",
    ).replace("gone_not", "kept_too"));
    let text = "struct A { float x; };\nstruct B { float x; };\nfloat f(A a) { return 1; }\n\
        float f(inout B b, float y) { return idle(); }\nfloat f(float x, B b[2]) { return 2; }\nfloat idle() { return 3; }\n";
    let left = |items: &str, body: &str| {
        let text = with_main(&format!("{text}{items}"), body);
        let left = left_of(&text, &[(0, true)]);
        [1, 2, 3]
            .map(|n| left.contains(&format!("return {n}")))
            .iter()
            .filter(|is_left| **is_left)
            .count()
    };
    assert_eq!(left("", "A a; f(a);"), 1);
    assert_eq!(left("", "A a; f(a); B b;"), 3);
    assert_eq!(left("buffer S { B b[]; };", "A a; f(a);"), 3);
    assert_eq!(left("#define MADE(x) B(x)", "A a; f(a); MADE(1);"), 3);
    assert_eq!(left("#define inout B", "A a; f(a);"), 3);
    assert_eq!(left("#define B A", "A a; f(a);"), 3);
}

#[test]
fn prototypes_go_with_their_functions() {
    check(&with_main(
        "float gone(float x);\nfloat kept(float);\nfloat gone(float x) { return x; }",
        "kept(1.0); }\nfloat kept(float x) { return x;",
    ));
}

#[test]
fn functions_of_initializers_layouts_and_structs_stay() {
    check(&with_main(
        "const float a = kept(1);\nfloat kept(float x) { return x; }\n\
         struct S { float[kept2(1)] kept3; } s;\nint kept2(int x) { return x; }\n\
         const float t[2] = { kept4(), 1 };\nfloat kept4() { return 1; }\n\
         layout(local_size_x = kept5()) in;\nint kept5() { return 1; }\n\
         layout(set = 0, binding = 0) buffer B { float kept6[]; } b[kept7()], c;\nint kept7() { return 1; }\n\
         float gone() { return 1; }",
        "",
    ));
}

#[test]
fn macros_count_once_they_are_named() {
    check(&with_main(
        "#define CALL(x) MORE(x)\n#define MORE(x) kept(x)\nfloat kept(float x) { return x; }",
        "CALL(1);",
    ));
    check(&with_main(
        "#if LIMIT(1) > 2\n#endif\n#define LIMIT(x) kept_name + x\nfloat kept_name() { return 1; }\n\
         #define SELF SELF + kept()\nfloat kept() { return SELF; }\nfloat gone() { return 1; }\n\
         #define A B\n#define B A kept()",
        "SELF;",
    ));
}

#[test]
fn a_macro_that_nothing_names_reaches_nothing() {
    let text = with_main("#define IDLE idle()\nfloat idle() { return 1; }", "");
    let left = left_of(&text, &[(0, true)]);
    assert_eq!(left, text.replace("float idle() { return 1; }", " "));
}

#[test]
fn functions_in_macros_go_one_by_one() {
    check(&with_main(
        "#define POWER(type) \\\n    type gone(type x) { \\\n        if (x > 0) { return x; } \\\n        return 1; \\\n    }\n\
         #define FUNCTIONS(type) \\\n    POWER(type) \\\n    type kept(type x) { return x; } \\\n    type gone2(type x) { return gone(x); }\n\
         FUNCTIONS(int)\nFUNCTIONS(float)\nint gone3(int x) { return x; }",
        "kept(1);",
    ));
    check(&with_main(
        "#define MAKE(name, type) type name(type x) { return kept_by_name(x); }\nMAKE(anything, int)\n\
         int kept_by_name(int x) { return x; }\nint gone(int x) { return x; }",
        "",
    ));
}

#[test]
fn macros_that_are_more_than_their_functions_stay_whole() {
    // Where one may stand for a statement, or gets what ends a declaration.
    for (macros, uses, body) in [
        ("#define M(t) return kept(t);", "", "M(1)"),
        (
            "#define M(t) t kept(t x) { return x; }",
            "M(int) int m = M;",
            "",
        ),
        (
            "#define M(t) t kept(t x) { return x; }\n#define D int a; int",
            "M(D)",
            "",
        ),
        (
            "#define M(t) t kept(t x) { return x; }\n#define APPLY(f, x) f(x)",
            "APPLY(M, int)",
            "",
        ),
        (
            "#define IN(t) t kept(t x) { return x; }\n#define M(t) IN(t)\n#define D int a; int",
            "M(D)",
            "",
        ),
        (
            "#define layout(x) int kept(int x) { return x; }",
            "layout(x) int kept2() { return 1; }",
            "",
        ),
        (
            "#define HEAD(name) float name(float x)",
            "HEAD(kept) { return 1; }",
            "",
        ),
        (
            "#define HELPERS float kept(float x) { return x; }",
            "HELPERS float kept2() { return 1; }",
            "",
        ),
    ] {
        check(&with_main(
            &format!("float gone() {{ return 1; }}\n{macros}\n{uses}"),
            body,
        ));
    }
}

#[test]
fn a_macro_that_is_whole_by_one_definition_only_is_not() {
    check(&with_main(
        "#ifdef A\n#define M(x) float kept(float y) { return x; }\n#else\n#define M(x)\n#endif\n\
         #define N(x) float gone() { return x; }\nN(1)",
        "",
    ));
}

#[test]
fn pasted_names_stay() {
    let functions =
        "float a_kept() { return 1; }\nfloat a_kept2() { return 1; }\nfloat gone() { return 1; }";
    for paste in ["#define P(x) a_ ## x ()", "#define P(x) a_ ## x ## _y ()"] {
        let left = left_of(
            &with_main(&format!("{paste}\n{functions}"), ""),
            &[(0, true)],
        );
        assert!(left.contains("a_kept()") && left.contains("a_kept2()") && !left.contains("gone"));
    }
    let suffix = with_main(&format!("#define P(x) x ## 2 ()\n{functions}"), "");
    let left = left_of(&suffix, &[(0, true)]);
    assert!(
        !left.contains("a_kept()") && left.contains("a_kept2()"),
        "{left}"
    );
    for any in [
        "#define P(x, y) x ## y ()",
        "#define A b\n#define P(x) A ## x ()",
        "#define P ## a",
    ] {
        assert_eq!(
            reachable(&with_main(&format!("{any}\n{functions}"), ""), &[(0, true)]),
            None
        );
    }
}

#[test]
fn conditions_count_whole_and_may_not_cut_functions() {
    check(&with_main(
        "#ifdef A\nfloat gone() { return 1; }\n#else\n#define KEPT 1\nfloat kept() { return 1; }\n#endif\n",
        "kept();",
    ));
    check(&with_main(
        "float gone(float x\n#ifdef A\n, float y\n#endif\n) {\n#ifdef A\n#define KEPT 1\n#line 7 1\nreturn y;\n#else\n\
         return x;\n#endif\n}\nfloat kept() {\n#if 0\nreturn kept2();\n#endif\nreturn 1; }\nfloat kept2() { return 1; }",
        "kept();",
    ));
    for cut in [
        "#ifdef A\nfloat f(float x) {\n#else\nfloat f(int x) {\n#endif\nreturn 1; }",
        "float f()\n#ifdef A\n{ return 1; }\n#else\n{ return 2; }\n#endif",
        "#ifdef A\nprecise\n#endif\nfloat f() { return 1; }",
        "void f() {\n#ifdef A\n}\nvoid g() {\n#endif\n}",
        "void f() { ( }",
        "#define OPEN {\nvoid f() OPEN }",
        "void f() { }\n#endif",
        "void f() { }\n#if 1",
        "void f() { }\n#else",
    ] {
        assert_eq!(reachable(&with_main(cut, ""), &[(0, true)]), None, "{cut}");
    }
}

#[test]
fn comments_are_no_names() {
    check(&with_main(
        "float gone(float x) { // }\n  /* }\n */ return x;\n}\n/* \\\n */ float kept() { return 1; }",
        "kept();",
    ));
    let named = with_main("float idle() { return 1; }", "/* idle() */ // idle()\n");
    assert!(!left_of(&named, &[(0, true)]).contains("float idle"));
    let moved = with_main("float gone() { return 1; }\n/*\n*/ int a = LINE;", "");
    assert!(reachable(&moved, &[(0, true)]).is_some());
    assert_eq!(
        reachable(&moved.replace("LINE", "__LINE__"), &[(0, true)]),
        None
    );
}

#[test]
fn only_spare_lines_are_left_out() {
    let text = with_main(
        "float a() { return 1; }\nfloat b() {\nreturn 1; }\nfloat c() { return 1; }",
        "",
    );
    for (spare, left) in [
        (&[(0, false), (2, true)][..], [true, false, false]),
        (&[(0, true), (3, false)], [false, true, true]),
        (&[(0, true), (4, false)], [false, false, true]),
        (&[(0, false), (3, true)], [true, true, false]),
        (&[], [true; 3]),
    ] {
        let found = left_of(&text, spare);
        for (name, is_left) in ["a()", "b()", "c()"].into_iter().zip(left) {
            assert_eq!(found.contains(name), is_left, "{name} {spare:?}");
        }
    }
}

#[test]
fn statements_and_names_of_macros_are_no_functions() {
    check(&with_main(
        "#define TYPE(x) float x\nconst TYPE(kept);\n#define EQUALS float kept2 =\nEQUALS TYPE(kept3);\n\
         #define BRANCH(x) else if (kept4(x)) { }\nbool kept4(int x) { return true; }\n\
         #define exp(x) kept5(x)\nfloat kept5(float x) { return x; }\nfloat gone() { return 1; }",
        "if (true) {} BRANCH(1) exp(1);",
    ));
}

#[test]
fn hostile_texts_are_looked_at_in_no_time() {
    let many = |unit: &str| unit.repeat(200_000 / unit.len());
    let mut chain = String::new();
    for i in 0..5000 {
        writeln!(
            chain,
            "#define M{i}(x) M{}(x) M{}(x) float f{i}() {{ return f{}(); }}",
            i + 1,
            i + 2,
            i + 1
        )
        .unwrap();
    }
    let started = std::time::Instant::now();
    for text in [
        many("{"),
        many("}"),
        many("f("),
        many("a b(c){}"),
        many("a b(c)"),
        many("M(a)(b)"),
        "#define M(x) float x;\n".to_owned() + &many("M(a)"),
        many("#if\n"),
        many("#if\nfloat f("),
        many("#define A A ##"),
        many("#define A(x) a ## x\n"),
        (0..10_000).fold(String::new(), |text, i| {
            text + &format!("#define A{i}(x) a{i} ## x\n")
        }),
        many("/*\n*/ a"),
        many("a \\\n"),
        many("\\\n"),
        many("#define A \\\n"),
        many("\"\n"),
        many("é#"),
        chain,
        "#".to_owned(),
        "#define".to_owned(),
        "#define A(".to_owned(),
        "#define A(x".to_owned(),
        "#define A()\n#define B(,)\nA() B(1,2)".to_owned(),
        String::new(),
    ] {
        for text in [with_main(&text, "a"), text] {
            let _ = reachable(&text, &[(0, true)]);
        }
    }
    let seconds = started.elapsed().as_secs();
    assert!(seconds < 300, "{seconds} s");
}

/// Whatever a text is cut to, and where: nothing panics.
#[test]
fn cut_texts_are_looked_at() {
    let header = nx_vulkan_abi::glsl::HEADERS
        .iter()
        .find(|h| h.0 == "dtype.glsl");
    let text = header.unwrap().1;
    for end in (0..text.len())
        .step_by(37)
        .filter(|&end| text.is_char_boundary(end))
    {
        let _ = reachable(&text[..end], &[(0, true)]);
        let _ = reachable(&text[end..], &[(0, true)]);
    }
}
