#version 450
// Several elementwise ops as one, on operands of any layout: every thread handles VECTORS times WIDTH neighbours on the
// innermost axis. The plan numbers operands and results, and EACH_OPERAND and EACH_RESULT call a macro with each number.
#include "expression.glsl"
#include "lanes.glsl"
#include "reads.glsl"

layout(local_size_x = WORKGROUP) in;
#include "places.glsl"

#define OPERAND(k) \
    layout(set = 0, binding = k) readonly buffer Elements##k { I##k##_STORAGE elements##k[]; }; \
    layout(set = 0, binding = k) readonly buffer Vectors##k { I##k##_VECTOR vectors##k[]; };
#define RESULT(k) \
    layout(set = 0, binding = INPUTS + k) writeonly buffer Results##k { R##k##_VECTOR results##k[]; };
EACH_OPERAND(OPERAND)
EACH_RESULT(RESULT)

#define VECTOR_OF(k) I##k##_VECTOR i##k;
#define ELEMENT_OF(k) I##k##_STORAGE i##k;
#define MADE_OF(k) R##k##_STORAGE r##k;
struct Operands { EACH_OPERAND(VECTOR_OF) };
struct Element { EACH_OPERAND(ELEMENT_OF) };
struct Made { EACH_RESULT(MADE_OF) };

Operands read(INDEX at[INPUTS], INDEX step[INPUTS]) {
    Operands x;
#define READ(k) x.i##k = I##k##_READ(vectors##k, elements##k, I##k##_VECTOR, at[k], step[k]);
    EACH_OPERAND(READ)
    return x;
}

Element lane(Operands x, int n) {
    Element element;
#define PICK(k) element.i##k = I##k##_LANE(x.i##k, n);
    EACH_OPERAND(PICK)
    return element;
}

// Counts are below 2^31, or of 64 bits and below 2^63.
#define ZERO uint(params.count >> (INDEX_BITS - 1))
Made evaluate(Element element) {
#define VALUE(k) I##k##_VALUE i##k = I##k##_LOAD(element.i##k);
    EACH_OPERAND(VALUE)
    CODE
    Made made;
#define STORED(k) made.r##k = R##k##_STORE(R##k##_MADE);
    EACH_RESULT(STORED)
    return made;
}

void main() {
    const uint apart = WORKGROUP * WIDTH;
    INDEX first = INDEX(nxv_workgroup()) * apart * VECTORS + gl_LocalInvocationID.x * WIDTH;
    if (first >= params.count) return;

    // All loads come before the first use. Beyond the end, the last elements are loaded again and not stored.
    Operands operands[VECTORS];
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        operands[v] = read(places(min(first + v * apart, params.count - WIDTH)), params.axes[0].strides);
    }
    [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
        INDEX i = first + v * apart;
        if (i < params.count) {
            Made made[WIDTH];
            [[unroll]] for (int n = 0; n < WIDTH; ++n) made[n] = evaluate(lane(operands[v], n));
#define STORE(k) \
            nxv_store(results##k, uint((params.results_at[k] + i) / WIDTH), R##k##_VECTOR(FIELDS(made, r##k)));
            EACH_RESULT(STORE)
        }
    }
}
