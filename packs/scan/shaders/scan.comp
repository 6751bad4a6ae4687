#version 450
// Scans lines, or parts of them, a stretch after the other. LANES invocations share a line, each with ITEMS elements in a
// row. ALONG: lines are scanned along memory; else lines that lie beside each other are scanned together.
// TOTALS: gives what each part amounts to instead. CARRIES: starts from what the parts before amount to.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "combine.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint operand_at;    // of the first element in the order of the scan
    uint operand_step;
    uint result_at;
    uint result_step;
    uint lines;
    uint axes_count;
    uint extent;
    uint parts;
    uint part_extent;
    uint lane_bits;
} params;

#define LANES (1u << params.lane_bits)
#define LINES (WORKGROUP >> params.lane_bits)
#define STRETCH (ITEMS << params.lane_bits)

layout(set = 0, binding = 1) readonly buffer Elements { A_STORAGE elements[]; };
layout(set = 0, binding = 2) writeonly buffer Results { R_STORAGE results[]; };
#ifdef CARRIES
layout(set = 0, binding = 3) readonly buffer Carries { ACC_STORAGE carries[]; };
#endif

shared uvec2 starts[WORKGROUP];
shared ACC_VALUE exchanged[2][WORKGROUP];
#ifdef ALONG
// Every 32nd cell is left out, so that invocations with elements in a row use different banks.
shared ACC_VALUE staged[WORKGROUP * ITEMS * 33 / 32];
#define CELL(slot) ((slot) + (slot) / 32)
#define NEXT 1
#else
#define NEXT LINES
#endif

ACC_VALUE element(uint line, uint index) {
    uint at = params.operand_at + starts[line].x + index * params.operand_step;
    return ACC_VALUE(A_LOAD(nxv_load(elements, at)));
}

void give(uint line, uint index, ACC_VALUE value) {
    uint at = params.result_at + starts[line].y + index * params.result_step;
    nxv_store(results, at, R_STORE(value));
}

// What the lanes before this one amount to, and what all of them do.
ACC_VALUE scan_lanes(ACC_VALUE value, uint lane, out ACC_VALUE all) {
    uint mine = gl_LocalInvocationIndex;
    uint now = 0;
    exchanged[now][mine] = value;
    barrier(); // every value is stored before one is read
    for (uint apart = 1; apart < LANES; apart <<= 1) {
        if (lane >= apart) value = combine(exchanged[now][mine - apart * NEXT], value);
        now ^= 1;
        exchanged[now][mine] = value;
        barrier(); // as above; the other half is free again, since all have read it
    }
    all = exchanged[now][mine + (LANES - 1 - lane) * NEXT];
    ACC_VALUE before = ACC_VALUE(START);
    if (lane > 0) before = exchanged[now][mine - NEXT];
    barrier(); // all have read what the next call overwrites
    return before;
}

void main() {
    uint mine = gl_LocalInvocationIndex;
#ifdef ALONG
    uint own = mine >> params.lane_bits;
    uint lane = mine & (LANES - 1);
#else
    uint own = mine & (LINES - 1);
    uint lane = mine / LINES;
#endif
    uint group = nxv_workgroup();
    uint part = group % params.parts;
    uint first_line = group / params.parts * LINES;
    if (first_line >= params.lines) return;
    uint own_line = first_line + own;
    uint line_count = min(LINES, params.lines - first_line);
    uint begin = part * params.part_extent;
    uint end = begin + min(params.part_extent, params.extent - begin);

    if (mine < line_count) starts[mine] = line_start(first_line + mine, params.axes_count);
    barrier(); // every start is known before an element is read
    ACC_VALUE carry = ACC_VALUE(START);
#ifdef CARRIES
    if (part > 0 && own < line_count) {
        carry = ACC_LOAD(nxv_load(carries, own_line * params.parts + part - 1));
    }
#endif
    for (uint from = begin; from < end; from += STRETCH) {
        ACC_VALUE items[ITEMS];
#ifdef ALONG
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint slot = k * WORKGROUP + mine;
            uint line = slot / (STRETCH);
            uint index = from + (slot & (STRETCH - 1));
            items[k] = ACC_VALUE(START);
            if (line < line_count && index < end) items[k] = element(line, index);
        }
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) staged[CELL(k * WORKGROUP + mine)] = items[k];
        barrier(); // all elements are there before they change hands
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) items[k] = staged[CELL(mine * ITEMS + k)];
#else
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint index = from + lane * ITEMS + k;
            items[k] = ACC_VALUE(START);
            if (own < line_count && index < end) items[k] = element(own, index);
        }
#endif
        [[unroll]] for (uint k = 1; k < ITEMS; ++k) items[k] = combine(items[k - 1], items[k]);
        ACC_VALUE all;
        ACC_VALUE before = combine(carry, scan_lanes(items[ITEMS - 1], lane, all));
        carry = combine(carry, all);
#if !defined(TOTALS) && defined(ALONG)
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            staged[CELL(mine * ITEMS + k)] = combine(before, items[k]);
        }
        barrier(); // all results are there before they change hands
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint slot = k * WORKGROUP + mine;
            uint line = slot / (STRETCH);
            uint index = from + (slot & (STRETCH - 1));
            if (line < line_count && index < end) give(line, index, staged[CELL(slot)]);
        }
        barrier(); // all results are read before the next elements take their place
#elif !defined(TOTALS)
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            uint index = from + lane * ITEMS + k;
            if (own < line_count && index < end) give(own, index, combine(before, items[k]));
        }
#endif
    }
#ifdef TOTALS
    if (own < line_count && lane == 0) {
        nxv_store(results, own_line * params.parts + part, R_STORE(carry));
    }
#endif
}
