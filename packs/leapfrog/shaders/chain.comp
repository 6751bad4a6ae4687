#version 450
// All leapfrog steps of one coordinate of one chain, by one invocation: coordinates of a family do not interact.
// `precise` keeps every driver from contracting, so that all devices take the same steps.
#include "dtype.glsl"
#include "tensor.glsl"
#include "functions.glsl"

layout(local_size_x = WORKGROUP) in;

// Where the elements of a {chains, coordinates} tensor are.
struct Walk {
    uint at;
    uint chain;
    uint coordinate;
};

layout(push_constant) uniform Params {
    uint count;           // coordinates of all chains
    uint extent;          // coordinates of a chain
    uint steps;
    Walk q;
    Walk p;
    Walk inv_mass;
    uint scalars_at;
    uint scalars_stride;
} params;

layout(set = 0, binding = 0) readonly buffer Q { REAL q_start[]; };
layout(set = 0, binding = 1) readonly buffer P { REAL p_start[]; };
layout(set = 0, binding = 2) readonly buffer InvMass { REAL inv_masses[]; };
layout(set = 0, binding = 3) readonly buffer Scalars { REAL scalars[]; };
layout(set = 0, binding = 4) writeonly buffer QChain { REAL q_chain[]; };
layout(set = 0, binding = 5) writeonly buffer PChain { REAL p_chain[]; };
layout(set = 0, binding = 6) writeonly buffer GradChain { REAL grad_chain[]; };
layout(set = 0, binding = 7) writeonly buffer Terms { REAL terms[]; };

uint place(Walk walk, uint chain, uint coordinate) {
    return walk.at + chain * walk.chain + coordinate * walk.coordinate;
}

REAL parameter(uint index) {
    return nxv_load(scalars, params.scalars_at + index * params.scalars_stride);
}

void walk(uint chain, uint coordinate) {
    REAL z = nxv_load(q_start, place(params.q, chain, coordinate));
    precise REAL p = nxv_load(p_start, place(params.p, chain, coordinate));
    REAL step = parameter(0);
    precise REAL half_step = REAL(0.5) * step;
    precise REAL drift = step * nxv_load(inv_masses, place(params.inv_mass, chain, coordinate));
    PARAMETERS
    ONCE
    bool valid = VALID;

    // The gradient after one step is that before the next. The first turn only finds the gradient at the start.
    uint at = chain * params.steps * params.extent + coordinate;
    for (uint turn = 0; ; ++turn) {
        AT
        precise REAL gradient = GRADIENT;
        gradient = valid ? gradient : NOT_A_NUMBER;
        precise REAL kick = half_step * gradient;
        if (turn > 0) {
            precise REAL logp = LOGP;
            p = p + kick;
            nxv_store(q_chain, at, z);
            nxv_store(p_chain, at, p);
            nxv_store(grad_chain, at, gradient);
            nxv_store(terms, at, valid ? logp : NOT_A_NUMBER);
            at += params.extent;
        }
        if (turn == params.steps) break;
        p = p + kick;
        precise REAL moved = z + drift * p;
        z = moved;
    }
}

void main() {
    uint index = gl_GlobalInvocationID.x;
    for (; index < params.count; index += gl_NumWorkGroups.x * WORKGROUP) {
        walk(index / params.extent, index % params.extent);
    }
}
