/* SPDX-License-Identifier: LGPL-3.0-only */
/* kvs_private.h - what the files of the KVS client share.
 */
#ifndef SOLO_KVS_PRIVATE_H
#define SOLO_KVS_PRIVATE_H

#include <jansson.h>
#include <flux/core.h>

const char *kvs_default_namespace (void);

/* 'dirobj' is a "dir" tree object; a reference is taken.
 */
flux_kvsdir_t *kvsdir_create_json (const char *key, json_t *dirobj);

#endif // !SOLO_KVS_PRIVATE_H
