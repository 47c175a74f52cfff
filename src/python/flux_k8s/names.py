# Made by scripts/lib/names.py --write from src/common/libutil/names.h: names
# that C and Python share. Change them there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Names of events, exceptions, keys, topics, and in Kubernetes objects."""

# What the jobtap plugin holds a job by (their "description"), and the event
# that carries the job's variables.
DEPENDENCY = "dws-create"
PROLOG = "dws-setup"
EPILOG = "dws-epilog"
ENVIRONMENT = "dws_environment"

# Types of job exceptions: by where the job is that cannot go on, and for
# what reason.
EXCEPTION_CREATE = "dws-create"
EXCEPTION_SETUP = "dws-setup"
EXCEPTION_RUN = "dws-run"
EXCEPTION_EPILOG = "dws-epilog"
EXCEPTION_TIMEOUT = "dws-timeout"
EXCEPTION_NODE_FAILURE = "dws-node-failure"

# Types of job exceptions that give a job up, as flux rabbit release does: in
# its epilog, which is then let go, and before.
EPILOG_TIMEOUT = "dws-epilog-timeout"
EXCEPTION_RELEASE = "dws-release"

# Keys in the KVS, and those in the directory of a job. The timing is that of
# a workflow's state, in lower case.
KEY_INSTANCE = "dws.instance"
KEY_HELD = "dws.held"
KEY_HEALTH = "dws.health"
KEY_LOSSES = "dws.losses"
KEY_MOVED = "dws.moved"
KEY_EXPIRY = "dws.expiry"
KEY_NOTICES = "dws.notices"
KEY_CLOCK = "dws.clock"
KEY_WORKFLOW = "rabbit_workflow"
KEY_MOVEMENTS = "rabbit_datamovements"
KEY_CONTAINER_LOG = "rabbit_container_log"
KEY_DAEMONS = "rabbit_daemons"
KEY_STAGE_OUT = "rabbit_stage_out"
KEY_TIMING = "rabbit_%s_timing"

# The property of nodes that have no working rabbit.
BAD_PROPERTY = "badrabbit"

# Requests to dws.so, without those about a job that the jobtap plugin sends.
TOPIC_AGENT = "dws.agent"
TOPIC_EXPIRY = "dws.expiry"
TOPIC_KUBECONFIG = "dws.kubeconfig"
TOPIC_LOGS = "dws.logs"
TOPIC_LOSSES = "dws.losses"
TOPIC_PLUGIN = "dws.plugin"
TOPIC_PROFILES = "dws.profiles"
TOPIC_QUOTA = "dws.quota"
TOPIC_RABBIT = "dws.rabbit"
TOPIC_REPORT = "dws.report"
TOPIC_RETRY = "dws.retry"
TOPIC_STATUS = "dws.status"
TOPIC_TOKEN = "dws.token"
TOPIC_USER = "dws.user"

# In Kubernetes: what our workflows carry, and where they are.
FINALIZER = "flux-framework.readthedocs.io/workflow"
INSTANCE_LABEL = "flux-framework.org/instance"
COLOCATION_ANNOTATION = "flux-framework.org/colocation"
FAILED_ANNOTATION = "flux-framework.org/failed-nodes"
WAIVED_ANNOTATION = "flux-framework.org/waived-nodes"
DISABLED_BY_ANNOTATION = "flux-framework.org/disabled-by"
TOUCH_ANNOTATION = "flux-framework.org/looked-for"
TRANSIENT_ANNOTATION = "flux-framework.org/transient-since"
STAGE_OUT_FAILED_ANNOTATION = "flux-framework.org/stage-out-failed"
STAGE_OUT_RETRY_ANNOTATION = "flux-framework.org/stage-out-retry"
DATA_FIRST_ANNOTATION = "flux-framework.org/data-first"
NAMESPACE = "default"
