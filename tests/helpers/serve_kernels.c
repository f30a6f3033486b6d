/* The loops in C as a server, for a processor that an emulator provides: `serve_kernels < calls > results`.
 * A call is the index of a function, how many arguments it has, and each of these: 0 and a number; 1 and a buffer; or 2,
 * how many buffers, and these. A buffer is its size, -1 for a null pointer, and its bytes. The answer is what the
 * function returns and the bytes of all buffers, in the same order. All numbers have 64 bits.
 * An argument of any type that is used here takes one register or eight bytes of the stack (AAPCS64).
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

#define ARGUMENTS 18
#define BUFFERS 64

typedef int64_t any;
extern int bcn_vector_width(void), bcn_pooled_sum(), bcn_pooled_max(), bcn_resample(), bcn_resample_backward();
static any (*const functions[])() = {(any(*)())bcn_vector_width, (any(*)())bcn_pooled_sum, (any(*)())bcn_pooled_max,
                                     (any(*)())bcn_resample, (any(*)())bcn_resample_backward};

static void *buffers[BUFFERS];
static any sizes[BUFFERS], used;

static any number(void)
{
    any value;
    if (fread(&value, sizeof value, 1, stdin) != 1)
        exit(0); /* no further call */
    return value;
}

static any buffer(void)
{
    any size = number();
    if (size < 0)
        return 0;
    sizes[used] = size, buffers[used] = malloc((size_t)size + 1);
    if (fread(buffers[used], 1, (size_t)size, stdin) != (size_t)size)
        exit(1);
    return (any)buffers[used++];
}

int main(void)
{
    for (;;) {
        any a[ARGUMENTS] = {0}, function = number(), count = number();
        for (any i = 0; i < count; i++) {
            any kind = number();
            if (kind == 0)
                a[i] = number();
            else if (kind == 1)
                a[i] = buffer();
            else {
                any length = number(), *pointers = malloc(sizeof(any) * (size_t)(length + 1));
                for (any k = 0; k < length; k++)
                    pointers[k] = buffer();
                a[i] = (any)pointers;
            }
        }
        any result = (int)functions[function](a[0], a[1], a[2], a[3], a[4], a[5], a[6], a[7], a[8], a[9], a[10], a[11],
                                              a[12], a[13], a[14], a[15], a[16], a[17]);
        fwrite(&result, sizeof result, 1, stdout);
        for (any k = 0; k < used; k++)
            fwrite(buffers[k], 1, (size_t)sizes[k], stdout), free(buffers[k]);
        used = 0;
        fflush(stdout);
    }
}
