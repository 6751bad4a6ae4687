// Transforms of few elements in registers: dft(v) of every radix that a plan uses.
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

// Of an odd radix, by definition: elements k and radix - k of the result share their products with the real and imaginary
// parts of its roots.
#define ODD(radix, roots) \
    void dft(inout PAIR v[radix]) { \
        PAIR sums[radix / 2], differences[radix / 2], first = v[0]; \
        [[unroll]] for (int t = 1; t <= radix / 2; t++) { \
            sums[t - 1] = v[t] + v[radix - t]; \
            differences[t - 1] = turned(v[radix - t] - v[t]); \
            v[0] += sums[t - 1]; \
        } \
        [[unroll]] for (int k = 1; k <= radix / 2; k++) { \
            PAIR even = first, odd = PAIR(0); \
            [[unroll]] for (int t = 1; t <= radix / 2; t++) { \
                even += roots[k * t % radix].x * sums[t - 1]; \
                odd += roots[k * t % radix].y * differences[t - 1]; \
            } \
            v[k] = even + odd; \
            v[radix - k] = even - odd; \
        } \
    }

// Of a product of two radices (Cooley and Tukey 1965): `second` transforms of `first` elements, then `first` of `second`.
#define COMPOSITE(radix, first, second, roots) \
    void dft(inout PAIR v[radix]) { \
        PAIR parts[second][first]; \
        [[unroll]] for (int n = 0; n < second; n++) { \
            [[unroll]] for (int i = 0; i < first; i++) parts[n][i] = v[i * second + n]; \
            dft(parts[n]); \
            [[unroll]] for (int k = 1; k < first; k++) { \
                if (4 * n * k == radix) parts[n][k] = turned(parts[n][k]); \
                else if (n > 0) parts[n][k] = product(parts[n][k], roots[n * k]); \
            } \
        } \
        [[unroll]] for (int k = 0; k < first; k++) { \
            PAIR whole[second]; \
            [[unroll]] for (int n = 0; n < second; n++) whole[n] = parts[n][k]; \
            dft(whole); \
            [[unroll]] for (int n = 0; n < second; n++) v[k + n * first] = whole[n]; \
        } \
    }

TRANSFORMS
