#version 450
// One invocation makes one result of the elements of its window, from `begin` to `end` in row-major order. Axes that WINDOWED
// has no bit for have windows of one element and no padding.
#include "expression.glsl"

struct Axis {
    uint positions;
    NxvDivisor divisor;
    uint step;   // elements from one position to the next
    int stride;  // the same along the axis
    int low;
    int extent;
    uint window;
    NxvDivisor window_divisor;
    int dilation;
    uint reach;  // elements from one of the window's to the next
};

layout(local_size_x = WORKGROUP) in;
PARAMS Params {
    Axis axes[RANK];
    uint count;
    uint first;
    uint start_at;
    uint begin;
    uint end;
} params;
layout(set = 0, binding = 0, std430) readonly buffer Elements { X_STORAGE elements[]; };
layout(set = 0, binding = 1, std430) readonly buffer Starts { A_STORAGE starts[]; };
#if RESUMES
layout(set = 0, binding = 2, std430) buffer Results { A_STORAGE results[]; };
#else
layout(set = 0, binding = 2, std430) writeonly buffer Results { A_STORAGE results[]; };
#endif

#define IS_WINDOWED(axis) (((WINDOWED >> (axis)) & 1) == 1)

// Counts are below 2^31.
#define ZERO (params.count >> 31)
A_VALUE made(X_VALUE i0, A_VALUE i1) {
    CODE
}

// Where an invocation is: places along the axes, elements of the window, and the place in memory.
int place[RANK];
uint element[RANK];
uint at;

void start(uint index) {
    uint row = params.begin;
    at = params.first;
    [[unroll]] for (int axis = RANK - 1; axis >= 0; --axis) {
        Axis own = params.axes[axis];
        uint outer = axis == 0 ? 0 : nxv_divide(index, own.positions, own.divisor);
        uint position = index - outer * own.positions;
        index = outer;
        element[axis] = 0u;
        if (IS_WINDOWED(axis)) {
            outer = nxv_divide(row, own.window, own.window_divisor);
            element[axis] = row - outer * own.window;
            row = outer;
        }
        at += position * own.step + element[axis] * own.reach;
        place[axis] = int(position) * own.stride - own.low + int(element[axis]) * own.dilation;
    }
}

// Goes on by `count` elements along the innermost axis, which may end there.
void advance(uint count) {
    bool carries = true;
    [[unroll]] for (int axis = INNER; axis >= 0; --axis) {
        if (IS_WINDOWED(axis) && carries) {
            uint by = axis == INNER ? count : 1u;
            element[axis] += by;
            at += by * params.axes[axis].reach;
            place[axis] += int(by) * params.axes[axis].dilation;
            carries = element[axis] == params.axes[axis].window;
            if (carries) {
                at -= element[axis] * params.axes[axis].reach;
                place[axis] -= int(element[axis]) * params.axes[axis].dilation;
                element[axis] = 0u;
            }
        }
    }
}

void main() {
    uint index = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (index >= params.count) return;
    A_VALUE begun = A_LOAD(nxv_load(starts, params.start_at));
    X_VALUE padding = X_OF(begun);
#if RESUMES
    A_VALUE acc = A_LOAD(nxv_load(results, index));
#else
    A_VALUE acc = begun;
#endif
    start(index);
    for (uint step = params.begin; step < params.end;) {
        bool inside = true;
        [[unroll]] for (int axis = 0; axis < INNER; ++axis) {
            if (IS_WINDOWED(axis)) inside = inside && uint(place[axis]) < uint(params.axes[axis].extent);
        }
        uint count = min(params.axes[INNER].window - element[INNER], params.end - step);
        uint extent = inside ? uint(params.axes[INNER].extent) : 0u;
        int along = place[INNER];
        uint from = at;
        uint done = 0u;
#if BATCH > 1
        for (; done + BATCH <= count; done += BATCH) {
            X_VALUE batch[BATCH];
            [[unroll]] for (uint k = 0u; k < BATCH; ++k) {
                batch[k] = padding;
                if (uint(along) < extent) batch[k] = X_LOAD(nxv_load(elements, from));
                along += params.axes[INNER].dilation;
                from += params.axes[INNER].reach;
            }
            [[unroll]] for (uint k = 0u; k < BATCH; ++k) acc = made(batch[k], acc);
        }
#endif
        for (; done < count; ++done) {
            X_VALUE x = padding;
            if (uint(along) < extent) x = X_LOAD(nxv_load(elements, from));
            acc = made(x, acc);
            along += params.axes[INNER].dilation;
            from += params.axes[INNER].reach;
        }
        advance(count);
        step += count;
    }
    nxv_store(results, index, A_STORE(acc));
}
