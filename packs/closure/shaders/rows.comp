#version 450
// Rows of elements, each held by LANES invocations, HELD elements by each: reductions one after the other, of what the plan's code
// makes of an element, then results of elements and of rows. What is reduced is an operand after the INPUTS ones: NAMES_*. The plan numbers
// operands, reductions and results, and EACH_OPERAND, EACH_REDUCTION and EACH_RESULT call a macro with each number.
#if SUBGROUP
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "expression.glsl"

layout(local_size_x = WORKGROUP) in;

struct Operand {
    uint offset;
    uint column; // elements from one of a row to the next
    uint steps[AXES];
};
PARAMS Params {
    uint rows;
    uint extents[AXES];
    Operand operands[INPUTS];
} params;

#define ELEMENTS(k) layout(set = 0, binding = k, std430) readonly buffer Elements##k { I##k##_STORAGE elements##k[]; };
#define RESULTS(k) layout(set = 0, binding = INPUTS + k, std430) writeonly buffer Results##k { R##k##_STORAGE results##k[]; };
EACH_OPERAND(ELEMENTS)
EACH_RESULT(RESULTS)

#define VALUE_OF(k) I##k##_VALUE i##k;
#define REDUCED_OF(k) M##k##_VALUE m##k;
#define MADE_OF(k) R##k##_STORAGE r##k;
struct Element { EACH_OPERAND(VALUE_OF) };
struct Reduced { uint none; EACH_REDUCTION(REDUCED_OF) };
struct Made { EACH_RESULT(MADE_OF) };

// Counts are below 2^31.
#define ZERO (params.rows >> 31)
#define VALUE(k) I##k##_VALUE i##k = element.i##k;

#define greater(a, b) (is_nan(a) || !is_nan(b) && (a) > (b) ? (a) : (b))
#define less(a, b) (is_nan(a) || !is_nan(b) && (a) < (b) ? (a) : (b))

// TwoSum (Knuth, TAOCP 2, 4.2.2), as the pack `reduce` adds up f32: `rest` is what rounding took from the sum.
void add(inout float sum, inout float rest, float x, float x_rest) {
    precise float both = sum + x;
    precise float from_x = both - sum;
    precise float from_sum = both - from_x;
    precise float error = (sum - from_sum) + (x - from_x);
    sum = both;
    rest += x_rest + error;
}

// The error of an infinite sum is NaN and says nothing.
float whole(float sum, float rest) {
    precise float both = sum + rest;
    return is_nan(rest) || isinf(sum) ? sum : both;
}

// Invocations of a subgroup that share a row.
#if SUBGROUP
const uint TOGETHER = min(LANES, SUBGROUP);
uint invocation() { return gl_SubgroupID * SUBGROUP + gl_SubgroupInvocationID; }
#define SHUFFLED(x, mask) subgroupShuffleXor(x, mask)
#else
const uint TOGETHER = 1;
uint invocation() { return gl_LocalInvocationIndex; }
#define SHUFFLED(x, mask) x
#endif
const uint PARTS = LANES / TOGETHER;
shared SHARED_VALUE parts[WORKGROUP / TOGETHER];
shared float rests[WORKGROUP / TOGETHER];

#define REDUCTION(k) \
    M##k##_VALUE term##k(Element element, Reduced reduced) { \
        EACH_OPERAND(VALUE) \
        NAMES_BEFORE_##k \
        M##k##_CODE \
    } \
    M##k##_VALUE whole##k(M##k##_VALUE value, float rest) { \
        [[unroll]] for (uint mask = 1; mask < TOGETHER; mask *= 2) { \
            M##k##_VALUE other = SHUFFLED(value, mask); \
            float other_rest = M##k##_HAS_REST ? SHUFFLED(rest, mask) : 0.0; \
            M##k##_TAKE(value, rest, other, other_rest); \
        } \
        if (PARTS > 1) { \
            barrier(); /* nobody reads those of the reduction before */ \
            if (invocation() % TOGETHER == 0) { \
                parts[invocation() / TOGETHER] = SHARED_VALUE(value); \
                if (M##k##_HAS_REST) rests[invocation() / TOGETHER] = rest; \
            } \
            barrier(); /* all of them are there */ \
            uint first = invocation() / LANES * PARTS; \
            value = M##k##_VALUE(parts[first]); \
            if (M##k##_HAS_REST) rest = rests[first]; \
            for (uint i = 1; i < PARTS; i++) { \
                M##k##_VALUE other = M##k##_VALUE(parts[first + i]); \
                float other_rest = M##k##_HAS_REST ? rests[first + i] : 0.0; \
                M##k##_TAKE(value, rest, other, other_rest); \
            } \
        } \
        return M##k##_STORED(M##k##_WHOLE(value, rest)); \
    }
EACH_REDUCTION(REDUCTION)

Made evaluate(Element element, Reduced reduced) {
    EACH_OPERAND(VALUE)
    NAMES_OF_ALL
    CODE
    Made made;
#define STORED(k) made.r##k = R##k##_STORE(R##k##_MADE);
    EACH_RESULT(STORED)
    return made;
}

void main() {
    uint lane = invocation() % LANES;
    uint row = nxv_workgroup() * (WORKGROUP / LANES) + invocation() / LANES;
    bool is_row = row < params.rows;
    // Rows beyond the last one are computed as that one, and not stored.
    row = min(row, params.rows - 1);

    uint at[INPUTS];
    [[unroll]] for (uint k = 0; k < INPUTS; k++) at[k] = params.operands[k].offset;
    uint rest = row;
    [[unroll]] for (int axis = AXES - 1; axis >= 0; axis--) {
        uint position = axis == 0 ? rest : rest % params.extents[axis];
        rest /= params.extents[axis];
        [[unroll]] for (uint k = 0; k < INPUTS; k++) at[k] += position * params.operands[k].steps[axis];
    }

    Element elements[HELD];
    [[unroll]] for (uint e = 0; e < HELD; e++) {
        uint column = min(e * LANES + lane, LENGTH - 1);
#define LOAD(k) elements[e].i##k = I##k##_LOAD(nxv_load(elements##k, at[k] + column * params.operands[k].column));
        EACH_OPERAND(LOAD)
    }

    Reduced reduced;
#define REDUCE(k) { \
        M##k##_VALUE value = M##k##_VALUE(M##k##_START); \
        float rest = 0.0; \
        [[unroll]] for (uint e = 0; e < HELD; e++) { \
            if (e * LANES + lane < LENGTH) { \
                M##k##_VALUE term = term##k(elements[e], reduced); \
                M##k##_TAKE(value, rest, term, 0.0); \
            } \
        } \
        reduced.m##k = whole##k(value, rest); \
    }
    EACH_REDUCTION(REDUCE)

    [[unroll]] for (uint e = 0; e < HELD; e++) {
        uint column = e * LANES + lane;
        if (is_row && column < LENGTH) {
            Made made = evaluate(elements[e], reduced);
#define STORE(k) \
            if (R##k##_IS_ROW == 0) nxv_store(results##k, row * LENGTH + column, made.r##k); \
            else if (column == 0) nxv_store(results##k, row, made.r##k);
            EACH_RESULT(STORE)
        }
    }
}
