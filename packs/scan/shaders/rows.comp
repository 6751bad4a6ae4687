#version 450
// Scans lines along memory, or parts of them, a workgroup each: elements stay in the registers of an invocation from the load to
// the store. CARRIES: starts from what the parts before amount to.
#include "rows.glsl"

layout(set = 0, binding = 2) writeonly buffer Results { R_VECTOR results[]; };
#ifdef CARRIES
layout(set = 0, binding = 3) readonly buffer Carries { ACC_STORAGE carries[]; };
#endif

const uint SUMS = VECTORS * SUBGROUP_COUNT;
const uint OWN_SUMS = (SUMS + SUBGROUPS - 1) / SUBGROUPS;

// Of each subgroup what it amounts to, then what comes before it, in the order of the line; last what all amount to.
shared ACC_VALUE sums[SUMS + 1];

#ifdef REVERSE
#define IN_ORDER(k) (WIDTH - 1 - (k))
#else
#define IN_ORDER(k) (k)
#endif

// What the lanes up to this one amount to.
ACC_VALUE scan_subgroup(ACC_VALUE value, uint lane) {
    [[unroll]] for (uint apart = 1; apart < SUBGROUPS; apart <<= 1) {
        ACC_VALUE before = OTHER(value, max(lane, apart) - apart);
        if (lane >= apart) value = combine(before, value);
    }
    return value;
}

ACC_VALUE before_lane(ACC_VALUE sum, uint lane) {
    ACC_VALUE before = OTHER(sum, max(lane, 1) - 1);
    return lane == 0 ? ACC_VALUE(START) : before;
}

// Replaces each sum by what comes before it, from `carry` on; one subgroup does it.
void scan_sums(ACC_VALUE carry, uint lane) {
    ACC_VALUE own = ACC_VALUE(START);
    [[unroll]] for (uint k = 0; k < OWN_SUMS; ++k) {
        uint at = lane * OWN_SUMS + k;
        if (at < SUMS) own = combine(own, sums[at]);
    }
    own = scan_subgroup(own, lane);
    if (lane == SUBGROUPS - 1) sums[SUMS] = combine(carry, own);
    ACC_VALUE before = combine(carry, before_lane(own, lane));
    [[unroll]] for (uint k = 0; k < OWN_SUMS; ++k) {
        uint at = lane * OWN_SUMS + k;
        // Not a break: drivers nest what follows one, as often as there are sums of a lane.
        if (at < SUMS) {
            ACC_VALUE sum = sums[at];
            sums[at] = before;
            before = combine(before, sum);
        }
    }
}

void main() {
    uint group = nxv_workgroup();
    uint groups = params.lines * params.parts;
    if (group >= groups) return;
#ifdef CARRIES
    // The parts that were read last come first: a cache may still have them.
    group = groups - 1 - group;
#endif
    uint part = group % params.parts;
    uint subgroup = gl_SubgroupID;
    uint lane = gl_SubgroupInvocationID;
    uint mine = subgroup * SUBGROUPS + lane;
    uvec2 start = line_start(group / params.parts, params.axes_count);
    uint from = (params.operand_at + start.x) / WIDTH;
    uint to = (params.result_at + start.y) / WIDTH;
    uvec2 vectors = vectors_of(part);

    ACC_VALUE carry = ACC_VALUE(START);
#ifdef CARRIES
    if (part > 0) carry = ACC_LOAD(nxv_load(carries, group - 1));
#endif
    for (uint first = vectors.x; first < vectors.y; first += CHUNK) {
        ACC_VALUE items[VECTORS * WIDTH];
        ACC_VALUE before[VECTORS];
        [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
            uint index = first + v * WORKGROUP + mine;
            [[unroll]] for (uint k = 0; k < WIDTH; ++k) items[v * WIDTH + k] = ACC_VALUE(START);
            if (index < vectors.y) {
                A_VECTOR loaded = nxv_load(elements, from + place_of(index));
                [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
                    items[v * WIDTH + k] = ACC_VALUE(A_LOAD(LANE(loaded, IN_ORDER(k))));
                }
            }
        }
        [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
            [[unroll]] for (uint k = 1; k < WIDTH; ++k) {
                items[v * WIDTH + k] = combine(items[v * WIDTH + k - 1], items[v * WIDTH + k]);
            }
            ACC_VALUE sum = scan_subgroup(items[v * WIDTH + WIDTH - 1], lane);
            before[v] = before_lane(sum, lane);
            if (lane == SUBGROUPS - 1) sums[v * SUBGROUP_COUNT + subgroup] = sum;
        }
        barrier(); // every subgroup has given its sums before they are scanned
        if (subgroup == 0) scan_sums(carry, lane);
        barrier(); // they are scanned before they are read
        carry = sums[SUMS];
        [[unroll]] for (uint v = 0; v < VECTORS; ++v) {
            uint index = first + v * WORKGROUP + mine;
            before[v] = combine(sums[v * SUBGROUP_COUNT + subgroup], before[v]);
            R_VECTOR stored;
            [[unroll]] for (uint k = 0; k < WIDTH; ++k) {
                LANE(stored, IN_ORDER(k)) = R_STORE(combine(before[v], items[v * WIDTH + k]));
            }
            if (index < vectors.y) nxv_store(results, to + place_of(index), stored);
        }
        barrier(); // all have read the sums before those of the next chunk take their place
    }
}
