/* Samples of Sort-of-CLEVR from their seeds, one after another: scene, image, questions, answers. It does what scene.py,
 * questions.py and drawing.py do, byte for byte; docs/reference/sort-of-clevr.md is the specification of both.
 */
#include <stdint.h>
#include <string.h>

enum { SIDE = 75, RADIUS = 5, CHANNEL = SIDE * SIDE, COLOURS = 6, HALF = 18, PER_HALF = 10 };
enum { SHAPE_WORD = 0, PRESENT_WORD = 1, QUESTION_WORD = 8, CENTRE_WORD = 64 };
enum { SHAPE, LEFT, ABOVE, CLOSEST, FURTHEST, COUNT };
enum { YES = 0, SQUARE = 2, NONE = 3 };
enum { OWN_DISTANCE = 999, FAR = 1 << 20, WHITE = 255 };

static const uint8_t RGB[COLOURS][3] = {{255, 0, 0},   {0, 255, 0},     {0, 0, 255},
                                        {255, 156, 0}, {128, 128, 128}, {255, 255, 0}};

struct scene {
    int objects, x[COLOURS], y[COLOURS], circle[COLOURS], colour[COLOURS];
    /* the objects that are present, in the order of their colours */
};

static inline uint64_t word(uint64_t seed, uint64_t number)
{
    uint64_t z = seed + (number + 1) * 0x9E3779B97F4A7C15u;
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9u;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBu;
    return z ^ (z >> 31);
}

static inline int below(int bound, uint64_t bits_32)
{
    return bits_32 * bound >> 32;
}

static void sort(uint64_t *key, int count)
{
    for (int i = 1; i < count; i++) {
        uint64_t moved = key[i];
        int j = i;
        for (; j > 0 && key[j - 1] > moved; j--)
            key[j] = key[j - 1];
        key[j] = moved;
    }
}

static void choose_objects(struct scene *scene, uint64_t seed)
{
    uint64_t key[COLOURS], shapes = word(seed, SHAPE_WORD);
    unsigned present = (1 << COLOURS) - 1;
    if (scene->objects < COLOURS) {
        for (int c = 0; c < COLOURS; c++)
            key[c] = (word(seed, PRESENT_WORD + c) & ~63ull) | c;
        sort(key, COLOURS);
        present = 0;
        for (int i = 0; i < scene->objects; i++)
            present |= 1u << (key[i] & 63);
    }
    for (int c = 0, i = 0; c < COLOURS; c++)
        if (present >> c & 1) {
            scene->colour[i] = c;
            scene->circle[i++] = shapes >> c & 1;
        }
}

static inline int squared_distance(const struct scene *scene, int i, int j)
{
    int dx = scene->x[i] - scene->x[j], dy = scene->y[i] - scene->y[j];
    return dx * dx + dy * dy;
}

static int apart(const struct scene *scene)
{
    for (int i = 1; i < scene->objects; i++)
        for (int j = 0; j < i; j++) {
            unsigned dx = scene->x[i] - scene->x[j] + 2 * RADIUS, dy = scene->y[i] - scene->y[j] + 2 * RADIUS;
            if (dx <= 4 * RADIUS && dy <= 4 * RADIUS)
                return 0;
        }
    return 1;
}

static int within_a_pixel(int a, int b)
{
    int rest = (a < b ? b - a : a - b) - 1;
    return rest < 0 || rest * rest < 4 * (a < b ? a : b);
}

static int clear(const struct scene *scene)
{
    for (int i = 0; i < scene->objects; i++) {
        int nearest[2] = {FAR, FAR}, furthest[2] = {-FAR, -FAR};
        for (int j = 0; j < scene->objects; j++) {
            int away = squared_distance(scene, i, j), shape = scene->circle[j];
            if (j == i)
                continue;
            nearest[shape] = away < nearest[shape] ? away : nearest[shape];
            furthest[shape] = away > furthest[shape] ? away : furthest[shape];
        }
        int both = nearest[0] < FAR && nearest[1] < FAR;
        if (both && (within_a_pixel(nearest[0], nearest[1]) || within_a_pixel(furthest[0], furthest[1])))
            return 0;
    }
    return 1;
}

static void place(struct scene *scene, uint64_t seed)
{
    uint64_t attempt = CENTRE_WORD;
    do {
        uint64_t low = word(seed, attempt), high = word(seed, attempt + 1);
        for (int i = 0; i < scene->objects; i++) {
            int colour = scene->colour[i], bits = colour < 5 ? low >> 12 * colour & 4095 : high & 4095;
            int a = bits & 63, b = bits >> 6;
            scene->x[i] = RADIUS + a + (a >= 32);
            scene->y[i] = RADIUS + b + (b >= 32);
        }
        attempt += 2;
    } while (!apart(scene) || !clear(scene));
}

static void place_legacy(struct scene *scene, uint64_t seed)
{
    for (int i = 0; i < COLOURS; i++) {
        int free;
        uint64_t attempt = CENTRE_WORD + i;
        do {
            uint64_t bits = word(seed, attempt);
            scene->x[i] = RADIUS + below(SIDE - 2 * RADIUS, bits >> 32);
            scene->y[i] = RADIUS + below(SIDE - 2 * RADIUS, bits & 0xFFFFFFFFu);
            free = 1;
            for (int j = 0; j < i; j++)
                free &= squared_distance(scene, i, j) >= 4 * RADIUS * RADIUS;
            attempt += 8;
        } while (!free);
    }
}

/* The runs of a shape have lengths that are known here, so that each becomes one or two stores. */
static inline __attribute__((always_inline)) void paint(uint8_t *centre, int circle, uint8_t value)
{
    static const int SQUARE_REACH[] = {5, 5, 5, 5, 5, 5}, CIRCLE_REACH[] = {5, 4, 4, 4, 3, 0};
#pragma GCC unroll 11
    for (int v = -RADIUS; v <= RADIUS; v++) {
        int reach = (circle ? CIRCLE_REACH : SQUARE_REACH)[v < 0 ? -v : v];
        memset(centre + v * SIDE - reach, value, 2 * reach + 1);
    }
}

static void draw(const struct scene *scene, uint8_t *image)
{
    memset(image, WHITE, 3 * CHANNEL);
    for (int i = 0; i < scene->objects; i++)
        for (int channel = 0; channel < 3; channel++) {
            uint8_t *centre = image + channel * CHANNEL + scene->y[i] * SIDE + scene->x[i];
            if (scene->circle[i])
                paint(centre, 1, RGB[scene->colour[i]][channel]);
            else
                paint(centre, 0, RGB[scene->colour[i]][channel]);
        }
}

static void ask_distinct(const struct scene *scene, uint64_t seed, uint8_t *number)
{
    int asked = 3 * scene->objects;
    for (int half = 0; half < 2 * HALF; half += HALF) {
        uint64_t key[HALF];
        for (int kind = 0, i = 0; kind < 3; kind++)
            for (int object = 0; object < scene->objects; object++) {
                int n = 6 * kind + scene->colour[object];
                key[i++] = (word(seed, QUESTION_WORD + half + n) & ~63ull) | n;
            }
        sort(key, asked);
        for (int i = 0; i < asked && i < PER_HALF; i++)
            *number++ = half + (key[i] & 63);
    }
}

static void ask_with_replacement(uint64_t seed, uint8_t *number)
{
    for (int m = 0; m < 2 * PER_HALF; m++)
        number[m] = below(HALF, word(seed, QUESTION_WORD + m) >> 32) + (m < PER_HALF ? 0 : HALF);
}

static void ask_all(const struct scene *scene, uint8_t *number)
{
    for (int kind = 0; kind < 6; kind++)
        for (int i = 0; i < scene->objects; i++)
            *number++ = 6 * kind + scene->colour[i];
}

static uint8_t answer(const struct scene *scene, int number, int own_distance)
{
    int kind = number / 6, it = 0, best = 0, count = 0;
    while (scene->colour[it] != number % 6)
        it++;
    switch (kind) {
    case SHAPE:
        return SQUARE + scene->circle[it];
    case LEFT:
        return YES + (scene->x[it] > SIDE / 2);
    case ABOVE:
        return YES + (scene->y[it] > SIDE / 2);
    case COUNT:
        for (int i = 0; i < scene->objects; i++)
            count += scene->circle[i] == scene->circle[it];
        return NONE + count;
    }
    for (int i = 0, closest = FAR, furthest = -1; i < scene->objects; i++) { /* the first where equal */
        int away = squared_distance(scene, it, i);
        if (kind == CLOSEST && i == it)
            away = own_distance;
        if (kind == CLOSEST ? away < closest : away > furthest)
            best = i, closest = furthest = away;
    }
    return SQUARE + scene->circle[best];
}

/* questions: how many about each image; with `all`, all of those about the objects that are present */
void bcn_samples(int legacy, int objects, int all, int questions, uint64_t stream, long samples, const uint64_t *index,
                 uint8_t *image, uint8_t *number, uint8_t *answers)
{
    for (long n = 0; n < samples; n++, image += 3 * CHANNEL, number += questions, answers += questions) {
        uint64_t seed = word(stream, index[n]);
        struct scene scene = {.objects = objects};
        choose_objects(&scene, seed);
        if (legacy)
            place_legacy(&scene, seed);
        else
            place(&scene, seed);
        draw(&scene, image);
        if (all)
            ask_all(&scene, number);
        else if (legacy)
            ask_with_replacement(seed, number);
        else
            ask_distinct(&scene, seed, number);
        for (int q = 0; q < questions; q++)
            answers[q] = answer(&scene, number[q], legacy ? OWN_DISTANCE : FAR);
    }
}
