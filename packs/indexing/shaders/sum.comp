#version 450
// Adds sorted updates to the places that they go to, in their order. Those of one place are summed CHUNK at a time: with
// PARTIAL, the updates of a chunk that belong to the same place as the one before it; else the rest, and what that made.
#include "dtype.glsl"
#include "tensor.glsl"
#include "indices.glsl"

// Axes of a part, innermost first. The outermost extent is never divided by.
struct Axis {
    uint extent;
    NxvDivisor divisor;
    uint from;
    uint to;
};

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer Sorted { uvec2 sorted[]; };
layout(set = 0, binding = 1) readonly buffer Updates { R_STORAGE updates[]; };
layout(set = 0, binding = 2) buffer Result { R_STORAGE result[]; };
#ifdef PARTIALS
layout(set = 0, binding = PARTIALS) buffer Partials { R_VALUE partials[]; };
#endif

PARAMS Params {
    uint threads;
    uint rows;
    uint part;
    NxvDivisor parts;
    uint from;
    uint to;
    uint row;
    uint index;
    uint step;
    Component components[COMPONENTS];
    Axis axes[RANK];
} params;

// The sum of the updates of one place from `at` on in its chunk; `at` is then behind them.
R_VALUE run(inout uint at, uint place, uint from) {
    R_VALUE sum = R_VALUE(0);
    uint end = min((at / CHUNK + 1u) * CHUNK, params.rows);
    for (; at < end; ++at) {
        uvec2 update = nxv_load(sorted, at);
        if (update.x != place) break;
        sum += R_LOAD(nxv_load(updates, from + update.y * params.row));
    }
    return sum;
}

void main() {
    uint i = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (i >= params.threads) return;

    uint first = nxv_divide(i, params.part, params.parts);
    uint within = i - first * params.part;
    uint from = params.from;
    uint to = params.to;
    uint rest = within;
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        uint outer = axis == RANK - 1 ? 0u : nxv_divide(rest, params.axes[axis].extent, params.axes[axis].divisor);
        uint along = rest - outer * params.axes[axis].extent;
        from += along * params.axes[axis].from;
        to += along * params.axes[axis].to;
        rest = outer;
    }
#ifdef PARTIAL
    uint at = (first + 1u) * CHUNK;
    uvec2 update = nxv_load(sorted, at);
    if (nxv_load(sorted, at - 1u).x != update.x) return;
    R_VALUE sum = run(at, update.x, from);
    nxv_store(partials, i, sum);
#else
    uint at = first;
    uvec2 update = nxv_load(sorted, at);
    if (at > 0u && nxv_load(sorted, at - 1u).x == update.x) return;
    R_VALUE sum = run(at, update.x, from);
#ifdef PARTIALS
    while (at % CHUNK == 0u && at < params.rows && nxv_load(sorted, at).x == update.x) {
        sum += nxv_load(partials, (at / CHUNK - 1u) * params.part + within);
        uint next = at + CHUNK;
        bool is_whole = next <= params.rows && nxv_load(sorted, next - 1u).x == update.x;
        if (!is_whole) break;
        at = next;
    }
#endif
    [[unroll]] for (int k = 0; k < COMPONENTS; ++k) {
        uint value = index_of(k, params.index + update.y * params.step, params.components[k]);
        to += value * params.components[k].step;
    }
    R_VALUE before = R_LOAD(nxv_load(result, to));
    nxv_store(result, to, R_STORE(before + sum));
#endif
}
