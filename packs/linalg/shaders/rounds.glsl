// Rounds of rotations of a symmetric matrix of n rows in shared memory, of SIZE at most, by TILE invocations.
#include "rotation.glsl"

shared WORK cells[SIZE][SIZE + 1];
shared Rotation turns[SIZE / 2];
shared uvec2 pairs[SIZE / 2];
shared uint rotated;

void turn_pairs(uint round, WORK least_now) {
    uint half_count = (n + 1) / 2;
    for (uint i = gl_LocalInvocationIndex; i < half_count; i += TILE) {
        uvec2 pair = pair_of(i, round, half_count);
        Rotation turn = NONE;
        if (max(pair.x, pair.y) < n && abs(cells[pair.x][pair.y]) > least_now) {
            turn = rotation(cells[pair.x][pair.x], cells[pair.y][pair.y], cells[pair.x][pair.y]);
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
        WORK top_left = tl * left.c - bl * left.s, bottom_left = tl * left.s + bl * left.c;
        WORK top_right = tr * left.c - br * left.s, bottom_right = tr * left.s + br * left.c;
        bool same = row == column;
        cells[p.x][q.x] = same ? tl - left.t * tr : top_left * right.c - top_right * right.s;
        if (is_column.y) cells[p.x][q.y] = same ? WORK(0) : top_left * right.s + top_right * right.c;
        if (is_row.y) cells[p.y][q.x] = same ? WORK(0) : bottom_left * right.c - bottom_right * right.s;
        if (is_row.y && is_column.y) {
            cells[p.y][q.y] = same ? br + left.t * tr : bottom_left * right.s + bottom_right * right.c;
        }
    }
}
