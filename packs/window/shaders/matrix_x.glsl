// What packs x. With TOGETHER the channels of a piece lie together and in line: 16-bit ones are read as a piece, f32 by fours.
#include "matrix.glsl"
#include "parts.glsl"

#if !defined(TOGETHER)
#define X_TYPE T_STORAGE
#elif PLANES == 1
#define X_TYPE PIECE_TYPE
#else
#define X_TYPE vec4
#endif

layout(local_size_x = THREADS) in;
layout(set = 0, binding = 1, std430) readonly restrict buffer X { X_TYPE x[]; };
layout(set = 0, binding = 2, std430) writeonly restrict buffer Packed { PIECE_TYPE packed[]; };
#if PLANES > 1
#define COUNTS 3
#include "unfit.glsl"
#endif

#include "reaches.glsl"

// Where a pixel lies in the packed x, of which it is the one at `index` in the order of x.
uint in_runs(uint index) {
#if PHASES == 1
    return index;
#else
    uint extent = params.spatial[DIMS - 1].packed;
    uint along = index - nxv_divide(index, extent, params.spatial[DIMS - 1].by_packed) * extent;
    return index - along + along % PHASES * (extent / PHASES) + along / PHASES;
#endif
}

// Where a pixel of a block of channels is in x; adds its first channel. False where there is none.
bool find(uint index, inout uint channel, out uint at) {
    bool inside = true;
    at = params.x_first;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(index, params.spatial[k].packed, params.spatial[k].by_packed);
        int place = int(index - outer * params.spatial[k].packed) * params.spatial[k].stride - params.spatial[k].low;
        inside = reaches(k, place, at) && inside;
        index = outer;
    }
    uint outer = nxv_divide(index, params.blocks, params.by_blocks);
    channel += (index - outer * params.blocks) * BLOCK;
    uint group = nxv_divide(outer, params.batches, params.by_batches);
    at += group * params.x_group + (outer - group * params.batches) * params.x_batch + channel * params.x_channel;
    return inside;
}

// The zeros behind the last piece of one part.
void store_zeros() {
#if PLANES > 1
    if (gl_LocalInvocationIndex == 0) compute_nothing_anew();
#endif
    nxv_store(packed, gl_LocalInvocationIndex * (params.x_pieces + 1) + params.x_pieces, PIECE_TYPE(0));
}
