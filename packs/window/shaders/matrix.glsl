// A convolution as a product on matrix units. x is packed in pieces of neighbouring channels, padding and holes written out
// as zeros, so that an element of the kernel is one offset for all positions; the kernel is packed as the product loads it.
//
// Channels come in blocks of BLOCK, of PIECE elements a piece: [group][batch][block][spatial axes][channels of the block].
// Where positions are PHASES elements of the last axis apart, these lie in as many runs, every PHASES-th of them in one: neighbouring
// positions then load neighbours for every element of the kernel.
// The elements of a filter are taken as pieces as well: [block][spatial axes][pieces of the block], 32 elements a step.
#include "dtype.glsl"
#include "tensor.glsl"

#define PIECES (BLOCK / PIECE)
// Pieces of x that a lane loads in one step.
#define OWN (8 / PIECE)
// Filters and positions of a subgroup, in fragments of 16.
#define FILTERS (16 * TILE_M)
#define POSITIONS (16 * TILE_N)
// A place of no piece: behind the last, where the packed x has zeros.
#define NOWHERE 0xffffffffu

struct Axis {
    uint positions;
    NxvDivisor by_positions;
    uint taps;
    NxvDivisor by_taps;
    uint packed;         // elements of the packed x
    NxvDivisor by_packed;
    int stride;          // between them, in the dilated x
    int low;
    int extent;          // of x, without holes
    int holes;
    NxvDivisor by_holes;
    uint x_step;
    uint kernel_step;
    uint result_step;
    uint position_step;  // pieces from one position to the next
    uint tap_step;       // and from one element of the kernel
};

layout(set = 0, binding = 0, std430) readonly restrict buffer Params {
    uint x_pieces;       // of the packed x
    uint group_pieces;
    uint batch_pieces;
    uint block_pieces;
    uint batches;
    NxvDivisor by_batches;
    uint blocks;         // of channels
    NxvDivisor by_blocks;
    uint channels;       // of a filter
    uint taps;
    NxvDivisor by_taps;
    uint steps;          // of a filter
    NxvDivisor by_steps;
    uint filters;        // of a group
    uint columns;        // positions of a group
    uint groups;
    uint tiles_m;        // subgroups along the filters of a group
    uint blocks_m, blocks_n; // workgroups of a group
    uint chunk;          // steps of a split
    uint jobs;
    uint results;
    uint x_first, x_group, x_batch, x_channel;
    uint kernel_first, kernel_group, kernel_filter, kernel_channel;
    uint result_group, result_batch, result_filter;
    uint first_piece;    // of an x in place
    Axis spatial[DIMS_OR_ONE];
} params;
