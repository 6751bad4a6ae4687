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
#define ITEMS (ENTRIES / WORKGROUP)

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

// Where no indices are wanted, keys are sorted alone. If an element is not the one that its key gives (negative zero and
// NaN), the workgroup sorts with indices after all, in shared memory.
#ifdef INDICES
#define WITH_ORIGINS(x) x
#else
#define WITH_ORIGINS(x)
#endif
#if defined(FLOATS) && !defined(INDICES)
#define MAY_DIFFER
shared uint differs;
#endif

KEY own[ITEMS];
#ifdef INDICES
uint from[ITEMS];
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
    return precedes(a, b) || (a == b && from_a < from_b);
}

#ifdef INDICES
#define COMES_FIRST(a, from_a, b, from_b) comes_first(a, from_a, b, from_b)
#else
#define COMES_FIRST(a, from_a, b, from_b) precedes(a, b)
#endif

// Takes what another invocation has at `item` where that belongs here.
void take(uint item, KEY key, uint origin, bool wants_first) {
    bool takes = COMES_FIRST(key, origin, own[item], from[item]) == wants_first;
    own[item] = takes ? key : own[item];
    WITH_ORIGINS(from[item] = takes ? origin : from[item];)
}

// Exchanges all entries with the invocation whose number differs in the bit `apart`. `up` says whether they ascend.
void exchange(uint mine, uint apart, bool up) {
    bool wants_first = ((mine & apart) == 0u) == up;
    uint origin = 0;
#if SUBGROUPS > 1
    if (apart < SUBGROUPS) {
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            WITH_ORIGINS(origin = subgroupShuffleXor(from[i], apart);)
            take(i, subgroupShuffleXor(own[i], apart), origin, wants_first);
        }
        return;
    }
#endif
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        keys[CELL(mine * ITEMS + i)] = own[i];
        WITH_ORIGINS(origins[CELL(mine * ITEMS + i)] = from[i];)
    }
    barrier(); // every entry is there before it is read
    [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
        uint at = CELL((mine ^ apart) * ITEMS + i);
        WITH_ORIGINS(origin = origins[at];)
        take(i, keys[at], origin, wants_first);
    }
    barrier(); // every entry is read before the next round stores others
}

// Puts the pairs of own entries that are `apart` in order; a macro, so that each is a register.
#define ORDER(apart) \
    if ((apart) < run) { \
        [[unroll]] for (uint i = 0; i < ITEMS / 2; ++i) { \
            uint low = i / (apart) * 2 * (apart) + i % (apart); \
            uint high = low + (apart); \
            bool up = run == longest || ((mine * ITEMS + low) & run) == 0u; \
            bool swaps = COMES_FIRST(own[high], from[high], own[low], from[low]) == up; \
            KEY key = own[low]; \
            own[low] = swaps ? own[high] : key; \
            own[high] = swaps ? key : own[high]; \
            WITH_ORIGINS(uint origin = from[low];) \
            WITH_ORIGINS(from[low] = swaps ? from[high] : origin;) \
            WITH_ORIGINS(from[high] = swaps ? origin : from[high];) \
        } \
    }

void sort(uint mine) {
    uint longest = 1u << params.line_bits;
    [[dont_unroll]] for (uint run = 2; run <= longest; run <<= 1) {
        [[dont_unroll]] for (uint apart = run / (2 * ITEMS); apart > 0; apart >>= 1) {
            exchange(mine, apart, run == longest || (mine * ITEMS & run) == 0u);
        }
#if ITEMS > 16
        ORDER(16)
#endif
#if ITEMS > 8
        ORDER(8)
#endif
#if ITEMS > 4
        ORDER(4)
#endif
#if ITEMS > 2
        ORDER(2)
#endif
#if ITEMS > 1
        ORDER(1)
#endif
    }
}

#ifdef MAY_DIFFER
void sort_with_origins(uint mine) {
    uint longest = 1u << params.line_bits;
    [[dont_unroll]] for (uint run = 2; run <= longest; run <<= 1) {
        [[dont_unroll]] for (uint apart = run >> 1; apart > 0; apart >>= 1) {
            for (uint i = mine; i < ENTRIES / 2; i += WORKGROUP) {
                uint low = ((i & ~(apart - 1)) << 1) | (i & (apart - 1));
                bool up = run == longest || (low & run) == 0u;
                uint a = CELL(low);
                uint b = CELL(low + apart);
                KEY key = keys[a];
                uint origin = origins[a];
                if (comes_first(keys[b], origins[b], key, origin) == up) {
                    keys[a] = keys[b];
                    origins[a] = origins[b];
                    keys[b] = key;
                    origins[b] = origin;
                }
            }
            barrier(); // a round is over before the next one reads what it exchanged
        }
    }
}
#endif

void main() {
    uint mine = invocation();
    uint first_line = nxv_workgroup() * (ENTRIES >> params.line_bits);
    if (first_line >= params.lines) return;
    uint line_count = min(ENTRIES >> params.line_bits, params.lines - first_line);
    for (uint i = mine; i < line_count; i += WORKGROUP) {
        starts[i] = line_start(first_line + i, params.axes_count);
    }
#ifdef MAY_DIFFER
    if (mine == 0u) differs = 0u;
#endif
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
#ifdef MAY_DIFFER
            if (raw_of(key) != raw) differs = 1u;
#endif
        }
        keys[CELL(entry)] = key;
        origins[CELL(entry)] = origin;
    }
    barrier(); // every entry is there before it is taken
#ifdef MAY_DIFFER
    bool is_tracked = differs == 1u;
    if (is_tracked) sort_with_origins(mine);
    else
#endif
    {
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            own[i] = keys[CELL(mine * ITEMS + i)];
            WITH_ORIGINS(from[i] = origins[CELL(mine * ITEMS + i)];)
        }
        barrier(); // all are taken before others are stored
        sort(mine);
        [[unroll]] for (uint i = 0; i < ITEMS; ++i) {
            keys[CELL(mine * ITEMS + i)] = own[i];
            WITH_ORIGINS(origins[CELL(mine * ITEMS + i)] = from[i];)
        }
        barrier(); // every entry is in its place before it is given
    }

    for (uint i = mine; i < ENTRIES; i += WORKGROUP) {
        uvec2 at = place(i);
        if (at.x >= line_count || at.y >= params.keep) continue;
        uint entry = CELL((at.x << params.line_bits) + at.y);
        uint to = starts[at.x].y + at.y * params.result_step;
#ifdef VALUES
#if defined(INDICES)
        nxv_store(values, to, element(at.x, origins[entry]));
#elif defined(MAY_DIFFER)
        nxv_store(values, to, is_tracked ? element(at.x, origins[entry]) : raw_of(keys[entry]));
#else
        nxv_store(values, to, raw_of(keys[entry]));
#endif
#endif
#ifdef INDICES
        nxv_store(indices, to, I_STORE(I_CAST(origins[entry])));
#endif
    }
}
