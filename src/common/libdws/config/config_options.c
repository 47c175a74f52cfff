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
        "flux-sched-rabbit(1) read it when they are loaded, and with flux "
        "config reload." },
    { "kubeconfig", TYPE_TEXT, NULL, ANY, OFFSET (kubeconfig), .agent = true,
      .help = "How the agent reaches Kubernetes: an absolute path, or one that "
        "begins with ~/. If it is not set: $KUBECONFIG of the agent, then "
        "~/.kube/config of the user that it runs as. Several files with colons "
        "between them in $KUBECONFIG are merged as kubectl does it: files that are "
        "missing are passed over, and the first that sets a value wins. The file is "
        "read again when Kubernetes cannot be reached or refuses the token. An agent "
        "that serves keeps what it has read before if the file cannot be used." },
    { "metrics", TYPE_TEXT, NULL, ANY, OFFSET (metrics),
      dws_config_check_metrics,
      .agent = true,
      .help = "Where the agent serves metrics for Prometheus: a port of the "
        "loopback, such as \"127.0.0.1:9464\", or \"unix:\" and the path of "
        "a socket, which only the instance owner can connect to. Any user "
        "of the node can read a port; no job or user is named there. Not "
        "served if it is not set." },
    { "tc_timeout", TYPE_SECONDS, "10", AT_LEAST (0),
      OFFSET (policy.tc_timeout),
      .limit = true,
      .help = "How long a workflow may be in TransientCondition, and how "
        "long a job waits for a rabbit that is down when its storage is to "
        "be made there, or where persistent storage has what only one can "
        "have, such as the management target of Lustre. For other jobs that "
        "have it a job waits as long as they do." },
    { "setup_timeout", TYPE_SECONDS, "-1", ANY, OFFSET (policy.setup_timeout),
      .limit = true,
      .help = "How long making the file systems may take. Then the job ends "
        "with an exception." },
    { "prerun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.prerun_timeout),
      .limit = true,
      .help = "How long mounting them may take. Then the job ends with an "
        "exception, or goes on without the nodes that are to blame." },
    { "postrun_timeout", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.postrun_timeout),
      .limit = true,
      .help = "How long unmounting them may take. After that the data of the "
        "job is not moved any more, and nodes that still have a mount are "
        "drained." },
    { "teardown_after", TYPE_SECONDS, "-1", ANY,
      OFFSET (policy.teardown_after),
      .limit = true,
      .help = "How long unmounting and moving data may take together, from "
        "the job's end. Then the workflow is torn down. It may not be "
        "smaller than postrun_timeout, and should be smaller than the "
        "epilog-timeout of flux-jobtap-dws(1)." },
    { "stage_out_retry", TYPE_SECONDS, "0", AT_LEAST (0),
      OFFSET (policy.stage_out_retry),
      .help = "How long the storage of a job whose data could not be staged "
        "out is kept, from the first failure on, so that the job's owner can "
        "have that tried again with flux rabbit retry. The job's nodes are "
        "given back meanwhile. The agent must be allowed to delete "
        "nnfdatamovements. 0: it is torn down at once." },
    { "release_nodes", TYPE_CHOICE, "\"teardown\"", ANY,
      OFFSET (policy.release_nodes), .choices = release_choices,
      .expected = "\"teardown\" or \"unmount\"",
      .help = "When the nodes of a job that has run are free for others: when "
        "its storage is torn down, or as soon as it is unmounted. Then data "
        "is staged out after the job's end, and flux rabbit losses lists "
        "what failed of that." },
    { "prolog_timeout", TYPE_SECONDS, "1800", AT_LEAST (0),
      OFFSET (policy.prolog_timeout),
      .limit = true,
      .help = "How long the prolog of a rabbit job may take until its file "
        "systems are mounted. Then the job ends with an exception. Data that is "
        "staged in meanwhile is waited for longer, as long as it gets further at "
        "least once in a tenth of this time; mounting then has all of it once "
        "more." },
    { "drain_compute_nodes", TYPE_BOOL, "true", ANY,
      OFFSET (drain_compute_nodes),
      .help = "Drain compute nodes that have lost the PCIe link to their "
        "rabbit, and undrain them when it is back. A node that an admin has "
        "drained stays drained, and one that an admin has undrained is not "
        "drained again for the same loss." },
    { "drain_queues", TYPE_TEXTS, NULL, ANY, OFFSET (drain_queues),
      .help = "Drain only nodes of these queues; a virtual queue has those of its "
        "parent. If it is not set: all nodes that have a rabbit." },
    { "soft_drain", TYPE_BOOL, "true", ANY, OFFSET (soft_drain),
      .help = "Give nodes that have lost the link the property badrabbit, "
        "which keeps rabbit jobs away and no others." },
    { "save_datamovements", TYPE_INTEGER, "0", 0, INT_MAX,
      OFFSET (policy.save_datamovements),
      .help = "So many data movements are recorded for each job, those that "
        "failed first." },
    { "allow_rabbit_resources", TYPE_BOOL, "false", ANY,
      OFFSET (rabbit_resources),
      .plugin = true,
      .help = "Let jobs without directives ask for ssd, rabbit or storage_node "
        "in their resources. No limit of policy holds for that storage." },
    { "lustre_placement", TYPE_CHOICE, "\"near\"", ANY,
      OFFSET (lustre_placement), .choices = placement_choices,
      .expected = "\"near\" or \"anywhere\"",
      .help = "Where Lustre file systems of jobs lie, and all storage that need "
        "not be next to nodes: on the rabbits of the job's nodes, where the "
        "scheduler has reserved it, or on any rabbits. Then the scheduler looks "
        "for nodes only, and a job of one node can have more than one rabbit "
        "holds; once it has its nodes, it waits for room for space_timeout." },
    { "data_first", TYPE_CHOICE, "\"asked\"", ANY, OFFSET (data_first),
      .choices = data_first_choices,
      .expected = "\"never\", \"asked\" or \"always\"",
      .help = "Which jobs get their storage and their data before they get nodes, which "
        "are then allocated next to these: none, those that ask for it "
        "(--dw-data-first), or also all with copy_in that do not refuse it." },
    { "data_first_timeout", TYPE_SECONDS, "3600", ANY,
      OFFSET (policy.data_first_timeout),
      .limit = true,
      .help = "How long storage with the data of a job is kept while the job waits for "
        "nodes next to it. Then it is given back, and the job waits for nodes as "
        "others do, and for its data when it has them. Where nodes next to it are "
        "idle, and the scheduler starts nobody there, it is kept for a thirtieth of "
        "that, and for 2 minutes at most: a job before it in the queue may wait for "
        "the storage that it has." },
    { "space_timeout", TYPE_SECONDS, "1200", AT_LEAST (0),
      OFFSET (space_timeout),
      .limit = true,
      .help = "With lustre_placement anywhere, and where jobs have their data first: "
        "how long a job that has its nodes waits for room on rabbits that others "
        "have. Then it ends with an exception. If it is set it has to be less than "
        "prolog_timeout. A job that is to have its data first waits as long for "
        "room; then it gets its nodes first." },
    { "restrict_persistent_creation", TYPE_BOOL, "true", ANY,
      OFFSET (restrict_persistent),
      .help = "Only the instance owner may create persistent file systems." },
    { "persistent_lifetime", TYPE_SECONDS, "-1", ANY,
      OFFSET (persistent_lifetime),
      .plugin = true,
      .limit = true,
      .help = "How long a persistent file system that is made from now on is kept, "
        "if its directive has no expires=, and the most that this may say. When that "
        "is over, and no job uses or names it, it is destroyed with all that is in "
        "it. Those that were made before are kept." },
    { "notice_command", TYPE_TEXTS, NULL, ANY, OFFSET (notice_command),
      dws_config_check_command,
      .help = "A command, and its arguments, that tells users what they have lost "
        "or are going to lose: the absolute path of a program that only its owner, "
        "root or the instance owner, can write to. See NOTICES." },
    { "policy", TYPE_TABLE, NULL, ANY, OFFSET (maximums),
      dws_config_check_policy,
      .help = "Its table maximums is the most in GiB per node that a job may "
        "take of rabbits, with what NNF adds to what was asked for, by type of "
        "file system: xfs, gfs2, raw, lustre. No limit for those that are not "
        "there." },
    { "limits", TYPE_TABLE, NULL, ANY, OFFSET (limits_table),
      dws_config_check_limits,
      .plugin = true,
      .help = "Who may have how much rabbit storage: a table for each rule, and "
        "contact, a text that says whom to ask who is refused. See LIMITS." },
    { "daemons", TYPE_TABLE, NULL, ANY, OFFSET (daemons),
      dws_config_check_daemons,
      .help = "What users may write after requires= in a directive: the "
        "systemd unit that is started on the nodes of such a job when its "
        "file systems are mounted, and stopped when it ends. For what is not "
        "listed here no unit is started: DWS judges it, and NNF makes what it "
        "stands for (copy-offload is a user container there)." },
    { "presets", TYPE_TABLE, NULL, ANY, OFFSET (presets),
      dws_config_check_presets,
      .plugin = true,
      .help = "Names that users may write in place of directives: a text, or "
        "an array of texts. $UID, $USER, $JOBID, $QUEUE and $BANK in it stand "
        "for what the job has, and $$ for a dollar. See flux-jobtap-dws(1)." },
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
