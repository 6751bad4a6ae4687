//! Cooperative matrices of every extension: what they need of a device, and what an enemy would make of them.

use super::*;
use crate::shader::Target;

/// Words of a library's shader for Vulkan 1.3.
fn newer(body: &str) -> Vec<u32> {
    let text = format!(
        "#version 450\n#extension GL_KHR_cooperative_matrix : require\n\
         #extension GL_KHR_memory_scope_semantics : require\n#extension GL_NV_cooperative_matrix2 : require\n\
         #extension GL_EXT_bfloat16 : require\n#extension GL_EXT_shader_16bit_storage : require\n\
         #extension GL_EXT_shader_explicit_arithmetic_types : require\n\
         layout(local_size_x = 128) in;\n\
         layout(set = 0, binding = 0) buffer A {{ float16_t a[]; }};\n\
         layout(set = 0, binding = 1) buffer B {{ float16_t b[]; }};\n\
         layout(set = 0, binding = 2) buffer C {{ float16_t c[]; }};\n{body}\n"
    );
    let find = |_: &str| Some(Glsl::new(&text, Origin::Library));
    let shaders = Shaders::new(None).with_target(Target::Newer);
    let module = shaders.compile("t", &[], &find).unwrap();
    module.words().to_vec()
}

const PRODUCT: &str = "void main() {\n\
    tensorLayoutNV<2> rows = createTensorLayoutNV(2);\n\
    rows = setTensorLayoutDimensionNV(rows, 64, 64);\n\
    tensorViewNV<2, false, 1, 0> turned = createTensorViewNV(2, false, 1, 0);\n\
    coopmat<float16_t, gl_ScopeWorkgroup, 64, 32, gl_MatrixUseA> x;\n\
    coopmat<float16_t, gl_ScopeWorkgroup, 32, 64, gl_MatrixUseB> y;\n\
    coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator> sum =\n\
        coopmat<float, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator>(0.0);\n\
    coopMatLoadTensorNV(x, a, 0, sliceTensorLayoutNV(rows, 0, 64, 0, 32));\n\
    coopMatLoadTensorNV(y, b, 0, sliceTensorLayoutNV(rows, 0, 64, 0, 32), turned);\n\
    sum = coopMatMulAdd(x, y, sum);\n\
    coopmat<float16_t, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator> rounded =\n\
        coopmat<float16_t, gl_ScopeWorkgroup, 64, 64, gl_MatrixUseAccumulator>(sum);\n\
    coopMatStoreTensorNV(rounded, c, 0, sliceTensorLayoutNV(rows, 0, 64, 0, 64));\n}";

const FUNCTIONS: &str = "\
    float bounded(const in uint row, const in uint column, const in float x, const in float most) {\n\
        return row > column ? min(x, most) : x;\n}\n\
    float larger(const in float x, const in float y) { return max(x, y); }\n\
    void main() {\n\
    coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> x, y;\n\
    x = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(float(a[0]));\n\
    coopMatPerElementNV(x, x, bounded, 2.0);\n\
    coopMatReduceNV(y, x, gl_CooperativeMatrixReduceRowNV, larger);\n\
    coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> narrow =\n\
        coopmat<float16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA>(y);\n\
    coopMatStore(narrow, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n}";

#[test]
fn tensors_are_read_and_written_where_they_say() {
    let words = newer(PRODUCT);
    let module = admit(&words, Origin::Library).unwrap();
    assert_eq!(module.bindings, [0, 1, 2]);
    assert_eq!(module.written, [2]);
    assert!(module.needs.has(Features::COOPMAT.with(Features::COOPMAT2)));
    assert!(!module.is_for(1 << 22 | 2 << 12) && module.is_for(1 << 22 | 3 << 12));
    let error = admit(&words, Origin::Stranger).unwrap_err();
    assert!(error.contains("only a pack's library"), "{error}");
    let told = missing(allowed::declared(module.needs), Features::COOPMAT);
    assert!(told.contains("TensorAddressingNV"), "{told}");
    assert!(!told.contains("CooperativeMatrixKHR"), "{told}");
}

#[test]
fn functions_of_elements_count_as_calls_of_their_type() {
    let words = newer(FUNCTIONS);
    let module = admit(&words, Origin::Library).unwrap();
    let functions = Features::COOPMAT_FUNCTIONS;
    assert!(module.needs.has(functions) && !module.needs.has(Features::COOPMAT2));
    let mut applied = Vec::new();
    changed(&words, |opcode, operands| match opcode {
        opcode::COOPERATIVE_MATRIX_PER_ELEMENT => applied.push(operands[3]),
        opcode::COOPERATIVE_MATRIX_REDUCE => applied.push(operands[4]),
        _ => {}
    });
    let [of_one, of_two] = applied[..] else {
        panic!("{applied:?}");
    };
    // Each with the other's function, and with one that is none.
    for (opcode, at, other, told) in [
        (
            opcode::COOPERATIVE_MATRIX_PER_ELEMENT,
            3,
            of_two,
            "no function of elements",
        ),
        (
            opcode::COOPERATIVE_MATRIX_REDUCE,
            4,
            of_one,
            "no function of elements",
        ),
        (
            opcode::COOPERATIVE_MATRIX_REDUCE,
            4,
            1,
            "its functions are defined",
        ),
    ] {
        let hostile = changed(&words, |found, operands| {
            if found == opcode {
                operands[at] = other;
            }
        });
        let error = admit(&hostile, Origin::Library).unwrap_err();
        assert!(error.contains(told), "{error}");
    }
}

#[test]
fn an_access_to_a_tensor_has_a_layout_and_no_decoder() {
    let words = newer(PRODUCT);
    let hostile = |change: &dyn Fn(&mut Vec<u32>)| {
        let words = changed(&words, |opcode, operands| {
            if opcode == opcode::COOPERATIVE_MATRIX_LOAD_TENSOR {
                change(operands);
            }
        });
        admit(&words, Origin::Library).unwrap_err()
    };
    let last = |operands: &Vec<u32>| operands.len() - 1;
    // The plain load ends with no options, the other with a view.
    let decoded = hostile(&|operands| {
        let at = last(operands);
        if operands[at] == 0 {
            operands[at] = 2;
            operands.push(1);
        }
    });
    assert!(decoded.contains("with the options [2, 1]"), "{decoded}");
    let cut = hostile(&|operands| operands.truncate(5));
    assert!(cut.contains("with the options []"), "{cut}");
    let short = hostile(&|operands| operands.truncate(4));
    assert!(short.contains("cut off"), "{short}");
    let no_layout = hostile(&|operands| operands[4] = operands[3]);
    assert!(no_layout.contains("no layout of a tensor"), "{no_layout}");
}

#[test]
fn bfloat16_matrices_are_declared_apart() {
    let words = newer(
        "void main() { coopmat<bfloat16_t, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> m;\n\
         coopMatLoad(m, a, 0, 16, gl_CooperativeMatrixLayoutRowMajor);\n\
         coopMatStore(m, c, 0, 16, gl_CooperativeMatrixLayoutRowMajor); }",
    );
    let module = admit(&words, Origin::Library).unwrap();
    let needed = Features::BF16
        .with(Features::COOPMAT_BF16)
        .with(Features::COOPMAT);
    assert!(module.needs.has(needed) && !module.needs.has(Features::COOPMAT2));
    // Without its capability the type is none.
    let mut bare = words[..5].to_vec();
    for instruction in scan::instructions(&words) {
        let (_, opcode, operands) = instruction.unwrap();
        let is_named = opcode == opcode::CAPABILITY && [5116, 5118].contains(&operands[0]);
        if !is_named {
            bare.push((operands.len() as u32 + 1) << 16 | opcode);
            bare.extend(operands);
        }
    }
    let error = admit(&bare, Origin::Library).unwrap_err();
    assert!(error.contains("not allowed"), "{error}");
}

#[test]
fn bfloat16_is_for_libraries() {
    let mut words = compiled("void main() {}");
    words.splice(5..5, [2 << 16 | opcode::CAPABILITY, 5116]);
    assert!(admit(&words, Origin::Library).is_ok());
    let error = admit(&words, Origin::Stranger).unwrap_err();
    assert!(error.contains("it needs BFloat16TypeKHR"), "{error}");
}

#[test]
fn versions_are_those_of_vulkan() {
    let mut words = compiled("void main() {}");
    let module = admit(&words, Origin::Stranger).unwrap();
    assert!(module.is_for(1 << 22 | 2 << 12));
    words[1] = 0x0001_0600;
    let module = admit(&words, Origin::Stranger).unwrap();
    assert!(!module.is_for(1 << 22 | 2 << 12));
    words[1] = 0x0001_0700;
    assert!(refusal(&words).contains("SPIR-V 1.7"));
}
