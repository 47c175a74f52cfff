/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Unit tests of waiting.c.
 */

#include "libdws/directive/command.h"
#include "libdws/tell/waiting.h"
#include "libdws/test/util.h"

#define JOBDW "#DW jobdw type=xfs capacity=1GiB name=aa"
#define COPY "#DW copy_in source=/lus/a destination=$DW_JOB_aa"
#define CONTAINER "#DW container name=cc profile=foo"

struct test_case {
    enum dws_phase phase;
    enum dws_state state;
    const char *directive;
    struct dws_progress progress;
    enum dws_link link;
    bool data_first;            // it gets its data before it has nodes
    const char *message;        // of a TransientCondition
    char *awaits;
    const char *text;
    const char *kind;
};

static const struct test_case cases[] = {
    { DWS_PHASE_DEPEND, DWS_STATE_NONE, JOBDW,
      .text = "rabbit: checking the directives" },
    { DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, JOBDW, .link = DWS_LINK_NO_AGENT,
      .text = "rabbit: waiting for the rabbit agent flux-coral2-dws" },
    { DWS_PHASE_DEPEND, DWS_STATE_PROPOSAL, JOBDW, .link = DWS_LINK_NO_SERVER,
      .text = "rabbit: waiting for the Kubernetes API server" },
    { DWS_PHASE_PENDING, DWS_STATE_PROPOSAL, JOBDW, .text = "" },
    { DWS_PHASE_PENDING, DWS_STATE_PROPOSAL, JOBDW,
      .link = DWS_LINK_NO_SERVER, .text = "" },
    { DWS_PHASE_PENDING, DWS_STATE_SETUP, COPY, .data_first = true, .text = "" },
    { DWS_PHASE_PENDING, DWS_STATE_DATAIN, COPY, .text = "" },
    { DWS_PHASE_PENDING, DWS_STATE_DATAIN, COPY, .data_first = true,
      .text = "rabbit: waiting for nodes next to its data", .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, JOBDW,
      .text = "rabbit: assigning storage" },
    { DWS_PHASE_PROLOG, DWS_STATE_PROPOSAL, JOBDW,
      .awaits = "exclusive 'k' on rabbit0, which job f1 has",
      .text = "rabbit: waiting for exclusive 'k' on rabbit0, which job f1 has" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, JOBDW,
      .text = "rabbit: creating file systems", .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, JOBDW, .message = "no luck",
      .text = "rabbit: creating file systems: no luck", .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, JOBDW,
      { DWS_STATE_SETUP, .behind = "rabbit[2-3]" },
      .text = "rabbit: creating file systems, not ready: rabbit[2-3]",
      .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, JOBDW,
      { DWS_STATE_PROPOSAL, .behind = "rabbit[2-3]" },
      .text = "rabbit: creating file systems", .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP,
      "#DW create_persistent type=lustre capacity=1TiB name=pp",
      .text = "rabbit: creating a persistent file system",
      .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_SETUP, "#DW persistentdw name=pp",
      .text = "rabbit: preparing storage", .kind = "servers" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, JOBDW,
      .text = "rabbit: staging in" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 1, .percent = 43.7 },
      .text = "rabbit: staging in 43%", .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 12, .movements_done = 3,
        .percent = 43, .rate = 1.234e9, .files = 1500 },
      .text = "rabbit: staging in 43%, 1.23 GB/s, 1500 files, 3/12 copies",
      .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 1, .percent = 43, .rate = 1.2e9,
        .left = 20, .files = 5 },
      .text = "rabbit: staging in 43%, 1.2 GB/s, 20s left",
      .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 1, .percent = 43, .rate = 1.2e9,
        .left = 90, .files = 5 },
      .text = "rabbit: staging in 43%, 1.2 GB/s, 2m left",
      .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 1, .percent = 43, .rate = 1.2e9,
        .left = 5400, .files = 5 },
      .text = "rabbit: staging in 43%, 1.2 GB/s, 1.5h left",
      .kind = "nnfdatamovements" },
    { DWS_PHASE_PROLOG, DWS_STATE_DATAIN, COPY,
      { DWS_STATE_DATAIN, .movements = 1, .rate = 999.9, .files = 1,
        .failure = "Failed" },
      .text = "rabbit: staging in 0%, 1 kB/s, 1 file, one failed",
      .kind = "nnfdatamovements" },
    /* what was read in another state says nothing about this one */
    { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, JOBDW,
      { DWS_STATE_DATAIN, .movements = 1, .percent = 43 },
      .text = "rabbit: mounting", .kind = "clientmounts" },
    { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, JOBDW,
      { DWS_STATE_PRERUN, .hosts = 16, .hosts_done = 12 },
      .text = "rabbit: mounting 12/16 nodes", .kind = "clientmounts" },
    { DWS_PHASE_PROLOG, DWS_STATE_PRERUN, CONTAINER,
      .text = "rabbit: starting containers", .kind = "clientmounts" },
    { DWS_PHASE_RUNNING, DWS_STATE_PRERUN, JOBDW, .text = "" },
    { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, JOBDW,
      { DWS_STATE_POSTRUN, .hosts = 2, .hosts_done = 1 },
      .text = "rabbit: unmounting 1/2 nodes", .kind = "clientmounts" },
    { DWS_PHASE_EPILOG, DWS_STATE_POSTRUN, CONTAINER,
      .text = "rabbit: stopping containers", .kind = "clientmounts" },
    { DWS_PHASE_EPILOG, DWS_STATE_DATAOUT, JOBDW,
      .text = "rabbit: staging out" },
    { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, JOBDW,
      .text = "rabbit: removing file systems" },
    { DWS_PHASE_EPILOG, DWS_STATE_TEARDOWN, "#DW destroy_persistent name=pp",
      .text = "rabbit: destroying a persistent file system" },
    { DWS_PHASE_GONE, DWS_STATE_TEARDOWN, JOBDW, .text = "" },
};

static void test_table (void **state)
{
    for (size_t i = 0; i < sizeof (cases) / sizeof (cases[0]); i++) {
        const struct test_case *c = &cases[i];
        struct dws_workflow wf = {
            .state = c->state,
            .desired = c->state,
            .data_first = c->data_first,
            .status = c->message ? DWS_STATUS_TRANSIENT : DWS_STATUS_NONE,
            .message = c->message ? (char *)c->message : "",
            .t_trouble = c->message ? 5. : 0.,
        };
        struct dws_job job = {
            .phase = c->phase,
            .awaits = c->awaits,
            .data_first = c->data_first ? DWS_FIRST_YES : DWS_FIRST_NO,
        };
        json_t *texts = json_pack ("[s]", c->directive);
        struct dws_directives *directives = dws_directives_read (texts);
        char buf[DWS_WAITING_SIZE];
        const char *kind;

        job.commands = dws_commands (directives);
        dws_directives_destroy (directives);
        json_decref (texts);
        kind = dws_waiting_kind (&job, &wf);
        assert_string_equal (dws_waiting_text (&job, &wf, &c->progress,
                                               c->link, NULL, 10., buf),
                             c->text);
        assert_string_equal (kind ? kind : "", c->kind ? c->kind : "");
    }
}

/* An error that may pass is told of when it has lasted.
 */
static void test_passing (void **state)
{
    struct dws_job job = { .phase = DWS_PHASE_PROLOG };
    struct dws_workflow wf = {
        .state = DWS_STATE_SETUP,
        .desired = DWS_STATE_SETUP,
        .status = DWS_STATUS_DRIVERWAIT,
        .message = "Internal error: could not allocate storage",
        .t_trouble = 100.,
    };
    char buf[DWS_WAITING_SIZE];

    dws_waiting_text (&job, &wf, NULL, 0, NULL, 104.9, buf);
    assert_string_equal (buf, "rabbit: preparing storage");
    dws_waiting_text (&job, &wf, NULL, 0, NULL, 105., buf);
    assert_string_equal (buf, "rabbit: preparing storage: Internal error: could"
                              " not allocate storage");
    /* what is waited for is none */
    wf.t_trouble = 0.;
    wf.message = "allocation set not ready";
    dws_waiting_text (&job, &wf, NULL, 0, NULL, 1e9, buf);
    assert_string_equal (buf, "rabbit: preparing storage");
}

static void test_edges (void **state)
{
    struct dws_job job = { .phase = DWS_PHASE_EPILOG };
    struct dws_workflow wf = {
        .state = DWS_STATE_SETUP,
        .desired = DWS_STATE_SETUP,
        .status = DWS_STATUS_TRANSIENT,
        .t_trouble = 1.,
    };
    char message[400];
    char buf[DWS_WAITING_SIZE];
    json_t *s;

    assert_string_equal (dws_waiting_text (&job, NULL, NULL, 0, NULL, 1., buf),
                         "rabbit: cleaning up");
    assert_null (dws_waiting_kind (&job, NULL));
    job.phase = DWS_PHASE_DEPEND;
    assert_string_equal (dws_waiting_text (&job, NULL, NULL, 0, NULL, 1., buf),
                         "rabbit: creating a workflow");
    assert_string_equal (dws_waiting_text (&job, NULL, NULL, DWS_LINK_UP,
                                           "etcd: timed out", 1., buf),
                         "rabbit: creating a workflow, Kubernetes has"
                         " trouble: etcd: timed out");
    assert_string_equal (dws_waiting_text (&job, NULL, NULL,
                                           DWS_LINK_NO_SERVER, "x", 1., buf),
                         "rabbit: waiting for the Kubernetes API server");
    job.abandoned = true;
    job.phase = DWS_PHASE_EPILOG;
    assert_string_equal (dws_waiting_text (&job, &wf, NULL, 0, NULL, 1., buf),
                         "");
    /* a long message is cut where a character ends */
    job.phase = DWS_PHASE_PROLOG;
    for (size_t shift = 0; shift < 2; shift++) {
        wf.message = message;
        message[0] = 'x';
        for (size_t i = shift; i + 3 <= sizeof (message); i += 2)
            memcpy (message + i, "\xc3\xa9", 3);
        assert_non_null ((s = json_string (dws_waiting_text (&job, &wf, NULL,
                                                             0, NULL, 10.,
                                                             buf))));
        json_decref (s);
    }
}

int main (void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test (test_table),
        cmocka_unit_test (test_passing),
        cmocka_unit_test (test_edges),
    };

    return cmocka_run_group_tests_name ("waiting", tests, NULL, NULL);
}
