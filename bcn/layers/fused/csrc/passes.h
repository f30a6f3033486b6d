/* The forward and the backward pass over the blocks of one image, made of the products of tiles.h. */

/* hidden = relu(base[object] + shift[question]) for `height` rows that start at `row`, in panels. */
static TARGET void NAME(first)(const struct work *w, long row, long height, float *hidden)
{
    for (long r = 0; r < height; r++) {
        const float *base = w->base + (row + r) % w->objects * w->widths[0];
        const float *shift = w->shift + (row + r) / w->objects * w->widths[0];
        for (long k = 0; k < w->widths[0]; k += WIDTH) {
            vec sum = LOAD(base + k) + LOAD(shift + k);
            STORE(AT(hidden, height, r, k), POSITIVE(sum));
        }
    }
}

/* flowing = the gradient of the question's sum where the last layer's activation was positive, else 0, in panels; or
 * that of each channel's maximum at its row. */
static TARGET void NAME(unpool)(const struct work *w, long row, long height, float *flowing)
{
    long width = w->widths[w->layers];
    if (w->chosen) {
        memset(flowing, 0, (size_t)(height * width) * sizeof(float));
        for (long k = 0; k < width; k++)
            if (w->chosen[k] >= row && w->chosen[k] < row + height)
                flowing[(k / PANEL * height + w->chosen[k] - row) * PANEL + k % PANEL] = w->grad[k];
        return;
    }
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0; r < height; r++) {
            const float *grad = w->grad + (row + r) / w->objects * width + panel * PANEL;
            uint32_t bits = w->positive[(row + r) * (width / PANEL) + panel];
            for (int v = 0; v < PANEL / WIDTH; v++)
                STORE(flowing + (panel * height + r) * PANEL + v * WIDTH,
                      NAME(select)(bits >> v * WIDTH, LOAD(grad + v * WIDTH)));
        }
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

/* The activations of a block of rows, up to those that enter layer `layers`. */
static TARGET void NAME(enter)(const struct work *w, long row, long height, int layers)
{
    NAME(first)(w, row, height, w->hidden[0]);
    for (int l = 0; l < layers; l++)
        NAME(product_activate)(w, l, row, height, w->widths[l], w->widths[l + 1], w->hidden[l], w->packed[l], NULL,
                               w->hidden[l + 1]);
}

static TARGET void NAME(forward)(const struct work *w)
{
    long rows = w->questions * w->objects;
    int last = w->layers - 1;
    for (long row = 0; row < rows; row += BLOCK) {
        long height = rows - row < BLOCK ? rows - row : BLOCK;
        NAME(enter)(w, row, height, last);
        (w->value ? NAME(product_strongest) : NAME(product_pool))(
            w, last, row, height, w->widths[last], w->widths[last + 1], w->hidden[last], w->packed[last], NULL, NULL);
    }
}

static TARGET void NAME(backward)(const struct work *w)
{
    long rows = w->questions * w->objects;
    for (long row = 0; row < rows; row += BLOCK) {
        long height = rows - row < BLOCK ? rows - row : BLOCK;
        NAME(enter)(w, row, height, w->layers - 1);
        float *flowing = w->flowing[0], *next = w->flowing[1];
        NAME(unpool)(w, row, height, flowing);
        for (int l = w->layers - 1; l >= 0; l--) {
            NAME(columns)(height, w->widths[l + 1], flowing, w->grad_biases[l]);
            if (!NAME(scatter)(height, w->widths[l + 1], w->widths[l], flowing, w->hidden[l], w->grad_weights[l]))
                NAME(outer)(height, w->widths[l + 1], w->widths[l], flowing, w->hidden[l], w->grad_weights[l]);
            (l ? NAME(product_mask) : NAME(product_share))(w, l, row, height, w->widths[l + 1], w->widths[l], flowing,
                                                           w->packed_back[l], w->hidden[l], next);
            float *swap = flowing;
            flowing = next, next = swap;
        }
    }
}

#undef vec
#undef ivec
#undef LOAD
#undef STORE
#undef INLINE
#undef SPAN
#undef AT
#undef POSITIVE
#undef CASE
#undef CASES
#undef HALF_CASES
#undef WAY
#undef PRODUCT
