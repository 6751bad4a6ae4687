#version 450
// Sorts short lines in shared memory, several in a workgroup: each has a power of two of the ENTRIES. Bitonic (Batcher
// 1968); ties are broken by the index, which makes it stable.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "keys.glsl"

layout(local_size_x = WORKGROUP) in;
layout(push_constant) uniform Params {
    uint operand_at;
    uint operand_step;
    uint result_step;
    uint lines;
    uint axes_count;
    uint extent;    // elements to sort of each line
    uint keep;      // how many of them are wanted
    uint line_bits; // entries of a line, as a power of two
    uint beside;    // 1: neighbours in a workgroup are neighbours in different lines
} params;

layout(set = 0, binding = 1) readonly buffer Elements { RAW elements[]; };
#ifdef VALUES
layout(set = 0, binding = VALUES) writeonly buffer Values { RAW values[]; };
#endif
#ifdef INDICES
layout(set = 0, binding = INDICES) writeonly buffer Indices { I_STORAGE indices[]; };
#endif
#ifdef CHOSEN
// The elements to sort, by their indices; `extent` of each line.
layout(set = 0, binding = CHOSEN) readonly buffer Chosen { uint chosen[]; };
#endif

shared KEY keys[ENTRIES];
shared uint origins[ENTRIES];
shared uvec2 starts[LINES];

RAW element(uint line, uint index) {
    return nxv_load(elements, params.operand_at + starts[line].x + index * params.operand_step);
}

// Line and place in it of an entry, in the order in which memory is accessed.
uvec2 place(uint entry) {
    uint line_count = ENTRIES >> params.line_bits;
    if (params.beside == 1u) return uvec2(entry & (line_count - 1), entry / line_count);
    return uvec2(entry >> params.line_bits, entry & ((1u << params.line_bits) - 1));
}

void order(uint low, uint high, bool up) {
    KEY a = keys[low];
    KEY b = keys[high];
    uint from_a = origins[low];
    uint from_b = origins[high];
    bool swaps = precedes(b, a) || (a == b && from_b < from_a);
    if (swaps == up) {
        keys[low] = b;
        keys[high] = a;
        origins[low] = from_b;
        origins[high] = from_a;
    }
}

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint first_line = nxv_workgroup() * (ENTRIES >> params.line_bits);
    if (first_line >= params.lines) return;
    uint line_count = min(ENTRIES >> params.line_bits, params.lines - first_line);
    for (uint i = mine; i < line_count; i += WORKGROUP) {
        starts[i] = line_start(first_line + i, params.axes_count);
    }
    barrier(); // every start is known before an element is read

    for (uint i = mine; i < ENTRIES; i += WORKGROUP) {
        uvec2 at = place(i);
        uint entry = (at.x << params.line_bits) + at.y;
        // What is no element comes last.
        keys[entry] = KEY(0xffffffffu);
        origins[entry] = 0xffffffffu;
        if (at.x < line_count && at.y < params.extent) {
#ifdef CHOSEN
            uint origin = nxv_load(chosen, (first_line + at.x) * params.extent + at.y);
#else
            uint origin = at.y;
#endif
            keys[entry] = key_of(element(at.x, origin));
            origins[entry] = origin;
        }
    }
    barrier(); // every entry is there before two are compared

    uint longest = 1u << params.line_bits;
    for (uint run = 2; run <= longest; run <<= 1) {
        for (uint apart = run >> 1; apart > 0; apart >>= 1) {
            for (uint i = mine; i < ENTRIES / 2; i += WORKGROUP) {
                uint low = ((i & ~(apart - 1)) << 1) | (i & (apart - 1));
                order(low, low + apart, run == longest || (low & run) == 0u);
            }
            barrier(); // a round is over before the next one reads what it exchanged
        }
    }

    for (uint i = mine; i < ENTRIES; i += WORKGROUP) {
        uvec2 at = place(i);
        if (at.x >= line_count || at.y >= params.keep) continue;
        uint origin = origins[(at.x << params.line_bits) + at.y];
        uint to = starts[at.x].y + at.y * params.result_step;
#ifdef VALUES
        nxv_store(values, to, element(at.x, origin));
#endif
#ifdef INDICES
        nxv_store(indices, to, I_STORE(I_CAST(origin)));
#endif
    }
}
