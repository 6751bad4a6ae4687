#version 450
// One expression of the operands' elements at one index. Operands are contiguous, or one element that repeats.
#include "dtype.glsl"
#include "tensor.glsl"

layout(local_size_x = WORKGROUP) in;
layout(set = 0, binding = 0) readonly buffer OperandA { A_STORAGE a_elements[]; };
#if OPERANDS > 1
layout(set = 0, binding = 1) readonly buffer OperandB { B_STORAGE b_elements[]; };
#endif
layout(set = 0, binding = OPERANDS) writeonly buffer Result { R_STORAGE elements[]; };

// First element and step of each operand.
struct Walk { uint first; uint step; };
layout(push_constant, std430) uniform Push { uint count; Walk walks[OPERANDS]; };

void main() {
    uint i = nxv_workgroup() * WORKGROUP + gl_LocalInvocationID.x;
    if (i >= count) return;
    A_VALUE a = A_LOAD(nxv_load(a_elements, walks[0].first + i * walks[0].step));
#if OPERANDS > 1
    B_VALUE b = B_LOAD(nxv_load(b_elements, walks[1].first + i * walks[1].step));
#endif
    nxv_store(elements, i, R_STORE(EXPRESSION));
}
