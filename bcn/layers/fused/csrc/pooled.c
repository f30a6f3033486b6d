/* The loops of bcn/layers/fused/sum.py and max.py in C, for one image: forward and backward of
 *   total_u = sum over objects of relu(W_L ... relu(W_1 relu(base_n + shift_u) + b_1) ... + b_L)
 * and, for a BCN, of the maximum over positions instead of the sum, without the last relu.
 * Written for the vector registers (AVX-512, AVX2 with FMA, or NEON): matrix products with what stands before and after
 * them done while the data is in the first- and second-level cache. Plain C with the vector extensions of GCC and Clang.
 */
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#define PANEL 32
#define BLOCK 126 /* rows at once: a multiple of both tile heights; two panels of them fit the first-level cache */
#define LINE 16 /* floats of a cache line; widths are multiples of it */
#define LAYERS 8
#define TILES (BLOCK / 6) /* of the smallest height in a block */

typedef float four __attribute__((vector_size(16), aligned(4)));
#define FOUR(p) (*(four *)(p))
#define READ(p) (*(const four *)(p))

/* Clang does not read GCC's pragma, and loops over a tile that stay loops keep it in memory instead of registers. */
#define PRAGMA(text) _Pragma(#text)
#if defined(__clang__)
#define UNROLL(n) PRAGMA(clang loop unroll_count(n))
#define UNROLL_FULLY PRAGMA(clang loop unroll(full))
#else
#define UNROLL(n) PRAGMA(GCC unroll n)
#define UNROLL_FULLY UNROLL(16)
#endif

struct nonzero_column { /* its offset in the panels of a product's left side, and that of its row in the right side's */
    int32_t left, right;
};

struct work {
    long questions, objects;
    int layers;
    long widths[LAYERS + 1];
    const float *base, *shift, *grad;
    const float *biases[LAYERS];
    float *total;
    uint32_t *positive;
    float *value;      /* the maxima, where these are wanted */
    int32_t *argmax;   /* and their rows */
    const long *grad_row; /* in the backward pass, the row of each channel's maximum, or -1 */
    float *grad_base, *grad_shift, *grad_weights[LAYERS], *grad_biases[LAYERS];
    float *packed[LAYERS], *packed_back[LAYERS], *hidden[LAYERS], *grad_hidden[2];
    struct nonzero_column *columns;
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
#include "passes.h"
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
#include "passes.h"

static void forward(int width, const struct work *w) { (width == 16 ? forward_avx512 : forward_avx2)(w); }
static void backward(int width, const struct work *w) { (width == 16 ? backward_avx512 : backward_avx2)(w); }

int bcn_vector_width(void)
{
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq"))
        return 16;
    return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") ? 8 : 0;
}
#elif defined(__aarch64__)
#include <arm_neon.h>

/* Every 64-bit ARM has NEON: 32 registers, of which a tile of 6 x 16 floats takes 24. */
#define NAME(x) x##_neon
#define TARGET
#define WIDTH 4
#define NV 4
#define MR 6
static inline __attribute__((always_inline)) uint32_t bits_neon(float32x4_t x)
{
    const uint32x4_t lane = {1, 2, 4, 8};
    return vaddvq_u32(vbicq_u32(lane, vclezq_f32(x)));
}
static inline __attribute__((always_inline)) float32x4_t select_neon(uint32_t bits, float32x4_t x)
{
    const uint32x4_t lane = {1, 2, 4, 8};
    return vreinterpretq_f32_u32(vandq_u32(vreinterpretq_u32_f32(x), vtstq_u32(vdupq_n_u32(bits), lane)));
}
#include "tiles.h"
#include "passes.h"

static void forward(int width, const struct work *w) { (void)width, forward_neon(w); }
static void backward(int width, const struct work *w) { (void)width, backward_neon(w); }
int bcn_vector_width(void) { return WIDTH; }
#else
static void forward(int width, const struct work *w) { (void)width, (void)w; }
static void backward(int width, const struct work *w) { (void)width, (void)w; }
int bcn_vector_width(void) { return 0; }
#endif

static float *carve(float **rest, long count)
{
    float *taken = *rest;
    *rest += (count + 15) / 16 * 16;
    return taken;
}

/* Four rows of w as four columns. */
static inline void transpose4(const float *w, long in, float *to)
{
    four a = READ(w), b = READ(w + in), c = READ(w + 2 * in), d = READ(w + 3 * in);
    four e = __builtin_shufflevector(a, b, 0, 4, 1, 5), f = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    four g = __builtin_shufflevector(c, d, 0, 4, 1, 5), h = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    FOUR(to) = __builtin_shufflevector(e, g, 0, 1, 4, 5), FOUR(to + PANEL) = __builtin_shufflevector(e, g, 2, 3, 6, 7);
    FOUR(to + 2 * PANEL) = __builtin_shufflevector(f, h, 0, 1, 4, 5);
    FOUR(to + 3 * PANEL) = __builtin_shufflevector(f, h, 2, 3, 6, 7);
}

/* w (out, in) in panels of out, for the forward product: a cache line of each of four rows at a time. */
static void pack(const float *w, long out, long in, float *packed)
{
    for (long panel = 0; panel < out; panel += PANEL)
        for (long i = 0; i < in; i += LINE, packed += LINE * PANEL)
            for (long o = 0; o < PANEL; o += 4)
                for (long l = 0; l < LINE; l += 4)
                    transpose4(w + (panel + o) * in + i + l, in, packed + l * PANEL + o);
}

/* w (out, in) in panels of in, for the backward product. */
static void pack_back(const float *w, long out, long in, float *packed)
{
    for (long panel = 0; panel < in; panel += PANEL)
        for (long o = 0; o < out; o++, packed += PANEL)
            memcpy(packed, w + o * in + panel, PANEL * sizeof(float));
}

/* The buffers and packed weights of one call; what is returned is to be freed. Null without memory. */
static float *prepare(struct work *w, int layers, const long *widths, const float *const *weights,
                      const float *const *biases, float *const *grad_weights, float *const *grad_biases)
{
    long need = 0, widest = 0;
    w->layers = layers;
    for (int l = 0; l <= layers; l++) {
        w->widths[l] = widths[l];
        need += l < layers ? BLOCK * widths[l] + 16 + 2 * (widths[l] * widths[l + 1] + 16) : 0;
        widest = widths[l] > widest ? widths[l] : widest;
    }
    need += 2 * (BLOCK * widest + 16) + TILES * widest * (long)(sizeof(struct nonzero_column) / sizeof(float)) + 16;
    float *memory = aligned_alloc(64, (size_t)(need * (long)sizeof(float) + 63) / 64 * 64), *rest = memory;
    if (!memory)
        return NULL;
    w->grad_hidden[0] = carve(&rest, BLOCK * widest), w->grad_hidden[1] = carve(&rest, BLOCK * widest);
    long column_floats = TILES * widest * (long)(sizeof(struct nonzero_column) / sizeof(float));
    w->columns = (struct nonzero_column *)carve(&rest, column_floats);
    for (int l = 0; l < layers; l++) {
        w->hidden[l] = carve(&rest, BLOCK * widths[l]);
        w->packed[l] = carve(&rest, widths[l] * widths[l + 1]);
        pack(weights[l], widths[l + 1], widths[l], w->packed[l]);
        w->biases[l] = biases[l];
        if (grad_weights) {
            w->packed_back[l] = carve(&rest, widths[l] * widths[l + 1]);
            pack_back(weights[l], widths[l + 1], widths[l], w->packed_back[l]);
            w->grad_weights[l] = grad_weights[l], w->grad_biases[l] = grad_biases[l];
        }
    }
    return memory;
}

/* The sums. Part p is the questions begin[p] to begin[p + 1] - 1, all about image[p]. `grad` is null in the forward
 * pass, where `positive`, one bit for each activation of the last layer, may be null. Returns 0, or 1 without memory. */
int bcn_pooled_sum(int width, long parts, const long *image, const long *begin, long objects, int layers,
                   const long *widths, const float *base, const float *shift, const float *const *weights,
                   const float *const *biases, float *total, uint32_t *positive, const float *grad, float *grad_base,
                   float *grad_shift, float *const *grad_weights, float *const *grad_biases)
{
    struct work w = {.objects = objects};
    float *memory = prepare(&w, layers, widths, weights, biases, grad ? grad_weights : NULL, grad_biases);
    if (!memory)
        return 1;
    for (long p = 0; p < parts; p++) {
        w.questions = begin[p + 1] - begin[p];
        w.base = base + image[p] * objects * widths[0];
        w.shift = shift + begin[p] * widths[0];
        w.positive = positive ? positive + begin[p] * objects * (widths[layers] / PANEL) : NULL;
        if (grad) {
            w.grad = grad + begin[p] * widths[layers];
            w.grad_base = grad_base + image[p] * objects * widths[0];
            w.grad_shift = grad_shift + begin[p] * widths[0];
            backward(width, &w);
        } else {
            w.total = total + begin[p] * widths[layers];
            forward(width, &w);
        }
    }
    free(memory);
    return 0;
}

/* The maxima of images `from` to `to` - 1 and their positions; `grad` is null in the forward pass. The gradient of a
 * maximum goes to one position, so the backward pass takes those alone together. Returns 0, or 1 without memory. */
int bcn_pooled_max(int width, long from, long to, long objects, int layers, const long *widths, const float *base,
                   const float *const *weights, const float *const *biases, float *value, int64_t *position,
                   const float *grad, float *grad_base, float *const *grad_weights, float *const *grad_biases)
{
    struct work w = {.questions = 1, .objects = objects};
    long channels = widths[layers], depth = widths[0];
    float *memory = prepare(&w, layers, widths, weights, biases, grad ? grad_weights : NULL, grad_biases);
    float *zero_shift = calloc((size_t)depth, 2 * sizeof(float)); /* in place of a question's part, and its gradient */
    float *rows = malloc((size_t)(2 * channels * depth) * sizeof(float));
    long *slot = malloc((size_t)objects * sizeof(long)), *grad_row = malloc((size_t)channels * sizeof(long));
    long *taken = malloc((size_t)channels * sizeof(long));
    int32_t *argmax = malloc((size_t)channels * sizeof(int32_t));
    int failed = !memory || !zero_shift || !rows || !slot || !grad_row || !taken || !argmax;
    for (long b = from; b < to && !failed; b++) {
        const float *of_image = base + b * objects * depth;
        w.shift = zero_shift, w.grad_shift = zero_shift + depth;
        if (!grad) {
            w.base = of_image, w.value = value + b * channels, w.argmax = argmax;
            for (long k = 0; k < channels; k++)
                w.value[k] = -INFINITY, argmax[k] = 0;
            forward(width, &w);
            for (long k = 0; k < channels; k++)
                position[b * channels + k] = argmax[k];
            continue;
        }
        w.grad = grad + b * channels, w.objects = 0, w.grad_row = grad_row;
        memset(slot, -1, (size_t)objects * sizeof(long));
        for (long k = 0; k < channels; k++) {
            long at = position[b * channels + k];
            if (w.grad[k] != 0 && slot[at] < 0) {
                slot[at] = w.objects, taken[w.objects] = at;
                memcpy(rows + w.objects++ * depth, of_image + at * depth, (size_t)depth * sizeof(float));
            }
            grad_row[k] = w.grad[k] != 0 ? slot[at] : -1;
        }
        w.base = rows, w.grad_base = rows + channels * depth;
        memset(w.grad_base, 0, (size_t)(w.objects * depth) * sizeof(float));
        backward(width, &w);
        for (long r = 0; r < w.objects; r++)
            memcpy(grad_base + (b * objects + taken[r]) * depth, w.grad_base + r * depth, (size_t)depth * sizeof(float));
    }
    free(memory), free(zero_shift), free(rows), free(slot), free(grad_row), free(taken), free(argmax);
    return failed;
}
