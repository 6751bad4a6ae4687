#version 450
// Moves the elements of a tile to where their digit puts them, in the order that they have. Within the tile they are
// ordered by the two halves of the digit first, so that neighbours go to neighbours.
#include "dtype.glsl"
#include "tensor.glsl"
#include "lines.glsl"
#include "digits.glsl"

layout(local_size_x = WORKGROUP) in;
const uint ITEMS = TILE / WORKGROUP;

layout(set = 0, binding = 2) readonly buffer Counts { uint counts[]; }; // of the same digit in tiles before
layout(set = 0, binding = 3) readonly buffer Totals { uint totals[]; };
#ifdef VALUES
layout(set = 0, binding = VALUES) writeonly buffer Values { RAW values[]; };
#endif
#ifdef ORIGINS
layout(set = 0, binding = ORIGINS) readonly buffer Origins { uint origins[]; };
#endif
#ifdef INDICES
layout(set = 0, binding = INDICES) writeonly buffer Indices { I_STORAGE indices[]; };
#endif

// An entry is a digit with the place that its element had in the tile.
shared uint entries[TILE];
// Of half a digit and an invocation: how many of them it has, then how many come before.
shared uint before[16 * WORKGROUP];
shared uint exchanged[2][WORKGROUP];
shared uint first_of[256];   // where in the sorted tile a digit begins
shared uint result_of[256];  // where it goes

// The sum of what the invocations before this one give.
uint sum_before(uint own) {
    uint mine = gl_LocalInvocationIndex;
    uint sum = own;
    uint now = 0;
    exchanged[now][mine] = sum;
    barrier(); // every term is stored before one is read
    for (uint apart = 1; apart < WORKGROUP; apart <<= 1) {
        if (mine >= apart) sum += exchanged[now][mine - apart];
        now ^= 1;
        exchanged[now][mine] = sum;
        barrier(); // as above; the other half is free again
    }
    return sum - own;
}

// Orders the entries by four bits of their digit.
void order_by(uint shift) {
    uint mine = gl_LocalInvocationIndex;
    uint own[ITEMS];
    uint ranks[ITEMS];
    for (uint k = 0; k < 16; ++k) before[k * WORKGROUP + mine] = 0;
    for (uint k = 0; k < ITEMS; ++k) {
        own[k] = entries[mine * ITEMS + k];
        uint cell = (own[k] >> shift & 15u) * WORKGROUP + mine;
        ranks[k] = before[cell];
        before[cell] = ranks[k] + 1;
    }
    barrier(); // all entries are read and counted
    uint sum = 0;
    for (uint k = 0; k < 16; ++k) sum += before[mine * 16 + k];
    sum = sum_before(sum);
    for (uint k = 0; k < 16; ++k) {
        uint count = before[mine * 16 + k];
        before[mine * 16 + k] = sum;
        sum += count;
    }
    barrier(); // every cell knows what comes before it
    for (uint k = 0; k < ITEMS; ++k) {
        entries[before[(own[k] >> shift & 15u) * WORKGROUP + mine] + ranks[k]] = own[k];
    }
    barrier(); // the new order is complete
}

void main() {
    uint mine = gl_LocalInvocationIndex;
    uint line = nxv_workgroup() / params.tiles;
    uint tile = nxv_workgroup() % params.tiles;
    if (line >= params.lines) return;
    uvec2 start = line_start(line, params.axes_count);
    uint begin = tile * TILE;
    uint count = min(TILE, params.extent - begin);

    const uint DIGITS = (256 + WORKGROUP - 1) / WORKGROUP;
    uint own = 0;
    for (uint k = 0; k < DIGITS; ++k) {
        uint digit = mine * DIGITS + k;
        if (digit < 256) own += nxv_load(totals, line * 256 + digit);
    }
    uint at = sum_before(own);
    for (uint k = 0; k < DIGITS; ++k) {
        uint digit = mine * DIGITS + k;
        if (digit >= 256) break;
        result_of[digit] = at + nxv_load(counts, (line * 256 + digit) * params.tiles + tile);
        at += nxv_load(totals, line * 256 + digit);
    }
    // What is no element comes last: it has the last digit, and stands behind all elements.
    for (uint i = mine; i < TILE; i += WORKGROUP) {
        uint digit = 255;
        if (i < count) digit = digit_of(key_of(element(line, start, begin + i)), params.digit);
        entries[i] = digit << 16 | i;
    }
    barrier(); // all entries are there before they are ordered
    [[dont_unroll]] for (uint shift = 16; shift < 24; shift += 4) order_by(shift);

    for (uint i = mine; i < count; i += WORKGROUP) {
        uint digit = entries[i] >> 16;
        if (i == 0 || entries[i - 1] >> 16 != digit) first_of[digit] = i;
    }
    barrier(); // every digit knows its first entry
    for (uint i = mine; i < count; i += WORKGROUP) {
        uint digit = entries[i] >> 16;
        uint from = begin + (entries[i] & 0xffffu);
        uint to = result_of[digit] + i - first_of[digit];
#ifdef LAST
        if (to >= params.keep) continue;
        to = start.y + to * params.result_step;
#else
        to += line * params.extent;
#endif
#ifdef VALUES
        nxv_store(values, to, element(line, start, from));
#endif
#ifdef INDICES
#ifdef ORIGINS
        uint origin = nxv_load(origins, line * params.extent + from);
#else
        uint origin = from;
#endif
        nxv_store(indices, to, I_STORE(I_CAST(origin)));
#endif
    }
}
