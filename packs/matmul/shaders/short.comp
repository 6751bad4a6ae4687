#version 450
// One invocation computes one element of C, summed in f64 and rounded once.
#include "product.glsl"

layout(local_size_x = THREADS) in;

void main() {
    uint job = workgroup() * THREADS + gl_LocalInvocationIndex;
    if (job >= jobs) return;
    uint batch = job / (m * n);
    uint row = job / n % m;
    uint column = job % n;
    uint a_index = a_offset + batch * a_batch + row * a_free;
    uint b_index = b_offset + batch * b_batch + column * b_free;
    double sum = 0.0lf;
    for (uint i = 0; i < k; i++) {
        sum = fma(double(load_a(a_index + i * a_contract)), double(load_b(b_index + i * b_contract)), sum);
    }
    c[job] = TO_C(T_VALUE(sum), batch, row, column);
}
