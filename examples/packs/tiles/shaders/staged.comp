#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_cooperative_matrix : require
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_control_flow_attributes : require
#extension GL_EXT_shader_16bit_storage : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
#if BFLOAT16
#extension GL_EXT_bfloat16 : require
#endif

// A workgroup computes BM x BN elements of the result, each of its subgroups WM x WN, BK terms at a time.
#define ACROSS (BN / WN)
#define THREADS (32 * ACROSS * (BM / WM))
layout(local_size_x = THREADS) in;

layout(set = 0, binding = 0, std430) restrict readonly buffer A { uvec4 a[]; };
layout(set = 0, binding = 1, std430) restrict readonly buffer B { uvec4 b[]; };
layout(set = 0, binding = 2, std430) restrict writeonly buffer C { RESULT c[]; };
layout(push_constant, std430) uniform Push { uint m; uint n; uint k; uint offset_a; uint offset_b; };

// Rows in shared memory, in uvec4 of eight elements; two tiles of each operand, one read while the other is written.
#define ROW_A ((BK + SKEW) / 8)
#define ROW_B ((BN + SKEW) / 8)
#define TILE_A (BM * ROW_A)
#define TILE_B (BK * ROW_B)
shared uvec4 tile_a[2 * TILE_A];
shared uvec4 tile_b[2 * TILE_B];

// What an invocation carries of the next tile, and the fragments of a subgroup.
#define LOADS_A (BM * BK / 8 / THREADS)
#define LOADS_B (BK * BN / 8 / THREADS)
#define ROWS (WM / 16)
#define COLUMNS (WN / 16)
#define STEPS (BK / 16)
coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> sums[ROWS * COLUMNS];
coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseA> left[2][ROWS];
coopmat<ELEMENT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseB> right[2][COLUMNS];

void load_fragments(uint set, uint tile, uint step, uint row, uint column) {
    [[unroll]] for (uint i = 0; i < ROWS; i++)
        coopMatLoad(left[set][i], tile_a, tile * TILE_A + (row + i * 16) * ROW_A + step * 2, ROW_A,
                    gl_CooperativeMatrixLayoutRowMajor);
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        coopMatLoad(right[set][j], tile_b, tile * TILE_B + step * 16 * ROW_B + (column + j * 16) / 8, ROW_B,
                    gl_CooperativeMatrixLayoutRowMajor);
}

void multiply(uint set) {
    [[unroll]] for (uint j = 0; j < COLUMNS; j++)
        [[unroll]] for (uint i = 0; i < ROWS; i++)
            sums[i * COLUMNS + j] = coopMatMulAdd(left[set][i], right[set][j], sums[i * COLUMNS + j]);
}

void main() {
    uint thread = gl_LocalInvocationID.x;
    uint row = gl_SubgroupID / ACROSS * WM, column = gl_SubgroupID % ACROSS * WN;
    uint k8 = k / 8, n8 = n / 8;
    uint row_a = thread / (BK / 8), part_a = thread % (BK / 8);
    uint row_b = thread / (BN / 8), part_b = thread % (BN / 8);
    const uint stride_a = THREADS / (BK / 8), stride_b = THREADS / (BN / 8);
    uint from_a = offset_a / 8 + (gl_WorkGroupID.y * BM + row_a) * k8 + part_a;
    uint from_b = offset_b / 8 + row_b * n8 + gl_WorkGroupID.x * (BN / 8) + part_b;
    uint to_a = row_a * ROW_A + part_a, to_b = row_b * ROW_B + part_b;
    [[unroll]] for (uint i = 0; i < ROWS * COLUMNS; i++)
        sums[i] = coopmat<float, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(0);

    uvec4 next_a[LOADS_A], next_b[LOADS_B];
    uint tiles = k / BK;
#define FETCH(tile) \
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) next_a[i] = a[from_a + i * stride_a * k8 + (tile) * (BK / 8)]; \
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) next_b[i] = b[from_b + (i * stride_b + (tile) * BK) * n8];
#define KEEP(half) \
    [[unroll]] for (uint i = 0; i < LOADS_A; i++) tile_a[(half) * TILE_A + to_a + i * stride_a * ROW_A] = next_a[i]; \
    [[unroll]] for (uint i = 0; i < LOADS_B; i++) tile_b[(half) * TILE_B + to_b + i * stride_b * ROW_B] = next_b[i];
    FETCH(0)
    KEEP(0)
    FETCH(min(1, tiles - 1))
    // The first tile is there before anybody reads it.
    barrier();
    load_fragments(0, 0, 0, row, column);
    // One tile ahead in shared memory, two ahead in registers; fragments are loaded a step before they are multiplied, the
    // next tile's first ones during the last step of this one.
    uint half_ = 0;
    for (uint tile = 0; tile < tiles; tile++) {
        [[unroll]] for (uint step = 0; step < STEPS; step++) {
            uint set = step & 1;
            if (step == STEPS - 1) {
                half_ ^= 1;
                KEEP(half_)
                // What was kept is there, and nobody reads the other half any more.
                barrier();
                FETCH(min(tile + 2, tiles - 1))
                load_fragments(set ^ 1, half_, 0, row, column);
            } else {
                load_fragments(set ^ 1, half_, step + 1, row, column);
            }
            multiply(set);
        }
    }

    uint to = (gl_WorkGroupID.y * BM + row) * n + gl_WorkGroupID.x * BN + column;
    [[unroll]] for (uint i = 0; i < ROWS; i++)
        [[unroll]] for (uint j = 0; j < COLUMNS; j++) {
            uint at = i * COLUMNS + j;
#if BFLOAT16
            // To nearest, ties to even: NVIDIA's conversion of a matrix cuts off (driver 580.159.04).
            [[unroll]] for (uint e = 0; e < sums[at].length(); e++) {
                uint bits = floatBitsToUint(sums[at][e]);
                bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u; // stays one without its low bits
                bits = is_nan ? bits | 0x400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
                sums[at][e] = uintBitsToFloat(bits & 0xffff0000u);
            }
#endif
            coopmat<RESULT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator> rounded =
                coopmat<RESULT, gl_ScopeSubgroup, 16, 16, gl_MatrixUseAccumulator>(sums[at]);
            coopMatStore(rounded, c, to + i * 16 * n + j * 16, n, gl_CooperativeMatrixLayoutRowMajor);
        }
}
