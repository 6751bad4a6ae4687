#version 450
// Sorts short lines, several in a workgroup: each has a power of two of the ENTRIES, of which an invocation keeps ITEMS
// neighbours in registers. Bitonic (Batcher 1968): what is close is exchanged in registers, what is in one subgroup by
// shuffles, the rest in shared memory. Ties are broken by the index, which makes it stable.
#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "keys.glsl"

layout(local_size_x = WORKGROUP) in;
const uint ITEMS = ENTRIES / WORKGROUP;

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

// Every 32nd cell is left out, so that invocations with neighbours use different banks.
#define CELL(entry) ((entry) + (entry) / 32)
shared KEY keys[ENTRIES + ENTRIES / 32];
shared uint origins[ENTRIES + ENTRIES / 32];
shared uvec2 starts[LINES];
shared uint is_ambiguous;

KEY own[ITEMS];
uint from[ITEMS];
// Whether indices are sorted along: without them equal keys have to be equal elements.
#if defined(INDICES)
const bool is_tracked = true;
#elif defined(FLOATS)
bool is_tracked;
#else
const bool is_tracked = false;
#endif

#ifdef SUBGROUPS
uint invocation() { return gl_SubgroupID * SUBGROUPS + gl_SubgroupInvocationID; }
#else
#define SUBGROUPS 1
uint invocation() { return gl_LocalInvocationIndex; }
#endif

RAW element(uint line, uint index) {
    return nxv_load(elements, params.operand_at + starts[line].x + index * params.operand_step);
}

// Line and place in it of an entry, in the order in which memory is accessed.
uvec2 place(uint entry) {
    uint line_count = ENTRIES >> params.line_bits;
    if (params.beside == 1u) return uvec2(entry & (line_count - 1), entry / line_count);
    return uvec2(entry >> params.line_bits, entry & ((1u << params.line_bits) - 1));
}

bool comes_first(KEY a, uint from_a, KEY b, uint from_b) {
    return precedes(a, b) || (is_tracked && a == b && from_a < from_b);
}

// Puts two of the own entries in order.
void order(uint low, uint high, bool up) {
    if (comes_first(own[high], from[high], own[low], from[low]) != up) return;
    KEY key = own[low];
    own[low] = own[high];
    own[high] = key;
    uint origin = from[low];
    from[low] = from[high];
    from[high] = origin;
}

// Takes what another invocation has at `item` where that belongs here.
void take(uint item, KEY key, uint origin, bool wants_first) {
    if (comes_first(key, origin, own[item], from[item]) != wants_first) return;
    own[item] = key;
    from[item] = origin;
}

// Exchanges all entries with the invocation whose number differs in the bit `apart`. `up` says whether they ascend.
void exchange(uint mine, uint apart, bool up) {
    bool wants_first = ((mine & apart) == 0u) == up;
#if SUBGROUPS > 1
    if (apart < SUBGROUPS) {
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            uint origin = is_tracked ? subgroupShuffleXor(from[i], apart) : 0u;
            take(i, subgroupShuffleXor(own[i], apart), origin, wants_first);
        }
        return;
    }
#endif
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        keys[CELL(mine * ITEMS + i)] = own[i];
        if (is_tracked) origins[CELL(mine * ITEMS + i)] = from[i];
    }
    barrier(); // every entry is there before it is read
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        uint at = CELL((mine ^ apart) * ITEMS + i);
        take(i, keys[at], is_tracked ? origins[at] : 0u, wants_first);
    }
    barrier(); // every entry is read before the next round stores others
}

void sort(uint mine) {
    uint longest = 1u << params.line_bits;
    for (uint run = 2; run <= longest; run <<= 1) {
        for (uint apart = run / (2 * ITEMS); apart > 0; apart >>= 1) {
            exchange(mine, apart, run == longest || (mine * ITEMS & run) == 0u);
        }
        [[unroll]] for (uint apart = ITEMS / 2; apart > 0; apart >>= 1) {
            if (apart < run) {
                [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
                    bool up = run == longest || ((mine * ITEMS + i) & run) == 0u;
                    if ((i & apart) == 0u) order(i, i | apart, up);
                }
            }
        }
    }
}

void main() {
    uint mine = invocation();
    uint first_line = nxv_workgroup() * (ENTRIES >> params.line_bits);
    if (first_line >= params.lines) return;
    uint line_count = min(ENTRIES >> params.line_bits, params.lines - first_line);
    for (uint i = mine; i < line_count; i += WORKGROUP) {
        starts[i] = line_start(first_line + i, params.axes_count);
    }
    if (mine == 0u) is_ambiguous = 0u;
    barrier(); // every start is known before an element is read

    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        uvec2 at = place(i * WORKGROUP + mine);
        uint entry = (at.x << params.line_bits) + at.y;
        // What is no element comes last.
        KEY key = KEY(0xffffffffu);
        uint origin = 0xffffffffu;
        if (at.x < line_count && at.y < params.extent) {
            origin = at.y;
#ifdef CHOSEN
            origin = nxv_load(chosen, (first_line + at.x) * params.extent + at.y);
#endif
            RAW raw = element(at.x, origin);
            key = key_of(raw);
#ifdef FLOATS
            if (raw_of(key) != raw) is_ambiguous = 1u;
#endif
        }
        keys[CELL(entry)] = key;
        origins[CELL(entry)] = origin;
    }
    barrier(); // every entry is there before it is taken
#if !defined(INDICES) && defined(FLOATS)
    is_tracked = is_ambiguous == 1u;
#endif
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        own[i] = keys[CELL(mine * ITEMS + i)];
        from[i] = origins[CELL(mine * ITEMS + i)];
    }
    barrier(); // all are taken before others are stored
    sort(mine);
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        keys[CELL(mine * ITEMS + i)] = own[i];
        origins[CELL(mine * ITEMS + i)] = from[i];
    }
    barrier(); // every entry is in its place before it is given

    for (uint i = mine; i < ENTRIES; i += WORKGROUP) {
        uvec2 at = place(i);
        if (at.x >= line_count || at.y >= params.keep) continue;
        uint entry = CELL((at.x << params.line_bits) + at.y);
        uint to = starts[at.x].y + at.y * params.result_step;
#ifdef VALUES
        nxv_store(values, to, is_tracked ? element(at.x, origins[entry]) : raw_of(keys[entry]));
#endif
#ifdef INDICES
        nxv_store(indices, to, I_STORE(I_CAST(origins[entry])));
#endif
    }
}
