#version 450
// One invocation folds RUN windows behind each other along the outer one of two axes with windows, TAPS_0 x TAPS_1 elements
// each, row by row: what it reads serves every window that it lies in. CHECKS_*: some are not elements of that axis.
#include "window.glsl"

struct Axis {
    uint positions; // runs along ALONG
    NxvDivisor divisor;
    uint step; // elements from one position, or run, to the next
    uint to;   // results
};

struct Window {
    int stride; // along the axis from one position, or run, to the next
    int low;
    int extent;
    int dilation;
    uint reach; // elements from one of the window's to the next
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    uint count;
    uint first;
    uint positions; // along ALONG
    uint next;      // results from one window of a run to the next
    Window windows[2];
    Axis axes[RANK];
} params;
layout(set = 0, binding = 0, std430) readonly restrict buffer Elements { A_STORAGE elements[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Results { R_STORAGE results[]; };

// Rows of elements that the windows of a run lie in.
#define REACH ((RUN - 1) * STRIDE + (TAPS_0 - 1) * DILATION + 1)

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index >= params.count) return;
    uint from = params.first;
    uint to = 0u;
    uint at[RANK];
    uint rest = index;
    [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
        uint outer = axis == 0 ? 0 : nxv_divide(rest, params.axes[axis].positions, params.axes[axis].divisor);
        at[axis] = rest - outer * params.axes[axis].positions;
        rest = outer;
        from += at[axis] * params.axes[axis].step;
        to += at[axis] * params.axes[axis].to;
    }
    int row = int(at[ALONG]) * params.windows[0].stride - params.windows[0].low;
    int column = int(at[INNER]) * params.windows[1].stride - params.windows[1].low;

    R_VALUE rows[REACH];
    [[unroll]] for (int i = 0; i < REACH; ++i) {
        bool is_row = CHECKS_0 == 0 || uint(row + i) < uint(params.windows[0].extent);
        A_STORAGE taken[TAPS_1];
        bool inside[TAPS_1];
        [[unroll]] for (int j = 0; j < TAPS_1; ++j) {
            int at_column = column + j * params.windows[1].dilation;
            inside[j] = is_row && (CHECKS_1 == 0 || uint(at_column) < uint(params.windows[1].extent));
            if (inside[j]) taken[j] = nxv_load(elements, from + i * params.windows[0].reach + j * params.windows[1].reach);
        }
        rows[i] = R_VALUE(START);
        [[unroll]] for (int j = 0; j < TAPS_1; ++j) {
            R_VALUE a = rows[i];
            if (inside[j]) {
                R_VALUE b = R_VALUE(A_LOAD(taken[j]));
                rows[i] = COMBINE(a, b);
            }
        }
    }
    uint left = params.positions - at[ALONG] * RUN;
    [[unroll]] for (uint r = 0; r < RUN; ++r) {
        R_VALUE result = rows[r * STRIDE];
        [[unroll]] for (uint tap = 1; tap < TAPS_0; ++tap) {
            R_VALUE a = result;
            R_VALUE b = rows[r * STRIDE + tap * DILATION];
            result = COMBINE(a, b);
        }
        if (r < left) nxv_store(results, to + r * params.next, R_STORE(result));
    }
}
