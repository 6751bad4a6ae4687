#version 450
// One invocation computes one result, or one split of it, straight from memory. FILTERS_INNER says whether neighbours
// differ in the filter. A split takes `chunk` places of the kernel, each with all channels, of which AT_ONCE are loaded at once.
#include "conv.glsl"

layout(local_size_x = THREADS) in;
layout(set = 0, binding = 3, std430) writeonly restrict buffer Results { RESULT results[]; };

void main() {
    uint index = (params.first_workgroup + nxv_workgroup()) * THREADS + gl_LocalInvocationIndex;
    if (index >= params.jobs) return;
    uint split = index / params.results;
    index -= split * params.results;
#if FILTERS_INNER
    uint outer = nxv_divide(index, params.filters, params.by_filters);
    uint filter_index = index - outer * params.filters;
    uint group = nxv_divide(outer, params.columns, params.by_columns);
    uint column_index = outer - group * params.columns;
#else
    uint outer = nxv_divide(index, params.columns, params.by_columns);
    uint column_index = index - outer * params.columns;
    uint group = nxv_divide(outer, params.filters, params.by_filters);
    uint filter_index = outer - group * params.filters;
#endif
    Column column = column_of(column_index);
    uint place = result_at(column);
    uint to = split * params.results + group * params.result_group + filter_index * params.result_filter + place;
    column = corner_of(column);
    uint x_first = params.x_first + group * params.x_group + column.batch * params.x_batch;
    uint kernel_first = params.kernel_first + group * params.kernel_group + filter_index * params.kernel_filter;

    T_VALUE sum = T_VALUE(0);
    uint element[DIMS_OR_ONE];
    uint rest = split * params.chunk;
    uint places = min(params.chunk, nxv_divide(params.depth, params.channels, params.by_channels) - rest);
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(rest, params.spatial[k].taps, params.spatial[k].by_taps);
        element[k] = rest - outer * params.spatial[k].taps;
        rest = outer;
    }
    for (; places > 0; --places) {
        uint x_at = x_first;
        uint kernel_at = kernel_first;
        bool inside = true;
        [[unroll]] for (int k = 0; k < DIMS; ++k) {
            int place = column.at[k] + int(element[k]) * params.spatial[k].dilation;
            inside = reaches(k, place, x_at) && inside;
            kernel_at += element[k] * params.spatial[k].kernel_step;
        }
        // Several channels are loaded before the first is waited for.
        uint channel = 0;
#if AT_ONCE > 1
        for (; channel + AT_ONCE <= params.channels; channel += AT_ONCE) {
            T_VALUE values[AT_ONCE], factors[AT_ONCE];
            [[unroll]] for (uint i = 0; i < AT_ONCE; ++i) {
                values[i] = T_VALUE(0);
                if (inside) values[i] = T_LOAD(nxv_load(x, x_at + i * params.x_channel));
                factors[i] = T_LOAD(nxv_load(weights, kernel_at + i * params.kernel_channel));
            }
            [[unroll]] for (uint i = 0; i < AT_ONCE; ++i) sum = PLUS_PRODUCT(values[i], factors[i], sum);
            x_at += AT_ONCE * params.x_channel;
            kernel_at += AT_ONCE * params.kernel_channel;
        }
#endif
        for (; channel < params.channels; ++channel) {
            T_VALUE value = T_VALUE(0);
            if (inside) value = T_LOAD(nxv_load(x, x_at));
            sum = PLUS_PRODUCT(value, T_LOAD(nxv_load(weights, kernel_at)), sum);
            x_at += params.x_channel;
            kernel_at += params.kernel_channel;
        }
        bool carries = true;
        [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
            if (carries) {
                element[k]++;
                carries = element[k] == params.spatial[k].taps;
                if (carries) element[k] = 0;
            }
        }
    }
    nxv_store(results, to, TO_RESULT(sum, place, group * params.filters + filter_index));
}
