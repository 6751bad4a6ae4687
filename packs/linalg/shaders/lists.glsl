// Where numbers of a tridiagonal matrix stand in the buffer of lists, each of which has one for every row of every matrix.
// Matrices have `padded` rows, of which the last ones may stand for nothing.
#define DIAGONAL 0
#define BESIDE 1
#define TAUS 2
#define PRODUCTS 3
// What a system is put together of, after the reduction.
#define OFFSETS 3
#define WEIGHTS 4
// In the buffer of poles: those of a secular equation in ascending order, their weights, and a factor for each equation.
#define POLES 0
#define SHARES 1
#define FACTORS 2
// In the buffer of marks: where a pole comes from, and to which one a root is an offset.
#define ORDER 0
#define ORIGINS 1

// The precision of REAL.
#ifdef REAL_IS_F64
const REAL EPSILON = 1.1102230246251565e-16LF;
#else
const REAL EPSILON = 5.9604644775390625e-8;
#endif
