/* SPDX-License-Identifier: LGPL-3.0-only */
/* service.c - the table of services, by name.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "common/by_name.h"

#include "router.h"

size_t service_position (struct router *r,
                         const char *name,
                         size_t len,
                         bool *found)
{
    return by_name_position (r->services,
                             r->service_count,
                             sizeof (r->services[0]),
                             name,
                             len,
                             found);
}

int service_add (struct router *r, const char *name, struct peer *p)
{
    struct service *services;
    char *cpy;
    bool found;
    size_t pos;

    if (strlen (name) == 0 || strchr (name, '.')) {
        errno = EINVAL;
        return -1;
    }
    pos = service_position (r, name, strlen (name), &found);
    if (found) {
        errno = EEXIST;
        return -1;
    }
    if (!(cpy = strdup (name)))
        return -1;
    if (!(services = realloc (r->services,
                              sizeof (*services) * (r->service_count + 1)))) {
        free (cpy);
        return -1;
    }
    r->services = services;
    memmove (&services[pos + 1],
             &services[pos],
             sizeof (*services) * (r->service_count - pos));
    services[pos] = (struct service){ .name = cpy, .peer = p };
    r->service_count++;
    return 0;
}

void service_drop (struct router *r, size_t pos)
{
    free (r->services[pos].name);
    r->service_count--;
    memmove (&r->services[pos],
             &r->services[pos + 1],
             sizeof (*r->services) * (r->service_count - pos));
}

json_t *service_list (struct router *r, struct peer *p)
{
    json_t *a = json_array ();

    for (size_t i = 0; a && i < r->service_count; i++)
        if (r->services[i].peer == p)
            json_array_append_new (a, json_string (r->services[i].name));
    return a;
}
