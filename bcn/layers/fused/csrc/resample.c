/* The resampling of bcn/layers/baselines/deformable.py: a map is read bilinearly at (x + dx, y + dy), channel by
 * channel. All is in channels_last order; `offset` has dx of each channel, then dy of each.
 */

struct corner {
    long first, second, third, fourth; /* upper left, upper right, lower left, lower right */
    float right, down;                 /* the shares of the right and of the lower ones */
    int free_x, free_y;                /* whether the place moves with dx and dy, or is held at the border */
};

/* Between 0 and `last`; what is not a number is taken to 0. */
static inline float within(float at, float last) { return at > 0 ? (at < last ? at : last) : 0; }

static inline struct corner find(long x, long y, float dx, float dy, long height, long width, long channels)
{
    float at_x = (float)x + dx, at_y = (float)y + dy;
    float in_x = within(at_x, (float)(width - 1)), in_y = within(at_y, (float)(height - 1));
    long left = (long)in_x, top = (long)in_y;
    long beside = left + 1 < width ? channels : 0, below = top + 1 < height ? width * channels : 0;
    struct corner found = {.first = (top * width + left) * channels, .free_x = in_x == at_x, .free_y = in_y == at_y};
    found.second = found.first + beside, found.third = found.first + below, found.fourth = found.third + beside;
    found.right = at_x == at_x ? in_x - (float)left : at_x, found.down = at_y == at_y ? in_y - (float)top : at_y;
    return found;
}

/* From a to b, and never beyond either. Both ends are computed: which is nearer cannot be foretold, and a wrong guess costs
 * more than the sum. */
static inline float between(float a, float b, float share)
{
    float step = b - a, from[2] = {b - (1 - share) * step, a + share * step};
    return from[share < 0.5f];
}

void bcn_resample(long images, long height, long width, long channels, const float *restrict map,
                  const float *restrict offset, float *restrict out)
{
    for (long b = 0; b < images; b++, map += height * width * channels)
        for (long y = 0; y < height; y++)
            for (long x = 0; x < width; x++, offset += 2 * channels, out += channels)
                for (long c = 0; c < channels; c++) {
                    struct corner k = find(x, y, offset[c], offset[channels + c], height, width, channels);
                    const float *from = map + c;
                    float upper = between(from[k.first], from[k.second], k.right);
                    float lower = between(from[k.third], from[k.fourth], k.right);
                    out[c] = between(upper, lower, k.down);
                }
}

/* The gradient of the map is added to `grad_map`. */
void bcn_resample_backward(long images, long height, long width, long channels, const float *restrict map,
                           const float *restrict offset, const float *restrict grad, float *restrict grad_map,
                           float *restrict grad_offset)
{
    for (long b = 0; b < images; b++, map += height * width * channels, grad_map += height * width * channels)
        for (long y = 0; y < height; y++)
            for (long x = 0; x < width; x++, grad += channels, offset += 2 * channels, grad_offset += 2 * channels)
                for (long c = 0; c < channels; c++) {
                    struct corner k = find(x, y, offset[c], offset[channels + c], height, width, channels);
                    const float *from = map + c;
                    float *to = grad_map + c;
                    float upper = from[k.second] - from[k.first], lower = from[k.fourth] - from[k.third];
                    float across = upper + k.down * (lower - upper);
                    float along = from[k.third] + k.right * lower - from[k.first] - k.right * upper;
                    grad_offset[c] = k.free_x ? grad[c] * across : 0;
                    grad_offset[channels + c] = k.free_y ? grad[c] * along : 0;
                    float above = grad[c] * (1 - k.down), below = grad[c] * k.down;
                    to[k.first] += above * (1 - k.right);
                    to[k.second] += above * k.right;
                    to[k.third] += below * (1 - k.right);
                    to[k.fourth] += below * k.right;
                }
}
