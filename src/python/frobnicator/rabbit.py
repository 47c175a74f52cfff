# SPDX-License-Identifier: LGPL-3.0-only
#
# A frobnicator plugin for systems on which the rabbits themselves are nodes
# that run jobs. They have the property "rabbit" and are in no queue, so that
# the constraint of the job's queue would keep it off them.
"""Let jobs with #DW directives that ask for it match rabbits, too."""

from flux.job.frobnicator import FrobnicatorPlugin

PROPERTY = "rabbit"


class Frobnicator(FrobnicatorPlugin):
    """Let jobs with 'dw' and 'allow_rabbits' match nodes of property 'rabbit'."""

    def __init__(self, parser):
        super().__init__(parser)
        self.has_queues = False

    def configure(self, args, config):
        self.has_queues = bool(config.get("queues"))

    def frob(self, jobspec, userid, urgency, flags):
        system = jobspec.attributes.get("system", {})
        if "dw" not in system or not system.get("allow_rabbits"):
            return
        constraints = system.get("constraints")
        if constraints:
            jobspec.setattr(
                "system.constraints",
                {"or": [constraints, {"properties": [PROPERTY]}]},
            )
        elif self.has_queues:
            # One that is added later would undo what is done here. Without
            # queues the job may run anywhere.
            raise ValueError(
                "the job has no constraints: ingest.frobnicator.plugins must "
                "have 'constraints' before 'rabbit'"
            )
