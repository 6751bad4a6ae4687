#version 450
// Scans lines that lie beside each other, COLUMNS of them a workgroup: an invocation takes WIDTH beside each other and ITEMS
// elements in a row of each, and loads the next ones before it works on its own.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "combine.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint operand_at;   // of the first element in the order of the scan
    uint operand_step;
    uint result_at;
    uint result_step;
    uint tiles;        // of lines, in all
    uint axes_count;
    uint extent;
    uint beside;       // lines beside each other
    uint beside_tiles; // tiles of them
} params;

layout(set = 0, binding = 1) readonly buffer Elements { A_VECTOR elements[]; };
layout(set = 0, binding = 2) writeonly buffer Results { R_VECTOR results[]; };

// Invocations side by side, and stretches of ITEMS elements one behind the other.
#define SIDE (COLUMNS / WIDTH)
#define STRETCHES (WORKGROUP / SIDE)
// Stretches are summed in groups first.
#define GROUP 8
#define GROUPS (STRETCHES / GROUP)
// The cells of neighbouring columns are SIDE apart in banks.
#define CELL(k, stretch, side) (((k) * (STRETCHES + 1) + (stretch)) * SIDE + (side))
#define GROUP_CELL(k, group, side) (((k) * GROUPS + (group)) * SIDE + (side))

// Two halves that take turns: what stretches amount to, then what comes before them in their group, and what groups do.
shared ACC_VALUE sums[2][WIDTH * (STRETCHES + 1) * SIDE];
shared ACC_VALUE group_sums[2][WIDTH * GROUPS * SIDE];

#if WIDTH == 1
#define LANE(vector, k) vector
#else
#define LANE(vector, k) vector[k]
#endif

void main() {
    if (nxv_workgroup() >= params.tiles) return;
    uint side = gl_LocalInvocationIndex % SIDE;
    uint stretch = gl_LocalInvocationIndex / SIDE;
    uint column = nxv_workgroup() % params.beside_tiles * COLUMNS + side * WIDTH;
    bool is_column = column < params.beside;
    uvec2 start = line_start(nxv_workgroup() / params.beside_tiles * params.beside + min(column, params.beside - 1), params.axes_count);
    uint from = params.operand_at + start.x;
    uint to = params.result_at + start.y;

    A_VECTOR next[ITEMS];
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        uint index = stretch * ITEMS + i;
        if (is_column && index < params.extent) next[i] = nxv_load(elements, (from + index * params.operand_step) / WIDTH);
    }
    ACC_VALUE carry[WIDTH];
    [[unroll]] for (uint k = 0; k < WIDTH; ++k) carry[k] = ACC_VALUE(START);
    uint turn = 0;
    for (uint first = 0; first < params.extent; first += STRETCHES * ITEMS) {
        uint own = first + stretch * ITEMS;
        ACC_VALUE items[ITEMS * WIDTH];
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
                items[i * WIDTH + k] = ACC_VALUE(START);
                if (own + i < params.extent) items[i * WIDTH + k] = ACC_VALUE(A_LOAD(LANE(next[i], k)));
            }
        }
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            uint index = own + STRETCHES * ITEMS + i;
            if (is_column && index < params.extent) next[i] = nxv_load(elements, (from + index * params.operand_step) / WIDTH);
        }
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
            [[unroll]] for (uint i = 1; i < ITEMS; ++i) {
                items[i * WIDTH + k] = combine(items[(i - 1) * WIDTH + k], items[i * WIDTH + k]);
            }
            sums[turn][CELL(k, stretch, side)] = items[(ITEMS - 1) * WIDTH + k];
        }
        barrier(); // all stretches are summed before groups are
        for (uint cell = gl_LocalInvocationIndex; cell < GROUPS * COLUMNS; cell += WORKGROUP) {
            uint k = cell / SIDE % WIDTH;
            uint group = cell / COLUMNS;
            ACC_VALUE before = ACC_VALUE(START);
            [[unroll]] for (uint i = 0; i < GROUP; ++i) {
                uint at = CELL(k, group * GROUP + i, cell % SIDE);
                ACC_VALUE sum = sums[turn][at];
                sums[turn][at] = before;
                before = combine(before, sum);
            }
            group_sums[turn][GROUP_CELL(k, group, cell % SIDE)] = before;
        }
        barrier(); // groups are summed before their sums are read; the other half is free again
        ACC_VALUE before[WIDTH];
        [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
            before[k] = carry[k];
            [[unroll]] for (uint group = 0; group < GROUPS; ++group) {
                ACC_VALUE sum = group_sums[turn][GROUP_CELL(k, group, side)];
                carry[k] = combine(carry[k], sum);
                if (group < stretch / GROUP) before[k] = carry[k];
            }
            before[k] = combine(before[k], sums[turn][CELL(k, stretch, side)]);
        }
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            R_VECTOR stored;
            [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
                LANE(stored, k) = R_STORE(combine(before[k], items[i * WIDTH + k]));
            }
            if (is_column && own + i < params.extent) nxv_store(results, (to + (own + i) * params.result_step) / WIDTH, stored);
        }
        turn ^= 1;
    }
}
