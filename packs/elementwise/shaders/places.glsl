// Where the operands of a strided kernel lie: its parameters, and the places of the elements that belong to one of the results.
#ifndef PLACES_GLSL
#define PLACES_GLSL

// Innermost axis first. The outermost extent is never divided by.
struct Axis {
    INDEX extent;
    NxvDivisor divisor;
    INDEX strides[INPUTS];
};

PARAMS Params {
    INDEX count;
    INDEX results_at[RESULTS];
    INDEX at[INPUTS];
    Axis axes[RANK];
} params;

// Places of the operands' elements that belong to result element i.
INDEX[INPUTS] places(INDEX i) {
    INDEX at[INPUTS] = params.at;
    [[unroll]] for (int axis = 0; axis < RANK; ++axis) {
        INDEX outer = axis == RANK - 1 ? 0 : nxv_divide(i, params.axes[axis].extent, params.axes[axis].divisor);
        INDEX along = i - outer * params.axes[axis].extent;
        [[unroll]] for (int k = 0; k < INPUTS; ++k) at[k] += along * params.axes[axis].strides[k];
        i = outer;
    }
    return at;
}
#endif
