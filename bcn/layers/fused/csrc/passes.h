/* The forward and the backward pass over the blocks of one image, made of the products of tiles.h. */

/* hidden = relu(base[object] + shift[question]) for `height` rows that start at `row`, in panels. */
static TARGET void NAME(first_layer)(const struct work *w, long row, long height, float *hidden)
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

/* grad_hidden = the gradient of the question's sum where the last layer's activation was positive, else 0, in panels;
 * or that of each channel's maximum at its row. */
static TARGET void NAME(pool_backward)(const struct work *w, long row, long height, float *grad_hidden)
{
    long width = w->widths[w->layers];
    if (w->grad_row) {
        memset(grad_hidden, 0, (size_t)(height * width) * sizeof(float));
        for (long k = 0; k < width; k++)
            if (w->grad_row[k] >= row && w->grad_row[k] < row + height)
                grad_hidden[(k / PANEL * height + w->grad_row[k] - row) * PANEL + k % PANEL] = w->grad[k];
        return;
    }
    for (long panel = 0; panel < width / PANEL; panel++)
        for (long r = 0; r < height; r++) {
            const float *grad = w->grad + (row + r) / w->objects * width + panel * PANEL;
            uint32_t bits = w->positive[(row + r) * (width / PANEL) + panel];
            for (int v = 0; v < PANEL / WIDTH; v++)
                STORE(grad_hidden + (panel * height + r) * PANEL + v * WIDTH,
                      NAME(select)(bits >> v * WIDTH, LOAD(grad + v * WIDTH)));
        }
}

/* sums += the sums of the columns of grad_hidden. */
static TARGET void NAME(sum_columns)(long height, long width, const float *grad_hidden, float *sums)
{
    for (long panel = 0; panel < width / PANEL; panel++)
        for (int v = 0; v < PANEL / WIDTH; v++) {
            float *at = sums + panel * PANEL + v * WIDTH;
            vec sum = {0};
            for (long r = 0; r < height; r++)
                sum += LOAD(grad_hidden + (panel * height + r) * PANEL + v * WIDTH);
            STORE(at, LOAD(at) + sum);
        }
}

/* The activations of a block of rows, up to those that recompute_hidden layer `layers`. */
static TARGET void NAME(recompute_hidden)(const struct work *w, long row, long height, int layers)
{
    NAME(first_layer)(w, row, height, w->hidden[0]);
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
        NAME(recompute_hidden)(w, row, height, last);
        (w->value ? NAME(product_max_pool) : NAME(product_sum_pool))(
            w, last, row, height, w->widths[last], w->widths[last + 1], w->hidden[last], w->packed[last], NULL, NULL);
    }
}

static TARGET void NAME(backward)(const struct work *w)
{
    long rows = w->questions * w->objects;
    for (long row = 0; row < rows; row += BLOCK) {
        long height = rows - row < BLOCK ? rows - row : BLOCK;
        NAME(recompute_hidden)(w, row, height, w->layers - 1);
        float *grad_hidden = w->grad_hidden[0], *next = w->grad_hidden[1];
        NAME(pool_backward)(w, row, height, grad_hidden);
        for (int l = w->layers - 1; l >= 0; l--) {
            long out = w->widths[l + 1], in = w->widths[l];
            NAME(sum_columns)(height, out, grad_hidden, w->grad_biases[l]);
            if (!NAME(outer_sparse)(height, out, in, grad_hidden, w->hidden[l], w->grad_weights[l]))
                NAME(outer_dense)(height, out, in, grad_hidden, w->hidden[l], w->grad_weights[l]);
            (l ? NAME(product_mask) : NAME(product_input_grad))(w, l, row, height, out, in, grad_hidden, w->packed_back[l],
                                                                w->hidden[l], next);
            float *swap = grad_hidden;
            grad_hidden = next, next = swap;
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
#undef EPILOGUE
#undef PRODUCT
