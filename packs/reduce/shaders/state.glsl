// The state of a reduction: how it starts, takes an element, merges with another state and becomes a result.
#ifndef STATE_GLSL
#define STATE_GLSL

#ifdef SUBGROUPS
#extension GL_KHR_shader_subgroup_basic : require
#extension GL_KHR_shader_subgroup_shuffle : require
#endif
#include "dtype.glsl"

#if (defined(ACC_IS_F32) || defined(ACC_IS_F64)) && defined(NXV_NATIVE_NAN)
#define IS_NAN(x) isnan(x)
#elif defined(ACC_IS_F32) || defined(ACC_IS_F64)
#define IS_NAN(x) nxv_is_nan(x)
#else
#define IS_NAN(x) false
#endif

// What a state holds beside its value: the index of the value, or what rounding took from it.
// Whether an element is not zero, by its bits: a device may take a denormal for zero when it compares numbers.
bool holds(uint x) { return x != 0u; }
bool holds(int x) { return x != 0; }
bool holds(float x) { return (floatBitsToUint(x) << 1) != 0u; }
bool holds(vec2 x) { return holds(x.x) || holds(x.y); }
#ifdef NXV_HAS_INT64
bool holds(uint64_t x) { return x != uint64_t(0); }
bool holds(int64_t x) { return x != int64_t(0); }
#endif
#ifdef NXV_HAS_FP64
bool holds(double x) {
    uvec2 bits = unpackDouble2x32(x);
    return ((bits.y << 1) | bits.x) != 0u;
}
bool holds(dvec2 x) { return holds(x.x) || holds(x.y); }
#endif

#if defined(PICK)
#define SECOND uint
#elif defined(COMPENSATED)
#define SECOND float
#endif

struct State {
    ACC_VALUE value;
#ifdef SECOND
    SECOND second;
#endif
};

#if defined(PICK)

#ifdef TIE_HIGH
#define NO_INDEX 0u
#define PREFERRED(a, b) (a > b)
#define REPLACES(x, value) (!BEATS(value, x))
#else
#define NO_INDEX 0xffffffffu
#define PREFERRED(a, b) (a < b)
#define REPLACES(x, value) BEATS(x, value)
#endif

State start() {
    return State(ACC_VALUE(START), NO_INDEX);
}

// Elements come in the order of their indices, so that a tie needs no look at them.
State take(State state, A_VALUE element, uint index) {
    ACC_VALUE x = ACC_VALUE(element);
    bool replaces = IS_NAN(x) || (!IS_NAN(state.value) && REPLACES(x, state.value));
    return State(replaces ? x : state.value, replaces ? index : state.second);
}

State merge(State a, State b) {
    bool a_nan = IS_NAN(a.value);
    bool b_nan = IS_NAN(b.value);
    bool tie = !BEATS(a.value, b.value) && !BEATS(b.value, a.value);
    bool among_numbers = tie ? PREFERRED(a.second, b.second) : BEATS(a.value, b.value);
    bool among_nans = a_nan && (!b_nan || a.second > b.second);
    bool wins = a_nan || b_nan ? among_nans : among_numbers;
    return State(wins ? a.value : b.value, wins ? a.second : b.second);
}

// Where every element equals the start value, none replaced it, and the first one ties with all others.
R_VALUE result(State state) {
    return R_VALUE(state.second == 0xffffffffu ? 0u : state.second);
}

#elif defined(COMPENSATED)

State start() {
    return State(0.0, 0.0);
}

// TwoSum (Knuth, TAOCP 2, 4.2.2): the rounding error of one addition, exactly. The whole is Sum2 of Ogita, Rump and
// Oishi (2005): off by half an ulp of the result and (d * 2^-24)^2 of the sum of magnitudes at most, where d is the
// number of additions that one element goes through.
State two_sum(float a, float b) {
    precise float sum = a + b;
    precise float from_b = sum - a;
    precise float from_a = sum - from_b;
    precise float error = (a - from_a) + (b - from_b);
    return State(sum, error);
}

State take(State state, A_VALUE x, uint index) {
    State sum = two_sum(state.value, float(x));
    return State(sum.value, state.second + sum.second);
}

State merge(State a, State b) {
    State sum = two_sum(a.value, b.value);
    return State(sum.value, sum.second + (a.second + b.second));
}

// Whether it is a number, by its bits: drivers may assume that nothing else occurs.
bool is_finite(float x) { return (floatBitsToUint(x) & 0x7fffffffu) < 0x7f800000u; }

// The error of an infinite sum is NaN and says nothing.
R_VALUE result(State state) {
    precise float corrected = state.value + state.second;
    return R_VALUE(is_finite(state.second) && is_finite(state.value) ? corrected : state.value);
}

#else

State start() {
    return State(ACC_VALUE(START));
}

State combined(ACC_VALUE a, ACC_VALUE b) {
    return State(ACC_VALUE(COMBINE(a, b)));
}

State take(State state, A_VALUE x, uint index) {
    return combined(state.value, ACC_VALUE(EACH(x)));
}

State merge(State a, State b) {
    return combined(a.value, b.value);
}

R_VALUE result(State state) {
    return R_VALUE(state.value);
}

#endif
#endif
