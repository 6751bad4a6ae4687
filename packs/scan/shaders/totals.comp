#version 450
// What each part of lines along memory amounts to. What is combined may change places: of sums, products, largest and smallest
// elements that is nothing.
#include "rows.glsl"

layout(set = 0, binding = 2) writeonly buffer Totals { R_STORAGE totals[]; };

shared ACC_VALUE sums[SUBGROUP_COUNT];

void take(inout ACC_VALUE own[WIDTH], A_VECTOR loaded) {
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) own[k] = combine(own[k], ACC_VALUE(A_LOAD(LANE(loaded, k))));
}

void main() {
    uint group = nxv_workgroup();
    if (group >= params.lines * params.parts) return;
    uint lane = gl_SubgroupInvocationID;
    uint from = (params.operand_at + line_start(group / params.parts, params.axes_count).x) / WIDTH;
    uvec2 vectors = vectors_of(group % params.parts);

    ACC_VALUE own[WIDTH];
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) own[k] = ACC_VALUE(START);
    uint index = vectors.x + gl_SubgroupID * SUBGROUPS + lane;
    for (; index + (VECTORS - 1) * WORKGROUP < vectors.y; index += CHUNK) {
        // All loads come before the first use, so that they are in flight together.
        A_VECTOR loaded[VECTORS];
        [[unroll]] for (uint v = 0; v < VECTORS; ++v) loaded[v] = nxv_load(elements, from + place_of(index + v * WORKGROUP));
        [[unroll]] for (uint v = 0; v < VECTORS; ++v) take(own, loaded[v]);
    }
    for (; index < vectors.y; index += WORKGROUP) take(own, nxv_load(elements, from + place_of(index)));

    ACC_VALUE sum = own[0];
    [[unroll]] for (uint k = 1; k < WIDTH; ++k) sum = combine(sum, own[k]);
    [[unroll]] for (uint apart = 1; apart < SUBGROUPS; apart <<= 1) sum = combine(sum, OTHER(sum, lane ^ apart));
    if (lane == 0) sums[gl_SubgroupID] = sum;
    barrier(); // every subgroup has given its sum before they are combined
    if (gl_LocalInvocationIndex != 0) return;
    sum = sums[0];
    for (uint k = 1; k < SUBGROUP_COUNT; ++k) sum = combine(sum, sums[k]);
    nxv_store(totals, group, R_STORE(sum));
}
