// Transforms of few elements in registers, by definition: dft(v) of every radix that a plan uses.
PAIR product(PAIR a, PAIR b) { return PAIR(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x); }
// Times -i.
PAIR turned(PAIR a) { return PAIR(a.y, -a.x); }

void dft(inout PAIR v[1]) {}

void dft(inout PAIR v[2]) {
    PAIR other = v[1];
    v[1] = v[0] - other;
    v[0] += other;
}

void dft(inout PAIR v[4]) {
    PAIR a = v[0] + v[2], b = v[0] - v[2];
    PAIR c = v[1] + v[3], d = turned(v[1] - v[3]);
    v = PAIR[4](a + c, b + d, a - c, b - d);
}

void dft(inout PAIR v[8]) {
    PAIR even[4] = PAIR[4](v[0], v[2], v[4], v[6]);
    PAIR odd[4] = PAIR[4](v[1], v[3], v[5], v[7]);
    dft(even);
    dft(odd);
    odd[1] = HALF_ROOT * (odd[1] + turned(odd[1]));
    odd[2] = turned(odd[2]);
    odd[3] = HALF_ROOT * (turned(odd[3]) - odd[3]);
    [[unroll]] for (int k = 0; k < 4; k++) {
        v[k] = even[k] + odd[k];
        v[k + 4] = even[k] - odd[k];
    }
}

// Elements k and radix - k of the result share their products with cosines and sines of 2 pi kt / radix.
#define ODD(radix, cosines, sines) \
    void dft(inout PAIR v[radix]) { \
        PAIR sums[radix / 2], differences[radix / 2], first = v[0]; \
        [[unroll]] for (int t = 1; t <= radix / 2; t++) { \
            sums[t - 1] = v[t] + v[radix - t]; \
            differences[t - 1] = turned(v[t] - v[radix - t]); \
            v[0] += sums[t - 1]; \
        } \
        [[unroll]] for (int k = 1; k <= radix / 2; k++) { \
            PAIR even = first, odd = PAIR(0); \
            [[unroll]] for (int t = 1; t <= radix / 2; t++) { \
                even += cosines[k * t % radix] * sums[t - 1]; \
                odd += sines[k * t % radix] * differences[t - 1]; \
            } \
            v[k] = even + odd; \
            v[radix - k] = even - odd; \
        } \
    }

const REAL cosines_3[3] = REAL[3](COSINES_3);
const REAL sines_3[3] = REAL[3](SINES_3);
const REAL cosines_5[5] = REAL[5](COSINES_5);
const REAL sines_5[5] = REAL[5](SINES_5);
const REAL cosines_7[7] = REAL[7](COSINES_7);
const REAL sines_7[7] = REAL[7](SINES_7);
ODD(3, cosines_3, sines_3)
ODD(5, cosines_5, sines_5)
ODD(7, cosines_7, sines_7)
