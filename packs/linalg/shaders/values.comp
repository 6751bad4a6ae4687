#version 450
// Eigenvalues of large matrices in descending order of magnitude, with their vectors: one for an invocation.
#include "matrix.glsl"
#include "rotation.glsl"

layout(local_size_x = 64) in;
layout(push_constant) uniform Push { uint n; uint jobs; uint tiles; };
layout(set = 0, binding = 0, std430) readonly buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) readonly buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) readonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Values { WORK values[]; };
layout(set = 0, binding = 4, std430) writeonly buffer Vectors { WORK vectors[]; };

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint batch = job / tiles, i = job % tiles * 64 + gl_LocalInvocationIndex;
    if (i >= n) return;
    uint first = batch * n * n, place = 0;
    bool defined = is_finite(nxv_load(norms, batch));
    WORK value = nxv_load(a, first + i * (n + 1));
    KEY key = KEY(abs(value));
    for (uint j = 0; j < n; j++) {
        KEY other = KEY(abs(nxv_load(a, first + j * (n + 1))));
        if (other > key || (other == key && j < i)) place++;
    }
    if (!defined) place = i;
    nxv_store(values, batch * n + place, defined ? value : not_a_number());
    for (uint j = 0; j < n; j++) {
        nxv_store(vectors, first + j * n + place, defined ? nxv_load(v, first + i * n + j) : not_a_number());
    }
}
