#version 450
// Adds up the partial slabs of a product whose contracted axis was split: ALONG invocations share the splits of an element, or one
// adds up four elements that follow each other.
#include "dtype.glsl"

layout(local_size_x = THREADS) in;

layout(push_constant) uniform Splits {
    uint count;  // elements of the result
    uint splits; // partial results of each
#ifdef EPILOGUE
    uint rows, columns; // of the result
#endif
#ifdef EPILOGUE_WORDS
    uint epilogue[EPILOGUE_WORDS];
#endif
};
#ifdef EPILOGUE
#include "epilogue.glsl"
#define RESULT R_STORAGE
// One of the results that begin at `at`.
#define FINISH(own, i, sum, at) R_STORE(finished(own, i, sum, (at) / (rows * columns), (at) / columns % rows, (at) % columns + (i)))
#define OPERANDS(at) neighbours_at((at) / (rows * columns), (at) / columns % rows, (at) % columns)
#else
#define RESULT T_STORAGE
#define Neighbours uint
#define FINISH(own, i, sum, at) T_STORE(sum)
#define OPERANDS(at) 0u
#endif

#if WIDTH == 4
layout(set = 0, binding = 0, std430) readonly restrict buffer Partial { T_VALUE4 partial[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Result { RESULT4 result[]; };
#else
layout(set = 0, binding = 0, std430) readonly restrict buffer Partial { T_VALUE partial[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Result { RESULT result[]; };
#endif

const uint ACROSS = THREADS / ALONG;

#if WIDTH == 4
void main() {
    uint element = ((gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * THREADS + gl_LocalInvocationIndex) * 4;
    if (element >= count) return;
    Neighbours own = OPERANDS(element);
    T_VALUE4 sum = T_VALUE4(0);
    for (uint i = 0; i < splits; i++) sum += partial[(i * count + element) / 4];
    result[element / 4] = RESULT4(FINISH(own, 0, sum.x, element), FINISH(own, 1, sum.y, element),
                                  FINISH(own, 2, sum.z, element), FINISH(own, 3, sum.w, element));
}
#else
shared T_VALUE sums[THREADS];

void main() {
    uint lane = gl_LocalInvocationIndex;
    uint element = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * ACROSS + lane % ACROSS;
    T_VALUE sum = T_VALUE(0);
    for (uint i = lane / ACROSS; i < splits && element < count; i += ALONG) sum += partial[i * count + element];
    sums[lane] = sum;
    [[unroll]] for (uint rest = ALONG / 2; rest > 0; rest /= 2) {
        barrier(); // the sums of the upper half are complete
        if (lane < rest * ACROSS) sums[lane] += sums[lane + rest * ACROSS];
    }
    if (lane < ACROSS && element < count) result[element] = FINISH(OPERANDS(element), 0, sums[lane], element);
}
#endif
