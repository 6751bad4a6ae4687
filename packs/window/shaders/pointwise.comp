#version 460
#pragma use_vulkan_memory_model
#extension GL_KHR_memory_scope_semantics : require
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_EXT_shader_explicit_arithmetic_types : require
// As product.comp and product_parts.comp for kernels of one element at each channel, whose x is a matrix already: a workgroup
// brings CHANNELS channels at its positions into shared memory, where neighbouring channels come to lie together.
#define STAGED 1
#include "product.glsl"
#include "parts.glsl"

#define CHANNELS 64
#define WARPS (WARPS_M * WARPS_N)
// Positions of the workgroup, and those that a subgroup brings.
#define ALL (WARPS_N * POSITIONS)
#define BROUGHT (ALL / WARPS)

// Four channels an element, and one more keeps the positions that lanes load at once off each other's banks.
shared uvec2 staged[PLANES][ALL][CHANNELS / 4 + 1];

uint brought_at[BROUGHT / LOADED];

// One of LOADED elements, as it is in memory.
#if PLANES > 1
#define OF_LOADED(run, i) run[i]
#else
#define OF_LOADED(run, i) T_STORAGE((run[(i) / 2] >> ((i) % 2 * 16)) & 0xffffu)
#endif

// A lane brings two channels, so that what a subgroup stores lies side by side.
void stage(uint first_channel) {
    uint channel = first_channel + 2 * LANE;
    uint first = SUBGROUP * BROUGHT;
    LOADED_TYPE low[BROUGHT / LOADED], high[BROUGHT / LOADED];
    [[unroll]] for (uint r = 0; r < BROUGHT / LOADED; ++r) {
        uint at = brought_at[r] + channel * params.x_channel;
        low[r] = high[r] = LOADED_TYPE(0);
        if (channel < params.channels) low[r] = nxv_load(x, at / LOADED);
        if (channel + 1 < params.channels) high[r] = nxv_load(x, (at + params.x_channel) / LOADED);
    }
    [[unroll]] for (uint r = 0; r < BROUGHT / LOADED; ++r) {
        [[unroll]] for (uint i = 0; i < LOADED; ++i) {
            uvec3 words = parts_of(OF_LOADED(low[r], i)) | parts_of(OF_LOADED(high[r], i)) << 16;
            [[unroll]] for (uint p = 0; p < PLANES; ++p) staged[p][first + r * LOADED + i][LANE >> 1][LANE & 1] = words[p];
        }
    }
}

uint own_at[TILE_N][2];
uint quad;
#define COLUMNS(j, p) columns_of(staged[p][own_at[j][0]][quad], staged[p][own_at[j][1]][quad])

#if PLANES == 1
#define ADD(w, j, turn) sums[w][j] = MULTIPLY(rows_of(rows[turn][0][w]), x_first, sums[w][j]);
#define COLUMN(j, turn) { \
        MATRIX_B x_first = COLUMNS(j, 0); \
        EACH_M(ADD, j, turn) \
    }
#define LOAD_ROWS(turn) EACH_M(LOAD_ROW, turn, 0)
#else
#define ADD(w, j, turn) ADD_PARTS(w, j, turn)
#define COLUMN(j, turn) { \
        MATRIX_B x_first = COLUMNS(j, 0), x_second = COLUMNS(j, 1); \
        THIRD(MATRIX_B x_third = COLUMNS(j, 2);) \
        EACH_M(ADD, j, turn) \
    }
#define LOAD_ROWS(turn) EACH_M(LOAD_ROW, turn, 0) EACH_M(LOAD_ROW, turn, 1) THIRD(EACH_M(LOAD_ROW, turn, 2))
#endif
#define LOAD_ROW(w, turn, p) rows[turn][p][w] = load_rows(at + (p * TILE_M + w) * 32);

void main() {
    if (nxv_workgroup() >= params.jobs) return;
    bool works = begin();
    uint all = first_column - SUBGROUP / WARPS_M * POSITIONS;
    [[unroll]] for (uint r = 0; r < BROUGHT / LOADED; ++r) {
        uint position = all + SUBGROUP * BROUGHT + r * LOADED;
        brought_at[r] = params.x_first + packed_at(min(position, params.columns - LOADED), group);
    }
    uint column = SUBGROUP / WARPS_M * POSITIONS;
#define OWN_AT(j, a) \
    own_at[j][0] = column + own_position(j, 0, LANE >> 2); own_at[j][1] = column + own_position(j, 1, LANE >> 2);
    EACH_N(OWN_AT, 0)
    uint at = kernel_at();
    uvec4 rows[2][PLANES][TILE_M];
    if (works) {
        LOAD_ROWS(0)
    }
    for (uint s = start; s < end; s += CHANNELS / 32) {
        if (s > start) barrier(); // nobody still loads what was staged before
        stage(s * 32);
        barrier(); // all of it is there before anybody loads it
        // Each half of a step loads the rows of the next one; those behind the last step are there and nobody uses them.
        for (uint own = 0; works && own < min(CHANNELS / 32, end - s); ++own) {
            quad = own * 8 + (LANE & 3) * 2;
            at += 32 * TILE_M * PLANES;
            LOAD_ROWS(1)
            EACH_N(COLUMN, 0)
            ++quad;
            at += 32 * TILE_M * PLANES;
            LOAD_ROWS(0)
            EACH_N(COLUMN, 1)
        }
    }
    if (!works) return;
#if PLANES > 1
    check_sums();
#endif
    store_sums();
}
