// Elements as they lie in memory, RAW of RAW_BITS bits, and their keys: unsigned numbers in the order of the sort, equal for
// equal elements. Nothing is computed with elements, so that denormals and the bits of NaNs stay.
#ifndef KEYS_GLSL
#define KEYS_GLSL

#if RAW_BITS == 64

#define KEY uvec2

// The high word first.
bool precedes(uvec2 a, uvec2 b) {
    return a.y < b.y || (a.y == b.y && a.x < b.x);
}

uvec2 key_of(uvec2 raw) {
#if defined(FLOATS)
    uint magnitude = raw.y & 0x7fffffffu;
    bool is_zero = (magnitude | raw.x) == 0u;
    bool is_nan = magnitude > 0x7ff00000u || (magnitude == 0x7ff00000u && raw.x != 0u);
    bool is_negative = raw.y >> 31 == 1u && !is_zero;
    uvec2 key = is_negative ? ~raw : uvec2(raw.x, magnitude | 0x80000000u);
    if (is_nan) key = uvec2(0xffffffffu);
#elif defined(SIGNED)
    uvec2 key = uvec2(raw.x, raw.y ^ 0x80000000u);
#else
    uvec2 key = raw;
#endif
#ifdef DESCENDS
    key = ~key;
#endif
    return key;
}

// The element with that key, but for negative zero and NaN.
uvec2 raw_of(uvec2 key) {
#ifdef DESCENDS
    key = ~key;
#endif
#if defined(FLOATS)
    return key.y >> 31 == 1u ? uvec2(key.x, key.y & 0x7fffffffu) : ~key;
#elif defined(SIGNED)
    return uvec2(key.x, key.y ^ 0x80000000u);
#else
    return key;
#endif
}

uint digit_of(uvec2 key, uint digit) {
    return (digit < 4 ? key.x : key.y) >> (digit % 4 * 8) & 0xffu;
}

#else

#define KEY uint
#define SIGN_BIT (1u << (RAW_BITS - 1))
#define ALL_BITS (SIGN_BIT | (SIGN_BIT - 1))

bool precedes(uint a, uint b) {
    return a < b;
}

uint key_of(RAW element) {
    uint raw = uint(element);
#if defined(FLOATS)
    uint magnitude = raw & ~SIGN_BIT;
    bool is_negative = (raw & SIGN_BIT) != 0u && magnitude != 0u;
    uint key = is_negative ? ~raw & ALL_BITS : magnitude | SIGN_BIT;
    if (magnitude > LARGEST_BITS) key = ALL_BITS;
#elif defined(SIGNED)
    uint key = raw ^ SIGN_BIT;
#else
    uint key = raw;
#endif
#ifdef DESCENDS
    key = ~key & ALL_BITS;
#endif
    return key;
}

// The element with that key, but for negative zero and NaN.
RAW raw_of(uint key) {
#ifdef DESCENDS
    key = ~key & ALL_BITS;
#endif
#if defined(FLOATS)
    return RAW((key & SIGN_BIT) != 0u ? key & ~SIGN_BIT : ~key & ALL_BITS);
#elif defined(SIGNED)
    return RAW(key ^ SIGN_BIT);
#else
    return RAW(key);
#endif
}

uint digit_of(uint key, uint digit) {
    return key >> (digit * 8) & 0xffu;
}

#endif
#endif
