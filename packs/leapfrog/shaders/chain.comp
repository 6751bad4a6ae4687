#version 450
// All leapfrog steps of one coordinate of one chain, by one invocation: coordinates of a family do not interact.
#include "dtype.glsl"
#include "tensor.glsl"
#include "families.glsl"
#define NXV_OWN 1
#include "leapfrog.glsl"

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

FORM family;
uint row; // where the coordinate's next state goes

uint place(Walk walk, uint chain, uint coordinate) {
    return walk.at + chain * walk.chain + coordinate * walk.coordinate;
}

REAL parameter(uint index) {
    return nxv_load(scalars, params.scalars_at + index * params.scalars_stride);
}

bool nxv_owns(uint own) { return true; }

void nxv_evaluate(uint steps) { nxv_gradients[0] = gradient(family, nxv_positions[0]); }

void nxv_record(uint own, uint steps) {
    nxv_store(q_chain, row, nxv_positions[0]);
    nxv_store(p_chain, row, nxv_momenta[0]);
    nxv_store(grad_chain, row, nxv_gradients[0]);
    nxv_store(terms, row, log_density(family, nxv_positions[0]));
    row += params.extent;
}

void walk(uint chain, uint coordinate) {
    REAL step_size = parameter(0);
    family = FAMILY;
    nxv_positions[0] = nxv_load(q_start, place(params.q, chain, coordinate));
    nxv_momenta[0] = nxv_load(p_start, place(params.p, chain, coordinate));
    nxv_drifts[0] = step_size * nxv_load(inv_masses, place(params.inv_mass, chain, coordinate));
    row = chain * params.steps * params.extent + coordinate;
    nxv_leapfrog(params.steps, step_size);
}

void main() {
    uint index = gl_GlobalInvocationID.x;
    for (; index < params.count; index += gl_NumWorkGroups.x * WORKGROUP) {
        walk(index / params.extent, index % params.extent);
    }
}
