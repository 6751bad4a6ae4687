// The push constants of a shader that stores results, and what becomes of a sum at its place among them. A shader with words of
// its own defines OWN_WORDS.
#if defined(EPILOGUE) || defined(OWN_WORDS)
layout(push_constant) uniform Words {
#ifdef OWN_WORDS
    OWN_WORDS
#endif
#ifdef EPILOGUE
    uint filter_step;          // elements of the result from one filter to the next,
    uint outer_step;           // and from one index of the axes in front of the filters'
    NxvDivisor by_outer_step;
#endif
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};
#endif
#ifdef EPILOGUE
#include "epilogue.glsl"

// Where a position is among the axes in front of the filters' and among those behind it; `place` is where it lies in the result
// with the first filter of all.
uvec2 around(uint place) {
    uint outer = nxv_divide(place, outer_step, by_outer_step);
    return uvec2(outer, place - outer * outer_step);
}

// The result of a sum.
R_VALUE finished_at(E_SUM sum, uint place, uint filter_index) {
    uvec2 at = around(place);
    return finished(sum, at.x, filter_index, at.y);
}
#endif
