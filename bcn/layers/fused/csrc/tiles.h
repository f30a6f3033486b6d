/* Matrix products by tiles, for one instruction set. Included once for each, with these set:
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
#define AT(panels, height, row, column) ((panels) + ((column) / PANEL * (height) + (row)) * PANEL + (column) % PANEL)

/* relu, as torch's: what is not a number stays so */
#define POSITIVE(v) ((vec)((ivec)(v) & ~(ivec)((v) <= 0)))

/* acc[i][j] += sum over k of a[i * PANEL + k] * b[k * PANEL + j] for `rows` rows, a constant once inlined. */
INLINE void NAME(multiply)(int rows, long depth, const float *restrict a, const float *restrict b, vec acc[MR][NV])
{
UNROLL(2)
    for (long k = 0; k < depth; k++) {
        vec column[NV];
UNROLL_FULLY
        for (int j = 0; j < NV; j++)
            column[j] = LOAD(b + k * PANEL + j * WIDTH);
UNROLL_FULLY
        for (int i = 0; i < rows; i++) {
            float value = a[i * PANEL + k];
UNROLL_FULLY
            for (int j = 0; j < NV; j++)
                acc[i][j] += value * column[j];
        }
    }
}

/* Bits of the columns that are not all zeros in these rows, in panels of `height`; how many there are. */
static TARGET long NAME(nonzero_bits)(long rows, long depth, long height, const float *a, uint32_t *bits)
{
    long count = 0;
    for (long v = 0; v < depth / WIDTH; v++) {
        ivec any = {0};
        for (long i = 0; i < rows; i++)
            any |= *(const ivec *)AT(a, height, i, v * WIDTH);
        bits[v] = NAME(bits)((vec)(any != 0));
        count += __builtin_popcount(bits[v]);
    }
    return count;
}

/* How many columns of `rows` rows are not all zeros, and where those are; `depth` where they are most, which a few rows
 * may tell already. */
static TARGET long NAME(nonzero)(long rows, long depth, long height, const float *a, struct nonzero_column *columns)
{
    uint32_t bits[depth / WIDTH];
    long count = 0;
    for (long some = rows < 4 ? rows : 4;; some = rows) {
        if (4 * NAME(nonzero_bits)(some, depth, height, a, bits) >= 3 * depth)
            return depth;
        if (some == rows)
            break;
    }
    for (long v = 0; v < depth / WIDTH; v++)
        for (uint32_t left = bits[v]; left; left &= left - 1) {
            long column = v * WIDTH + __builtin_ctz(left);
            long left_offset = AT(a, height, 0, column) - a;
            columns[count++] = (struct nonzero_column){(int32_t)left_offset, (int32_t)(column * PANEL)};
        }
    return count;
}

/* A tile of a w + bias, a in panels of `height` rows, w packed in panels of `depth` rows; `bias` may be null. Columns of
 * a that are all zeros, of which a trained network has many, are left out where `nonzero` is less than `depth`. */
INLINE void NAME(tile)(int rows, long depth, long height, const float *a, const float *by, const float *bias,
                       long nonzero, const struct nonzero_column *columns, vec acc[MR][NV])
{
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < NV; j++)
            acc[i][j] = bias ? LOAD(bias + j * WIDTH) : (vec){0};
    if (nonzero == depth)
        for (long panel = 0; panel < depth / PANEL; panel++)
            NAME(multiply)(rows, PANEL, a + panel * height * PANEL, by + panel * PANEL * PANEL, acc);
    else
        for (long k = 0; k < nonzero; k++)
            NAME(multiply)(rows, 1, a + columns[k].left, by + columns[k].right, acc);
}

/* Five epilogues: what is done with a tile while it is in registers. `row` and `column` say where it stands in the
 * whole matrix of questions x objects; `hidden` and `out` point at its place in panels. */
#define EPILOGUE(name) \
    INLINE void NAME(name)(int rows, const struct work *w, int layer, long row, long column, long height, long depth, \
                           long nonzero, const struct nonzero_column *columns, const float *a, const float *by, \
                           const float *hidden, float *out)

/* out = relu(a w + bias) */
EPILOGUE(activate)
{
    vec acc[MR][NV];
    NAME(tile)(rows, depth, height, a, by, w->biases[layer] + column, nonzero, columns, acc);
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < NV; j++)
            STORE(out + i * PANEL + j * WIDTH, POSITIVE(acc[i][j]));
}

/* out = a w where hidden is positive, else 0 */
EPILOGUE(mask)
{
    vec acc[MR][NV];
    NAME(tile)(rows, depth, height, a, by, NULL, nonzero, columns, acc);
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < NV; j++) {
            long at = i * PANEL + j * WIDTH;
            STORE(out + at, (vec)((ivec)acc[i][j] & (ivec)(LOAD(hidden + at) > 0)));
        }
}

/* sums += sum, and sum = 0 */
INLINE void NAME(flush)(vec sum[NV], float *sums)
{
UNROLL_FULLY
    for (int j = 0; j < NV; j++) {
        STORE(sums + j * WIDTH, LOAD(sums + j * WIDTH) + sum[j]);
        sum[j] = (vec){0};
    }
}

/* total[question] += relu(a w + bias) over the rows; a bit of `positive` for each that is */
EPILOGUE(sum_pool)
{
    vec acc[MR][NV], sum[NV] = {{0}};
    NAME(tile)(rows, depth, height, a, by, w->biases[layer] + column, nonzero, columns, acc);
    long width = w->widths[w->layers], left = w->objects - row % w->objects;
    float *total = w->total + row / w->objects * width + column;
    char *positive = w->positive ? (char *)w->positive + (row * width + column) / 8 : NULL;
UNROLL_FULLY
    for (int i = 0; i < rows; i++) {
        uint32_t bits = 0;
UNROLL_FULLY
        for (int j = 0; j < NV; j++) {
            uint32_t these = NAME(bits)(acc[i][j]);
            sum[j] += NAME(select)(these, acc[i][j]);
            bits |= these << j * WIDTH;
        }
        if (positive)
            memcpy(positive + i * width / 8, &bits, SPAN / 8);
        if (--left == 0) {
            NAME(flush)(sum, total);
            total += width, left = w->objects;
        }
    }
    if (left < w->objects)
        NAME(flush)(sum, total);
}

/* value = the largest of a w + bias over the rows so far, argmax = its row, the first of equals; as torch's maximum,
 * what is not a number wins */
EPILOGUE(max_pool)
{
    vec acc[MR][NV], best[NV];
    ivec argmax[NV];
    NAME(tile)(rows, depth, height, a, by, w->biases[layer] + column, nonzero, columns, acc);
UNROLL_FULLY
    for (int j = 0; j < NV; j++) {
        best[j] = LOAD(w->value + column + j * WIDTH);
        argmax[j] = *(const ivec *)(w->argmax + column + j * WIDTH);
    }
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < NV; j++) {
            ivec better = (ivec)(acc[i][j] > best[j]) | (ivec)((acc[i][j] != acc[i][j]) & (best[j] == best[j]));
            best[j] = (vec)(((ivec)acc[i][j] & better) | ((ivec)best[j] & ~better));
            argmax[j] = (((ivec){0} + (int)(row + i)) & better) | (argmax[j] & ~better);
        }
UNROLL_FULLY
    for (int j = 0; j < NV; j++) {
        STORE(w->value + column + j * WIDTH, best[j]);
        *(ivec *)(w->argmax + column + j * WIDTH) = argmax[j];
    }
}

/* The gradient at g's first layer, added up over questions for each object and over objects for each question */
EPILOGUE(input_grad)
{
    vec acc[MR][NV], sum[NV] = {{0}};
    NAME(tile)(rows, depth, height, a, by, NULL, nonzero, columns, acc);
    long width = w->widths[0], left = w->objects - row % w->objects;
    float *grad_shift = w->grad_shift + row / w->objects * width + column;
    float *grad_base = w->grad_base + row % w->objects * width + column;
UNROLL_FULLY
    for (int i = 0; i < rows; i++, grad_base += width) {
UNROLL_FULLY
        for (int j = 0; j < NV; j++) {
            vec x = (vec)((ivec)acc[i][j] & (ivec)(LOAD(hidden + i * PANEL + j * WIDTH) > 0));
            sum[j] += x;
            STORE(grad_base + j * WIDTH, LOAD(grad_base + j * WIDTH) + x);
        }
        if (--left == 0) {
            NAME(flush)(sum, grad_shift);
            grad_shift += width, left = w->objects, grad_base -= w->objects * width;
        }
    }
    if (left < w->objects)
        NAME(flush)(sum, grad_shift);
}

/* One tile of out += a^T b, both in panels of `height` rows, out of row length `stride`: half as many rows, and twice as
 * many columns, which need two pointers into b. Long sums are sums of sums over blocks, here and below, which rounds less. */
INLINE void NAME(sum_tile)(int rows, long height, const float *restrict a, const float *restrict b,
                           const float *restrict second, float *restrict out, long stride)
{
    vec acc[MR / 2][2 * NV];
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < 2 * NV; j++)
            acc[i][j] = (vec){0};
UNROLL(4)
    for (long k = 0; k < height; k++) {
        vec column[2 * NV];
UNROLL_FULLY
        for (int j = 0; j < NV; j++) {
            column[j] = LOAD(b + k * PANEL + j * WIDTH);
            column[NV + j] = LOAD(second + k * PANEL + j * WIDTH);
        }
UNROLL_FULLY
        for (int i = 0; i < rows; i++) {
            float value = a[i + k * PANEL];
UNROLL_FULLY
            for (int j = 0; j < 2 * NV; j++)
                acc[i][j] += value * column[j];
        }
    }
UNROLL_FULLY
    for (int i = 0; i < rows; i++)
UNROLL_FULLY
        for (int j = 0; j < 2 * NV; j++)
            STORE(out + i * stride + j * WIDTH, LOAD(out + i * stride + j * WIDTH) + acc[i][j]);
}

#define CASE(tile, r, ...) \
    case r: \
        NAME(tile)(r, __VA_ARGS__); \
        break;
#if MR == 14
#define HALF_CASES(tile, ...) \
    CASE(tile, 1, __VA_ARGS__) CASE(tile, 2, __VA_ARGS__) CASE(tile, 3, __VA_ARGS__) CASE(tile, 4, __VA_ARGS__) \
    CASE(tile, 5, __VA_ARGS__) CASE(tile, 6, __VA_ARGS__) CASE(tile, 7, __VA_ARGS__)
#define CASES(tile, ...) \
    HALF_CASES(tile, __VA_ARGS__) \
    CASE(tile, 8, __VA_ARGS__) CASE(tile, 9, __VA_ARGS__) CASE(tile, 10, __VA_ARGS__) CASE(tile, 11, __VA_ARGS__) \
    CASE(tile, 12, __VA_ARGS__) CASE(tile, 13, __VA_ARGS__) CASE(tile, 14, __VA_ARGS__)
#else
#define HALF_CASES(tile, ...) CASE(tile, 1, __VA_ARGS__) CASE(tile, 2, __VA_ARGS__) CASE(tile, 3, __VA_ARGS__)
#define CASES(tile, ...) \
    HALF_CASES(tile, __VA_ARGS__) \
    CASE(tile, 4, __VA_ARGS__) CASE(tile, 5, __VA_ARGS__) CASE(tile, 6, __VA_ARGS__)
#endif

/* a w for the `height` rows that start at `first`, and an epilogue: a has `depth` columns and w `width`, all in
 * panels. A panel of w stays in the first-level cache while the rows go by. */
#define PRODUCT(name, epilogue) \
    static TARGET void NAME(name)(const struct work *w, int layer, long first, long height, long depth, long width, \
                                  const float *a, const float *by, const float *hidden, float *out) \
    { \
        long nonzero[BLOCK / MR]; \
        for (long row = 0; row < height; row += MR) { \
            long rows = height - row < MR ? height - row : MR; \
            nonzero[row / MR] = NAME(nonzero)(rows, depth, height, a + row * PANEL, w->columns + row / MR * depth); \
        } \
        for (long column = 0; column < width; column += SPAN) \
            for (long row = 0; row < height; row += MR) { \
                int rows = height - row < MR ? (int)(height - row) : MR; \
                const struct nonzero_column *columns = w->columns + row / MR * depth; \
                switch (rows) { \
                    CASES(epilogue, w, layer, first + row, column, height, depth, nonzero[row / MR], columns, \
                          a + row * PANEL, AT(by, depth, 0, column), AT(hidden, height, row, column), \
                          AT(out, height, row, column)) \
                } \
            } \
    }
PRODUCT(product_activate, activate)
PRODUCT(product_mask, mask)
PRODUCT(product_sum_pool, sum_pool)
PRODUCT(product_max_pool, max_pool)
PRODUCT(product_input_grad, input_grad)

/* out += a^T b: a has `width` columns and b `depth`, in panels of `height` rows; out is (width, depth). */
static TARGET void NAME(outer_dense)(long height, long width, long depth, const float *a, const float *b, float *out)
{
    for (long k = 0; k < depth; k += 2 * SPAN)
        for (long panel = 0; panel < width / PANEL; panel++)
            for (long c = 0, rows; c < PANEL; c += rows) {
                /* 32 columns in tiles as equal as can be */
                long tiles = (PANEL - c + MR / 2 - 1) / (MR / 2);
                rows = (PANEL - c + tiles - 1) / tiles;
                const float *from = a + panel * height * PANEL + c;
                const float *by = AT(b, height, 0, k), *second = AT(b, height, 0, k + SPAN);
                float *to = out + (panel * PANEL + c) * depth + k;
                switch (rows) { HALF_CASES(sum_tile, height, from, by, second, to, depth) }
            }
}

/* The same where a has few numbers that are not zero, which some tell, one by one; or else false. */
static TARGET int NAME(outer_sparse)(long height, long width, long depth, const float *a, const float *b, float *out)
{
    long count = 0, seen = 0;
    for (long at = 0; at < height * width; at += 8 * WIDTH, seen += WIDTH)
        count += __builtin_popcount(NAME(bits)((vec)(LOAD(a + at) != 0)));
    if (16 * count >= seen)
        return 0;
    for (long column = 0; column < width; column += WIDTH)
        for (long r = 0; r < height; r++) {
            const float *from = AT(a, height, r, column);
            for (uint32_t bits = NAME(bits)((vec)(LOAD(from) != 0)); bits; bits &= bits - 1) {
                long c = __builtin_ctz(bits);
                for (long k = 0; k < depth; k += WIDTH) {
                    float *to = out + (column + c) * depth + k;
                    STORE(to, LOAD(to) + from[c] * LOAD(AT(b, height, r, k)));
                }
            }
        }
    return 1;
}
