#version 450
// One invocation computes RUN results of one filter with a single channel, behind each other along the first of two spatial
// axes. Kernels have TAPS_0 x TAPS_1 elements, which stay in registers; what is read of x serves every result that it meets.
// GROUPS_INNER says whether neighbours differ in the group.
#include "conv.glsl"

layout(local_size_x = THREADS) in;
layout(set = 0, binding = 3, std430) writeonly restrict buffer Results { RESULT results[]; };

// Elements of x along the first axis that the results of a run take.
#define REACH ((RUN - 1) * STRIDE + (TAPS_0 - 1) * DILATION + 1)

void main() {
    uint index = (params.first_workgroup + nxv_workgroup()) * THREADS + gl_LocalInvocationIndex;
    if (index >= params.jobs) return;
    uint runs = params.blocks_n;
#if GROUPS_INNER
    uint group = index % params.groups;
    index /= params.groups;
#endif
    uint outer = nxv_divide(index, params.spatial[1].positions, params.spatial[1].by_positions);
    Column column;
    column.at[1] = int(index - outer * params.spatial[1].positions);
    column.at[0] = int(outer % runs) * RUN;
    index = outer / runs;
    outer = nxv_divide(index, params.filters, params.by_filters);
    uint filter_index = index - outer * params.filters;
#if GROUPS_INNER
    column.batch = outer;
#else
    column.batch = outer / params.groups;
    uint group = outer - column.batch * params.groups;
#endif
    uint place = result_at(column);
    uint to = group * params.result_group + filter_index * params.result_filter + place;
    uint of_all = group * params.filters + filter_index;
    uint left = params.spatial[0].positions - uint(column.at[0]);
    column = corner_of(column);
    uint x_first = params.x_first + group * params.x_group + column.batch * params.x_batch;
    uint kernel_first = params.kernel_first + group * params.kernel_group + filter_index * params.kernel_filter;

    T_VALUE taps[TAPS_0 * TAPS_1];
    [[unroll]] for (uint i = 0; i < TAPS_0; ++i) {
        [[unroll]] for (uint j = 0; j < TAPS_1; ++j) {
            uint at = kernel_first + i * params.spatial[0].kernel_step + j * params.spatial[1].kernel_step;
            taps[i * TAPS_1 + j] = T_LOAD(nxv_load(weights, at));
        }
    }
    T_VALUE sums[RUN];
    [[unroll]] for (int r = 0; r < RUN; ++r) sums[r] = T_VALUE(0);
    [[unroll]] for (int i = 0; i < REACH; ++i) {
        T_VALUE row[TAPS_1];
        uint row_at = x_first;
        bool is_row = reaches(0, column.at[0] + i, row_at);
        [[unroll]] for (int j = 0; j < TAPS_1; ++j) {
            uint at = row_at;
            bool inside = reaches(1, column.at[1] + j * params.spatial[1].dilation, at) && is_row;
            row[j] = T_VALUE(0);
            if (inside) row[j] = T_LOAD(nxv_load(x, at));
        }
        [[unroll]] for (int r = 0; r < RUN; ++r) {
            int tap = i - r * STRIDE;
            if (tap >= 0 && tap % DILATION == 0 && tap / DILATION < TAPS_0) {
                [[unroll]] for (int j = 0; j < TAPS_1; ++j) {
                    sums[r] = PLUS_PRODUCT(row[j], taps[tap / DILATION * TAPS_1 + j], sums[r]);
                }
            }
        }
    }
    [[unroll]] for (uint r = 0; r < RUN; ++r) {
        uint further = r * params.spatial[0].result_step;
        if (r < left) nxv_store(results, to + further, TO_RESULT(sums[r], place + further, of_all));
    }
}
