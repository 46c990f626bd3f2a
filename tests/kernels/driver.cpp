// Every kernel of kernels/ behind one C entry point, for ctypes: run(name, grid_x, grid_y, threads, arguments).
#include "emulation.hpp"

#include "scalars.cu"
#include "sort.cu"
#undef CUZK_PRODUCT_BLOCKS
#include "accumulate_g1.cu"
#undef CUZK_PRODUCT_BLOCKS
#undef CUZK_SUM_BLOCKS
#include "accumulate_g2.cu"
#include "reduce_g1.cu"
#undef CUZK_CHUNK_BLOCKS
#include "reduce_g2.cu"
#include "fixed_base_g1.cu"
#undef CUZK_TABLE_BLOCKS
#include "fixed_base_g2.cu"
#include "ntt.cu"
#include "probe.cu"

#define PLAIN(kernel) \
    if (!std::strcmp(name, #kernel)) return emulation::launch(kernel, false, grid_x, grid_y, threads, arguments), 0;
#define COOPERATIVE(kernel) \
    if (!std::strcmp(name, #kernel)) return emulation::launch(kernel, true, grid_x, grid_y, threads, arguments), 0;
#define GROUP(g)                                                                                                  \
    PLAIN(g##_products_first) PLAIN(g##_products) PLAIN(g##_invert) PLAIN(g##_sums_first) PLAIN(g##_sums)          \
    PLAIN(g##_singles) PLAIN(g##_reduce_chunks) PLAIN(g##_sum_buckets) COOPERATIVE(g##_sum_by_bit)                 \
    PLAIN(g##_sums_probe) PLAIN(g##_fill_table)       \
    PLAIN(g##_multiply_table)

// Returns 0, or 1 where no kernel has that name.
extern "C" int run(const char* name, unsigned grid_x, unsigned grid_y, unsigned threads, void** arguments) {
    COOPERATIVE(classify_scalars)
    PLAIN(scalar_digits)
    COOPERATIVE(scan_sums)
    COOPERATIVE(scan_blocks)
    COOPERATIVE(scan_prefixes)
    COOPERATIVE(count_bins)
    COOPERATIVE(scatter_bins)
    COOPERATIVE(count_buckets)
    COOPERATIVE(scatter_buckets)
    COOPERATIVE(list_pairs)
    PLAIN(even_buckets)
    COOPERATIVE(ntt_pass)
    PLAIN(power_table)
    PLAIN(quotient)
    PLAIN(fr_ops)
    PLAIN(fr_constant_products)
    PLAIN(fr_butterflies)
    PLAIN(fp_ops)
    PLAIN(fp2_ops)
    PLAIN(fr_dot)
    PLAIN(fr_random)
    PLAIN(fr_witness)
    GROUP(g1)
    GROUP(g2)
    return 1;
}
