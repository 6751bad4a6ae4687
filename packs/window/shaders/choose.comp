#version 450
// One invocation finds the element that one window chooses: where it lies in x, or NONE where that is padding.
#include "window.glsl"

struct Axis {
    uint positions;
    NxvDivisor divisor;
    int stride;
    int low;
    int extent;
    int window;
    uint step;  // elements of x from one index to the next, as it lies in memory
    uint place; // the same in row-major order
};

#define NONE 0xffffffffu

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    uint count;
    uint first;
    uint init_at;
    uint size; // elements of a window
    Axis axes[RANK];
} params;
layout(set = 0, binding = 0, std430) readonly restrict buffer Elements { X_STORAGE elements[]; };
layout(set = 0, binding = 1, std430) readonly restrict buffer Init { I_STORAGE init[]; };
layout(set = 0, binding = 2, std430) writeonly restrict buffer Chosen { uint chosen[]; };

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index >= params.count) return;
    int corner[RANK];
    int element[RANK];
    uint rest = index;
    [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
        uint outer = axis == 0 ? 0 : nxv_divide(rest, params.axes[axis].positions, params.axes[axis].divisor);
        corner[axis] = int(rest - outer * params.axes[axis].positions) * params.axes[axis].stride - params.axes[axis].low;
        element[axis] = 0;
        rest = outer;
    }
    X_VALUE padding = X_CAST(I_LOAD(nxv_load(init, params.init_at)));
    X_VALUE best = padding;
    uint choice = NONE;
    for (uint i = 0; i < params.size; ++i) {
        bool inside = true;
        uint from = params.first;
        uint place = 0;
        [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
            int at = corner[axis] + element[axis];
            inside = inside && uint(at) < uint(params.axes[axis].extent);
            from += uint(at) * params.axes[axis].step;
            place += uint(at) * params.axes[axis].place;
        }
        X_VALUE value = padding;
        if (inside) value = X_LOAD(nxv_load(elements, from));
        // A comparison with NaN is false.
        bool wins = !IS_NAN(value) && !IS_NAN(best) && WINS(value, best);
        if (i == 0 || wins) {
            best = value;
            choice = inside ? place : NONE;
        }
        bool carries = true;
        [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
            if (carries) {
                element[axis]++;
                carries = element[axis] == params.axes[axis].window;
                if (carries) element[axis] = 0;
            }
        }
    }
    nxv_store(chosen, index, choice);
}
