// G2 multiples of one point.
#include "fixed_base.cuh"

#define CUZK_TABLE_BLOCKS 2
CUZK_FIXED_BASE(g2, cuzk::Fp2)
