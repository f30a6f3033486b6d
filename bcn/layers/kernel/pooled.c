/* The hot loop of bcn/layers/pooled.py in C, for one image: forward and backward of
 *   total_u = sum over objects of relu(W_L ... relu(W_1 relu(base_n + shift_u) + b_1) ... + b_L).
 * Written for the vector registers (AVX-512, or AVX2 with FMA): matrix products with what stands before and after them
 * done while the data is in the first- and second-level cache. Plain C with the vector extensions of GCC and Clang.
 */
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PANEL 32
#define BLOCK 126 /* rows at once: a multiple of both tile heights; two panels of them fit the first-level cache */
#define LAYERS 8

struct work {
    long questions, objects;
    int layers;
    long widths[LAYERS + 1];
    const float *base, *shift, *grad;
    const float *weights[LAYERS], *biases[LAYERS];
    float *total;
    uint32_t *positive;
    float *grad_base, *grad_shift, *grad_weights[LAYERS], *grad_biases[LAYERS];
    float *packed[LAYERS], *packed_back[LAYERS], *hidden[LAYERS + 1], *flowing[2];
};

#if defined(__x86_64__)
#include <immintrin.h>

#define NAME(x) x##_avx512
#define TARGET __attribute__((target("avx512f,avx512dq,fma")))
#define WIDTH 16
#define NV 2
#define MR 14
static inline __attribute__((always_inline)) TARGET uint32_t bits_avx512(__m512 x)
{
    return _mm512_cmp_ps_mask(x, _mm512_setzero_ps(), _CMP_NLE_UQ);
}
static inline __attribute__((always_inline)) TARGET __m512 select_avx512(uint32_t bits, __m512 x)
{
    return _mm512_maskz_mov_ps((__mmask16)bits, x);
}
#include "tiles.h"
#undef NAME
#undef TARGET
#undef WIDTH
#undef MR

#define NAME(x) x##_avx2
#define TARGET __attribute__((target("avx2,fma")))
#define WIDTH 8
#define MR 6
static inline __attribute__((always_inline)) TARGET uint32_t bits_avx2(__m256 x)
{
    return (uint32_t)_mm256_movemask_ps(_mm256_cmp_ps(x, _mm256_setzero_ps(), _CMP_NLE_UQ));
}
static inline __attribute__((always_inline)) TARGET __m256 select_avx2(uint32_t bits, __m256 x)
{
    __m256i lane = _mm256_setr_epi32(1, 2, 4, 8, 16, 32, 64, 128);
    __m256i chosen = _mm256_cmpeq_epi32(_mm256_and_si256(_mm256_set1_epi32((int)bits), lane), lane);
    return _mm256_and_ps(x, _mm256_castsi256_ps(chosen));
}
#include "tiles.h"

int bcn_vector_width(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return 16;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 0;
}
#else
int bcn_vector_width(void) { return 0; }
static void forward_avx512(const struct work *w) { (void)w; }
static void backward_avx512(const struct work *w) { (void)w; }
#define forward_avx2 forward_avx512
#define backward_avx2 backward_avx512
#endif

static float *take(float **rest, long count)
{
    float *taken = *rest;
    *rest += (count + 15) / 16 * 16;
    return taken;
}

/* w (out, in) in panels: of out for the forward product, of in for the backward one. */
static void pack(const float *w, long out, long in, float *forward, float *backward)
{
    for (long o = 0; o < out; o++)
        for (long i = 0; i < in; i++) {
            forward[(o / PANEL * in + i) * PANEL + o % PANEL] = w[o * in + i];
            if (backward)
                backward[(i / PANEL * out + o) * PANEL + i % PANEL] = w[o * in + i];
        }
}

/* Part p is the questions begin[p] to begin[p + 1] - 1, all about image[p]. `grad` is null in the forward pass;
 * `positive`, one bit for each activation of the last layer, may be null. Returns 0, or 1 without memory. */
int bcn_pooled(int width, long parts, const long *image, const long *begin, long objects, int layers, const long *widths,
               const float *base, const float *shift, const float *const *weights, const float *const *biases,
               float *total, uint32_t *positive, const float *grad, float *grad_base, float *grad_shift,
               float *const *grad_weights, float *const *grad_biases)
{
    struct work w = {.objects = objects, .layers = layers};
    long need = 0, widest = 0;
    for (int l = 0; l <= layers; l++) {
        w.widths[l] = widths[l];
        need += BLOCK * widths[l] + 16 + (l < layers ? 2 * (widths[l] * widths[l + 1] + 16) : 0);
        widest = widths[l] > widest ? widths[l] : widest;
    }
    need += 2 * (BLOCK * widest + 16);
    float *memory = aligned_alloc(64, (size_t)(need * (long)sizeof(float) + 63) / 64 * 64), *rest = memory;
    if (!memory)
        return 1;
    for (int l = 0; l <= layers; l++)
        w.hidden[l] = take(&rest, BLOCK * widths[l]);
    w.flowing[0] = take(&rest, BLOCK * widest), w.flowing[1] = take(&rest, BLOCK * widest);
    for (int l = 0; l < layers; l++) {
        w.packed[l] = take(&rest, widths[l] * widths[l + 1]);
        w.packed_back[l] = grad ? take(&rest, widths[l] * widths[l + 1]) : NULL;
        pack(weights[l], widths[l + 1], widths[l], w.packed[l], w.packed_back[l]);
        w.weights[l] = weights[l], w.biases[l] = biases[l];
        if (grad)
            w.grad_weights[l] = grad_weights[l], w.grad_biases[l] = grad_biases[l];
    }
    for (long p = 0; p < parts; p++) {
        w.questions = begin[p + 1] - begin[p];
        w.base = base + image[p] * objects * widths[0];
        w.shift = shift + begin[p] * widths[0];
        w.positive = positive ? positive + begin[p] * objects * (widths[layers] / PANEL) : NULL;
        if (grad) {
            w.grad = grad + begin[p] * widths[layers];
            w.grad_base = grad_base + image[p] * objects * widths[0];
            w.grad_shift = grad_shift + begin[p] * widths[0];
            (width == 16 ? backward_avx512 : backward_avx2)(&w);
        } else {
            w.total = total + begin[p] * widths[layers];
            (width == 16 ? forward_avx512 : forward_avx2)(&w);
        }
    }
    free(memory);
    return 0;
}
