//! What is read of a module: its workgroup, its bindings, its push constants.

use super::*;

#[test]
fn garbage_is_refused() {
    const MAGIC: u32 = 0x0723_0203;
    let header = [MAGIC, 0x0001_0500, 0, 10, 0];
    assert!(refusal(&[]).contains("start like SPIR-V"));
    assert!(refusal(&[MAGIC, 0, 0]).contains("start like SPIR-V"));
    assert!(refusal(&header).contains("no memory model"));
    let with = |more: &[u32]| refusal(&[&header, more].concat());
    assert!(with(&[0]).contains("runs past the end"));
    assert!(with(&[9 << 16 | 17]).contains("runs past the end"));
    assert!(with(&[1 << 16 | 17]).contains("not allowed"));
    assert!(refusal(&[MAGIC, 0, 0, u32::MAX, 0]).contains("bound"));
}

#[test]
fn a_small_module_is_admitted() {
    let words = assembled(5, &EMPTY_MAIN);
    let module = admit(&words, Origin::Stranger).unwrap();
    assert_eq!(module.words()[..], words);
    let special = module.specialize(&[]).unwrap();
    assert_eq!(special.local_size, Some([64, 1, 1]));
    assert!(refusal(&assembled(5, &[])).contains("functions are defined"));
    assert!(refusal(&assembled(4, &EMPTY_MAIN)).contains("out of its bound"));
}

#[test]
fn the_workgroup_size_is_that_of_main() {
    const SIDE: u32 = u32::from_le_bytes(*b"side");
    const MAIN: u32 = u32::from_le_bytes(*b"main");
    let function = |id, label| -> [(u32, Vec<u32>); 4] {
        [
            (opcode::FUNCTION, vec![2, id, 0, 3]),
            (opcode::LABEL, vec![label]),
            (opcode::RETURN, vec![]),
            (opcode::FUNCTION_END, vec![]),
        ]
    };
    let start: [(u32, &[u32]); 8] = [
        (opcode::CAPABILITY, &[1]),
        (opcode::MEMORY_MODEL, &[0, 1]),
        (opcode::ENTRY_POINT, &[5, 5, SIDE, 0]),
        (opcode::ENTRY_POINT, &[5, 1, MAIN, 0]),
        (opcode::EXECUTION_MODE, &[5, 17, 1, 1, 1]),
        (opcode::EXECUTION_MODE, &[1, 17, 4096, 1, 1]),
        (opcode::TYPE_VOID, &[2]),
        (opcode::TYPE_FUNCTION, &[3, 2]),
    ];
    let mut words = vec![0x0723_0203, 0x0001_0500, 0, 10, 0];
    let functions = [function(1, 6), function(5, 7)].concat();
    let start = start.map(|(opcode, operands)| (opcode, operands.to_vec()));
    for (opcode, operands) in start.into_iter().chain(functions) {
        words.push((operands.len() as u32 + 1) << 16 | opcode);
        words.extend(operands);
    }
    let module = admit(&words, Origin::Stranger).unwrap();
    let special = module.specialize(&[]).unwrap();
    assert_eq!(special.local_size, Some([4096, 1, 1]));
}

/// Wherever a file was cut off.
#[test]
fn truncated_modules_are_refused() {
    let words = compiled(
        "layout(set = 0, binding = 1) buffer B { int b[]; };\nint half_of(int x) { return x / 2; }\n\
         void main() { if (b[0] > 1) { b[1] = half_of(b[0]); } }",
    );
    for len in 0..words.len() {
        assert!(
            admit(&words[..len], Origin::Library).is_err(),
            "{len} words"
        );
    }
}

#[test]
fn workgroup_sizes_follow_specialization() {
    let words = compile(
        "#version 450\nlayout(local_size_x_id = 3, local_size_y = 2) in;\n\
         layout(constant_id = 7) const int K = 5;\n\
         shared float kept[gl_WorkGroupSize.x * 4];\n\
         layout(set = 0, binding = 1) buffer B { float b[]; };\nvoid main() { kept[0] = K; b[0] = kept[0]; }\n",
    );
    let module = admit(&words.unwrap(), Origin::Stranger).unwrap();
    let with = |special: &[(u32, u32)]| module.specialize(special).unwrap();
    assert_eq!(with(&[]).local_size, Some([1, 2, 1]));
    assert_eq!(with(&[(3, 64)]).local_size, Some([64, 2, 1]));
    assert_eq!(with(&[]).shared_bytes, 16);
    assert_eq!(with(&[(3, 64)]).shared_bytes, 1024);
    assert!(module.specialize(&[(3, 0)]).is_err());
    assert_eq!(module.bindings, [1]);
    assert!(module.spec_ids.contains(&7) && module.spec_ids.contains(&3));
}

#[test]
fn push_constants_end_where_the_last_member_does() {
    let bytes = |body: &str| {
        let module = admit(&compiled(body), Origin::Stranger).unwrap();
        module.push_bytes
    };
    assert_eq!(bytes("void main() {}"), 0);
    let some = "struct Walk { uint first; uint step; };\n\
        layout(push_constant, std430) uniform P { uint n; Walk w[3]; mat2 m; } p;\n\
        layout(set = 0, binding = 0) buffer B { float b[]; };\n\
        void main() { b[0] = p.m[1][1] + p.w[2].step + p.n; }";
    // 4, then 3 times 8, then a matrix of two columns of 8 bytes at a multiple of 8.
    assert_eq!(bytes(some), 32 + 16);
    let by_row = some.replace("mat2 m", "layout(row_major) mat4x2 m");
    assert_eq!(bytes(&by_row), 32 + 32);
}

#[test]
fn a_binding_is_written_where_an_instruction_writes_it() {
    let written = |body: &str| {
        let text = format!(
            "layout(set = 0, binding = 0) buffer A {{ uint a[]; }};\n\
             layout(set = 0, binding = 1) buffer B {{ uint n; uvec4 v; uint b[8]; }};\n\
             layout(set = 0, binding = 2) buffer C {{ uint c[]; }};\n\
             void add(inout uint x) {{ x += 1; }}\n\
             void main() {{ uint i = gl_LocalInvocationIndex; {body} }}"
        );
        let module = admit(&compiled(&text), Origin::Stranger).unwrap();
        assert_eq!(module.bindings, [0, 1, 2]);
        module.written
    };
    let reads = "uint r = a[i] + v[i] + b[i] + c.length() + n;";
    let all = |more: &str| written(&format!("{reads} {more}"));
    assert_eq!(all("c[i] = r;"), [2]);
    assert_eq!(all("c[r] = 1; v[i & 3] = r;"), [1, 2]);
    assert_eq!(all("atomicAdd(a[i], r);"), [0]);
    assert_eq!(all("atomicCompSwap(b[i], 1, r);"), [1]);
    assert_eq!(all("add(b[r]); n = r;"), [1]);
    assert_eq!(all("if (r == 7) add(a[r]); else c[0] = r;"), [0, 2]);
}

/// All members were looked through for each variable.
#[test]
fn many_variables_may_have_one_block_of_many_members() {
    const MEMBERS: u32 = 12_000;
    const VARIABLES: u32 = 40_000;
    let (float, block, pointer, first) = (5, 6, 7, 8);
    let mut all: Vec<(u32, Vec<u32>)> = vec![(opcode::DECORATE, vec![block, allowed::BLOCK])];
    for member in 0..MEMBERS {
        let offset = vec![block, member, allowed::OFFSET, 4 * member];
        all.push((opcode::MEMBER_DECORATE, offset));
        if member + 1 < MEMBERS {
            let read_only = vec![block, member, allowed::NON_WRITABLE];
            all.push((opcode::MEMBER_DECORATE, read_only));
        }
    }
    let variables = first..first + VARIABLES;
    for variable in variables.clone() {
        all.push((opcode::DECORATE, vec![variable, allowed::DESCRIPTOR_SET, 0]));
        all.push((opcode::DECORATE, vec![variable, allowed::BINDING, 0]));
    }
    all.push((opcode::TYPE_FLOAT, vec![float, 32]));
    all.push((
        opcode::TYPE_STRUCT,
        [vec![block], vec![float; MEMBERS as usize]].concat(),
    ));
    all.push((
        opcode::TYPE_POINTER,
        vec![pointer, allowed::STORAGE_BUFFER, block],
    ));
    for variable in variables.clone() {
        all.push((
            opcode::VARIABLE,
            vec![pointer, variable, allowed::STORAGE_BUFFER],
        ));
    }
    let declared = all
        .iter()
        .map(|(opcode, operands)| (*opcode, &operands[..]));
    let instructions: Vec<_> = declared.chain(EMPTY_MAIN).collect();
    let words = assembled(variables.end, &instructions);
    let module = soon(|| admit(&words, Origin::Library)).unwrap();
    assert_eq!(module.bindings, [0]);
}
