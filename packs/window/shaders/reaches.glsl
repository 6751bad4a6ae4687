// Where x is along one spatial axis; `params` and HOLES are the including shader's.
// Adds to `at` where the element at place `place` of spatial axis `k` lies; false where there is none.
bool reaches(int k, int place, inout uint at) {
#if HOLES
    uint outer = nxv_divide(uint(max(place, 0)), uint(params.spatial[k].holes), params.spatial[k].by_holes);
    at += outer * params.spatial[k].x_step;
    return place >= 0 && outer * uint(params.spatial[k].holes) == uint(place) && outer < uint(params.spatial[k].extent);
#else
    at += uint(place) * params.spatial[k].x_step;
    return uint(place) < uint(params.spatial[k].extent);
#endif
}
