// G1 multiples of one point.
#include "called.cuh"
#include "fixed_base.cuh"

#define CUZK_TABLE_BLOCKS 3
CUZK_FIXED_BASE(g1, cuzk::CalledFp)
