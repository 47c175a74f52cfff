/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Built-in paths. The paths are relative to this library, so that an
 * installation may be moved, and a wheel unpacked anywhere.
 */

#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include <flux/core.h>

/* Plugin paths are those that components install to, the rest is solo's own.
 * A '@' stands for the prefix.
 */
static const struct {
    const char *key;
    const char *value;
} builtins[] = {
    { "confdir", SOLO_SYSCONFDIR "/flux" },
    { "connector_path", "@/" SOLO_LIBDIR "/connectors" },
    { "datadir", "@/" SOLO_DATADIR "/flux" },
    { "exec_path", "@/" SOLO_EXECDIR "/cmd" },
    { "jobtap_pluginpath", "@/" SOLO_JOBTAPDIR },
    { "libexecdir", "@/" SOLO_EXECDIR },
    { "module_path", "@/" SOLO_LIBDIR "/modules:@/" SOLO_MODDIR },
    { "python_path", "" },
    { "rundir", "/run/flux" },
    { "shell_path", "@/" SOLO_EXECDIR "/flux-shell" },
    { "shell_pluginpath", "@/" SOLO_SHELLDIR },
};

#define COUNT (sizeof (builtins) / sizeof (builtins[0]))

/* Like the strings of a program these last as long as the process.
 */
static char *values[COUNT];
static pthread_once_t once = PTHREAD_ONCE_INIT;

/* The library is PREFIX/SOLO_LIBDIR/libflux-core.so.2: as many steps up as
 * SOLO_LIBDIR has parts, and one for the file.
 */
static void find_prefix (char *buf, size_t size)
{
    Dl_info info;
    char *slash;

    if (!dladdr (&builtins, &info)
        || (size_t)snprintf (buf, size, "%s", info.dli_fname) >= size) {
        buf[0] = '\0';
        return;
    }
    for (const char *s = "/" SOLO_LIBDIR; s; s = strchr (s + 1, '/')) {
        if ((slash = strrchr (buf, '/')))
            *slash = '\0';
    }
    if ((slash = strrchr (buf, '/')))
        *slash = '\0';
}

static void expand (void)
{
    char prefix[4096];

    find_prefix (prefix, sizeof (prefix));
    for (size_t i = 0; i < COUNT; i++) {
        size_t size = 0;
        FILE *f = open_memstream (&values[i], &size);

        if (!f)
            continue;
        for (const char *s = builtins[i].value; *s; s++) {
            if (*s == '@')
                fputs (prefix, f);
            else
                fputc (*s, f);
        }
        if (fclose (f) != 0)
            values[i] = NULL;
    }
}

const char *flux_conf_builtin_get (const char *key,
                                   enum flux_conf_builtin_hint hint)
{
    pthread_once (&once, expand);
    for (size_t i = 0; i < COUNT; i++) {
        if (key && !strcmp (key, builtins[i].key)) {
            if (!values[i])
                errno = ENOMEM;
            return values[i];
        }
    }
    errno = EINVAL;
    return NULL;
}
