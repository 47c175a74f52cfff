/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fuzz target: the text of a dw attribute, JSON or plain.
 */

#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <jansson.h>

#include "libdws/directive/directive.h"

/* All jobs wait while the job manager reads the directives of one. This is many
 * times what the longest text takes, as the sanitizers take their time too.
 */
#define TIME_LIMIT 0.25

static json_t *presets;

int LLVMFuzzerInitialize (int *argc, char ***argv)
{
    presets = json_loads ("{\"small\": \"#DW jobdw type=xfs capacity=1GiB"
                          " name=small\", \"two\": [\"#DW persistentdw"
                          " name=aa\", \"#DW persistentdw name=bb\"]}",
                          0,
                          NULL);
    return presets ? 0 : -1;
}

/* CPU time of this process.
 */
static double seconds (void)
{
    struct timespec t;

    clock_gettime (CLOCK_PROCESS_CPUTIME_ID, &t);
    return t.tv_sec + t.tv_nsec / 1e9;
}

/* What is accepted must come out the same when it is parsed again.
 */
static void check_stable (const struct dws_directives *dirs)
{
    json_t *first = dws_directives_encode (dirs);
    struct dws_directives *again = dws_directives_parse (first, NULL, NULL, NULL);
    json_t *second = again ? dws_directives_encode (again) : NULL;

    if (!second || !json_equal (first, second))
        abort ();
    json_decref (first);
    json_decref (second);
    dws_directives_destroy (again);
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    json_t *dw = json_loadb ((const char *)data,
                             size,
                             JSON_DECODE_ANY | JSON_ALLOW_NUL,
                             NULL);
    struct dws_directives *dirs;
    dws_error_t error = { "" };
    double began;

    if (!dw)
        dw = json_stringn ((const char *)data, size);
    if (!dw)
        return 0;
    began = seconds ();
    dirs = dws_directives_parse (dw, presets, &dws_directive_limits_default,
                                 &error);
    if (seconds () - began > TIME_LIMIT)
        abort ();
    if (dirs)
        check_stable (dirs);
    else if (!*error.text)
        abort ();
    dws_directives_destroy (dirs);
    json_decref (dw);
    return 0;
}
