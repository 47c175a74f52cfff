/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See late.h. The future for the writers owns struct late. The pending request holds a
 * reference to that future, so both are freed with it when the module is unloaded.
 */

#include <errno.h>
#include <stdlib.h>

#include "libutil/errno_safe.h"
#include "act/late.h"
#include "base/calls.h"
#include "tell/losses.h"

struct late {
    struct dws_ctx *ctx;
    uint64_t id;                // of the job
    uint32_t userid;            // of its owner
    flux_kvs_txn_t *txn;
    flux_future_t *done;        // borrowed, NULL: not begun
    bool moved;
};

static void late_destroy (struct late *late)
{
    if (late) {
        ERRNO_SAFE_BLOCK;
        flux_kvs_txn_destroy (late->txn);
        free (late);
    }
}

static void late_drop (struct job *job, void *data)
{
    late_destroy (data);
}

bool late_is (const struct job *job)
{
    return job->facts->phase == DWS_PHASE_GONE || job->facts->abandoned;
}

flux_kvs_txn_t *late_txn (struct job *job)
{
    struct late *late = job_slot (job, SLOT_LATE);

    if (late)
        return late->txn;
    if (!(late = calloc (1, sizeof (*late))))
        return NULL;
    late->ctx = job->ctx;
    late->id = job->facts->id;
    late->userid = job->facts->userid;
    if (!(late->txn = flux_kvs_txn_create ())) {
        late_destroy (late);
        return NULL;
    }
    job_slot_put (job, SLOT_LATE, late, late_drop);
    return late->txn;
}

void late_moved (struct job *job)
{
    struct late *late = job_slot (job, SLOT_LATE);

    if (late)
        late->moved = true;
}

bool late_pending (const struct job *job)
{
    return job_slot (job, SLOT_LATE) != NULL;
}

static void release_done (void *arg)
{
    flux_future_decref (arg);
}

/* Wait for 'f', which may be NULL with errno set.
 */
static int await_step (struct late *late, flux_future_t *f, call_f cb)
{
    if (!f)
        return -1;
    flux_future_incref (late->done);
    if (flux_future_aux_set (f, "dws::late", late->done, release_done) < 0) {
        ERRNO_SAFE_BLOCK;
        flux_future_decref (late->done);
        flux_future_destroy (f);
        return -1;
    }
    return calls_add_with (late->ctx, f, -1., late->id, late, cb);
}

static void next_step (struct late *late, flux_future_t *f, call_f cb)
{
    if (await_step (late, f, cb) < 0)
        flux_future_fulfill_error (late->done, errno, NULL);
}

static flux_future_t *look_for_job (struct late *late)
{
    char key[128];

    if (flux_job_kvs_key (key, sizeof (key), late->id, "eventlog") < 0)
        return NULL;
    return flux_kvs_lookup (late->ctx->h, NULL, FLUX_KVS_TREEOBJ, key);
}

/* True if the job is in the KVS. Otherwise it was purged, or the lookup failed and so
 * does the future.
 */
static bool is_there (struct late *late, flux_future_t *f)
{
    if (flux_future_get (f, NULL) == 0)
        return true;
    if (errno != ENOENT)
        flux_future_fulfill_error (late->done, errno, NULL);
    else if (late->moved)
        ERRNO_SAFE (losses_moved (late->ctx, late->id, late->userid));
    return false;
}

static void removed_cb (const struct call *call, flux_future_t *f)
{
    struct late *late = (struct late *)call->arg;

    if (flux_future_get (f, NULL) < 0)
        flux_future_fulfill_error (late->done, errno, NULL);
    else
        flux_future_fulfill (late->done, NULL, NULL);
}

/* Remove the directory that the late records have created again.
 */
static void remove_directory (struct late *late)
{
    flux_kvs_txn_t *txn = NULL;
    flux_future_t *f = NULL;
    char key[64];

    if (flux_job_kvs_key (key, sizeof (key), late->id, NULL) >= 0
        && (txn = flux_kvs_txn_create ())
        && flux_kvs_txn_unlink (txn, 0, key) == 0)
        f = flux_kvs_commit (late->ctx->h, NULL, 0, txn);
    ERRNO_SAFE (flux_kvs_txn_destroy (txn));
    next_step (late, f, removed_cb);
}

static void checked_cb (const struct call *call, flux_future_t *f)
{
    struct late *late = (struct late *)call->arg;

    if (is_there (late, f))
        flux_future_fulfill (late->done, NULL, NULL);
    else if (errno == ENOENT)
        remove_directory (late);
}

static void written_cb (const struct call *call, flux_future_t *f)
{
    struct late *late = (struct late *)call->arg;

    if (flux_future_get (f, NULL) < 0)
        flux_future_fulfill_error (late->done, errno, NULL);
    else
        next_step (late, look_for_job (late), checked_cb);
}

static void found_cb (const struct call *call, flux_future_t *f)
{
    struct late *late = (struct late *)call->arg;

    if (is_there (late, f))
        next_step (late, flux_kvs_commit (late->ctx->h, NULL, 0, late->txn),
                   written_cb);
    else if (errno == ENOENT)
        flux_future_fulfill (late->done, NULL, NULL);
}

flux_future_t *late_commit (struct job *job)
{
    struct late *late = job_slot (job, SLOT_LATE);
    flux_future_t *done;

    if (!late) {
        errno = EINVAL;
        return NULL;
    }
    if (!(done = flux_future_create (NULL, NULL)))
        return NULL;
    flux_future_set_flux (done, late->ctx->h);
    if (flux_future_aux_set (done, "dws::late", late,
                             (flux_free_f)late_destroy) < 0) {
        ERRNO_SAFE (flux_future_destroy (done));
        return NULL;
    }
    (void)job_slot_take (job, SLOT_LATE);
    late->done = done;
    if (await_step (late, look_for_job (late), found_cb) < 0) {
        ERRNO_SAFE (flux_future_destroy (done));
        return NULL;
    }
    return done;
}
