# SPDX-License-Identifier: LGPL-3.0-only
"""flux.job: jobspecs, and the programs that look at them on their way in"""

import json

from flux import job
from flux.job import JobspecV1, validate_jobspec
from flux.job.frobnicator import FrobnicatorPlugin, JobFrobnicator
from flux.job.validator import JobValidator, ValidatorPlugin
from flux.job.validator.validator import ValidatorJobInfo, ValidatorResult
from support import Case


class TestJobspec(Case):
    def test_constraints(self):
        """Hosts must be the instance's."""
        spec = json.loads(self.jobspec().dumps())
        spec["attributes"]["system"]["constraints"] = {"ranks": ["0-2"]}
        self.assertTrue(validate_jobspec(json.dumps(spec))[0])
        for bad in ({"nosuch": []}, {"hostlist": ["nosuch"]}, {"properties": ["a|b"]}):
            spec["attributes"]["system"]["constraints"] = bad
            with self.assertRaises((TypeError, ValueError)):
                validate_jobspec(json.dumps(spec))

    def test_per_resource(self):
        spec = JobspecV1.per_resource(
            ["sh", "-c", "echo $FLUX_TASK_RANK"],
            ncores=4,
            nnodes=2,
            per_resource_type="core",
            per_resource_count=1,
        )
        output = job.job_output(self.handle, job.submit(self.handle, spec))
        self.assertEqual(sorted(output.stdout.split()), ["0", "1", "2", "3"])
        with self.assertRaises(ValueError):
            JobspecV1.per_resource(["true"])

    def test_from_submit(self):
        spec = JobspecV1.from_submit(
            ["sh", "-c", "echo $A; pwd"],
            ntasks=1,
            cwd="/",
            env=["A=b"],
            time_limit="5m",
            requires="rank:1-2",
            attributes={"user.x": 1},
        )
        self.assertEqual(spec.duration, 300)
        self.assertEqual(spec.getattr("user.x"), 1)
        jobid = job.submit(self.handle, spec)
        self.assertEqual(job.job_output(self.handle, jobid).stdout, "b\n/\n")
        info = job.job_list_id(self.handle, jobid).get_jobinfo()
        self.assertIn(info.nodelist, ("node1", "node2"))
        with self.assertRaises(TypeError):
            spec.apply_options(nosuch=1)


class TestPrograms(Case):
    def info(self, spec):
        return {"jobspec": spec, "userid": 1, "flags": 0, "urgency": 16}

    def test_validator(self):
        validator = JobValidator([])
        validator.start()
        spec = json.loads(self.jobspec().dumps())
        result = validator.validate(self.info(spec))
        self.assertTrue(result.success)
        self.assertEqual(json.loads(str(result)), {"errnum": 0})
        result = validator.validate(json.dumps(self.info({"version": 1})))
        self.assertFalse(result.success)
        self.assertIn("Missing key", result.errmsg)
        validator.stop()
        with self.assertRaisesRegex(ValueError, "'nosuch' not found"):
            JobValidator(["--plugins=nosuch"]).start()
        with self.assertRaises(ValueError):
            ValidatorJobInfo({})
        self.assertEqual(ValidatorJobInfo(self.info(1)).jobspec, 1)
        result = ValidatorResult()
        result.push_result(2, "b")
        self.assertEqual((result.errnum, result.errmsg), (2, "b"))

    def test_validator_plugin(self):
        class Validator(ValidatorPlugin):
            def validate(self, job):
                super().validate(job)

        plugin = Validator(None)
        self.assertEqual(plugin.flux.attr_get("rank"), "0")
        plugin.configure(None)
        with self.assertRaises(NotImplementedError):
            plugin.validate(None)

    def test_frobnicator(self):
        """The frobnicator fills in the defaults of the configuration."""
        conf = self.handle.conf_get()
        policy = {"jobspec": {"defaults": {"system": {"duration": "1m"}}}}
        self.handle.rpc("config.load", dict(conf, policy=policy)).get()
        self.addCleanup(lambda: self.handle.rpc("config.load", conf).get())
        frobnicator = JobFrobnicator([])
        frobnicator.start()
        spec = self.jobspec()
        self.assertEqual(frobnicator.frob(spec)["errnum"], 0)
        self.assertEqual(spec.duration, 60)
        with self.assertRaises(ValueError):
            frobnicator.frob({})
        plugin = FrobnicatorPlugin(None)
        plugin.configure(None, None)
        with self.assertRaises(NotImplementedError):
            plugin.frob(None, None, None, None)
        jobid = job.submit(self.handle, self.jobspec())
        job.event_wait(self.handle, jobid, "clean")
        found = job.job_kvs_lookup(self.handle, jobid)["jobspec"]
        self.assertEqual(found["attributes"]["system"]["duration"], 60)
