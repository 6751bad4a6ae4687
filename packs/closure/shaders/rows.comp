#version 450
// Rows of elements, each held by LANES invocations, TIMES times WIDTH neighbours by each: reductions one after the other, of what the
// plan's code makes of an element, then results of elements and of rows. Operands after the INPUTS ones, by NAMES_*: what was reduced,
// what it was made of where that is needed again, and what is made of it once for a row. The plan numbers operands, reductions and
// results, and EACH_* call a macro with each number.
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

#define ELEMENTS(k) \
    layout(set = 0, binding = k, std430) readonly buffer Elements##k { I##k##_STORAGE elements##k[]; }; \
    layout(set = 0, binding = k, std430) readonly buffer Vectors##k { I##k##_VECTOR vectors##k[]; };
#define RESULTS(k) layout(set = 0, binding = INPUTS + k, std430) writeonly buffer Results##k { R##k##_VECTOR results##k[]; };
EACH_OPERAND(ELEMENTS)
EACH_RESULT(RESULTS)

#define VALUE_OF(k) I##k##_VALUE i##k;
#define REDUCED_OF(k) M##k##_VALUE m##k;
#define MADE_OF(k) R##k##_STORAGE r##k;
#define KEPT_OF(k) S##k##_VALUE s##k;
#define ONCE_OF(k) W##k##_VALUE w##k;
struct Element { EACH_OPERAND(VALUE_OF) EACH_KEPT(KEPT_OF) };
struct Reduced { uint none; EACH_REDUCTION(REDUCED_OF) EACH_ONCE(ONCE_OF) };
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

// Each of `count` invocations next to each other gets what all of them have.
#define EXCHANGE(k, value, rest, count) \
    [[unroll]] for (uint mask = 1; mask < count; mask *= 2) { \
        M##k##_VALUE other = SHUFFLED(value, mask); \
        float other_rest = M##k##_HAS_REST ? SHUFFLED(rest, mask) : 0.0; \
        M##k##_TAKE(value, rest, other, other_rest); \
    }

#define REDUCTION(k) \
    M##k##_VALUE term##k(inout Element element, Reduced reduced) { \
        EACH_OPERAND(VALUE) \
        NAMES_BEFORE_##k \
        M##k##_CODE \
    } \
    M##k##_VALUE whole##k(M##k##_VALUE value, float rest) { \
        EXCHANGE(k, value, rest, TOGETHER) \
        if (PARTS > 1) { \
            barrier(); /* nobody reads those of the reduction before */ \
            if (invocation() % TOGETHER == 0) { \
                parts[invocation() / TOGETHER] = SHARED_VALUE(value); \
                if (M##k##_HAS_REST) rests[invocation() / TOGETHER] = rest; \
            } \
            barrier(); /* all of them are there */ \
            uint first = invocation() / LANES * PARTS; \
            uint own = first + (PARTS <= SUBGROUP ? invocation() % PARTS : 0); \
            value = M##k##_VALUE(parts[own]); \
            if (M##k##_HAS_REST) rest = rests[own]; \
            if (PARTS <= SUBGROUP) { \
                EXCHANGE(k, value, rest, PARTS) \
            } else { \
                for (uint i = 1; i < PARTS; i++) { \
                    M##k##_VALUE other = M##k##_VALUE(parts[first + i]); \
                    float other_rest = M##k##_HAS_REST ? rests[first + i] : 0.0; \
                    M##k##_TAKE(value, rest, other, other_rest); \
                } \
            } \
        } \
        return M##k##_STORED(M##k##_WHOLE(value, rest)); \
    } \
    /* What is made of it once for a row. */ \
    void once##k(Element element, inout Reduced reduced) { \
        EACH_OPERAND(VALUE) \
        NAMES_BEFORE_##k \
        M##k##_ONCE \
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

#define LANE_OF(k) I##k##_STORAGE lane##k(I##k##_VECTOR x, int n) { return LANE; }
EACH_OPERAND(LANE_OF)

#if WIDTH == 4
#define FIELDS(x, field) x[0].field, x[1].field, x[2].field, x[3].field
#elif WIDTH == 2
#define FIELDS(x, field) x[0].field, x[1].field
#else
#define FIELDS(x, field) x[0].field
#endif

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

    Element elements[TIMES * WIDTH];
    [[unroll]] for (uint time = 0; time < TIMES; time++) {
        uint column = min((time * LANES + lane) * WIDTH, LENGTH - WIDTH);
#define EACH_OF(k, x) \
    [[unroll]] for (int n = 0; n < WIDTH; n++) elements[time * WIDTH + n].i##k = I##k##_LOAD(x);
#define READ_ONE(k) { I##k##_STORAGE x = nxv_load(elements##k, at[k]); EACH_OF(k, x) }
#define READ_NEIGHBOURS(k) { I##k##_VECTOR x = nxv_load(vectors##k, (at[k] + column) / WIDTH); EACH_OF(k, lane##k(x, n)) }
#define READ_APART(k) EACH_OF(k, nxv_load(elements##k, at[k] + (column + n) * params.operands[k].column))
#define READ(k) I##k##_READ(k)
        EACH_OPERAND(READ)
    }

    Reduced reduced;
#define REDUCE(k) { \
        M##k##_VALUE value = M##k##_VALUE(M##k##_START); \
        float rest = 0.0; \
        [[unroll]] for (uint e = 0; e < TIMES * WIDTH; e++) { \
            if ((e / WIDTH * LANES + lane) * WIDTH < LENGTH) { \
                M##k##_VALUE term = term##k(elements[e], reduced); \
                M##k##_TAKE(value, rest, term, 0.0); \
            } \
        } \
        reduced.m##k = whole##k(value, rest); \
        once##k(elements[0], reduced); \
    }
    EACH_REDUCTION(REDUCE)

    [[unroll]] for (uint time = 0; time < TIMES; time++) {
        uint column = (time * LANES + lane) * WIDTH;
        if (is_row && column < LENGTH) {
            Made made[WIDTH];
            [[unroll]] for (uint n = 0; n < WIDTH; n++) made[n] = evaluate(elements[time * WIDTH + n], reduced);
#define STORE_ROW(k) if (column == 0) nxv_store(results##k, row, made[0].r##k);
#define STORE_ELEMENTS(k) nxv_store(results##k, (row * LENGTH + column) / WIDTH, R##k##_VECTOR(FIELDS(made, r##k)));
#define STORE(k) R##k##_STORING(k)
            EACH_RESULT(STORE)
        }
    }
}
