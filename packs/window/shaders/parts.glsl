// What is packed of an element: its bits, or f32 as a sum of three bf16, of which two may be taken.
#if PLANES == 1
uvec3 parts_of(T_STORAGE x) { return uvec3(x, 0, 0); }
#else
// The nearest bf16 as the upper half of a word, ties to even.
uint nearest(float x) {
    uint bits = floatBitsToUint(x);
    return (bits + 0x7fffu + ((bits >> 16) & 1u)) & 0xffff0000u;
}

// The nearest bf16 to x 2^-shift, denormal ones included; x becomes what is left of it.
uint small_part(inout float x, uint shift) {
    if (abs(x) >= uintBitsToFloat((shift + 1) << 23)) {
        uint bits = nearest(x);
        x -= uintBitsToFloat(bits);
        return (bits - (shift << 23)) >> 16;
    }
    float count = roundEven(x * uintBitsToFloat((127 + 133 - shift) << 23));
    x -= count * uintBitsToFloat((127 - 133 + shift) << 23);
    return uint(abs(count)) | (count < 0.0 ? 0x8000u : 0u);
}

// x as a sum of bf16, of which part p is given 2^7p times as large. The first two are the nearest, so that part p is at most
// 2^-9p of x, and the three have every bit of it. Infinities, NaN, what is below 2^-124, which three parts do not hold, and
// what is from 2^60 on, whose products may grow to infinity within a sum without a word from the unit, are a NaN: every sum with one of them is, and is computed anew.
uvec3 parts_of(float x) {
    uint size = floatBitsToUint(x) & 0x7fffffffu;
    if (size - 1 < 0x017fffffu || size >= 0x5d800000u) return uvec3(0x7fc0, 0, 0);
    if (size < 0x21800000u) { // below 2^-60 what is left may be denormal, and is kept 2^100 times as large
        x *= 1.2676506002282294e30;
        uvec3 all;
        all.x = small_part(x, 100);
        all.y = small_part(x, 93);
        all.z = small_part(x, 86);
        return all;
    }
    uint first = nearest(x);
    x -= uintBitsToFloat(first);
    uint second = nearest(x * 128.0);
    x -= uintBitsToFloat(second) * 0.0078125;
    return uvec3(first, second, nearest(x * 16384.0)) >> 16;
}
#endif
