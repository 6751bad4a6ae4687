// One operand of plainly.glsl, which includes this for each of them: SIDE(name) and side(name) are names of its own, EXTENT the
// rows or columns that there are.
#if WIDE
layout(set = 0, binding = BINDING, std430) readonly restrict buffer SIDE(Original) { SIDE(PACK) side(original)[]; };
#else
layout(set = 0, binding = BINDING, std430) readonly restrict buffer SIDE(Original) { SIDE(STORAGE) side(original)[]; };
#endif

// By row or column from `row` on, four of each: the elements k_at to k_at + 3; zeros where these are beyond k_end. What lies
// beyond the last row repeats it and is never stored. Packs are whole, k_at, k_end and `row` multiples of four where there are any.
mat4 side(block)(uint start, uint row, uint k_at, uint k_end) {
    mat4 x = mat4(0);
    [[unroll]] for (uint i = 0; i < 4; i++) {
#if WIDE && ALONG_K
        SIDE(PACK) p = side(original)[(start + min(row + i, EXTENT - 1) * side(free) + k_at) / 4];
        x[i] = vec4(SIDE(GET)(p.x), SIDE(GET)(p.y), SIDE(GET)(p.z), SIDE(GET)(p.w));
#elif WIDE
        if (k_at + i < k_end) {
            SIDE(PACK) p = side(original)[(start + min(row, EXTENT - 4) + (k_at + i) * side(contract)) / 4];
            x[0][i] = SIDE(GET)(p.x);
            x[1][i] = SIDE(GET)(p.y);
            x[2][i] = SIDE(GET)(p.z);
            x[3][i] = SIDE(GET)(p.w);
        }
#else
        [[unroll]] for (uint j = 0; j < 4; j++) {
            uint at = start + min(row + i, EXTENT - 1) * side(free) + (k_at + j) * side(contract);
            if (k_at + j < k_end) x[i][j] = SIDE(GET)(side(original)[at]);
        }
#endif
    }
    return x;
}
