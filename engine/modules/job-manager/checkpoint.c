/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Queue state and the highest job ID outlive the module in a checkpoint.
 */
#include "manager.h"

#define CHECKPOINT "checkpoint.job-manager"

int checkpoint_load (struct manager *jm, json_t **queues)
{
    flux_future_t *f;
    flux_jobid_t id;
    json_t *queue = NULL;
    int rc = -1;

    *queues = NULL;
    if (!(f = flux_kvs_lookup (jm->h, NULL, 0, CHECKPOINT)))
        return -1;
    if (flux_kvs_lookup_get_unpack (f, "{s:I s?o}",
                                    "max_jobid", &id,
                                    "queue", &queue) == 0) {
        if (jm->max_jobid < id)
            jm->max_jobid = id;
        *queues = json_incref (queue);
        rc = 0;
    }
    else if (errno == ENOENT)
        rc = 0;
    else
        flux_log_error (jm->h, "error reading %s", CHECKPOINT);
    flux_future_destroy (f);
    return rc;
}

int checkpoint_save (struct manager *jm)
{
    flux_kvs_txn_t *txn;
    flux_future_t *f = NULL;
    int rc = -1;

    if ((txn = flux_kvs_txn_create ())
        && flux_kvs_txn_pack (txn, 0, CHECKPOINT, "{s:i s:I s:o}",
                              "version", 1,
                              "max_jobid", jm->max_jobid,
                              "queue", queues_save (jm->queues)) == 0
        && (f = flux_kvs_commit (jm->h, NULL, 0, txn)))
        rc = flux_future_get (f, NULL);
    flux_future_destroy (f);
    flux_kvs_txn_destroy (txn);
    return rc;
}
