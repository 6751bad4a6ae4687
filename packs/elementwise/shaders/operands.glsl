// Operands and result of an elementwise kernel: their buffers, how they are read, and the op itself.
// Every buffer is declared twice, as single elements and as vectors of WIDTH elements.
#ifndef OPERANDS_GLSL
#define OPERANDS_GLSL

#include "dtype.glsl"
#include "tensor.glsl"
#include "lanes.glsl"
#include "reads.glsl"
#ifdef MATH_F32
#include "math_narrow.glsl"
#endif
#ifdef MATH_F64
#include "math_f64.glsl"
#endif
#include "functions.glsl"
#ifdef COMPLEX_FUNCTIONS
#include "complex.glsl"
#endif
#ifdef MIXED
#include "mixed.glsl"
#endif

layout(set = 0, binding = 0) readonly buffer AElements { A_STORAGE a_elements[]; };
layout(set = 0, binding = 0) readonly buffer AVectors { A_VECTOR a_vectors[]; };
#if INPUTS > 1
layout(set = 0, binding = 1) readonly buffer BElements { B_STORAGE b_elements[]; };
layout(set = 0, binding = 1) readonly buffer BVectors { B_VECTOR b_vectors[]; };
#endif
#if INPUTS > 2
layout(set = 0, binding = 2) readonly buffer CElements { C_STORAGE c_elements[]; };
layout(set = 0, binding = 2) readonly buffer CVectors { C_VECTOR c_vectors[]; };
#endif
layout(set = 0, binding = INPUTS) writeonly buffer RElements { R_STORAGE r_elements[]; };
layout(set = 0, binding = INPUTS) writeonly buffer RVectors { R_VECTOR r_vectors[]; };

#if INPUTS == 1

struct Operands { A_VECTOR a; };

Operands read(INDEX at[1], INDEX step[1]) {
    return Operands(A_READ(a_vectors, a_elements, A_VECTOR, at[0], step[0]));
}

R_STORAGE evaluate(A_STORAGE a_stored) {
    A_COMPUTE a = A_CAST(A_LOAD(a_stored));
    return R_STORE(R_CAST(EXPRESSION));
}

R_STORAGE evaluate_at(INDEX at[1]) {
    return evaluate(nxv_load(a_elements, uint(at[0])));
}

#define EVALUATE_LANE(k) evaluate(LANE(x.a, k))

#elif INPUTS == 2

struct Operands { A_VECTOR a; B_VECTOR b; };

Operands read(INDEX at[2], INDEX step[2]) {
    return Operands(A_READ(a_vectors, a_elements, A_VECTOR, at[0], step[0]),
                    B_READ(b_vectors, b_elements, B_VECTOR, at[1], step[1]));
}

R_STORAGE evaluate(A_STORAGE a_stored, B_STORAGE b_stored) {
    A_COMPUTE a_value = A_CAST(A_LOAD(a_stored));
    B_COMPUTE b_value = B_CAST(B_LOAD(b_stored));
#ifdef ORDERED
    // How the operands compare is how their order compares with 0.
    float a = order(a_value, b_value);
    float b = 0.0;
#else
    A_COMPUTE a = a_value;
    B_COMPUTE b = b_value;
#endif
    return R_STORE(R_CAST(EXPRESSION));
}

R_STORAGE evaluate_at(INDEX at[2]) {
    return evaluate(nxv_load(a_elements, uint(at[0])), nxv_load(b_elements, uint(at[1])));
}

#define EVALUATE_LANE(k) evaluate(LANE(x.a, k), LANE(x.b, k))

#else

struct Operands { A_VECTOR a; B_VECTOR b; C_VECTOR c; };

Operands read(INDEX at[3], INDEX step[3]) {
    return Operands(A_READ(a_vectors, a_elements, A_VECTOR, at[0], step[0]),
                    B_READ(b_vectors, b_elements, B_VECTOR, at[1], step[1]),
                    C_READ(c_vectors, c_elements, C_VECTOR, at[2], step[2]));
}

R_STORAGE evaluate(A_STORAGE a_stored, B_STORAGE b_stored, C_STORAGE c_stored) {
    A_COMPUTE a = A_CAST(A_LOAD(a_stored));
    B_COMPUTE b = B_CAST(B_LOAD(b_stored));
    C_COMPUTE c = C_CAST(C_LOAD(c_stored));
    return R_STORE(R_CAST(EXPRESSION));
}

R_STORAGE evaluate_at(INDEX at[3]) {
    return evaluate(nxv_load(a_elements, uint(at[0])), nxv_load(b_elements, uint(at[1])),
                    nxv_load(c_elements, uint(at[2])));
}

#define EVALUATE_LANE(k) evaluate(LANE(x.a, k), LANE(x.b, k), LANE(x.c, k))

#endif

R_VECTOR evaluate(Operands x) {
    return R_VECTOR(LANES(EVALUATE_LANE));
}
#endif
