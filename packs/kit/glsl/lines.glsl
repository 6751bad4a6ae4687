// A tensor as the lines along one of its axes. Positions count modulo 2^32, so that every sum of strides comes out right.
#ifndef LINES_GLSL
#define LINES_GLSL

// The other axes: extent, and how far apart indices are in the operand and in the result.
layout(set = 0, binding = 0) readonly buffer Axes { uvec4 axes[]; };

// Where a line starts, in the operand and in the result, from where the first one does.
uvec2 line_start(uint line, uint axes_count) {
    uvec2 start = uvec2(0);
    for (uint k = axes_count; k > 0; --k) {
        uvec4 axis = nxv_load(axes, k - 1);
        start += line % axis.x * axis.yz;
        line /= axis.x;
    }
    return start;
}
#endif
