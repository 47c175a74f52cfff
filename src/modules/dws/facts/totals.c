/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See totals.h. Each change of a job updates the sums at a cost that does not depend on
 * the number of jobs. Without limits no job is counted.
 */

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "libdws/util/jsontext.h"
#include "libutil/errno_safe.h"
#include "facts/accounts.h"
#include "facts/config.h"
#include "facts/persistent.h"
#include "facts/totals.h"

/* More bytes than any machine has, and few enough that sums do not overflow.
 */
#define BYTES_MAX (INT64_C (1) << 56)

/* A job's part of the totals. A job that totals_admit() has not checked yet is in the
 * lines of its user and its bank; a job that waits is only in the line of the account
 * it waits for.
 */
struct share {
    struct account *user;
    struct account *bank;       // or NULL
    char *queue;                // or NULL
    struct dws_sizes sizes;
    int64_t bytes;              // the bytes that count
    bool known;                 // its directives have been read
    bool complete;              // and the padding of NNF is known
    bool counted;
    bool admitted;
    bool again;                 // but for fewer bytes than it takes
    bool lined;                 // in one line, or in both
    bool found;                 // 'applying' is known
    struct dws_applying applying;
    struct account *awaited;    // the job waits for this one, or NULL
    enum dws_limit what;
};

struct totals {
    struct dws_ctx *ctx;
    struct accounts *accounts;
    size_t waiting;
    bool stale;                 // sums are out of date
};

static struct share *share_of (const struct job *job)
{
    return job_slot (job, SLOT_TOTALS);
}

/* Lines
 */

/* Reconcile the first job that waits for the account. A first job that is not checked
 * yet needs no wakeup: its check is still to come.
 */
static void wake_first (struct account *account)
{
    struct job *job = account_first (account);

    if (job && share_of (job)->awaited == account)
        jobs_changed (job);
}

static void wake_cb (struct account *account, void *arg)
{
    wake_first (account);
}

/* Leave the line. If the job was first, wake the next.
 */
static void leave_line (struct account *account, struct job *job)
{
    if (account && account_leave (account, job))
        wake_first (account);
}

static void await (struct job *job, struct share *share,
                   struct account *account)
{
    struct totals *totals = job->ctx->totals;

    if (share->awaited) {
        totals->waiting--;
        free (job->facts->awaits);
        job->facts->awaits = NULL;
    }
    if ((share->awaited = account))
        totals->waiting++;
}

static void leave_lines (struct job *job, struct share *share)
{
    if (!share->lined)
        return;
    share->lined = false;
    await (job, share, NULL);
    leave_line (share->user, job);
    leave_line (share->bank, job);
}

static void enter_lines (struct totals *totals, struct job *job)
{
    const struct dws_limits *limits = totals->ctx->config->storage_limits;
    struct share *share = share_of (job);

    if (share->lined)
        return;
    share->lined = true;
    if (dws_limits_have (limits, DWS_LIMIT_USER))
        account_enter (share->user, job);
    if (share->bank && dws_limits_have (limits, DWS_LIMIT_BANK))
        account_enter (share->bank, job);
}

/* The bytes of one job
 */

static void read_sizes (struct share *share, const struct job *job,
                        const struct dws_breakdowns *breakdowns)
{
    json_t *resources = dws_jsontext_get (job->facts->resources);

    dws_sizes_read (resources, job->facts->directives, breakdowns, NULL,
                    &share->sizes);
    share->complete = breakdowns != NULL;
    json_decref (resources);
}

/* Does the ledger have the job's bytes? It does from the layout on, also while teardown
 * frees them bit by bit.
 */
static bool is_laid_out (const struct job *job)
{
    return job->claim.bytes.count > 0
        || (job->wf && job->wf->desired > DWS_STATE_PROPOSAL);
}

static int64_t bytes_of (const struct job *job)
{
    const struct share *share = share_of (job);

    if (!share->known || is_laid_out (job))
        return dws_bytes_sum (&job->claim.bytes, BYTES_MAX);
    return share->sizes.job.taken < BYTES_MAX ? share->sizes.job.taken
                                              : BYTES_MAX;
}

/* The padding of NNF is known: a job that was admitted with less and has no storage yet
 * must be admitted again.
 */
static void complete_sizes (struct share *share, const struct job *job)
{
    int64_t before = share->sizes.job.taken;

    if (share->complete || !job->wf || !job->wf->breakdowns)
        return;
    read_sizes (share, job, job->wf->breakdowns);
    if (job->facts->phase == DWS_PHASE_DEPEND && !is_laid_out (job)
        && share->sizes.job.taken > before) {
        share->admitted = false;
        share->again = true;
    }
}

/* Returns false if the job has no user yet, or memory runs out.
 */
static bool learn (struct totals *totals, struct job *job)
{
    struct share *share = share_of (job);

    if (share->known) {
        complete_sizes (share, job);
        return true;
    }
    if (!job->facts->directives)
        return job->wf && job->wf->userid >= 0
            && (share->user = accounts_user (totals->accounts,
                                             job->wf->userid));
    share->user = accounts_user (totals->accounts, job->facts->userid);
    if (job->facts->bank)
        share->bank = accounts_bank (totals->accounts, job->facts->bank);
    if (!share->user || (job->facts->bank && !share->bank)
        || (job->facts->queue
            && !(share->queue = strdup (job->facts->queue))))
        return false;
    read_sizes (share, job, NULL);
    share->known = true;
    complete_sizes (share, job);
    return true;
}

/* Counting
 */

static void account_add (struct account *account, const struct share *share,
                         int sign)
{
    if (account) {
        account->bytes += sign * share->bytes;
        account->jobs += sign;
    }
}

static void count_job (struct share *share)
{
    if (!share->counted) {
        share->counted = true;
        account_add (share->user, share, 1);
        account_add (share->bank, share, 1);
    }
}

static void uncount_job (struct share *share)
{
    if (share->counted) {
        share->counted = false;
        account_add (share->user, share, -1);
        account_add (share->bank, share, -1);
    }
}

/* Returns true if it counts for less than before.
 */
static bool recount_job (struct job *job)
{
    struct share *share = share_of (job);
    int64_t change = bytes_of (job) - share->bytes;

    share->bytes += change;
    if (share->counted && change != 0) {
        share->user->bytes += change;
        if (share->bank)
            share->bank->bytes += change;
    }
    return share->counted && change < 0;
}

static bool is_being_made (const struct job *job)
{
    return (job->facts->busy & DWS_BUSY (DWS_ACT_CREATE)) != 0;
}

/* Was the job admitted, by this module or before a restart?
 */
static bool is_admitted (const struct job *job)
{
    const struct share *share = share_of (job);

    return share->admitted || is_being_made (job)
        || (job->wf && !share->again) || job->facts->phase > DWS_PHASE_DEPEND;
}

static bool has_storage (const struct job *job)
{
    if (!job->wf)
        return job->facts->phase < DWS_PHASE_RUNNING
            && (!job->facts->exception || is_being_made (job));
    return !job_torn_down (job);
}

/* By these facts dws_reconcile() asks for CREATE, or what comes after it.
 */
static bool may_wait (const struct job *job)
{
    return job->facts->directives && share_of (job)->bytes > 0
        && !job->facts->exception && !job->facts->abandoned
        && !job->facts->refusal && !is_admitted (job);
}

static bool is_active (const struct totals *totals)
{
    return dws_limits_any (totals->ctx->config->storage_limits);
}

static void forget_share (struct job *job, void *data)
{
    struct share *share = data;
    bool counted = share->counted;

    leave_lines (job, share);
    uncount_job (share);
    if (counted) {
        wake_first (share->user);
        wake_first (share->bank);
    }
    free (share->queue);
    free (share);
}

static bool differ (const char *a, const char *b)
{
    return strcmp (a ? a : "", b ? b : "") != 0;
}

/* Has the job got another queue or bank, and so other rules?
 */
static bool has_moved (const struct job *job)
{
    const struct share *share = share_of (job);

    return share && share->known
        && (differ (share->queue, job->facts->queue)
            || differ (share->bank ? share->bank->bank : NULL,
                       job->facts->bank));
}

void totals_see_job (struct totals *totals, struct job *job)
{
    struct share *share;
    bool counted;
    bool less;

    if (has_moved (job))
        job_slot_clear (job, SLOT_TOTALS);
    if (!is_active (totals)
        || !(share = job_slot_make (job, SLOT_TOTALS, sizeof (*share),
                                    forget_share))
        || !learn (totals, job))
        return;
    counted = share->counted;
    less = recount_job (job);
    if (is_admitted (job) && has_storage (job))
        count_job (share);
    else
        uncount_job (share);
    if (may_wait (job))
        enter_lines (totals, job);
    else
        leave_lines (job, share);
    if (less || (counted && !share->counted)) {
        wake_first (share->user);
        wake_first (share->bank);
    }
}

/* Sums of accounts
 */

static int64_t in_use (const struct account *account)
{
    return account->bytes + account->persistent_bytes;
}

static void begin_account (struct account *account, void *arg)
{
    account->before = in_use (account);
    account->persistent_bytes = 0;
    account->persistent = 0;
}

static void add_persistent (json_int_t userid, int64_t bytes, void *arg)
{
    struct totals *totals = arg;
    struct account *account;

    if (userid < 0 || userid > UINT32_MAX
        || !(account = accounts_user (totals->accounts, userid)))
        return;
    account->persistent_bytes += bytes < BYTES_MAX ? bytes : BYTES_MAX;
    account->persistent++;
}

static void recount_cb (struct job *job, void *arg)
{
    if (share_of (job) && share_of (job)->user)
        (void)recount_job (job);
}

static void wake_lighter (struct account *account, void *arg)
{
    if (in_use (account) < account->before)
        wake_first (account);
}

/* Recompute stale sums, only when a client asks or a job may be admitted.
 */
static void update (struct totals *totals)
{
    if (totals->stale) {
        totals->stale = false;
        accounts_each (totals->accounts, begin_account, NULL);
        jobs_each (totals->ctx->jobs, recount_cb, NULL);
        persistent_each (totals->ctx->persistent, totals->ctx->space,
                         add_persistent, totals);
        accounts_each (totals->accounts, wake_lighter, NULL);
    }
}

void totals_see_space (struct totals *totals)
{
    if (is_active (totals)) {
        totals->stale = true;
        if (totals->waiting > 0)
            update (totals);
    }
}

/* Letting in
 */

const struct dws_applying *totals_rules (const struct job *job)
{
    const struct share *share = share_of (job);

    return share && share->found ? &share->applying : NULL;
}

const struct dws_sizes *totals_sizes (const struct job *job)
{
    const struct share *share = share_of (job);

    return share && share->known ? &share->sizes : NULL;
}

void totals_set_rules (struct job *job, const struct dws_applying *applying)
{
    struct share *share = share_of (job);

    if (share) {
        share->applying = *applying;
        share->found = true;
    }
}

static struct account *account_of (const struct share *share,
                                   enum dws_limit what)
{
    return what == DWS_LIMIT_BANK ? share->bank : share->user;
}

static bool has_room (const struct totals *totals, struct job *job,
                      enum dws_limit what)
{
    const struct share *share = share_of (job);
    const struct account *account = account_of (share, what);
    int64_t limit = dws_limits_bytes (&share->applying, what);
    struct job *first = account_first (account);

    if (limit < 0 || !account)
        return true;
    return space_known (totals->ctx->space)
        && (!first || first->facts->id >= job->facts->id)
        && share->bytes <= limit && in_use (account) <= limit - share->bytes;
}

bool totals_update_text (struct totals *totals, struct job *job)
{
    const struct share *share = share_of (job);
    char text[DWS_LIMITS_TEXT_SIZE] = "what is in use of rabbit storage to be"
                                      " known";
    const struct account *account;
    char *cpy;

    if (!share || !(account = share->awaited))
        return false;
    if (space_known (totals->ctx->space)) {
        struct dws_size size = share->sizes.job;
        struct dws_in_use use;

        update (totals);
        use = (struct dws_in_use){
            .bytes = in_use (account),
            .jobs = account->jobs,
            .persistent = account->persistent,
        };
        dws_limits_text (&share->applying, share->what, account->bank, &use,
                         &size, text);
    }
    if ((cpy = strdup (text))) {
        free (job->facts->awaits);
        job->facts->awaits = cpy;
    }
    return true;
}

/* Stay only in the line of the account without room, so that jobs in the other
 * line need not wait behind this one.
 */
static void wait_for (struct totals *totals, struct job *job,
                      enum dws_limit what)
{
    struct share *share = share_of (job);
    struct account *account = account_of (share, what);
    struct account *other = what == DWS_LIMIT_BANK ? share->user : share->bank;

    share->lined = true;
    share->what = what;
    account_enter (account, job);
    await (job, share, account);
    (void)totals_update_text (totals, job);
    leave_line (other, job);
}

bool totals_admit (struct totals *totals, struct job *job)
{
    struct share *share = share_of (job);

    if (!share || !may_wait (job))
        return true;
    update (totals);
    for (int what = DWS_LIMIT_USER; what <= DWS_LIMIT_BANK; what++) {
        if (!has_room (totals, job, what)) {
            wait_for (totals, job, what);
            return false;
        }
    }
    share->admitted = true;
    share->again = false;
    count_job (share);
    leave_lines (job, share);
    return true;
}

/* A claim that is new says so only when it has been written.
 */
void totals_each (struct totals *totals, account_f visit, void *arg)
{
    totals->stale = true;
    update (totals);
    accounts_each (totals->accounts, visit, arg);
}

/* Everything
 */

static void forget_cb (struct job *job, void *arg)
{
    job_slot_clear (job, SLOT_TOTALS);
}

static void see_cb (struct job *job, void *arg)
{
    totals_see_job (arg, job);
}

/* Forget admissions, too: a job admitted by the old rules that has no workflow
 * yet is checked by the new ones.
 */
void totals_recount (struct totals *totals)
{
    jobs_each (totals->ctx->jobs, forget_cb, NULL);
    totals->stale = true;
    if (is_active (totals))
        jobs_each (totals->ctx->jobs, see_cb, totals);
}

void totals_space_known (struct totals *totals)
{
    if (!is_active (totals))
        return;
    totals->stale = true;
    jobs_each (totals->ctx->jobs, see_cb, totals);
    accounts_each (totals->accounts, wake_cb, NULL);
}

static void empty_line (struct account *account, void *arg)
{
    account->waiting = 0;
}

/* Empty the lines first, so that leaving jobs wake no others.
 */
void totals_destroy (struct totals *totals)
{
    if (totals) {
        ERRNO_SAFE_BLOCK;
        if (totals->accounts)
            accounts_each (totals->accounts, empty_line, NULL);
        jobs_each (totals->ctx->jobs, forget_cb, NULL);
        accounts_destroy (totals->accounts);
        free (totals);
    }
}

struct totals *totals_create (struct dws_ctx *ctx)
{
    struct totals *totals;

    if (!(totals = calloc (1, sizeof (*totals))))
        return NULL;
    totals->ctx = ctx;
    totals->stale = true;
    if (!(totals->accounts = accounts_create ())) {
        totals_destroy (totals);
        errno = ENOMEM;
        return NULL;
    }
    return totals;
}
