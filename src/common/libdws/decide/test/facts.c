/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See facts.h.
 */

#include "facts.h"

const struct dws_policy policy = {
    .tc_timeout = 10.,
    .prolog_timeout = 300.,
    .setup_timeout = 20.,
    .prerun_timeout = 30.,
    .postrun_timeout = 40.,
    .teardown_after = 50.,
    .orphan_grace = 60.,
};

struct facts facts (enum dws_phase phase, enum dws_state state, bool ready)
{
    static struct dws_directives *none;
    struct facts f;

    if (!none)
        none = D ("[]");
    memset (&f, 0, sizeof (f));
    f.job.id = 1;
    f.job.phase = phase;
    f.job.directives = none;
    f.job.absent = true;
    f.job.hosts = "node0";
    f.job.run_started = phase >= DWS_PHASE_RUNNING;
    f.job.t_gone = phase == DWS_PHASE_GONE ? 1. : 0.;
    f.wf.name = "fluxjob-1";
    f.wf.desired = state;
    f.wf.state = state;
    f.wf.ready = ready;
    f.wf.status = ready ? DWS_STATUS_COMPLETED : DWS_STATUS_DRIVERWAIT;
    f.wf.message = "the driver's words";
    f.wf.computes = "fluxjob-1";
    f.wf.finalizer = true;
    f.wf.t_desired = 1000.;
    f.policy = &policy;
    return f;
}

const char *decide (struct facts *f, double now)
{
    static char buf[256];

    assert_int_equal (dws_reconcile (&f->job, f->wf.name ? &f->wf : NULL,
                                     f->policy, now, &f->out), 0);
    buf[0] = '\0';
    for (size_t i = 0; i < f->out.count; i++) {
        if (i > 0)
            strcat (buf, " ");
        strcat (buf, dws_action_name (f->out.list[i].kind));
    }
    return buf;
}

void check_raise (const struct facts *f, const char *type, const char *text)
{
    const struct dws_action *a = &f->out.list[0];

    assert_true (f->out.count >= 1);
    assert_int_equal (a->severity, 0);
    assert_string_equal (a->type, type);
    assert_non_null (strstr (a->text, text));
}
