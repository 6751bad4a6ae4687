#version 450
// Matrices turned: columns become rows. With IDENTITY ones on the diagonal, without an operand; with UPPER only what is not
// below the diagonal of the result; with SIGNS columns of the operand change sign where the diagonal of another matrix is
// negative. STRAIGHT does not turn. With SOME only those matrices that are chosen.
#include "matrix.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push {
    uint count; uint jobs; uint rows; uint columns; uint batch; uint stride; uint signs_batch; uint signs_stride; uint signed_columns;
};
layout(set = 0, binding = 0, std430) writeonly buffer To { WORK to[]; };
#ifndef IDENTITY
layout(set = 0, binding = 1, std430) readonly buffer From { WORK from[]; };
#endif
#ifdef SIGNS
layout(set = 0, binding = 2, std430) readonly buffer Signs { WORK signs[]; };
#endif
#ifdef SOME
layout(set = 0, binding = 3, std430) readonly buffer Chosen { uint chosen[]; };
#endif

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint column = at % columns;
    uint row = at / columns % rows;
#ifdef IDENTITY
    WORK x = row == column ? ONE : WORK(0);
#else
    uint matrix = at / columns / rows;
#ifdef SOME
    if (nxv_load(chosen, matrix) == 0) return;
#endif
#ifdef STRAIGHT
    uint outer = row, inner = column;
#else
    uint outer = column, inner = row;
#endif
    WORK x = nxv_load(from, matrix * batch + outer * stride + inner);
#ifdef UPPER
    if (row > column) x = WORK(0);
#endif
#ifdef SIGNS
    if (outer < signed_columns) {
        WORK diagonal = nxv_load(signs, matrix * signs_batch + outer * (signs_stride + 1));
        x = nxv_is_nan(diagonal) ? diagonal : diagonal < WORK(0) ? WORK(0) - x : x;
    }
#endif
#endif
    nxv_store(to, at, x);
}
