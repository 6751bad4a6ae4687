#version 450
// Chooses the first `keep` elements of each tile in the order of the sort, by their digits from the highest one on, and
// gives their indices in any order. The digits of the index come last, so that no two elements are equal. FEW: where few are
// wanted, nearly all others are told by a comparison, and digits only count where many are equal.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "keys.glsl"

layout(local_size_x = 256) in;
layout(push_constant) uniform Params {
    uint operand_at;
    uint operand_step;
    uint lines;
    uint axes_count;
    uint extent; // elements to choose from in each line
    uint keep;
    uint tiles;
    uint left;   // indices that are given for each line
} params;

layout(set = 0, binding = 1) readonly buffer Elements { RAW elements[]; };
layout(set = 0, binding = 2) writeonly buffer Left { uint left[]; };
#ifdef CHOSEN
layout(set = 0, binding = CHOSEN) readonly buffer Chosen { uint chosen[]; };
#endif

const uint ITEMS = TILE / 256;
const uint KEY_DIGITS = RAW_BITS / 8;

shared uint found[2][256];
shared uint pivot;    // the digit up to which elements are chosen
shared uint missing;  // how many of those with that digit are
shared uint matching; // how many there are of them
shared uint given;

#ifdef FEW
shared KEY firsts[256];
shared KEY last; // as many elements as are wanted come no later
shared KEY few_keys[256];
shared uint few_origins[256];

bool comes_first(KEY a, uint from_a, KEY b, uint from_b) {
    return precedes(a, b) || (a == b && from_a < from_b);
}

KEY first_of(KEY a, KEY b) {
    return precedes(a, b) ? a : b;
}

// Finds `last`: of the first elements of FEW groups that of the group `wanted - 1`. `first` is that of this invocation.
void find_last(KEY first, uint mine, uint wanted) {
    firsts[mine] = first;
    barrier(); // the first elements of all invocations are there
    if (mine < FEW) {
        for (uint i = mine + FEW; i < 256; i += FEW) first = first_of(firsts[i], first);
        firsts[mine] = first;
    }
    barrier(); // and those of all groups
    if (mine < FEW) {
        uint rank = 0;
        for (uint i = 0; i < FEW; ++i) rank += uint(comes_first(firsts[i], i, first, mine));
        if (rank == wanted - 1) last = first;
    }
    barrier(); // the last of them is known
}
#endif

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint line = nxv_workgroup() / params.tiles;
    uint tile = nxv_workgroup() % params.tiles;
    if (line >= params.lines) return;
    uint start = params.operand_at + line_start(line, params.axes_count).x;
    uint begin = tile * TILE;
    uint count = min(TILE, params.extent - begin);

    KEY keys[ITEMS];
    uint origins[ITEMS];
    bool is_open[ITEMS];
    bool is_chosen[ITEMS];
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        uint i = k * 256 + mine;
        is_open[k] = i < count;
        is_chosen[k] = false;
        keys[k] = KEY(0);
        origins[k] = 0;
        if (!is_open[k]) continue;
#ifdef CHOSEN
        origins[k] = nxv_load(chosen, line * params.extent + begin + i);
#else
        origins[k] = begin + i;
#endif
        keys[k] = key_of(nxv_load(elements, start + origins[k] * params.operand_step));
    }

    uint wanted = min(params.keep, count);
    if (mine == 0) given = 0;
    uint to = line * params.left + tile * params.keep;
#ifdef FEW
    KEY first = KEY(0xffffffffu);
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) first = is_open[k] ? first_of(keys[k], first) : first;
    find_last(first, mine, wanted);
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        is_open[k] = is_open[k] && !precedes(last, keys[k]);
        if (!is_open[k]) continue;
        uint place = atomicAdd(given, 1u);
        if (place < 256) {
            few_keys[place] = keys[k];
            few_origins[place] = origins[k];
        }
    }
    barrier(); // all that are left are there
    uint few = given;
    if (few <= 256) {
        if (mine >= few) return;
        KEY key = few_keys[mine];
        uint origin = few_origins[mine];
        uint rank = 0;
        for (uint i = 0; i < few; ++i) rank += uint(comes_first(few_keys[i], few_origins[i], key, origin));
        if (rank < wanted) nxv_store(left, to + rank, origin);
        return;
    }
    barrier(); // all know how many there are before they are counted anew
    if (mine == 0) given = 0;
#endif
    for (uint round = 0; round < KEY_DIGITS + 4; ++round) {
        found[0][mine] = 0;
        barrier(); // all counts are 0 before one grows
        uint digits[ITEMS];
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            digits[k] = round < KEY_DIGITS ? digit_of(keys[k], KEY_DIGITS - 1 - round)
                                           : origins[k] >> (8 * (KEY_DIGITS + 3 - round)) & 0xffu;
            if (is_open[k]) atomicAdd(found[0][digits[k]], 1u);
        }
        barrier(); // every element is counted
        uint own = found[0][mine];
        uint sum = own;
        uint now = 0;
        for (uint apart = 1; apart < 256; apart <<= 1) {
            if (mine >= apart) sum += found[now][mine - apart];
            now ^= 1;
            found[now][mine] = sum;
            barrier(); // every sum is stored before one is read; the other half is free again
        }
        if (sum >= wanted && sum - own < wanted) {
            pivot = mine;
            missing = wanted - (sum - own);
            matching = own;
        }
        barrier(); // the pivot is known
        [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
            is_chosen[k] = is_chosen[k] || (is_open[k] && digits[k] < pivot);
            is_open[k] = is_open[k] && digits[k] == pivot;
        }
        wanted = missing;
        bool is_over = matching == missing;
        barrier(); // all have read it before the next round finds another
        if (is_over) break;
    }
    [[unroll]] for (uint k = 0; k < ITEMS; ++k) {
        if (!is_chosen[k] && !is_open[k]) continue;
        nxv_store(left, to + atomicAdd(given, 1u), origins[k]);
    }
}
