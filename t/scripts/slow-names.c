/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Preloaded: a name service that does not answer dws.so while the file $SLOW_NAMES
 * exists. A waiting caller creates the file $SLOW_NAMES.reached. The users in the file
 * $SLOW_NAMES.names, lines "UID NAME", exist for dws.so, too.
 */

#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

typedef int (*getpwuid_f)(uid_t uid, struct passwd *pw, char *buf, size_t size,
                          struct passwd **result);

static int is_module (void *caller)
{
    Dl_info info;

    return dladdr (caller, &info) != 0 && strstr (info.dli_fname, "/dws.so");
}

static int find_name (const char *slow, uid_t uid, struct passwd *pw, char *buf,
                      size_t size)
{
    char path[4096];
    char name[64];
    unsigned int id;
    FILE *file;
    int found = 0;

    snprintf (path, sizeof (path), "%s.names", slow);
    if (!(file = fopen (path, "r")))
        return 0;
    while (!found && fscanf (file, "%u %63s", &id, name) == 2)
        found = id == uid && strlen (name) < size;
    fclose (file);
    if (found) {
        memset (pw, 0, sizeof (*pw));
        pw->pw_name = strcpy (buf, name);
        pw->pw_uid = uid;
        pw->pw_gid = uid;
    }
    return found;
}

int getpwuid_r (uid_t uid, struct passwd *pw, char *buf, size_t size,
                struct passwd **result)
{
    getpwuid_f next = (getpwuid_f)dlsym (RTLD_NEXT, "getpwuid_r");
    const char *slow = getenv ("SLOW_NAMES");
    char reached[4096];

    if (slow && is_module (__builtin_return_address (0))) {
        snprintf (reached, sizeof (reached), "%s.reached", slow);
        while (access (slow, F_OK) == 0) {
            close (open (reached, O_CREAT | O_WRONLY, 0600));
            usleep (10000);
        }
        if (find_name (slow, uid, pw, buf, size)) {
            *result = pw;
            return 0;
        }
    }
    return next ? next (uid, pw, buf, size, result) : ENOSYS;
}
