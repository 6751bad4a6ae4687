#version 450
// Lengths of orthogonal columns in descending order, and which column each is: a workgroup to a matrix.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint m; uint jobs; uint n; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 2, std430) coherent buffer Lengths { WORK lengths[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Order { uint order[]; };
layout(set = 0, binding = 4, std430) writeonly buffer S { WORK s[]; };

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    bool defined = is_finite(nxv_load(norms, job));
    for (uint j = own; j < n; j += TILE) {
        WORK sum = WORK(0);
        for (uint i = 0; i < m; i++) {
            WORK x = nxv_load(a, (job * n + j) * m + i);
            sum += x * x;
        }
        nxv_store(lengths, job * n + j, defined ? sqrt(sum) : not_a_number());
    }
    meet(); // all lengths are there
    for (uint j = own; j < n; j += TILE) {
        uint place = 0;
        WORK length = nxv_load(lengths, job * n + j);
        KEY key = KEY(length);
        for (uint i = 0; i < n; i++) {
            KEY other = KEY(nxv_load(lengths, job * n + i));
            if (other > key || (other == key && i < j)) place++;
        }
        if (!defined) place = j;
        nxv_store(order, job * n + place, j);
        nxv_store(s, job * n + place, length);
    }
}
