/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fuzz target: the text of a dw attribute, JSON or plain.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <jansson.h>

#include "libdws/directive/directive.h"
#include "libdws/util/unseen.h"

/* Longest time (s) for one text, since the job manager serves no other job while
 * it parses directives. Many times the worst case, as sanitizers are slow.
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

/* Abort unless accepted directives survive encoding and a second parse.
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

/* White space for strings.Fields of Go, by which DWS splits a directive.
 */
static bool separates (uint32_t c)
{
    return (c >= '\t' && c <= '\r') || c == ' ' || c == 0x85 || c == 0xa0
           || c == 0x1680 || (c >= 0x2000 && c <= 0x200a) || c == 0x2028
           || c == 0x2029 || c == 0x202f || c == 0x205f || c == 0x3000;
}

/* Pass over what a path may have that means something to a shell.
 */
static const char *variable_end (const char *s)
{
    static const char *const known[] = { "$USER", "${USER}", "{{id}}" };

    for (size_t i = 0; i < sizeof (known) / sizeof (known[0]); i++) {
        if (!strncmp (s, known[i], strlen (known[i])))
            return s + strlen (known[i]);
    }
    return s;
}

/* A word has nothing that means something to a shell but the variables of paths, as
 * "=$DW_JOB_" at the beginning of one, and no part "..".
 */
static void check_word (const char *word, size_t len)
{
    const char *value = strchr (word, '=');

    for (const char *s = word; s < word + len; s++) {
        const char *end = variable_end (s);

        if (end > s)
            s = end - 1;
        else if (*s == '$' && s > word && s[-1] == '=' && !strncmp (s, "$DW_", 4))
            continue;
        else if (strchr ("$`;&|<>(){}[]*?~%!^\"'\\", *s)
                 || (*s == '#' && s > word))
            abort ();
        if (!strncmp (s, "..", 2) && s > word && (s[-1] == '/' || s - 1 == value)
            && (s + 2 == word + len || s[2] == '/'))
            abort ();
    }
}

/* DWS sees the same words, and a person all characters of them. Blanks are single.
 */
static void check_words (const char *text)
{
    const char *end = text + strlen (text);
    const char *word = text;
    size_t len;

    for (const char *s = text; s < end; s += len) {
        uint32_t c = dws_character (s, end, &len);

        if (c != ' ' && (separates (c) || dws_is_unseen (c)))
            abort ();
        if (c == ' ') {
            if (s == word)
                abort ();
            check_word (word, s - word);
            word = s + 1;
        }
    }
    check_word (word, end - word);
}

/* With the variables filled in, '$' is left only where a path is on a storage of the job.
 */
static void check_filled (struct dws_directives *dirs)
{
    if (dws_directives_fill (dirs, "user", "f1", NULL) < 0)
        return; // too long with it
    for (size_t i = 0; i < dws_directives_count (dirs); i++) {
        const char *text = dws_directives_text (dirs, i);

        check_words (text);
        if (strchr (text, '{'))
            abort ();
        for (const char *s = text; (s = strchr (s, '$')); s++) {
            if (strncmp (s, "$DW_", 4))
                abort ();
        }
    }
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
    if (dirs) {
        check_stable (dirs);
        for (size_t i = 0; i < dws_directives_count (dirs); i++)
            check_words (dws_directives_text (dirs, i));
        check_filled (dirs);
    }
    else if (!*error.text)
        abort ();
    dws_directives_destroy (dirs);
    json_decref (dw);
    return 0;
}
