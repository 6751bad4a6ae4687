#version 450
// The start of Jacobi's rotations of columns, a workgroup to a matrix: `v` is the unit matrix, and the norm is known. A matrix whose
// squares would not be numbers is multiplied with a power of two.
#include "matrix.glsl"
#include "powers.glsl"

layout(local_size_x = TILE) in;
layout(push_constant) uniform Push { uint rows; uint jobs; uint columns; };
layout(set = 0, binding = 0, std430) buffer A { WORK a[]; };
layout(set = 0, binding = 1, std430) writeonly buffer V { WORK v[]; };
layout(set = 0, binding = 2, std430) writeonly buffer Norms { WORK norms[]; };
layout(set = 0, binding = 3, std430) writeonly buffer Powers { WORK powers[]; };
layout(set = 0, binding = 4, std430) writeonly buffer States { uint states[]; };

shared WORK parts[TILE];
shared uint largest;

WORK total(WORK part) {
    parts[gl_LocalInvocationIndex] = part;
    barrier(); // every part is there
    WORK sum = WORK(0);
    for (uint i = 0; i < TILE; i++) sum += parts[i];
    return sum;
}

void main() {
    uint job = nxv_workgroup();
    if (job >= jobs) return;
    uint own = gl_LocalInvocationIndex;
    uint count = rows * columns, first = job * count;
    WORK part = WORK(0), most = WORK(0), power = WORK(1);
    for (uint at = own; at < count; at += TILE) {
        WORK x = nxv_load(a, first + at);
        part += x * x;
        most = max(most, abs(x));
    }
    for (uint at = own; at < columns * columns; at += TILE) {
        nxv_store(v, job * columns * columns + at, at / columns == at % columns ? WORK(1) : WORK(0));
    }
    if (own == 0) largest = 0;
    WORK norm = total(part);
    if (!has_squares(norm)) {
        atomicMax(largest, first_bits(most));
        barrier(); // the largest is known, and parts are read
        power = power_for(largest);
        part = WORK(0);
        for (uint at = own; at < count; at += TILE) {
            WORK x = nxv_load(a, first + at) * power;
            nxv_store(a, first + at, x);
            part += x * x;
        }
        norm = total(part);
    }
    if (own > 0) return;
    nxv_store(norms, job, norm);
    nxv_store(powers, job, power);
    for (uint i = 0; i < MOST; i++) nxv_store(states, job * MOST + i, 0);
}
