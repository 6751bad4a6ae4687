#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_NV_cooperative_matrix2 : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types : require

// A workgroup computes BM x BN elements of the result, BK terms at a time; the driver parts the work and stages the operands.
layout(local_size_x = INVOCATIONS) in;

layout(set = 0, binding = 0, std430) restrict readonly buffer A { ELEMENT a[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer B { ELEMENT b[]; };
layout(set = 0, binding = 2, std430) restrict writeonly buffer C { RESULT c[]; };
layout(push_constant, std430) uniform Push { uint m; uint n; uint k; uint offset_a; uint offset_b; };

void main() {
    // What lies outside of a matrix reads as 0 and is not written.
    tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> of_a =
        createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
    tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> of_b =
        createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
    tensorLayoutNV<2, gl_CooperativeMatrixClampModeConstantNV> of_c =
        createTensorLayoutNV(2, gl_CooperativeMatrixClampModeConstantNV);
    of_a = setTensorLayoutDimensionNV(of_a, m, k);
    of_b = setTensorLayoutDimensionNV(of_b, k, n);
    of_c = setTensorLayoutDimensionNV(of_c, m, n);

    uint row = gl_WorkGroupID.y * BM, column = gl_WorkGroupID.x * BN;
    coopmat<float, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator> sums =
        coopmat<float, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator>(0.0);
    for (uint term = 0; term < k; term += BK) {
        coopmat<ELEMENT, gl_ScopeWorkgroup, BM, BK, gl_MatrixUseA> left;
        coopmat<ELEMENT, gl_ScopeWorkgroup, BK, BN, gl_MatrixUseB> right;
        coopMatLoadTensorNV(left, a, offset_a, sliceTensorLayoutNV(of_a, row, BM, term, BK));
        coopMatLoadTensorNV(right, b, offset_b, sliceTensorLayoutNV(of_b, term, BK, column, BN));
        sums = coopMatMulAdd(left, right, sums);
    }
    coopmat<RESULT, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator> rounded =
        coopmat<RESULT, gl_ScopeWorkgroup, BM, BN, gl_MatrixUseAccumulator>(sums);
    coopMatStoreTensorNV(rounded, c, 0, sliceTensorLayoutNV(of_c, row, BM, column, BN));
}
