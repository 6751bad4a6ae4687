// Vectors of WIDTH elements, built and taken apart without loops. WIDTH 1 serves for any type, also one that is a vector.
#ifndef LANES_GLSL
#define LANES_GLSL

#if WIDTH == 1
#define LANE(vector, k) vector
#define LANES(f) f(0)
#define FIELDS(all, field) all[0].field
#elif WIDTH == 2
#define LANE(vector, k) vector[k]
#define LANES(f) f(0), f(1)
#define FIELDS(all, field) all[0].field, all[1].field
#else
#define LANE(vector, k) vector[k]
#define LANES(f) f(0), f(1), f(2), f(3)
#define FIELDS(all, field) all[0].field, all[1].field, all[2].field, all[3].field
#endif
#endif
