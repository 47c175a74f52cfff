/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See capacity.h.
 */

#include <errno.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "capacity.h"

static const struct {
    const char *name;           // those of DWS_CAPACITY_UNITS
    int64_t bytes;
} units[] = {
    { "KiB", INT64_C (1) << 10 },
    { "KB", 1000 },
    { "MiB", INT64_C (1) << 20 },
    { "MB", 1000000 },
    { "GiB", INT64_C (1) << 30 },
    { "GB", 1000000000 },
    { "TiB", INT64_C (1) << 40 },
    { "TB", INT64_C (1000000000000) },
};

int dws_capacity_parse (const char *s, int64_t *bytes)
{
    size_t digits = strspn (s, "0123456789");
    int64_t unit = 0;
    int64_t n = 0;

    for (size_t i = 0; i < sizeof (units) / sizeof (units[0]); i++) {
        if (strcmp (s + digits, units[i].name) == 0)
            unit = units[i].bytes;
    }
    if (digits == 0 || unit == 0) {
        errno = EINVAL;
        return -1;
    }
    for (size_t i = 0; i < digits; i++) {
        if (__builtin_mul_overflow (n, (int64_t)10, &n)
            || __builtin_add_overflow (n, (int64_t)(s[i] - '0'), &n)) {
            errno = ERANGE;
            return -1;
        }
    }
    if (__builtin_mul_overflow (n, unit, &n)) {
        errno = ERANGE;
        return -1;
    }
    *bytes = n;
    return 0;
}

#define UNIT_COUNT (sizeof (units) / sizeof (units[0]))

/* The longest whole number that is still easy to read.
 */
#define SHORT_MAX 99999

const char *dws_capacity_rough (int64_t bytes,
                                char buf[DWS_CAPACITY_TEXT_SIZE])
{
    size_t best = 0;

    for (size_t i = 0; i < UNIT_COUNT; i += 2) {
        if (bytes >= units[i].bytes)
            best = i;
    }
    snprintf (buf, DWS_CAPACITY_TEXT_SIZE, "%.4g %s",
              (double)bytes / (double)units[best].bytes, units[best].name);
    return buf;
}

const char *dws_capacity_text (int64_t bytes,
                               char buf[DWS_CAPACITY_TEXT_SIZE])
{
    /* The largest first, of each pair the one that counts by 1024. */
    static const size_t order[] = { 6, 7, 4, 5, 2, 3, 0, 1 };

    for (size_t i = 0; i < UNIT_COUNT; i++) {
        int64_t unit = units[order[i]].bytes;

        if (bytes % unit == 0 && bytes / unit <= SHORT_MAX) {
            snprintf (buf, DWS_CAPACITY_TEXT_SIZE, "%lld %s",
                      (long long)(bytes / unit), units[order[i]].name);
            return buf;
        }
    }
    return dws_capacity_rough (bytes, buf);
}

const char *dws_capacity_unit (const char *word)
{
    static const struct {
        const char *word;
        const char *unit;
    } words[] = {
        { "K", "KiB" }, { "KiB", "KiB" }, { "KB", "KB" },
        { "M", "MiB" }, { "MiB", "MiB" }, { "MB", "MB" },
        { "G", "GiB" }, { "GiB", "GiB" }, { "GB", "GB" },
        { "T", "TiB" }, { "TiB", "TiB" }, { "TB", "TB" },
        { "Gi", "GiB" }, { "Ti", "TiB" }, { "Mi", "MiB" }, { "Ki", "KiB" },
    };

    for (size_t i = 0; i < sizeof (words) / sizeof (words[0]); i++) {
        if (strcasecmp (word, words[i].word) == 0)
            return words[i].unit;
    }
    return NULL;
}

/* A fraction becomes a whole number of the unit below it, rounded up.
 */
static void in_smaller_unit (double number, const char *unit, char *buf)
{
    static const char *const order[] = { "KiB", "MiB", "GiB", "TiB" };
    static const char *const decimal[] = { "KB", "MB", "GB", "TB" };
    bool binary = unit[1] == 'i';
    size_t i = 0;

    while (i < 3 && strcmp (unit, binary ? order[i] : decimal[i]) != 0)
        i++;
    if (number != (double)(int64_t)number && i > 0) {
        number *= binary ? 1024. : 1000.;
        unit = binary ? order[--i] : decimal[--i];
    }
    snprintf (buf, DWS_CAPACITY_GUESS_SIZE, "%lld%s", (long long)number + (number > (int64_t)number), unit);
}

const char *dws_capacity_guess (const char *value, char buf[DWS_CAPACITY_GUESS_SIZE])
{
    size_t digits = strspn (value, "0123456789");
    char number[16];
    const char *unit;
    char *end;

    if (digits == 0 || strlen (value) >= sizeof (number))
        return NULL;
    strcpy (number, value);
    if (number[digits] == ',')
        number[digits] = '.';
    end = number + digits;
    if (*end == '.')
        end += 1 + strspn (end + 1, "0123456789");
    end += strspn (end, " ");
    if (!(unit = dws_capacity_unit (end)))
        return NULL;
    in_smaller_unit (strtod (number, &end), unit, buf);
    return buf;
}
