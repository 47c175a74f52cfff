/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs_treeobj.h - the tree objects of RFC 11: how the KVS's entries look in
 * messages.
 *
 *   {"ver": 1, "type": "val", "data": BASE64}
 *   {"ver": 1, "type": "dir", "data": {NAME: tree object}}
 *   {"ver": 1, "type": "dirref", "data": [REF]}       (and valref)
 *   {"ver": 1, "type": "symlink", "data": {"target": KEY, "namespace": NS}}
 */
#ifndef SOLO_KVS_TREEOBJ_H
#define SOLO_KVS_TREEOBJ_H

#include <errno.h>
#include <jansson.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

#include "common/base64.h"

static inline json_t *treeobj_create (const char *type, json_t *data)
{
    json_t *o = json_pack ("{s:i s:s s:o}",
                           "ver", 1,
                           "type", type,
                           "data", data);
    if (!o)
        errno = ENOMEM;
    return o;
}

static inline json_t *treeobj_create_val (const void *data, size_t len)
{
    char *s = base64_encode (data, len);
    json_t *o;

    if (!s)
        return NULL;
    o = treeobj_create ("val", json_string_nocheck (s));
    free (s);
    return o;
}

static inline json_t *treeobj_create_symlink (const char *ns,
                                              const char *target)
{
    json_t *data = json_pack ("{s:s}", "target", target);

    if (data && ns)
        json_object_set_new (data, "namespace", json_string (ns));
    return treeobj_create ("symlink", data);
}

/* The type, or NULL with errno set if this is not a valid tree object.
 */
static inline const char *treeobj_type (json_t *o, json_t **data)
{
    static const struct {
        const char *type;
        json_type data;
    } types[] = {
        { "val", JSON_STRING },
        { "valref", JSON_ARRAY },
        { "dir", JSON_OBJECT },
        { "dirref", JSON_ARRAY },
        { "symlink", JSON_OBJECT },
    };
    const char *type;
    json_t *d;
    int ver;

    if (json_unpack (o, "{s:i s:s s:o}",
                     "ver", &ver,
                     "type", &type,
                     "data", &d) == 0
        && ver == 1) {
        for (size_t i = 0; i < sizeof (types) / sizeof (types[0]); i++) {
            if (strcmp (types[i].type, type) == 0
                && json_typeof (d) == types[i].data) {
                if (data)
                    *data = d;
                return types[i].type;
            }
        }
    }
    errno = EINVAL;
    return NULL;
}

static inline bool treeobj_is (json_t *o, const char *type)
{
    const char *t = treeobj_type (o, NULL);

    return t && strcmp (t, type) == 0;
}

#endif // !SOLO_KVS_TREEOBJ_H
