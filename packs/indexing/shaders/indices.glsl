// Indices of any integer type of 32 or 64 bits, read as words; where COMPONENTS is 0 there are none.
// STARTS: each has a buffer of its own, and is clamped. Otherwise they are neighbours in one buffer, and one that is outside
// of its axis is a fault and counts as 0.
#ifndef INDICES_GLSL
#define INDICES_GLSL

#if COMPONENTS > 0

// `limit` is the highest start, or the extent of an axis. `step` is what the index is multiplied with where it moves a
// place, and `number` where it numbers a place.
struct Component {
    uint at;
    uint limit;
    uint step;
    uint number;
    uint kind;
};

#ifdef STARTS
#define START(k) layout(set = 0, binding = FIRST_INDEX + k) readonly buffer Start##k { uint start_##k[]; }
START(0);
#if COMPONENTS > 1
START(1);
#endif
#if COMPONENTS > 2
START(2);
#endif
#if COMPONENTS > 3
START(3);
#endif
#if COMPONENTS > 4
START(4);
#endif
#if COMPONENTS > 5
START(5);
#endif
#if COMPONENTS > 6
START(6);
#endif
#if COMPONENTS > 7
START(7);
#endif

uint index_word(int k, uint at) {
    switch (k) {
#if COMPONENTS > 1
    case 1: return nxv_load(start_1, at);
#endif
#if COMPONENTS > 2
    case 2: return nxv_load(start_2, at);
#endif
#if COMPONENTS > 3
    case 3: return nxv_load(start_3, at);
#endif
#if COMPONENTS > 4
    case 4: return nxv_load(start_4, at);
#endif
#if COMPONENTS > 5
    case 5: return nxv_load(start_5, at);
#endif
#if COMPONENTS > 6
    case 6: return nxv_load(start_6, at);
#endif
#if COMPONENTS > 7
    case 7: return nxv_load(start_7, at);
#endif
    default: return nxv_load(start_0, at);
    }
}
#else
layout(set = 0, binding = FIRST_INDEX) readonly buffer Indices { uint indices[]; };
uint index_word(int k, uint at) { return nxv_load(indices, at); }
#endif

// KIND is that of all components, where they are of one.
#ifdef KIND
#define KIND_OF(component) KIND
#else
#define KIND_OF(component) component.kind
#endif

// The words of index k of those that begin at `first`.
uvec2 index_words(int k, uint first, Component component) {
    bool is_wide = (KIND_OF(component) & KIND_WIDE) != 0u;
    uint at = first + component.at;
    uint low = index_word(k, is_wide ? 2u * at : at);
    return uvec2(low, is_wide ? index_word(k, 2u * at + 1u) : 0u);
}

// The index that these words are. `is_fault` is set where it is outside.
uint index_in(uvec2 words, Component component, inout bool is_fault) {
    bool is_wide = (KIND_OF(component) & KIND_WIDE) != 0u;
    bool is_signed = (KIND_OF(component) & KIND_SIGNED) != 0u;
    bool is_negative = is_signed && ((is_wide ? words.y : words.x) >> 31) != 0u;
#ifdef STARTS
    return is_negative ? 0u : words.y != 0u ? component.limit : min(words.x, component.limit);
#else
    bool is_outside = is_negative || words.y != 0u || words.x >= component.limit;
    is_fault = is_fault || is_outside;
    return is_outside ? 0u : words.x;
#endif
}

// Index k of those that begin at `first`.
uint index_of(int k, uint first, Component component) {
    bool is_fault = false;
    uint index = index_in(index_words(k, first, component), component, is_fault);
    nxv_fault(is_fault);
    return index;
}

#endif
#endif
