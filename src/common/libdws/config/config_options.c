/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * See config_options_private.h. The KEYS of flux-config-rabbit(5) are made from this
 * table (scripts/lib/configkeys.py).
 */

#include <limits.h>
#include <math.h>
#include <string.h>

#include "libdws/util/bounds.h"
#include "config.h"
#include "config_options_private.h"

#define ANY -INFINITY, INFINITY
#define AT_LEAST(n) (n), INFINITY
#define OFFSET(member) offsetof (struct dws_config, member)

static const char *const release_choices[] = {
    [DWS_RELEASE_TEARDOWN] = "teardown",
    [DWS_RELEASE_UNMOUNT] = "unmount",
    NULL,
};

static const char *const placement_choices[] = {
    [DWS_PLACEMENT_NEAR] = "near",
    [DWS_PLACEMENT_ANYWHERE] = "anywhere",
    NULL,
};

static const char *const data_first_choices[] = {
    [DWS_DATA_FIRST_NEVER] = "never",
    [DWS_DATA_FIRST_ASKED] = "asked",
    [DWS_DATA_FIRST_ALWAYS] = "always",
    NULL,
};

const struct option config_options[] = {
    { "mapping", TYPE_TEXT, NULL, ANY, OFFSET (mapping),
      .help = "The file that flux-rabbitmapping(1) has written: which rabbit "
        "serves which nodes. Required. The module dws and the scheduler "
        "flux-sched-rabbit(1) read the file when they are loaded, and on flux "
        "config reload." },
    { "kubeconfig", TYPE_TEXT, NULL, ANY, OFFSET (kubeconfig), .agent = true,
      .help = "The kubeconfig of the agent: an absolute path, or one that "
        "begins with ~/. If unset: $KUBECONFIG of the agent, then "
        "~/.kube/config of the user that runs it. Several files in "
        "$KUBECONFIG, separated by colons, are merged as kubectl does it: "
        "missing files are skipped, and the first file that sets a value wins. "
        "The agent reads the file again when it cannot reach Kubernetes or its "
        "token is refused. If the file is unusable then, the agent keeps the "
        "settings that it has." },
    { "metrics", TYPE_TEXT, NULL, ANY, OFFSET (metrics),
      dws_config_check_metrics,
      .agent = true,
      .help = "The address at which the agent serves metrics to Prometheus: a "
        "port of the loopback, such as \"127.0.0.1:9464\", or \"unix:\" and "
        "the path of a socket, which only the instance owner can connect to. "
        "Any user of the node can read a port; no metric names a job or a "
        "user. If unset, the agent serves no metrics." },
    { "tc_timeout", TYPE_SECONDS, "10", AT_LEAST (0),
      OFFSET (policy.tc_timeout),
      .limit = true,
      .help = "How long a workflow may be in TransientCondition. Also how "
        "long a job waits for a rabbit that is down when its storage is to be "
        "created there, and for a rabbit on which persistent storage holds a "
        "resource that only one can have, such as the management target of "
        "Lustre. A job waits without this limit for other jobs that hold such "
        "a resource." },
    { "setup_timeout", TYPE_SECONDS, "-1", ANY, OFFSET (policy.setup_timeout),
      .limit = true,
      .help = "How long creating the file systems may take. Then the job ends "
        "with an exception." },
    { "prerun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.prerun_timeout),
      .limit = true,
      .help = "How long mounting the file systems may take. Then the job ends "
        "with an exception, or goes on without the nodes that caused the "
        "delay." },
    { "postrun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.postrun_timeout),
      .limit = true,
      .help = "How long unmounting the file systems may take. Then no more "
        "data of the job is moved, and nodes that still have a mount are "
        "drained." },
    { "teardown_after", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.teardown_after),
      .limit = true,
      .help = "How long unmounting and moving data may take together, from "
        "the job's end. Then the workflow is torn down. Must not be smaller "
        "than postrun_timeout, and should be smaller than the epilog-timeout "
        "of flux-jobtap-dws(1)." },
    { "stage_out_retry", TYPE_SECONDS, "0", AT_LEAST (0),
      OFFSET (policy.stage_out_retry),
      .help = "How long the storage of a job is kept after its data could not "
        "be staged out, from the first failure on, so that the job's owner can "
        "repeat the stage-out with flux rabbit retry. The job's nodes are "
        "released meanwhile. The agent must be allowed to delete "
        "nnfdatamovements. 0: the storage is torn down at once." },
    { "release_nodes", TYPE_CHOICE, "\"teardown\"", ANY,
      OFFSET (policy.release_nodes), .choices = release_choices,
      .expected = "\"teardown\" or \"unmount\"",
      .help = "When the nodes of a job that has run are released: teardown, "
        "when its storage is torn down, or unmount, as soon as it is "
        "unmounted. With unmount data is staged out after the job's end, and "
        "flux rabbit losses lists failures." },
    { "prolog_timeout", TYPE_SECONDS, "1800", AT_LEAST (0),
      OFFSET (policy.prolog_timeout),
      .limit = true,
      .help = "How long the prolog of a rabbit job may take until its file "
        "systems are mounted. Then the job ends with an exception. While data "
        "is staged in, the limit is extended as long as the copy advances at "
        "least once in a tenth of this time; mounting may then take the whole "
        "time again." },
    { "drain_compute_nodes", TYPE_BOOL, "true", ANY,
      OFFSET (drain_compute_nodes),
      .help = "Drain compute nodes that have lost the PCIe link to their "
        "rabbit, and undrain them when the link is back. A node that an admin "
        "has drained stays drained, and a node that an admin has undrained is "
        "not drained again for the same loss." },
    { "drain_queues", TYPE_TEXTS, NULL, ANY, OFFSET (drain_queues),
      .help = "Drain only nodes of these queues; a virtual queue has the "
        "nodes of its parent. If unset: all nodes that have a rabbit." },
    { "soft_drain", TYPE_BOOL, "true", ANY, OFFSET (soft_drain),
      .help = "Give nodes that have lost the link the property badrabbit, "
        "which keeps off rabbit jobs and no others." },
    { "save_datamovements", TYPE_INTEGER, "0", 0, INT_MAX,
      OFFSET (policy.save_datamovements),
      .help = "The number of data movements that are recorded for each job, "
        "failed ones first." },
    { "allow_rabbit_resources", TYPE_BOOL, "false", ANY,
      OFFSET (rabbit_resources),
      .plugin = true,
      .help = "Let jobs without directives ask for ssd, rabbit or "
        "storage_node in their resources. No limit of policy applies to that "
        "storage." },
    { "lustre_placement", TYPE_CHOICE, "\"near\"", ANY,
      OFFSET (lustre_placement), .choices = placement_choices,
      .expected = "\"near\" or \"anywhere\"",
      .help = "The rabbits for Lustre file systems of jobs, and for all "
        "storage that need not be next to nodes: near, the rabbits of the "
        "job's nodes, where the scheduler has reserved it, or anywhere, any "
        "rabbits. With anywhere the scheduler looks for nodes only, and a job "
        "of one node can use more space than one rabbit has; a job that has "
        "its nodes waits for room for space_timeout." },
    { "data_first", TYPE_CHOICE, "\"asked\"", ANY, OFFSET (data_first),
      .choices = data_first_choices,
      .expected = "\"never\", \"asked\" or \"always\"",
      .help = "The jobs that get their storage and their data before nodes "
        "next to these are allocated: never, none; asked, jobs that ask for "
        "it (--dw-data-first); always, also all jobs with copy_in that do not "
        "opt out (-S dw_data_first=0)." },
    { "data_first_timeout", TYPE_SECONDS, "3600", ANY,
      OFFSET (policy.data_first_timeout),
      .limit = true,
      .help = "How long storage with the data of a job is kept while the job "
        "waits for nodes next to it. Then the storage is freed, and the job "
        "waits for nodes as others do, and stages its data in when it has "
        "them. Where nodes next to the storage are idle and the scheduler "
        "starts no job there, the storage is kept for a thirtieth of this "
        "time, 2 minutes at most, because a job ahead in the queue may wait "
        "for that storage." },
    { "space_timeout", TYPE_SECONDS, "1200", AT_LEAST (0),
      OFFSET (space_timeout),
      .limit = true,
      .help = "With lustre_placement anywhere, and where jobs get their data "
        "first: how long a job that has its nodes waits for room on rabbits "
        "that others use. Then it ends with an exception. A value that is set "
        "must be less than prolog_timeout. A job that is to get its data first "
        "waits as long for room; then it gets its nodes first." },
    { "restrict_persistent_creation", TYPE_BOOL, "true", ANY,
      OFFSET (restrict_persistent),
      .help = "Only the instance owner may create persistent file systems." },
    { "persistent_lifetime", TYPE_SECONDS, "-1", ANY,
      OFFSET (persistent_lifetime),
      .plugin = true,
      .limit = true,
      .help = "How long a persistent file system that is created from now on "
        "is kept, if its directive has no expires=, and the maximum for "
        "expires=. When that time is over, and no job uses or names the file "
        "system, it is destroyed with all its data. Existing file systems are "
        "kept." },
    { "notice_command", TYPE_TEXTS, NULL, ANY, OFFSET (notice_command),
      dws_config_check_command,
      .help = "A command, and its arguments, that tells users about data that "
        "they have lost or are going to lose: the absolute path of a program "
        "that only its owner, root or the instance owner, can write to. See "
        "NOTICES." },
    { "policy", TYPE_TABLE, NULL, ANY, OFFSET (maximums),
      dws_config_check_policy,
      .help = "The table maximums in it limits the GiB of rabbits per node "
        "that a job may take, including what NNF adds to the request, by type "
        "of file system: xfs, gfs2, raw, lustre. A type that is not listed has "
        "no limit." },
    { "limits", TYPE_TABLE, NULL, ANY, OFFSET (limits_table),
      dws_config_check_limits,
      .plugin = true,
      .help = "Limits of rabbit storage for users, groups, banks and queues: "
        "a table for each rule, and contact, a text that names the contact for "
        "users who are refused. See LIMITS." },
    { "daemons", TYPE_TABLE, NULL, ANY, OFFSET (daemons),
      dws_config_check_daemons,
      .help = "The names that users may write after requires= in a directive, "
        "each with the systemd unit that is started on the nodes of such a job "
        "when its file systems are mounted, and stopped when it ends. For a "
        "name that is not listed no unit is started: DWS judges it, and NNF "
        "creates what it stands for (a user container for copy-offload)." },
    { "presets", TYPE_TABLE, NULL, ANY, OFFSET (presets),
      dws_config_check_presets,
      .plugin = true,
      .help = "Names that users may write in place of directives, each with a "
        "text or an array of texts. $UID, $USER, $JOBID, $QUEUE and $BANK in a "
        "text stand for the values of the job, and $$ for a dollar. See "
        "flux-jobtap-dws(1)." },
};

const size_t config_option_count =
    sizeof (config_options) / sizeof (config_options[0]);

const struct option *config_option_find (const char *name)
{
    for (size_t i = 0; i < config_option_count; i++) {
        if (!strcmp (config_options[i].name, name))
            return &config_options[i];
    }
    return NULL;
}
