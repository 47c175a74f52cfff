/* SPDX-License-Identifier: LGPL-3.0-only
 *
 * Names that more than one part of flux-dws writes or looks for: in
 * eventlogs, in the KVS, as topics, and in Kubernetes objects. Python has
 * them from flux_k8s/names.py, which scripts/lib/names.py --write makes of
 * this file. They are part of what users and admins see: a changed name is
 * not found in what was written before.
 */

#ifndef LIBUTIL_NAMES_H
#define LIBUTIL_NAMES_H

/* What the jobtap plugin holds a job by (their "description"), and the event
 * that carries the job's variables.
 */
#define DWS_DEPENDENCY "dws-create"
#define DWS_PROLOG "dws-setup"
#define DWS_EPILOG "dws-epilog"
#define DWS_ENVIRONMENT "dws_environment"

/* Types of job exceptions: by where the job is that cannot go on, and for
 * what reason.
 */
#define DWS_EXCEPTION_CREATE "dws-create"
#define DWS_EXCEPTION_SETUP "dws-setup"
#define DWS_EXCEPTION_RUN "dws-run"
#define DWS_EXCEPTION_EPILOG "dws-epilog"
#define DWS_EXCEPTION_TIMEOUT "dws-timeout"
#define DWS_EXCEPTION_NODE_FAILURE "dws-node-failure"

/* Types of job exceptions that give a job up, as flux rabbit release does: in
 * its epilog, which is then let go, and before.
 */
#define DWS_EPILOG_TIMEOUT "dws-epilog-timeout"
#define DWS_EXCEPTION_RELEASE "dws-release"

/* Keys in the KVS, and those in the directory of a job. The timing is that of
 * a workflow's state, in lower case.
 */
#define DWS_KEY_INSTANCE "dws.instance"
#define DWS_KEY_HELD "dws.held"
#define DWS_KEY_HEALTH "dws.health"
#define DWS_KEY_LOSSES "dws.losses"
#define DWS_KEY_MOVED "dws.moved"
#define DWS_KEY_EXPIRY "dws.expiry"
#define DWS_KEY_NOTICES "dws.notices"
#define DWS_KEY_CLOCK "dws.clock"
#define DWS_KEY_WORKFLOW "rabbit_workflow"
#define DWS_KEY_MOVEMENTS "rabbit_datamovements"
#define DWS_KEY_CONTAINER_LOG "rabbit_container_log"
#define DWS_KEY_DAEMONS "rabbit_daemons"
#define DWS_KEY_STAGE_OUT "rabbit_stage_out"
#define DWS_KEY_TIMING "rabbit_%s_timing"

/* The property of nodes that have no working rabbit.
 */
#define DWS_BAD_PROPERTY "badrabbit"

/* Requests to dws.so, without those about a job that the jobtap plugin sends.
 */
#define DWS_TOPIC_AGENT "dws.agent"
#define DWS_TOPIC_EXPIRY "dws.expiry"
#define DWS_TOPIC_KUBECONFIG "dws.kubeconfig"
#define DWS_TOPIC_LOGS "dws.logs"
#define DWS_TOPIC_LOSSES "dws.losses"
#define DWS_TOPIC_PLUGIN "dws.plugin"
#define DWS_TOPIC_PROFILES "dws.profiles"
#define DWS_TOPIC_QUOTA "dws.quota"
#define DWS_TOPIC_RABBIT "dws.rabbit"
#define DWS_TOPIC_REPORT "dws.report"
#define DWS_TOPIC_RETRY "dws.retry"
#define DWS_TOPIC_STATUS "dws.status"
#define DWS_TOPIC_TOKEN "dws.token"
#define DWS_TOPIC_USER "dws.user"

/* In Kubernetes: what our workflows carry, and where they are.
 */
#define DWS_FINALIZER "flux-framework.readthedocs.io/workflow"
#define DWS_INSTANCE_LABEL "flux-framework.org/instance"
#define DWS_COLOCATION_ANNOTATION "flux-framework.org/colocation"
#define DWS_FAILED_ANNOTATION "flux-framework.org/failed-nodes"
#define DWS_WAIVED_ANNOTATION "flux-framework.org/waived-nodes"
#define DWS_DISABLED_BY_ANNOTATION "flux-framework.org/disabled-by"
#define DWS_TOUCH_ANNOTATION "flux-framework.org/looked-for"
#define DWS_TRANSIENT_ANNOTATION "flux-framework.org/transient-since"
#define DWS_STAGE_OUT_FAILED_ANNOTATION "flux-framework.org/stage-out-failed"
#define DWS_STAGE_OUT_RETRY_ANNOTATION "flux-framework.org/stage-out-retry"
#define DWS_DATA_FIRST_ANNOTATION "flux-framework.org/data-first"
#define DWS_NAMESPACE "default"

#endif /* !LIBUTIL_NAMES_H */
