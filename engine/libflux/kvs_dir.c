/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs_dir.c - KVS client: directory listings.
 */
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <flux/core.h>

#include "libutil/errno_safe.h"
#include "kvs_treeobj.h"
#include "kvs_private.h"

struct flux_kvsdir {
    char *key;
    json_t *obj;
    json_t *entries;            // borrowed from obj
};

struct flux_kvsitr {
    const char **names;         // sorted
    size_t count;
    size_t next;
    json_t *obj;
};

void flux_kvsdir_destroy (flux_kvsdir_t *dir)
{
    if (dir) {
        ERRNO_SAFE_BLOCK;
        free (dir->key);
        json_decref (dir->obj);
        free (dir);
    }
}

flux_kvsdir_t *kvsdir_create_json (const char *key, json_t *obj)
{
    flux_kvsdir_t *dir;

    if (!key || !treeobj_is (obj, "dir")) {
        errno = EINVAL;
        return NULL;
    }
    if (!(dir = calloc (1, sizeof (*dir))))
        return NULL;
    dir->obj = json_incref (obj);
    (void)treeobj_type (obj, &dir->entries);
    if (!(dir->key = strdup (key))) {
        flux_kvsdir_destroy (dir);
        return NULL;
    }
    return dir;
}

flux_kvsdir_t *flux_kvsdir_copy (const flux_kvsdir_t *dir)
{
    if (!dir) {
        errno = EINVAL;
        return NULL;
    }
    return kvsdir_create_json (dir->key, dir->obj);
}

int flux_kvsdir_get_size (const flux_kvsdir_t *dir)
{
    return json_object_size (dir->entries);
}

bool flux_kvsdir_isdir (const flux_kvsdir_t *dir, const char *name)
{
    json_t *o = json_object_get (dir->entries, name);

    return o && (treeobj_is (o, "dir") || treeobj_is (o, "dirref"));
}

char *flux_kvsdir_key_at (const flux_kvsdir_t *dir, const char *name)
{
    size_t len = strlen (dir->key);
    char *s;

    if (strcmp (dir->key, ".") == 0)
        return strdup (name);
    if (asprintf (&s,
                  "%s%s%s",
                  dir->key,
                  len > 0 && dir->key[len - 1] == '.' ? "" : ".",
                  name) < 0)
        return NULL;
    return s;
}

static int compare (const void *a, const void *b)
{
    return strcmp (*(const char **)a, *(const char **)b);
}

flux_kvsitr_t *flux_kvsitr_create (const flux_kvsdir_t *dir)
{
    flux_kvsitr_t *itr;
    const char *name;
    json_t *o;

    if (!dir) {
        errno = EINVAL;
        return NULL;
    }
    if (!(itr = calloc (1, sizeof (*itr))))
        return NULL;
    itr->obj = json_incref (dir->obj);
    if (!(itr->names = calloc (json_object_size (dir->entries) + 1,
                               sizeof (*itr->names)))) {
        flux_kvsitr_destroy (itr);
        return NULL;
    }
    json_object_foreach (dir->entries, name, o)
        itr->names[itr->count++] = name;
    qsort (itr->names, itr->count, sizeof (*itr->names), compare);
    return itr;
}

void flux_kvsitr_destroy (flux_kvsitr_t *itr)
{
    if (itr) {
        ERRNO_SAFE_BLOCK;
        json_decref (itr->obj);
        free (itr->names);
        free (itr);
    }
}

const char *flux_kvsitr_next (flux_kvsitr_t *itr)
{
    if (!itr || itr->next == itr->count)
        return NULL;
    return itr->names[itr->next++];
}
