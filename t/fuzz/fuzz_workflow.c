/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Fuzz target: a job, its R and its Workflow object, what ClientMounts and
 * Servers say about it, and the decision. The input is one JSON object
 * {"job", "R", "workflow", "mounts", "servers", "hosts"}, or {"reports"}.
 */

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <jansson.h>

#include "libdws/util/hosts.h"
#include "libdws/facts/report.h"
#include "libdws/facts/servers.h"
#include "libdws/decide/reconcile.h"
#include "libdws/facts/mounts.h"

static struct dws_topology *topo;

int LLVMFuzzerInitialize (int *argc, char ***argv)
{
    json_t *mapping = json_loads (
        "{\"computes\": {\"a1\": \"r1\", \"b1\": \"r2\"},"
        " \"rabbits\": {\"r1\": {\"capacity\": 9, \"hostlist\": \"a1\"},"
        "              \"r2\": {\"capacity\": 9, \"hostlist\": \"b1\"}}}",
        0, NULL);

    topo = dws_topology_create (mapping, NULL);
    json_decref (mapping);
    return topo ? 0 : -1;
}

static void take (char *result, const dws_error_t *error)
{
    if (!result && !*error->text)
        abort ();
    free (result);
}

static void read_mounts (json_t *in)
{
    json_t *mounts = json_object_get (in, "mounts");
    json_t *servers = json_object_get (in, "servers");
    const char *hosts = json_string_value (json_object_get (in, "hosts"));
    dws_error_t error = { "" };
    bool shared;

    take (dws_mounts_lagging (mounts, "mounted", &error), &error);
    take (dws_servers_allocated (servers, &error), &error);
    if (hosts) {
        take (dws_servers_lagging (servers, hosts, topo, &shared, &error),
              &error);
        take (dws_hosts_join (hosts, "a1", &error), &error);
        take (dws_hosts_subtract (hosts, "a1", &error), &error);
        dws_hosts_count (hosts);
    }
}

/* The same facts twice give the same actions.
 */
static void decide (const struct dws_job *job, const struct dws_workflow *wf)
{
    static const struct dws_policy policy = DWS_POLICY_DEFAULT;
    struct dws_actions first;
    struct dws_actions second;

    if (dws_reconcile (job, wf, &policy, 1E9, &first) < 0
        || dws_reconcile (job, wf, &policy, 1E9, &second) < 0
        || first.count != second.count
        || !first.reason)
        abort ();
    for (size_t i = 0; i < first.count; i++) {
        if (first.list[i].kind != second.list[i].kind)
            abort ();
    }
}

/* Read the input as reports of an agent.
 */
static void read_reports (json_t *in)
{
    json_t *o;
    size_t index;

    json_array_foreach (json_object_get (in, "reports"), index, o) {
        struct dws_report report;

        if (dws_report_read (&report, o, "x") < 0
            || report.malformed != (*report.fault.text != '\0'))
            abort ();
        dws_report_clear (&report);
    }
}

int LLVMFuzzerTestOneInput (const uint8_t *data, size_t size)
{
    json_t *in;
    json_t *R;
    struct dws_job *job;
    struct dws_workflow *wf;
    const char *hosts;
    dws_error_t error = { "" };

    if (!(in = json_loadb ((const char *)data, size, 0, NULL)))
        return 0;
    read_reports (in);
    read_mounts (in);
    job = dws_job_decode (json_object_get (in, "job"), &error);
    wf = dws_workflow_decode (json_object_get (in, "workflow"), "x", &error);
    if ((!job || !wf) && !*error.text)
        abort ();
    if (wf) {
        dws_workflow_inherit (wf, NULL, 1E9);
        hosts = json_string_value (json_object_get (in, "hosts"));
        if (hosts)
            (void)dws_workflow_set_lagging (wf, hosts, false, &error);
    }
    if (job) {
        if ((R = json_object_get (in, "R")))
            (void)dws_job_set_R (job, R, &error);
        decide (job, NULL);
        if (wf)
            decide (job, wf);
    }
    dws_workflow_destroy (wf);
    dws_job_destroy (job);
    json_decref (in);
    return 0;
}
