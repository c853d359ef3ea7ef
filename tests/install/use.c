/* A program outside the tree: the installed headers and library must be enough for it.
 * Usage: use VERSION, the version that header and library must both have. */
#include <reef/reef.h>
#include <stdio.h>
#include <string.h>

int main(int argc, char **argv)
{
    const float honest[] = {1.0F, 2.0F}, also[] = {1.5F, 2.5F}, malicious[] = {1e30F, -1e30F};
    const void *const rows[] = {honest, also, malicious};
    float out[2] = {0.0F, 0.0F};
    reef_error error = {REEF_OK, ""};
    reef_agg *agg = NULL;

    if (argc != 2 || strcmp(argv[1], reef_version()) != 0 || strcmp(argv[1], REEF_VERSION_STRING) != 0) {
        fprintf(stderr, "library %s, header %s\n", reef_version(), REEF_VERSION_STRING);
        return 1;
    }
    if (reef_agg_create(NULL, &agg, "median", &error) != REEF_OK ||
        reef_agg_apply(agg, &(reef_input){.rows = rows}, 3, 2, REEF_F32, out, NULL, &error) != REEF_OK) {
        fprintf(stderr, "%s\n", error.text);
        return 1;
    }
    reef_agg_destroy(&agg);
    printf("%g %g\n", (double)out[0], (double)out[1]);
    return out[0] == 1.5F && out[1] == 2.0F ? 0 : 1;
}
