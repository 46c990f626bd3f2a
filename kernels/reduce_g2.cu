// G2 bucket reduction.
#include "reduce.cuh"

#define CUZK_CHUNK_BLOCKS 2
CUZK_REDUCE(g2, cuzk::Fp2)
