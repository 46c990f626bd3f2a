// G1 bucket sums.
#include "accumulate.cuh"

#define CUZK_PRODUCT_BLOCKS 5
#define CUZK_SUM_BLOCKS 4
CUZK_ACCUMULATE(g1, cuzk::Fp)
