// G2 bucket sums.
#include "accumulate.cuh"

#define CUZK_PRODUCT_BLOCKS 3
#define CUZK_SUM_BLOCKS 2
CUZK_ACCUMULATE(g2, cuzk::Fp2)
