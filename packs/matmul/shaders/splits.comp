#version 450
// Adds up the partial slabs of a product whose contracted axis was split: ALONG invocations share the splits of an element.
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
#define FINISH(sum, at) R_STORE(finished(sum, (at) / (rows * columns), (at) / columns % rows, (at) % columns))
#else
#define RESULT T_STORAGE
#define FINISH(sum, at) T_STORE(sum)
#endif

layout(set = 0, binding = 0, std430) readonly restrict buffer Partial { T_VALUE partial[]; };
layout(set = 0, binding = 1, std430) writeonly restrict buffer Result { RESULT result[]; };

#ifdef GUARDED
// Where it is 0, somebody else has done the work; GUARDED is its binding.
layout(set = 0, binding = GUARDED, std430) readonly restrict buffer Guard { uint wanted; };
#endif

const uint ACROSS = THREADS / ALONG;

shared T_VALUE sums[THREADS];

void main() {
#ifdef GUARDED
    if (wanted == 0) return;
#endif
    uint lane = gl_LocalInvocationIndex;
    uint element = (gl_WorkGroupID.y * gl_NumWorkGroups.x + gl_WorkGroupID.x) * ACROSS + lane % ACROSS;
    T_VALUE sum = T_VALUE(0);
    for (uint i = lane / ACROSS; i < splits && element < count; i += ALONG) sum += partial[i * count + element];
    sums[lane] = sum;
    [[unroll]] for (uint rest = ALONG / 2; rest > 0; rest /= 2) {
        barrier(); // the sums of the upper half are complete
        if (lane < rest * ACROSS) sums[lane] += sums[lane + rest * ACROSS];
    }
    if (lane < ACROSS && element < count) result[element] = FINISH(sums[lane], element);
}
