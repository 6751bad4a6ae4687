// A pass of a radix sort over the digit DIGIT: where it reads elements, and what it knows of them.
#ifndef DIGITS_GLSL
#define DIGITS_GLSL
#include "keys.glsl"

layout(push_constant) uniform Params {
    uint operand_at;
    uint operand_step;
    uint result_step;
    uint lines;
    uint axes_count;
    uint extent;
    uint keep;
    uint tiles; // stretches of TILE elements, of which every workgroup handles one
    uint digit;
} params;

layout(set = 0, binding = 1) readonly buffer Elements { RAW elements[]; };

// What the first pass reads is the operand, later ones read lines behind each other.
RAW element(uint line, uvec2 start, uint index) {
#ifdef FIRST
    return nxv_load(elements, params.operand_at + start.x + index * params.operand_step);
#else
    return nxv_load(elements, line * params.extent + index);
#endif
}
#endif
