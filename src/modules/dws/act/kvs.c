/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See kvs.h.
 */

#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <jansson.h>

#include "libdws/tell/record.h"
#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "libutil/names.h"
#include "act/kvs.h"
#include "act/late.h"
#include "base/commits.h"

static int random_id (char *buf, size_t size)
{
    unsigned char bytes[8];
    char *cp = buf;

    if (getrandom (bytes, sizeof (bytes), 0) != sizeof (bytes))
        return -1;
    for (size_t i = 0; i < sizeof (bytes); i++)
        cp += snprintf (cp, size - (cp - buf), "%02x", bytes[i]);
    return 0;
}

static int commit_instance (flux_t *h, int flags, flux_kvs_txn_t *txn)
{
    flux_future_t *f;
    int rc = -1;

    if ((f = flux_kvs_commit (h, NULL, flags, txn))
        && flux_future_get (f, NULL) == 0)
        rc = 0;
    flux_future_destroy (f);
    return rc;
}

/* Store the name and wait for a checkpoint. A killed leader restarts from the
 * last checkpoint of its KVS; if that lacked the name, the workflows of the
 * instance would be orphans. An instance without a backing store has no
 * checkpoints, and nothing to restart from.
 */
static int store_instance (flux_t *h, const char *id)
{
    flux_kvs_txn_t *txn;
    int rc = -1;

    if (!(txn = flux_kvs_txn_create ())
        || flux_kvs_txn_pack (txn, 0, DWS_KEY_INSTANCE, "s", id) < 0)
        goto done;
    rc = commit_instance (h, FLUX_KVS_SYNC, txn);
    if (rc < 0 && errno == ENOSYS)
        rc = commit_instance (h, 0, txn);
done:
    flux_kvs_txn_destroy (txn);
    return rc;
}

char *kvs_instance (flux_t *h)
{
    flux_future_t *f;
    const char *s;
    char buf[32];
    char *id = NULL;

    if (!(f = flux_kvs_lookup (h, NULL, 0, DWS_KEY_INSTANCE)))
        return NULL;
    if (flux_kvs_lookup_get_unpack (f, "s", &s) == 0)
        id = strdup (s);
    else if (errno == ENOENT
             && random_id (buf, sizeof (buf)) == 0
             && store_instance (h, buf) == 0)
        id = strdup (buf);
    flux_future_destroy (f);
    return id;
}

static int put_text (flux_kvs_txn_t *txn, uint64_t id, const char *name,
                     const char *text)
{
    char path[128];
    char key[256];

    snprintf (path, sizeof (path), "data.dws.%s", name);
    if (flux_job_kvs_key (key, sizeof (key), id, name) < 0
        || flux_kvs_txn_put (txn, 0, key, text) < 0
        || flux_job_kvs_key (key, sizeof (key), id, path) < 0)
        return -1;
    return flux_kvs_txn_put (txn, 0, key, text);
}

static int put_record (flux_kvs_txn_t *txn, uint64_t id, const char *name,
                       json_t *value)
{
    char *text = NULL;
    int rc;

    if (dws_jsontext_set (&text, value) < 0)
        return -1;
    rc = put_text (txn, id, name, text);
    ERRNO_SAFE (free (text));
    return rc;
}

static flux_kvs_txn_t *job_txn (struct job *job)
{
    return late_is (job) ? late_txn (job) : commits_txn (job->ctx->commits);
}

flux_future_t *kvs_wait (struct job *job)
{
    return late_pending (job) ? late_commit (job) : commits_wait (job->ctx->commits);
}

int kvs_put_timing (struct job *job, enum dws_state state, const char *elapsed)
{
    flux_kvs_txn_t *txn = job_txn (job);
    char name[64];
    json_t *value;
    int rc;

    snprintf (name, sizeof (name), DWS_KEY_TIMING, dws_state_name (state));
    for (char *cp = name; *cp; cp++)
        *cp = tolower (*cp);
    if (!txn || !(value = json_string (elapsed))) {
        errno = ENOMEM;
        return -1;
    }
    rc = put_record (txn, job->facts->id, name, value);
    json_decref (value);
    if (rc == 0 && state == DWS_STATE_DATAOUT)
        late_moved (job);
    return rc;
}

int kvs_put_workflow (struct job *job, const char *record)
{
    flux_kvs_txn_t *txn = job_txn (job);

    return txn ? put_text (txn, job->facts->id, DWS_KEY_WORKFLOW, record) : -1;
}

static flux_future_t *save_record (struct job *job, const char *name,
                                   json_t *value)
{
    flux_kvs_txn_t *txn;

    if (!(txn = job_txn (job))
        || put_record (txn, job->facts->id, name, value) < 0)
        return NULL;
    return kvs_wait (job);
}

flux_future_t *kvs_save_movements (struct job *job, json_t *objects, int max)
{
    json_t *chosen;
    flux_future_t *f;

    if (!(chosen = dws_record_movements (objects, max)))
        return NULL;
    f = save_record (job, DWS_KEY_MOVEMENTS, chosen);
    ERRNO_SAFE (json_decref (chosen));
    return f;
}

flux_future_t *kvs_save_logs (struct job *job, json_t *logs)
{
    return save_record (job, DWS_KEY_CONTAINER_LOG, logs);
}

flux_future_t *kvs_save_daemons (struct job *job, json_t *units)
{
    return save_record (job, DWS_KEY_DAEMONS, units);
}

int kvs_put_stage_out (struct job *job, json_t *record)
{
    flux_kvs_txn_t *txn = job_txn (job);

    return txn ? put_record (txn, job->facts->id, DWS_KEY_STAGE_OUT, record) : -1;
}

flux_future_t *kvs_lookup_job (flux_t *h, uint64_t id, const char *name)
{
    char key[128];

    if (flux_job_kvs_key (key, sizeof (key), id, name) < 0)
        return NULL;
    return flux_kvs_lookup (h, NULL, 0, key);
}

json_t *kvs_lookup_R_get (flux_future_t *f)
{
    json_t *R;

    if (flux_kvs_lookup_get_unpack (f, "o", &R) < 0)
        return NULL;
    return json_incref (R);
}
