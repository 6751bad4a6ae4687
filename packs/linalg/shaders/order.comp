#version 450
// Lengths in descending order, and which column each is: an invocation to one. A matrix lacks directions where the shortest column is
// at most `least` beside the longest; a length that is at most `none` beside it is 0 within rounding, and stored as that. Lengths are
// divided by what POWERS has.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint n; float least; float none; };
layout(set = 0, binding = 0, std430) readonly buffer Lengths { WORK lengths[]; };
layout(set = 0, binding = 1, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Order { uint order[]; };
layout(set = 0, binding = 3, std430) writeonly buffer S { WORK s[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Lacking { uint lacking[]; };
#ifdef POWERS
layout(set = 0, binding = 5, std430) readonly buffer Powers { WORK powers[]; };
#endif

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint matrix = at / n, column = at % n, first = at - column, place = 0;
    bool defined = is_finite(nxv_load(norms, matrix));
    WORK length = nxv_load(lengths, at), longest = WORK(0);
    KEY key = KEY(length);
    for (uint i = 0; i < n; i++) {
        WORK other = nxv_load(lengths, first + i);
        longest = max(longest, other);
        if (KEY(other) > key || (KEY(other) == key && i < column)) place++;
    }
    if (!defined) place = column;
    nxv_store(order, first + place, column);
    if (place + 1 == n) nxv_store(lacking, matrix, defined && length <= WORK(least) * longest ? 1 : 0);
#ifdef POWERS
    length /= nxv_load(powers, matrix);
    longest /= nxv_load(powers, matrix);
#endif
    if (length <= WORK(none) * longest) length = WORK(0);
    nxv_store(s, first + place, defined ? length : not_a_number());
}
