// All leapfrog steps of the coordinates that an invocation owns, in REAL. Whoever includes this says how many those are,
// NXV_OWN at most, and defines the three functions that are declared here. NXV_POSITION(own) is where the position of one
// lies; where others read it, NXV_SETTLE orders their reads and its writes.
// `precise` keeps every driver from contracting, so that all devices take the same steps.
#ifndef NXV_POSITION
REAL nxv_positions[NXV_OWN];
#define NXV_POSITION(own) nxv_positions[own]
#define NXV_SETTLE
#endif
REAL nxv_momenta[NXV_OWN];
REAL nxv_drifts[NXV_OWN]; // the step size times the inverse mass
REAL nxv_gradients[NXV_OWN];

bool nxv_owns(uint own);
// Finds the gradients at the positions, which are those after that many steps.
void nxv_evaluate(uint steps);
// Keeps position, momentum and gradient after that many steps.
void nxv_record(uint own, uint steps);

void nxv_leapfrog(uint steps, REAL step_size) {
    precise REAL half_step = REAL(0.5) * step_size;
    // The gradient after one step is that before the next.
    for (uint taken = 0; ; ++taken) {
        nxv_evaluate(taken);
        if (taken < steps) { NXV_SETTLE; }
        for (uint own = 0; own < NXV_OWN; ++own) {
            if (!nxv_owns(own)) continue;
            precise REAL kick = half_step * nxv_gradients[own];
            precise REAL momentum = nxv_momenta[own];
            if (taken > 0) {
                momentum = momentum + kick;
                nxv_momenta[own] = momentum;
                nxv_record(own, taken);
            }
            if (taken < steps) {
                momentum = momentum + kick;
                nxv_momenta[own] = momentum;
                precise REAL moved = NXV_POSITION(own) + nxv_drifts[own] * momentum;
                NXV_POSITION(own) = moved;
            }
        }
        if (taken == steps) break;
        NXV_SETTLE;
    }
}
