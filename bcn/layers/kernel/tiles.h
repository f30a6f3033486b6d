/* The hot loop for one instruction set. Included once for each, with these set:
 *   NAME(x)  the function's name for this instruction set      TARGET  its function attribute
 *   WIDTH    floats in a vector      NV  vectors in a tile's row      MR  most rows of a tile
 *
 * A matrix of R rows and C columns is kept as C / 32 panels of R rows of 32 floats, so that every inner loop reads
 * memory in order. U questions, n objects, K channels of g's first layer, G of its last.
 */

typedef float NAME(vec) __attribute__((vector_size(4 * WIDTH), aligned(4)));
typedef int NAME(ivec) __attribute__((vector_size(4 * WIDTH), aligned(4)));
#define vec NAME(vec)
#define ivec NAME(ivec)
#define LOAD(p) (*(const vec *)(p))
#define STORE(p, v) (*(vec *)(p) = (v))
#define INLINE static inline __attribute__((always_inline)) TARGET
#define SPAN (WIDTH * NV)

/* relu, as torch's: what is not a number stays so */
#define POSITIVE(v) ((vec)((ivec)(v) & ~(ivec)((v) <= 0)))

/* acc[i][j] += sum over k of a[i * a_row + k * a_k] * b[k * PANEL + j] for `rows` rows, a constant once inlined. */
INLINE void NAME(multiply)(int rows, long depth, const float *restrict a, long a_row, long a_k, const float *restrict b,
                           vec acc[MR][NV])
{
#pragma GCC unroll 2
    for (long k = 0; k < depth; k++) {
        vec column[NV];
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            column[j] = LOAD(b + k * PANEL + j * WIDTH);
#pragma GCC unroll 16
        for (int i = 0; i < rows; i++) {
            float value = a[i * a_row + k * a_k];
#pragma GCC unroll 16
            for (int j = 0; j < NV; j++)
                acc[i][j] += value * column[j];
        }
    }
}

/* One tile of out = a w, a in panels of `height` rows, w packed in panels of `depth` rows. */
INLINE void NAME(row_tile)(int rows, long depth, long height, const float *a, const float *w, float *restrict out)
{
    vec acc[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            acc[i][j] = (vec){0};
    for (long panel = 0; panel < depth / PANEL; panel++)
        NAME(multiply)(rows, PANEL, a + panel * height * PANEL, PANEL, 1, w + panel * PANEL * PANEL, acc);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            STORE(out + i * PANEL + j * WIDTH, acc[i][j]);
}

/* One tile of out += a^T b, both in panels of `height` rows, out of row length `stride`. Long sums are sums of sums
 * over blocks, here and below, which rounds less. */
INLINE void NAME(sum_tile)(int rows, long height, const float *a, const float *b, float *restrict out, long stride)
{
    vec acc[MR][NV];
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            acc[i][j] = (vec){0};
    NAME(multiply)(rows, height, a, 1, PANEL, b, acc);
#pragma GCC unroll 16
    for (int i = 0; i < rows; i++)
#pragma GCC unroll 16
        for (int j = 0; j < NV; j++)
            STORE(out + i * stride + j * WIDTH, LOAD(out + i * stride + j * WIDTH) + acc[i][j]);
}

#define CASE(tile, r, ...) \
    case r: \
        NAME(tile)(r, __VA_ARGS__); \
        break;
#if MR == 14
#define CASES(tile, ...) \
    CASE(tile, 1, __VA_ARGS__) CASE(tile, 2, __VA_ARGS__) CASE(tile, 3, __VA_ARGS__) CASE(tile, 4, __VA_ARGS__) \
    CASE(tile, 5, __VA_ARGS__) CASE(tile, 6, __VA_ARGS__) CASE(tile, 7, __VA_ARGS__) CASE(tile, 8, __VA_ARGS__) \
    CASE(tile, 9, __VA_ARGS__) CASE(tile, 10, __VA_ARGS__) CASE(tile, 11, __VA_ARGS__) CASE(tile, 12, __VA_ARGS__) \
    CASE(tile, 13, __VA_ARGS__) CASE(tile, 14, __VA_ARGS__)
#else
#define CASES(tile, ...) \
    CASE(tile, 1, __VA_ARGS__) CASE(tile, 2, __VA_ARGS__) CASE(tile, 3, __VA_ARGS__) CASE(tile, 4, __VA_ARGS__) \
    CASE(tile, 5, __VA_ARGS__) CASE(tile, 6, __VA_ARGS__)
#endif

/* out = a w for `height` rows: a has `depth` columns, out has `width`, all in panels. A panel of w stays in the
 * first-level cache while the rows go by. */
static TARGET void NAME(product)(long height, long depth, long width, const float *a, const float *w, float *out)
{
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long span = 0; span < PANEL; span += SPAN)
            for (long row = 0; row < height; row += MR) {
                int rows = height - row < MR ? (int)(height - row) : MR;
                const float *from = a + row * PANEL, *by = w + panel * depth * PANEL + span;
                float *to = out + (panel * height + row) * PANEL + span;
                switch (rows) { CASES(row_tile, depth, height, from, by, to) }
            }
}

/* out += a^T b: a has `width` columns and b `depth`, in panels of `height` rows; out is (width, depth). */
static TARGET void NAME(outer)(long height, long width, long depth, const float *a, const float *b, float *out)
{
    for (long k = 0; k < depth; k += SPAN)
        for (long panel = 0; panel < width / PANEL; panel++)
            for (long c = 0, rows; c < PANEL; c += rows) {
                /* 32 columns in tiles as equal as can be */
                long tiles = (PANEL - c + MR - 1) / MR;
                rows = (PANEL - c + tiles - 1) / tiles;
                const float *from = a + panel * height * PANEL + c;
                const float *by = b + k / PANEL * height * PANEL + k % PANEL;
                float *to = out + (panel * PANEL + c) * depth + k;
                switch (rows) { CASES(sum_tile, height, from, by, to, depth) }
            }
}

/* hidden = relu(base[object] + shift[question]) for `height` rows that start at `row`, in panels. */
static TARGET void NAME(first)(const struct work *w, long row, long height, float *hidden)
{
    for (long r = 0; r < height; r++) {
        const float *base = w->base + (row + r) % w->objects * w->widths[0];
        const float *shift = w->shift + (row + r) / w->objects * w->widths[0];
        for (long k = 0; k < w->widths[0]; k += WIDTH) {
            vec sum = LOAD(base + k) + LOAD(shift + k);
            STORE(hidden + (k / PANEL * height + r) * PANEL + k % PANEL, POSITIVE(sum));
        }
    }
}

/* hidden = relu(hidden + bias) in panels. */
static TARGET void NAME(activate)(long height, long width, const float *bias, float *hidden)
{
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0; r < height; r++)
            for (long c = 0; c < PANEL; c += WIDTH) {
                float *at = hidden + (panel * height + r) * PANEL + c;
                vec sum = LOAD(at) + LOAD(bias + panel * PANEL + c);
                STORE(at, POSITIVE(sum));
            }
}

/* total[question] += relu(hidden + bias) over the rows; a bit of `positive` for each that is. */
static TARGET void NAME(pool)(const struct work *w, long row, long height, const float *hidden, uint32_t *positive)
{
    long width = w->widths[w->layers];
    const float *bias = w->biases[w->layers - 1];
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0, last; r < height; r = last) {
            long question = (row + r) / w->objects, end = (question + 1) * w->objects - row;
            last = end < height ? end : height;
            vec sum[PANEL / WIDTH], b[PANEL / WIDTH];
            for (int v = 0; v < PANEL / WIDTH; v++) {
                sum[v] = (vec){0};
                b[v] = LOAD(bias + panel * PANEL + v * WIDTH);
            }
            for (long s = r; s < last; s++) {
                uint32_t bits = 0;
                for (int v = 0; v < PANEL / WIDTH; v++) {
                    vec x = LOAD(hidden + (panel * height + s) * PANEL + v * WIDTH) + b[v];
                    sum[v] += POSITIVE(x);
                    bits |= NAME(bits)(x) << v * WIDTH;
                }
                if (positive)
                    positive[(row + s) * (width / PANEL) + panel] = bits;
            }
            float *total = w->total + question * width + panel * PANEL;
            for (int v = 0; v < PANEL / WIDTH; v++)
                STORE(total + v * WIDTH, LOAD(total + v * WIDTH) + sum[v]);
        }
}

/* flowing = the gradient of the question's sum where the last layer's activation is positive, else 0, in panels. */
static TARGET void NAME(unpool)(const struct work *w, long row, long height, const float *hidden, float *flowing)
{
    long width = w->widths[w->layers];
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0; r < height; r++) {
            const float *grad = w->grad + (row + r) / w->objects * width + panel * PANEL;
            for (int v = 0; v < PANEL / WIDTH; v++) {
                long at = (panel * height + r) * PANEL + v * WIDTH;
                vec g = LOAD(grad + v * WIDTH);
                if (w->positive) {
                    uint32_t bits = w->positive[(row + r) * (width / PANEL) + panel] >> v * WIDTH;
                    STORE(flowing + at, NAME(select)(bits, g));
                } else
                    STORE(flowing + at, (vec)((ivec)g & (ivec)(LOAD(hidden + at) > 0)));
            }
        }
}

/* flowing = 0 where hidden is not positive. */
static TARGET void NAME(mask)(long height, long width, const float *hidden, float *flowing)
{
    for (long at = 0; at < height * width; at += WIDTH)
        STORE(flowing + at, (vec)((ivec)LOAD(flowing + at) & (ivec)(LOAD(hidden + at) > 0)));
}

/* sums += the sums of the columns of flowing. */
static TARGET void NAME(columns)(long height, long width, const float *flowing, float *sums)
{
    for (long panel = 0; panel < width / PANEL; panel++)
        for (int v = 0; v < PANEL / WIDTH; v++) {
            float *at = sums + panel * PANEL + v * WIDTH;
            vec sum = {0};
            for (long r = 0; r < height; r++)
                sum += LOAD(flowing + (panel * height + r) * PANEL + v * WIDTH);
            STORE(at, LOAD(at) + sum);
        }
}

/* The gradient at g's first layer, added up over questions for each object and over objects for each question. */
static TARGET void NAME(share)(const struct work *w, long row, long height, const float *hidden, const float *flowing)
{
    long width = w->widths[0];
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0, last; r < height; r = last) {
            long question = (row + r) / w->objects, end = (question + 1) * w->objects - row;
            last = end < height ? end : height;
            float *grad_shift = w->grad_shift + question * width + panel * PANEL;
            float *grad_base = w->grad_base + (row + r) % w->objects * width + panel * PANEL;
            vec sum[PANEL / WIDTH];
            for (int v = 0; v < PANEL / WIDTH; v++)
                sum[v] = (vec){0};
            for (long s = r; s < last; s++, grad_base += width)
                for (int v = 0; v < PANEL / WIDTH; v++) {
                    long at = (panel * height + s) * PANEL + v * WIDTH;
                    vec x = (vec)((ivec)LOAD(flowing + at) & (ivec)(LOAD(hidden + at) > 0));
                    sum[v] += x;
                    STORE(grad_base + v * WIDTH, LOAD(grad_base + v * WIDTH) + x);
                }
            for (int v = 0; v < PANEL / WIDTH; v++)
                STORE(grad_shift + v * WIDTH, LOAD(grad_shift + v * WIDTH) + sum[v]);
        }
}

static TARGET void NAME(forward)(const struct work *w)
{
    long rows = w->questions * w->objects;
    for (long row = 0; row < rows; row += BLOCK) {
        long height = rows - row < BLOCK ? rows - row : BLOCK;
        NAME(first)(w, row, height, w->hidden[0]);
        for (int l = 0; l < w->layers; l++) {
            NAME(product)(height, w->widths[l], w->widths[l + 1], w->hidden[l], w->packed[l], w->hidden[l + 1]);
            if (l + 1 < w->layers)
                NAME(activate)(height, w->widths[l + 1], w->biases[l], w->hidden[l + 1]);
        }
        NAME(pool)(w, row, height, w->hidden[w->layers], w->positive);
    }
}

static TARGET void NAME(backward)(const struct work *w)
{
    long rows = w->questions * w->objects;
    int computed = w->positive ? w->layers - 1 : w->layers;
    for (long row = 0; row < rows; row += BLOCK) {
        long height = rows - row < BLOCK ? rows - row : BLOCK;
        NAME(first)(w, row, height, w->hidden[0]);
        for (int l = 0; l < computed; l++) {
            NAME(product)(height, w->widths[l], w->widths[l + 1], w->hidden[l], w->packed[l], w->hidden[l + 1]);
            NAME(activate)(height, w->widths[l + 1], w->biases[l], w->hidden[l + 1]);
        }
        float *flowing = w->flowing[0], *next = w->flowing[1];
        NAME(unpool)(w, row, height, w->hidden[w->layers], flowing);
        for (int l = w->layers - 1; l >= 0; l--) {
            NAME(columns)(height, w->widths[l + 1], flowing, w->grad_biases[l]);
            NAME(outer)(height, w->widths[l + 1], w->widths[l], flowing, w->hidden[l], w->grad_weights[l]);
            NAME(product)(height, w->widths[l + 1], w->widths[l], flowing, w->packed_back[l], next);
            if (l)
                NAME(mask)(height, w->widths[l], w->hidden[l], next);
            float *swap = flowing;
            flowing = next, next = swap;
        }
        NAME(share)(w, row, height, w->hidden[0], flowing);
    }
}

#undef vec
#undef ivec
#undef LOAD
#undef STORE
#undef INLINE
#undef SPAN
#undef POSITIVE
#undef CASE
#undef CASES
