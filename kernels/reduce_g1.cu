// G1 bucket reduction.
#include "called.cuh"
#include "reduce.cuh"

#define CUZK_CHUNK_BLOCKS 3
CUZK_REDUCE(g1, cuzk::CalledFp)
