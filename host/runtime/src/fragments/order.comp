#version 450
#pragma use_vulkan_memory_model
// Which elements of a cooperative matrix each lane holds: those of an operand a, an operand b and a matrix of sums. Each is
// loaded twice, once with the number of its row in every element and once with that of its column.
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#if ELEMENT_IS_BF16
#extension GL_EXT_bfloat16 : require
#endif

layout(local_size_x = LANES) in;

// By matrix and lane: how many elements the lane holds, then row and column of each.
layout(set = 0, binding = 0, std430) writeonly buffer Found { uint found[]; };

shared ELEMENT elements[16 * DEPTH];
shared SUM sums[16 * 16];

#define MEASURE(MATRIX, place, TYPE, of, ROWS, COLUMNS) { \
    MATRIX of_row, of_column; \
    [[unroll]] for (uint turn = 0; turn < 2; turn++) { \
        for (uint i = gl_SubgroupInvocationID; i < ROWS * COLUMNS; i += LANES) \
            of[i] = TYPE(turn == 0 ? i / COLUMNS : i % COLUMNS); \
        /* Every number is there before the matrix is loaded. */ \
        barrier(); \
        if (turn == 0) coopMatLoad(of_row, of, 0, COLUMNS, gl_CooperativeMatrixLayoutRowMajor); \
        else coopMatLoad(of_column, of, 0, COLUMNS, gl_CooperativeMatrixLayoutRowMajor); \
        /* And loaded before others take their place. */ \
        barrier(); \
    } \
    uint from = (place * LANES + gl_SubgroupInvocationID) * (1 + MOST); \
    uint length = uint(of_row.length()); \
    found[from] = length; \
    for (uint i = 0; i < MOST && i < length; i++) \
        found[from + 1 + i] = uint(float(of_row[i])) << 16 | uint(float(of_column[i])); \
}

#define LEFT coopmat<ELEMENT, gl_ScopeSubgroup, 16, DEPTH, gl_MatrixUseA>
#define RIGHT coopmat<ELEMENT, gl_ScopeSubgroup, DEPTH, 16, gl_MatrixUseB>
#define SUMS coopmat<SUM, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>

void main() {
    MEASURE(LEFT, 0, ELEMENT, elements, 16, DEPTH)
    MEASURE(RIGHT, 1, ELEMENT, elements, DEPTH, 16)
    MEASURE(SUMS, 2, SUM, sums, 16, 16)
}
