#version 450
// One invocation computes one element of C, summed in f64 and rounded once.
#include "product.glsl"

layout(local_size_x = THREADS) in;

const uint STEPS = 8;

void main() {
    uint job = workgroup() * THREADS + gl_LocalInvocationIndex;
    if (job >= jobs) return;
    uint batch = job / (m * n);
    uint row = job / n % m;
    uint column = job % n;
    uint a_index = a_offset + batch * a_batch + row * a_free;
    uint b_index = b_offset + batch * b_batch + column * b_free;
    double sum = 0.0lf;
    uint i = 0;
    // All loads of some steps come first, so that memory is not waited for one by one.
    for (; i + STEPS <= k; i += STEPS) {
        A_ITEM a_items[STEPS];
        B_ITEM b_items[STEPS];
        [[unroll]] for (uint step = 0; step < STEPS; step++) {
            a_items[step] = load_a(a_index + (i + step) * a_contract);
            b_items[step] = load_b(b_index + (i + step) * b_contract);
        }
        [[unroll]] for (uint step = 0; step < STEPS; step++) sum = fma(double(a_items[step]), double(b_items[step]), sum);
    }
    for (; i < k; i++) {
        sum = fma(double(load_a(a_index + i * a_contract)), double(load_b(b_index + i * b_contract)), sum);
    }
    c[job] = TO_C(T_VALUE(sum), batch, row, column);
}
