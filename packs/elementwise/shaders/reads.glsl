#ifndef READS_GLSL
#define READS_GLSL

// How WIDTH elements are read from `at` on; the plan picks one way for each operand.
// Arrays take 32-bit indices only; no buffer argument has more elements than those reach.
#define READ_VECTOR(vectors, elements, type, at, step) nxv_load(vectors, uint(at / WIDTH))
#define READ_SCALAR(vectors, elements, type, at, step) type(nxv_load(elements, uint(at)))
#if WIDTH == 1
#define READ_STEPS(vectors, elements, type, at, step) nxv_load(elements, uint(at))
#elif WIDTH == 2
#define READ_STEPS(vectors, elements, type, at, step) \
    type(nxv_load(elements, uint(at)), nxv_load(elements, uint(at + step)))
#else
#define READ_STEPS(vectors, elements, type, at, step) \
    type(nxv_load(elements, uint(at)), nxv_load(elements, uint(at + step)), \
         nxv_load(elements, uint(at + 2 * step)), nxv_load(elements, uint(at + 3 * step)))
#endif
#endif
