#version 450
// Lengths in descending order, and which column each is: an invocation to one.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint count; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer Lengths { WORK lengths[]; };
layout(set = 0, binding = 1, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Order { uint order[]; };
layout(set = 0, binding = 3, std430) writeonly buffer S { WORK s[]; };

void main() {
    uint at = nxv_workgroup() * 64 + gl_LocalInvocationIndex;
    if (at >= count) return;
    uint column = at % n, first = at - column, place = 0;
    bool defined = is_finite(nxv_load(norms, at / n));
    WORK length = nxv_load(lengths, at);
    KEY key = KEY(length);
    for (uint i = 0; i < n; i++) {
        KEY other = KEY(nxv_load(lengths, first + i));
        if (other > key || (other == key && i < column)) place++;
    }
    if (!defined) place = column;
    nxv_store(order, first + place, column);
    nxv_store(s, first + place, defined ? length : not_a_number());
}
