// Rounds of rotations of a symmetric or Hermitian matrix of n rows in shared memory, of SIZE at most, by TILE invocations.
#include "rotation.glsl"

shared WORK cells[SIZE][SIZE + 1];
shared Rotation turns[SIZE / 2];
shared uvec2 pairs[SIZE / 2];
shared uint rotated;

void turn_pairs(uint round, REAL least_now) {
    uint half_count = (n + 1) / 2;
    for (uint i = gl_LocalInvocationIndex; i < half_count; i += TILE) {
        uvec2 pair = pair_of(i, round, half_count);
        Rotation turn = NONE;
        if (max(pair.x, pair.y) < n && MAGNITUDE(cells[pair.x][pair.y]) > least_now) {
            turn = rotation(REAL_OF(cells[pair.x][pair.x]), REAL_OF(cells[pair.y][pair.y]), cells[pair.x][pair.y]);
            rotated = 1;
        }
        pairs[i] = pair;
        turns[i] = turn;
    }
}

// Rows and columns of the blocks that two pairs of indices have in common.
void turn_blocks() {
    uint half_count = (n + 1) / 2;
    for (uint at = gl_LocalInvocationIndex; at < half_count * half_count; at += TILE) {
        uint row = at / half_count, column = at % half_count;
        Rotation left = turns[row], right = turns[column];
        if (left.s == WORK(0) && right.s == WORK(0)) continue;
        uvec2 p = pairs[row], q = pairs[column];
        bvec2 is_row = lessThan(p, uvec2(n)), is_column = lessThan(q, uvec2(n));
        WORK tl = cells[p.x][q.x];
        WORK tr = is_column.y ? cells[p.x][q.y] : WORK(0);
        WORK bl = is_row.y ? cells[p.y][q.x] : WORK(0);
        WORK br = is_row.y && is_column.y ? cells[p.y][q.y] : WORK(0);
        WORK upper = CONJUGATE(left.s), lower = CONJUGATE(right.s);
        WORK top_left = tl * left.c - TIMES(bl, upper), bottom_left = TIMES(tl, left.s) + bl * left.c;
        WORK top_right = tr * left.c - TIMES(br, upper), bottom_right = TIMES(tr, left.s) + br * left.c;
        bool same = row == column;
        WORK moved = OF_REAL(left.t * EXTENT_OF(tr));
        cells[p.x][q.x] = same ? tl - moved : top_left * right.c - TIMES(top_right, right.s);
        if (is_column.y) cells[p.x][q.y] = same ? WORK(0) : TIMES(top_left, lower) + top_right * right.c;
        if (is_row.y) cells[p.y][q.x] = same ? WORK(0) : bottom_left * right.c - TIMES(bottom_right, right.s);
        if (is_row.y && is_column.y) {
            cells[p.y][q.y] = same ? br + moved : TIMES(bottom_left, lower) + bottom_right * right.c;
        }
    }
}
