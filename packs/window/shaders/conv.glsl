// A convolution as a product of matrices for each group: filters by kernel elements, kernel elements by positions.
// DIMS is the number of spatial axes, HOLES is 1 where x is dilated, CHANNELS_LAST says that of the kernel's elements those
// along the channels follow each other.
#ifdef UNITS_OF_F16
#extension GL_EXT_shader_explicit_arithmetic_types_float16 : require
#endif
#include "dtype.glsl"
#include "tensor.glsl"
#include "finish.glsl"

#if defined(T_IS_C64) || defined(T_IS_C128)
#define PLUS_PRODUCT(a, b, c) (nxv_complex_product(a, b) + (c))
#else
#define PLUS_PRODUCT(a, b, c) fma(a, b, c)
#endif

struct Spatial {
    uint positions;
    NxvDivisor by_positions;
    uint taps;
    NxvDivisor by_taps;
    int stride;
    int low;
    int dilation;
    int extent;      // of x, without holes
    int holes;       // steps from one element of x to the next
    NxvDivisor by_holes;
    uint x_step;
    uint kernel_step;
    uint result_step;
};

layout(set = 0, binding = 0, std430) readonly restrict buffer Params {
    uint first_workgroup; // of this dispatch
    uint jobs;
    uint groups;
    uint filters;    // of a group
    uint columns;    // positions of a group in its part of the batch
    uint depth;      // elements of a filter
    uint channels;   // of a filter
    NxvDivisor by_channels;
    NxvDivisor by_filters;
    NxvDivisor by_columns;
    uint x_first, x_group, x_batch, x_channel;
    uint kernel_first, kernel_group, kernel_filter, kernel_channel;
    uint result_group, result_batch, result_filter;
    uint blocks_m, blocks_n, chunk, results;
    Spatial spatial[DIMS_OR_ONE];
} params;
layout(set = 0, binding = 1, std430) readonly restrict buffer X { T_STORAGE x[]; };
layout(set = 0, binding = 2, std430) readonly restrict buffer Kernel { T_STORAGE weights[]; };

// The batch's part of a column, and its position along each spatial axis.
struct Column {
    uint batch;
    int at[DIMS_OR_ONE];
};

Column column_of(uint index) {
    Column column;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(index, params.spatial[k].positions, params.spatial[k].by_positions);
        column.at[k] = int(index - outer * params.spatial[k].positions);
        index = outer;
    }
    column.batch = index;
    return column;
}

uint result_at(Column column) {
    uint at = column.batch * params.result_batch;
    [[unroll]] for (int k = 0; k < DIMS; ++k) at += uint(column.at[k]) * params.spatial[k].result_step;
    return at;
}

// Where the kernel starts along each axis of the dilated x.
Column corner_of(Column column) {
    [[unroll]] for (int k = 0; k < DIMS; ++k) {
        column.at[k] = column.at[k] * params.spatial[k].stride - params.spatial[k].low;
    }
    return column;
}

// An element of the kernel: what it adds to the places in x and in the kernel, and along each axis of the dilated x.
struct Tap {
    uint x;
    uint kernel;
    int at[DIMS_OR_ONE];
};

Tap tap_of(uint index) {
    Tap tap;
#if CHANNELS_LAST
    uint taps = nxv_divide(index, params.channels, params.by_channels);
    uint channel = index - taps * params.channels;
    index = taps;
#endif
    tap.kernel = 0;
    [[unroll]] for (int k = DIMS - 1; k >= 0; --k) {
        uint outer = nxv_divide(index, params.spatial[k].taps, params.spatial[k].by_taps);
        uint along = index - outer * params.spatial[k].taps;
        tap.at[k] = int(along) * params.spatial[k].dilation;
        tap.kernel += along * params.spatial[k].kernel_step;
        index = outer;
    }
#if !CHANNELS_LAST
    uint channel = index;
#endif
    tap.x = channel * params.x_channel;
    tap.kernel += channel * params.kernel_channel;
    return tap;
}

#include "reaches.glsl"
