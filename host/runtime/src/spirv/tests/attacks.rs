//! Modules of an enemy: each is refused, and soon.

use super::*;
use std::time::{Duration, Instant};

#[test]
fn pointers_to_any_memory_are_refused() {
    let text = "#version 450\n#extension GL_EXT_buffer_reference : require\n\
        #extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\nlayout(local_size_x = 64) in;\n\
        layout(buffer_reference, std430) buffer Any { uint word; };\n\
        layout(set = 0, binding = 0) buffer A { uint64_t at; uint found; };\n\
        void main() { found = Any(at).word; }\n";
    let error = compile(text).unwrap_err();
    assert!(error.contains("SPIR-V capability 5347"), "{error}");
    // The capability alone is refused, and what stands for it without it is too.
    let base =
        compiled("layout(set = 0, binding = 0) buffer A { uint a; }; void main() { a = 1; }");
    let physical = changed(&base, |opcode, operands| {
        if opcode == opcode::MEMORY_MODEL {
            operands[0] = 5348;
        }
    });
    assert!(refusal(&physical).contains("addressing model 5348"));
    for class in [0, 3, 8, 11, 5349] {
        let other = changed(&base, |opcode, operands| match opcode {
            opcode::TYPE_POINTER if operands[1] == allowed::STORAGE_BUFFER => operands[1] = class,
            opcode::VARIABLE if operands[2] == allowed::STORAGE_BUFFER => operands[2] = class,
            _ => {}
        });
        assert!(refusal(&other).contains(&format!("storage class {class}")));
    }
}

#[test]
fn what_is_not_on_the_lists_is_refused() {
    let base =
        compiled("layout(set = 0, binding = 0) buffer A { float a; }; void main() { a = sin(a); }");
    // Kernel, linkage, samplers, images, variable pointers, ray queries, float atomics.
    for number in [6, 5, 4442, 4441, 4472, 6033, 5302, 65_000] {
        let other = changed(&base, |opcode, operands| {
            if opcode == opcode::CAPABILITY {
                operands[0] = number;
            }
        });
        assert!(refusal(&other).contains(&format!("capability {number}")));
    }
    let mut shown = Vec::new();
    let import = changed(&base, |opcode, operands| {
        if opcode == opcode::EXT_INST_IMPORT {
            operands.truncate(1);
            operands.extend([
                u32::from_le_bytes(*b"Open"),
                u32::from_le_bytes(*b"CL.s"),
                0,
            ]);
        }
    });
    shown.push((refusal(&import), "instructions \"OpenCL.s\""));
    // Modf and frexp write through a pointer.
    let modf = changed(&base, |opcode, operands| {
        if opcode == opcode::EXT_INST {
            operands[3] = 35;
        }
    });
    shown.push((refusal(&modf), "instruction 35 of GLSL"));
    let kill = changed(&base, |opcode, operands| {
        if opcode == opcode::DECORATE && operands[1] == allowed::BINDING {
            operands[1] = 41;
        }
    });
    shown.push((refusal(&kill), "decoration 41"));
    for (error, words) in shown {
        assert!(error.contains(words), "{error}");
    }
}

/// Drivers write to tables at such ids.
#[test]
fn ids_and_members_that_are_not_there_are_refused() {
    let base = compiled(
        "layout(set = 0, binding = 0) buffer A { uint a; }; layout(set = 0, binding = 1) readonly buffer B { uint b; }; \
        void main() { a = b + gl_LocalInvocationID.x; }",
    );
    let bound = base[3];
    let with = |opcode_: u32, place: usize, id: u32| {
        changed(&base, |opcode, operands| {
            if opcode == opcode_ {
                operands[place] = id;
            }
        })
    };
    let last = |operands: &[u32]| operands.len() - 1;
    for id in [bound, bound - 1 + (1 << 16), u32::MAX] {
        let shown = format!("it speaks of {id}, which it does not define");
        let interface = changed(&base, |opcode, operands| {
            if opcode == opcode::ENTRY_POINT {
                let last = last(operands);
                operands[last] = id;
            }
        });
        assert!(refusal(&interface).starts_with(&format!("{id} is not a pointer")));
        assert_eq!(refusal(&with(opcode::EXECUTION_MODE, 0, id)), shown);
        let bound = changed(&base, |opcode, operands| {
            if opcode == opcode::DECORATE && operands[1] == allowed::NON_WRITABLE {
                operands[0] = id;
            }
        });
        assert_eq!(refusal(&bound), shown);
        // What is for debuggers does not reach the driver.
        let named = with(opcode::NAME, 0, id);
        let admitted = Module::admit(named.into(), Origin::Stranger).unwrap();
        let opcodes = scan::instructions(admitted.words()).map(|each| each.unwrap().1);
        assert!(opcodes.into_iter().all(|opcode| opcode != opcode::NAME));
    }
    let member = with(opcode::MEMBER_DECORATE, 1, 1);
    let error = refusal(&member);
    assert!(
        error.starts_with("it decorates member 1 of ") && error.ends_with("which has 1"),
        "{error}"
    );
    // One number where there are three.
    let built_in = |number| {
        changed(&base, |opcode, operands| {
            if opcode == opcode::DECORATE && operands[1] == allowed::BUILT_IN && operands[2] == 27 {
                operands[2] = number;
            }
        })
    };
    assert!(admit(&built_in(24), Origin::Stranger).is_ok());
    assert!(refusal(&built_in(29)).contains("has another type than that"));
    let endless = changed(&base, |opcode, operands| {
        if opcode == opcode::ENTRY_POINT {
            operands.truncate(3);
            operands[2] = u32::from_le_bytes(*b"mine");
        }
    });
    assert!(refusal(&endless).contains("an entry point's name has no end"));
}

/// Nothing bounds their accesses, so that they are for code that is trusted anyway.
#[test]
fn cooperative_matrices_are_for_libraries() {
    let text = "#version 450\n#extension GL_KHR_cooperative_matrix : require\n\
        #extension GL_KHR_memory_scope_semantics : require\n\
        #extension GL_EXT_shader_explicit_arithmetic_types_float16 : require\nlayout(local_size_x = 64) in;\n\
        layout(set = 0, binding = 0) buffer A { float16_t a[]; };\n\
        layout(set = 0, binding = 1) buffer B { float16_t b[]; };\n\
        void main() {\n\
            coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> m;\n\
            coopMatLoad(m, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor); m[0] *= m[1];\n\
            coopMatStore(m, b, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n        }\n";
    let words = compile(text).unwrap();
    let module = admit(&words, Origin::Library).unwrap();
    assert!(module.needs.has(Features::COOPMAT));
    assert_eq!(
        (&module.bindings[..], &module.written[..]),
        (&[0, 1][..], &[1][..])
    );
    let error = admit(&words, Origin::Stranger).unwrap_err();
    assert!(error.contains("it needs CooperativeMatrixKHR"), "{error}");
}

/// What a module says of itself is not believed.
#[test]
fn a_module_that_writes_what_it_calls_read_only_is_refused() {
    let base = compiled(
        "layout(set = 0, binding = 0) writeonly buffer A { float a[]; }; void main() { a[3] = 1.0; }",
    );
    const NON_READABLE: u32 = 25;
    let hostile = changed(&base, |opcode, operands| {
        let at = match opcode {
            opcode::DECORATE => 1,
            opcode::MEMBER_DECORATE => 2,
            _ => return,
        };
        if operands[at] == NON_READABLE {
            operands[at] = allowed::NON_WRITABLE;
        }
    });
    assert_ne!(base, hostile);
    let error = refusal(&hostile);
    assert!(error.contains("writes to binding 0"), "{error}");
}

/// 1,036 bytes that took the interface's reader 32 levels of 250 members each.
#[test]
fn a_struct_that_is_its_own_member_is_refused() {
    let own = [7; 229];
    let words = assembled(
        10,
        &[
            (opcode::TYPE_STRUCT, &own),
            (opcode::TYPE_POINTER, &[8, allowed::PUSH_CONSTANT, 7]),
            (opcode::VARIABLE, &[8, 9, allowed::PUSH_CONSTANT]),
        ],
    );
    assert_eq!(4 * words.len(), 1036);
    let error = soon(|| refusal(&words));
    assert!(
        error.contains("7 is not a type that was defined before"),
        "{error}"
    );
}

/// Every struct has 200 members of the one before it: 200^15 numbers.
#[test]
fn types_that_multiply_are_measured_once() {
    let structs: Vec<Vec<u32>> = (0..15)
        .map(|n| std::iter::once(10 + n).chain([9 + n; 200]).collect())
        .collect();
    let mut types: Vec<(u32, &[u32])> = vec![(opcode::TYPE_FLOAT, &[9, 32])];
    types.extend(structs.iter().map(|s| (opcode::TYPE_STRUCT, s.as_slice())));
    let push: [(u32, &[u32]); 2] = [
        (opcode::TYPE_POINTER, &[30, allowed::PUSH_CONSTANT, 24]),
        (opcode::VARIABLE, &[30, 31, allowed::PUSH_CONSTANT]),
    ];
    let words = assembled(32, &[&types[..], &push, &EMPTY_MAIN].concat());
    let module = soon(|| admit(&words, Origin::Stranger)).unwrap();
    assert_eq!(module.push_bytes, 4);
    let private: [(u32, &[u32]); 2] = [
        (opcode::TYPE_POINTER, &[30, allowed::PRIVATE, 24]),
        (opcode::VARIABLE, &[30, 31, allowed::PRIVATE]),
    ];
    let words = assembled(32, &[&types[..], &private, &EMPTY_MAIN].concat());
    for origin in [Origin::Library, Origin::Stranger] {
        let error = soon(|| admit(&words, origin)).unwrap_err();
        assert!(error.contains("bytes of private memory"), "{error}");
    }
    let null: [(u32, &[u32]); 1] = [(opcode::CONSTANT_NULL, &[24, 31])];
    let words = assembled(32, &[&types[..], &null, &EMPTY_MAIN].concat());
    let error = soon(|| refusal(&words));
    assert!(error.contains("a value has"), "{error}");
}

#[test]
fn functions_that_multiply_are_refused() {
    let calls = |levels: u32, times: &str| {
        let level = |n: u32| {
            let body = times.replace('N', &format!("f{}", n - 1));
            format!("int f{n}(int x) {{ return {body}; }}\n")
        };
        let text: String = (1..=levels).map(level).collect();
        format!(
            "#version 450\nlayout(set = 0, binding = 0) buffer A {{ int a[]; }};\n\
             layout(local_size_x = 1) in;\nint f0(int x) {{ return x / 3; }}\n{text}\
             void main() {{ a[0] = f{levels}(a[1]); }}\n"
        )
    };
    assert!(compile(&calls(10, "N(x) + N(x + 1)")).is_ok());
    let error = soon(|| compile(&calls(40, "N(x) + N(x + 1)")).unwrap_err());
    assert!(error.contains("once its functions are inlined"), "{error}");
    let error = compile(&calls(100, "N(x) + 1")).unwrap_err();
    assert!(error.contains("call each other deeper"), "{error}");
}

#[test]
fn a_function_that_calls_itself_is_refused() {
    let base = compiled(
        "layout(set = 0, binding = 0) buffer A { int a[]; };\nint f(int x) { return x + 1; }\n\
         int g(int x) { return f(x); }\nvoid main() { a[0] = g(a[1]); }",
    );
    let mut functions = Vec::new();
    changed(&base, |opcode, operands| {
        if opcode == opcode::FUNCTION {
            functions.push(operands[1]);
        }
    });
    let mut calls = 0;
    let own = changed(&base, |opcode, operands| {
        if opcode == opcode::FUNCTION_CALL {
            calls += 1;
            // Functions follow main, f before g; the call that is not main's is g's.
            if calls == 2 {
                operands[2] = functions[2];
            }
        }
    });
    assert!(refusal(&own).contains("calls itself"));
}

#[test]
fn control_flow_that_nests_deep_is_refused() {
    let nested = |count: usize, head: &str, origin: Origin| {
        let open: String = (0..count)
            .map(|n| head.replace('N', &n.to_string()))
            .collect();
        let close = "}".repeat(count);
        let text = format!(
            "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer A {{ int a[]; }};\n\
             void main() {{ int x = a[0]; {open} x += a[x]; {close} a[gl_LocalInvocationIndex] = x; }}\n"
        );
        compile_of(&text, origin)
    };
    let branch = "if (a[N] > x) {";
    let walk = "for (int iN = 0; iN < a[N]; ++iN) {";
    for (origin, branches, loops) in [(Origin::Stranger, 40, 12), (Origin::Library, 200, 40)] {
        nested(branches - 10, branch, origin).unwrap();
        nested(loops - 4, walk, origin).unwrap();
    }
    for (origin, branches, loops) in [(Origin::Stranger, 120, 60), (Origin::Library, 255 + 5, 60)] {
        let error = nested(branches, branch, origin).unwrap_err();
        assert!(error.contains("nest"), "{error}");
        let error = nested(loops, walk, origin).unwrap_err();
        assert!(error.contains("loops nest deeper than"), "{error}");
    }
}

/// Through functions, which drivers inline.
#[test]
fn control_flow_that_nests_deep_through_calls_is_refused() {
    let functions: String = (1..12)
        .map(|n| {
            format!(
                "int f{n}(int x) {{ for (int i = 0; i < x; ++i) for (int j = 0; j < x; ++j) x += f{}(i); return x; }}\n",
                n - 1
            )
        })
        .collect();
    let text = format!(
        "#version 450\nlayout(local_size_x = 64) in;\nlayout(set = 0, binding = 0) buffer A {{ int a[]; }};\n\
         int f0(int x) {{ return a[x]; }}\n{functions}void main() {{ a[0] = f11(a[1]); }}\n"
    );
    let error = compile_of(&text, Origin::Stranger).unwrap_err();
    assert!(error.contains("loops nest deeper than"), "{error}");
}

#[test]
fn buffers_are_bound_one_by_one() {
    for (what, body) in [
        (
            "a uniform block",
            "layout(set = 0, binding = 0) uniform A { float a; };",
        ),
        (
            "an array of blocks",
            "layout(set = 0, binding = 0) buffer A { float a; } many[4];\n#define a many[0].a",
        ),
    ] {
        let text = format!(
            "#version 450\nlayout(local_size_x = 64) in;\n{body}\n\
             layout(set = 0, binding = 5) buffer R {{ float r; }};\nvoid main() {{ r = a; }}\n"
        );
        let error = compile(&text).unwrap_err();
        assert!(
            error.contains("no storage buffer with a binding"),
            "{what}: {error}"
        );
    }
    let other_set = "#version 450\nlayout(set = 1, binding = 0) buffer A { float a; };\nvoid main() { a = 1; }\n";
    let error = compile(other_set).unwrap_err();
    assert!(error.contains("descriptor sets other than 0"), "{error}");
}

/// Any word of a module replaced by many others: an answer, never a panic, and never long.
#[test]
fn any_changed_word_is_answered() {
    let words = compiled(
        "layout(set = 0, binding = 0) buffer A { uint a[]; };\nshared uint s[8];\n\
         uint f(uint x) { uint t[4]; t[x] = x; for (uint i = 0; i < x; ++i) t[i & 3] += a[i]; return t[x & 3]; }\n\
         void main() { s[a[0]] = f(a[1]); barrier(); if (s[1] > 2) a[s[2]] = uvec4(1)[a[3]]; }",
    );
    let start = Instant::now();
    for (at, &own) in words.iter().enumerate() {
        for word in [
            0,
            1,
            own ^ 1,
            own + 1,
            own.wrapping_sub(1),
            own ^ 1 << 16,
            7,
            0x7fff_ffff,
            u32::MAX,
        ] {
            let mut hostile = words.clone();
            hostile[at] = word;
            if let Ok(module) = admit(&hostile, Origin::Stranger) {
                let again = admit(module.words(), Origin::Stranger);
                assert!(again.is_ok(), "word {at} is {word}: {again:?}");
            }
        }
    }
    assert!(start.elapsed() < Duration::from_secs(60));
}
