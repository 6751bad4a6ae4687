#version 450
// A copy in which neighbours change, and the type where operand and result have two: squares of TILE by TILE elements pass
// through shared memory, so that both reads and writes run along memory, WIDTH elements at a time.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lanes.glsl"

struct Axis {
    INDEX extent;
    INDEX from;
    INDEX to;
};

layout(local_size_x = WORKGROUP) in;
// First the result's innermost axis, then the operand's, then the others, innermost first.
PARAMS Params {
    INDEX count;
    INDEX result_at;
    INDEX at[1];
    Axis axes[RANK];
} params;

layout(set = 0, binding = 0) readonly buffer AVectors { A_VECTOR a_vectors[]; };
layout(set = 0, binding = 1) writeonly buffer RVectors { R_VECTOR r_vectors[]; };

// One column more than needed, so that a column's elements lie in different banks.
shared R_STORAGE square[TILE][TILE + 1];

#define SQUARE(lane) square[column + lane][line + k]

R_STORAGE converted(A_STORAGE stored) {
    A_COMPUTE a = A_CAST(A_LOAD(stored));
    return R_STORE(R_CAST(EXPRESSION));
}

void main() {
    const uint lines = WORKGROUP * WIDTH / TILE;
    uint column = gl_LocalInvocationID.x * WIDTH % TILE;
    uint line = gl_LocalInvocationID.x * WIDTH / TILE;

    // Which square: the number of this workgroup is a mixed-radix number of tiles, tiles and batch indices.
    INDEX rest = nxv_workgroup();
    INDEX corners[2];
    [[unroll]] for (int axis = 0; axis < 2; ++axis) {
        INDEX tiles = (params.axes[axis].extent + TILE - 1) / TILE;
        corners[axis] = rest % tiles * TILE;
        rest /= tiles;
    }
    INDEX from = params.at[0];
    INDEX to = params.result_at;
    [[unroll]] for (int axis = 2; axis < RANK; ++axis) {
        INDEX along = rest % params.axes[axis].extent;
        from += along * params.axes[axis].from;
        to += along * params.axes[axis].to;
        rest /= params.axes[axis].extent;
    }
    if (rest != 0) return;

    INDEX fast = corners[1] + column;
    INDEX slow = corners[0] + line;
    [[unroll]] for (uint k = 0; k < TILE; k += lines) {
        if (fast < params.axes[1].extent && slow + k < params.axes[0].extent) {
            INDEX at = from + fast * params.axes[1].from + (slow + k) * params.axes[0].from;
            A_VECTOR elements = nxv_load(a_vectors, uint(at / WIDTH));
            [[unroll]] for (uint lane = 0; lane < WIDTH; ++lane) {
                square[line + k][column + lane] = converted(LANE(elements, lane));
            }
        }
    }
    barrier(); // every element of the square is written before any is read
    fast = corners[0] + column;
    slow = corners[1] + line;
    [[unroll]] for (uint k = 0; k < TILE; k += lines) {
        if (fast < params.axes[0].extent && slow + k < params.axes[1].extent) {
            nxv_store(r_vectors, uint((to + fast + (slow + k) * params.axes[1].to) / WIDTH), R_VECTOR(LANES(SQUARE)));
        }
    }
}
