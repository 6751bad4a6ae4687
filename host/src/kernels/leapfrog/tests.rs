//! Tests of the leapfrog kernels.
