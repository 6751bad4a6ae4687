//! Indices of strangers' modules.

use super::*;
use std::collections::HashMap;

/// Instructions of that number.
fn count(words: &[u32], number: u32) -> usize {
    let all = scan::instructions(words).map(Result::unwrap);
    all.filter(|instruction| instruction.1 == number).count()
}

fn minima(words: &[u32]) -> usize {
    let all = scan::instructions(words).map(Result::unwrap);
    let is_minimum = |operands: &[u32]| operands.get(3) == Some(&opcode::GLSL_U_MIN);
    all.filter(|(_, number, operands)| *number == opcode::EXT_INST && is_minimum(operands))
        .count()
}

#[test]
fn a_module_without_ids_to_spare_for_its_bounds_is_refused() {
    let mut words = compiled(
        "layout(set = 0, binding = 0) buffer B { uint b[]; };\nshared uint s[8];\nvoid main() { b[0] = s[b[1]]; }",
    );
    words[3] = 1 << 16;
    assert!(admit(&words, Origin::Library).is_ok());
    let refusal = admit(&words, Origin::Stranger).unwrap_err();
    assert!(refusal.contains("too many ids"), "{refusal}");
    // Bounds that fit stay within what is admitted.
    words[3] -= 100;
    let module = admit(&words, Origin::Stranger).unwrap();
    admit(module.words(), Origin::Stranger).unwrap();
}

#[test]
fn loose_indices_of_strangers_are_bounded_and_only_they() {
    let cases = [
        (0, "b[i] = b[b[0]];"),
        (0, "b[i] = v[2]; v.x = s[7];"),
        (1, "b[i] = s[i];"),
        (1, "b[i] = s[int(i)];"),
        (1, "s[i] = b[i];"),
        (2, "b[i] = square[i][b[0]];"),
        (1, "uint t[5]; t[0] = i; b[i] = t[b[0]];"),
        (1, "b[i] = v[b[0]];"),
        (1, "vec2 w = vec2(i); w[b[0]] = 1.0; b[i] = uint(w.x);"),
        (1, "atomicAdd(s[b[0]], 1);"),
        (1, "b[i] = uvec4(1, 2, 3, 4)[i];"),
        (
            1,
            "const uint table[3] = uint[](1, 2, 3); b[i] = table[b[0]];",
        ),
        (1, "b[i] = gl_WorkGroupID[b[0]];"),
        (1, "b[i] = p.list[b[0]];"),
        // What is bounded already stays as it is.
        (0, "b[i] = s[b[0] & 7];"),
        (0, "b[i] = s[b[0] % 8];"),
        (1, "b[i] = s[min(b[0], 7)];"),
    ];
    for (expected, body) in cases {
        let words = compiled(&format!(
            "layout(set = 0, binding = 0) buffer B {{ uint b[]; }};\nshared uint s[8];\nshared uint square[4][4];\n\
             uvec3 v;\nlayout(push_constant) uniform P {{ uint list[4]; }} p;\n\
             void main() {{ uint i = gl_LocalInvocationIndex; {body} }}"
        ));
        let own = minima(&words);
        let module = admit(&words, Origin::Stranger).unwrap();
        let bounded = minima(module.words()) - own;
        assert_eq!(bounded + own, expected, "{body}");
        let again = admit(module.words(), Origin::Stranger).unwrap();
        assert_eq!(again.words(), module.words(), "{body}");
        let library = admit(&words, Origin::Library).unwrap();
        assert_eq!(library.words()[..], words);
    }
}

/// Lengths that specialization decides, and indices of other widths than the length's.
#[test]
fn lengths_of_specialization_bound_indices_of_any_width() {
    let text = "#version 450\n#extension GL_EXT_shader_explicit_arithmetic_types_int64 : require\n\
        #extension GL_EXT_shader_explicit_arithmetic_types_int16 : require\n\
        layout(local_size_x_id = 0) in;\nlayout(constant_id = 1) const int N = 4;\n\
        layout(set = 0, binding = 0) buffer B { uint b[]; };\nshared uint s[N * 2 + gl_WorkGroupSize.x];\n\
        shared uint t[1000];\n\
        void main() { uint i = b[0]; b[1] = s[i] + s[int(i)]; b[2] = t[i];\n";
    // The compiler takes indices of 32 bits only; what it converts to them is put in their place.
    let narrow = "b[3] = s[int(int16_t(i))] + t[int(int16_t(i))];";
    let wide = "b[3] = s[int(int64_t(i))] + t[int(int64_t(i))];";
    for more in ["", narrow, wide] {
        let words = compile(&format!("{text}{more} }}\n")).unwrap();
        let mut converted = HashMap::new();
        let words = changed(&words, |opcode, operands| match opcode {
            opcode::S_CONVERT => drop(converted.insert(operands[1], operands[2])),
            opcode::ACCESS_CHAIN => {
                let last = operands.len() - 1;
                operands[last] = *converted.get(&operands[last]).unwrap_or(&operands[last]);
            }
            _ => {}
        });
        let module = admit(&words, Origin::Stranger).unwrap();
        let expected = if more.is_empty() { 3 } else { 5 };
        assert_eq!(minima(module.words()), expected);
        assert!(count(module.words(), opcode::I_SUB) >= expected - 2);
        admit(module.words(), Origin::Stranger).unwrap();
        let special = module.specialize(&[(0, 32), (1, 100)]).unwrap();
        assert_eq!(special.shared_bytes, 4 * (200 + 32 + 1000));
    }
}
