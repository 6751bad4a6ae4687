#version 450
// One invocation folds the elements of one window, in row-major order. Axes that WINDOWED has no bit for have windows of
// one element and no padding.
#include "window.glsl"

struct Axis {
    uint positions;
    NxvDivisor divisor;
    uint step;   // elements from one position to the next
    int stride;  // the same along the axis
    int low;
    int extent;
    int window;
    int dilation;
    uint reach;  // elements from one of the window's to the next
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    uint count;
    uint first;
    uint rows; // elements of a window on all axes but the innermost
    Axis axes[RANK];
} params;
layout(set = 0, binding = 0, std430) readonly restrict buffer Elements { A_STORAGE elements[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Results { R_STORAGE results[]; };

#define IS_WINDOWED(axis) (((WINDOWED >> (axis)) & 1) == 1)

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index >= params.count) return;
    uint from = params.first;
    int place[RANK];
    int element[RANK];
    uint rest = index;
    [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
        uint outer = axis == 0 ? 0 : nxv_divide(rest, params.axes[axis].positions, params.axes[axis].divisor);
        uint at = rest - outer * params.axes[axis].positions;
        rest = outer;
        from += at * params.axes[axis].step;
        place[axis] = int(at) * params.axes[axis].stride - params.axes[axis].low;
        element[axis] = 0;
    }

    const int inner = INNER;
    R_VALUE result = R_VALUE(START);
    for (uint row = 0; row < params.rows; ++row) {
        bool inside = true;
        [[unroll]] for (int axis = 0; axis < inner; ++axis) {
            if (IS_WINDOWED(axis)) inside = inside && uint(place[axis]) < uint(params.axes[axis].extent);
        }
        if (inside) {
            int along = place[inner];
            uint at = from;
            for (int i = 0; i < params.axes[inner].window; ++i) {
                if (uint(along) < uint(params.axes[inner].extent)) {
                    R_VALUE a = result;
                    R_VALUE b = R_VALUE(A_LOAD(nxv_load(elements, at)));
                    result = COMBINE(a, b);
                }
                along += params.axes[inner].dilation;
                at += params.axes[inner].reach;
            }
        }
        bool carries = true;
        [[unroll]] for (int axis = inner - 1; axis >= 0; --axis) {
            if (IS_WINDOWED(axis) && carries) {
                element[axis]++;
                from += params.axes[axis].reach;
                place[axis] += params.axes[axis].dilation;
                carries = element[axis] == params.axes[axis].window;
                if (carries) {
                    element[axis] = 0;
                    from -= uint(params.axes[axis].window) * params.axes[axis].reach;
                    place[axis] -= params.axes[axis].window * params.axes[axis].dilation;
                }
            }
        }
    }
    nxv_store(results, index, R_STORE(result));
}
