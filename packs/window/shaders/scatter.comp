#version 450
// One invocation adds up what the windows that have chosen one element bring, in their order.
#include "window.glsl"

struct Axis {
    uint extent;
    NxvDivisor divisor;
    uint stride;
    int low;
    int window;
    uint positions;
    uint step; // windows from one position to the next
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    uint count;
    uint init_at;
    Axis axes[RANK];
} params;
layout(set = 0, binding = 0, std430) readonly restrict buffer Chosen { uint chosen[]; };
layout(set = 0, binding = 1, std430) readonly restrict buffer Source { R_STORAGE source[]; };
layout(set = 0, binding = 2, std430) readonly restrict buffer Init { I_STORAGE init[]; };
layout(set = 0, binding = 3, std430) writeonly restrict buffer Results { R_STORAGE results[]; };

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index >= params.count) return;
    uint first[RANK];
    uint last[RANK];
    uint at[RANK];
    uint window = 0;
    bool covered = true;
    uint rest = index;
    [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
        uint outer = axis == 0 ? 0 : nxv_divide(rest, params.axes[axis].extent, params.axes[axis].divisor);
        int place = int(rest - outer * params.axes[axis].extent) + params.axes[axis].low;
        rest = outer;
        int before = place - params.axes[axis].window; // the last start from which a window does not reach the element
        first[axis] = before < 0 ? 0 : uint(before) / params.axes[axis].stride + 1;
        last[axis] = min(uint(max(place, 0)) / params.axes[axis].stride, params.axes[axis].positions - 1);
        covered = covered && place >= 0 && first[axis] <= last[axis];
        at[axis] = first[axis];
        window += first[axis] * params.axes[axis].step;
    }
    R_VALUE sum = R_CAST(I_LOAD(nxv_load(init, params.init_at)));
    while (covered) {
        if (nxv_load(chosen, window) == index) {
            precise R_VALUE next = sum + R_LOAD(nxv_load(source, window));
            sum = next;
        }
        bool carries = true;
        [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
            if (carries) {
                carries = at[axis] == last[axis];
                if (carries) {
                    window -= (last[axis] - first[axis]) * params.axes[axis].step;
                    at[axis] = first[axis];
                } else {
                    at[axis]++;
                    window += params.axes[axis].step;
                }
            }
        }
        covered = !carries;
    }
    nxv_store(results, index, R_STORE(sum));
}
