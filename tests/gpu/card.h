/* The card that the GPU tests share. */
#ifndef TESTS_GPU_CARD_H
#define TESTS_GPU_CARD_H

#include "backend/cuda/cuda.h"

/* End the program with code 77 (skipped) when there is no usable card. Call it first in main. */
void tri_test_need_card(void);

/* Open card 0 or fail the test. */
struct tri_backend *tri_test_open_card(const struct tri_cuda_config *config);

#endif
