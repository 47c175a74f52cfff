# SPDX-License-Identifier: LGPL-3.0-only
"""flux.job: what is known of jobs"""

import errno
import io
import json
import os
import time

from flux import constants, job, kvs
from flux.eventlog import EventLogEvent, EventLogFormatter
from flux.job import (
    JobID,
    JobInfo,
    JobInfoFormat,
    JobKVSLookup,
    JobList,
    JobWatcher,
    stats,
)
from flux.job.info import (
    AnnotationsInfo,
    EmptyObject,
    InstanceInfo,
    StatsInfo,
    job_fields_to_attrs,
    resulttoemoji,
    resulttostr,
    statetoemoji,
    statetostr,
    statustoemoji,
    statustostr,
)
from flux.job.list import JobListIdsFuture
from flux.job.output import JobExceptionEvent
from flux.job.watcher import JobProgressBar, JobStatus
from support import Case

UNKNOWN = 1234


class TestJobID(Case):
    def test_forms(self):
        number = 6731191091817518
        id_ = JobID(number)
        for form, text in (
            ("dec", "6731191091817518"),
            ("hex", "0x17e9fb8df16c2e"),
            ("dothex", "0017.e9fb.8df1.6c2e"),
            ("kvs", "job.0017.e9fb.8df1.6c2e"),
            ("f58plain", "fuZZybuNNy"),
        ):
            self.assertEqual(getattr(id_, form), text)
            self.assertEqual(id_.encode(form), text)
            self.assertEqual(JobID(text), number)
        self.assertIn(id_.f58, ("ƒuZZybuNNy", "fuZZybuNNy"))
        self.assertEqual((str(id_), JobID(id_.f58)), (id_.f58, number))
        self.assertEqual(repr(id_), f"JobID({number})")
        self.assertEqual((id_.orig, JobID("0x10").orig), (str(number), "0x10"))
        self.assertEqual(JobID(JobID("0x10")).orig, "0x10")
        self.assertEqual((JobID("f1"), JobID(0).f58plain), (0, "f1"))
        for bad in ("", "x", "f", "f0", "0x", "-5", "1.5"):
            with self.assertRaises(ValueError, msg=bad):
                JobID(bad)
        with self.fails(errno.EPROTO):
            id_.encode("nosuch")


class TestNames(Case):
    def test_states(self):
        for name, letter in (
            ("NEW", "N"),
            ("DEPEND", "D"),
            ("PRIORITY", "P"),
            ("SCHED", "S"),
            ("RUN", "R"),
            ("CLEANUP", "C"),
            ("INACTIVE", "I"),
        ):
            state = getattr(constants, f"FLUX_JOB_STATE_{name}")
            self.assertEqual(statetostr(state), name)
            self.assertEqual(statetostr(state, "S"), letter)
            self.assertEqual(statetostr(state, "l"), name.lower())
            self.assertTrue(statetoemoji(state))
        self.assertEqual(statetostr(0x4000), "(unknown)")

    def test_results(self):
        for name, letters in (
            ("COMPLETED", "CD"),
            ("FAILED", "F"),
            ("CANCELED", "CA"),
            ("TIMEOUT", "TO"),
        ):
            result = getattr(constants, f"FLUX_JOB_RESULT_{name}")
            self.assertEqual(resulttostr(result), name)
            self.assertEqual(resulttostr(result, "S"), letters)
            self.assertTrue(resulttoemoji(result))
            state = constants.FLUX_JOB_STATE_INACTIVE
            self.assertEqual(statustostr(state, result), name)
            self.assertTrue(statustoemoji(state, result))
        self.assertEqual(resulttostr(""), "")
        run = constants.FLUX_JOB_STATE_RUN
        self.assertEqual(statustostr(run, ""), "RUN")
        self.assertTrue(statustoemoji(run, ""))

    def test_eventlog(self):
        entry = {"timestamp": 12.5, "name": "x", "context": {"a": "ü", "b": 1}}
        event = EventLogEvent(json.dumps(entry))
        self.assertEqual((event.name, event.timestamp), ("x", 12.5))
        self.assertEqual(event.context, {"a": "ü", "b": 1})
        self.assertIn('"b":1', event.context_string)
        self.assertTrue(str(event).startswith("12.50000: x"))
        self.assertIn('x a="ü" b=1', EventLogFormatter(color="never").format(event))
        self.assertEqual(json.loads(EventLogFormatter("json").format(entry)), entry)
        for bad in ({"format": "x"}, {"timestamp_format": "x"}, {"color": "x"}):
            with self.assertRaises(ValueError):
                EventLogFormatter(**bad)


class TestInfo(Case):
    @classmethod
    def setUpClass(cls):
        """A job of each result, and one that waits."""
        self = cls()
        Case.setUp(self)
        spec = self.jobspec("sh", "-c", "exit 0", num_nodes=2, num_tasks=2)
        spec.setattr("system.job.name", "good")
        cls.good = job.submit(self.handle, spec)
        cls.bad = job.submit(self.handle, self.jobspec("sh", "-c", "exit 4"))
        cls.held = job.submit(self.handle, self.jobspec(), urgency=0)
        cls.gone = job.submit(self.handle, self.jobspec(), urgency=0)
        job.cancel(self.handle, cls.gone, "not needed")
        for jobid in cls.good, cls.bad, cls.gone:
            job.event_wait(self.handle, jobid, "clean", raiseJobException=False)
        self.addCleanup(job.cancel, self.handle, cls.held)
        cls.addClassCleanup(self.doCleanups)

    def info(self, jobid, attrs=("all",)):
        return job.job_list_id(self.handle, jobid, list(attrs)).get_jobinfo()

    def test_good(self):
        info = self.info(self.good)
        for name, value in (
            ("id", self.good),
            ("state", "INACTIVE"),
            ("state_single", "I"),
            ("result", "COMPLETED"),
            ("result_abbrev", "CD"),
            ("status", "COMPLETED"),
            ("status_abbrev", "CD"),
            ("returncode", 0),
            ("waitstatus", 0),
            ("name", "good"),
            ("cwd", ""),
            ("ntasks", 2),
            ("nnodes", 2),
            ("ncores", 2),
            ("duration", 0),
            ("userid", os.getuid()),
            ("urgency", 16),
            ("priority", 16),
            ("success", True),
            ("queue", ""),
            ("bank", ""),
            ("inactive_reason", "Exit 0"),
            ("t_remaining", 0.0),
            ("uri", None),
        ):
            self.assertEqual(getattr(info, name), value, name)
        order = ["submit", "depend", "run", "cleanup", "inactive"]
        times = [getattr(info, f"t_{name}") for name in order]
        self.assertEqual(times, sorted(times))
        self.assertGreater(times[0], 0)
        self.assertGreater(info.runtime, 0)
        self.assertEqual(info.get_runtime(), info.runtime)
        self.assertEqual(info.contextual_time, info.runtime)
        self.assertEqual(info.contextual_info, info.nodelist)
        self.assertRegex(info.nodelist, r"^node\[\d[-,]\d\]$")
        self.assertFalse(info.exception.occurred)
        self.assertTrue(info.username and info.state_emoji)
        self.assertTrue(info.result_emoji and info.status_emoji)
        with self.assertRaises(AttributeError):
            info.nosuch  # noqa: B018

    def test_bad(self):
        info = self.info(self.bad)
        self.assertEqual((info.result, info.returncode), ("FAILED", 4))
        self.assertEqual(info.inactive_reason, "Exit 4")
        self.assertFalse(info.success)
        info = self.info(self.gone)
        self.assertEqual(info.inactive_reason, "Canceled: not needed")
        self.assertEqual((info.exception.severity, info.exception.type), (0, "cancel"))

    def test_held(self):
        info = self.info(self.held)
        self.assertEqual((info.state, info.status_abbrev), ("SCHED", "S"))
        self.assertEqual((info.result, info.returncode), ("", ""))
        self.assertEqual(info.contextual_info, "held")
        self.assertEqual((info.contextual_time, info.inactive_reason), (0, ""))
        self.assertEqual((info.urgency, info.priority), (0, 0))
        self.assertEqual(info.nodelist, "")

    def test_to_dict(self):
        info = job.get_job(self.handle, self.good)
        self.assertEqual((info["jobid"], info["name"]), (self.good.f58, "good"))
        self.assertFalse(info["exception"]["occurred"])
        info = self.info(self.good).to_dict()
        self.assertEqual(info["exception"], {"occurred": False})
        self.assertIsNone(job.get_job(self.handle, UNKNOWN))

    def test_attributes(self):
        """Only what has been asked for, and the ID."""
        got = job.job_list_id(self.handle, self.good, ["name"]).get_job()
        self.assertEqual(got, {"id": self.good, "name": "good"})
        with self.fails(errno.EINVAL):
            job.job_list_id(self.handle, self.good, ["nosuch"]).get_job()
        with self.fails(errno.ENOENT):
            job.job_list_id(self.handle, UNKNOWN).get_job()
        attrs = job_fields_to_attrs(["id.f58", "runtime", "user.x"])
        self.assertLessEqual({"t_run", "t_cleanup", "annotations"}, attrs)
        with self.assertRaises(KeyError):
            job_fields_to_attrs(["nosuch"])

    def ids(self, **kwargs):
        kwargs.setdefault("attrs", ["name"])
        return [j["id"] for j in job.job_list(self.handle, **kwargs).get_jobs()]

    def test_list(self):
        ours = [self.good, self.bad, self.held, self.gone]
        self.assertLessEqual(set(ours), set(self.ids()))
        states = constants.FLUX_JOB_STATE_ACTIVE
        self.assertEqual(self.ids(states=states), [self.held])
        failed = constants.FLUX_JOB_RESULT_FAILED
        self.assertIn(self.bad, self.ids(results=failed))
        self.assertNotIn(self.good, self.ids(results=failed))
        both = self.ids(states=states, results=failed)
        self.assertLessEqual({self.bad, self.held}, set(both))
        self.assertEqual(self.ids(name="good"), [self.good])
        self.assertEqual(self.ids(userid=4711), [])
        self.assertEqual(self.ids(queue="nosuch"), [])
        self.assertEqual(len(self.ids(max_entries=2)), 2)
        self.assertEqual(self.ids(since=time.time() + 1, results=failed), [])
        inactive = job.job_list_inactive(self.handle, max_entries=1, attrs=["name"])
        self.assertEqual(len(list(inactive.get_jobinfos())), 1)
        with self.assertRaises(ValueError):
            job.job_list(self.handle, queue=7)
        for bad in ({"states": 0x4000, "max_entries": -1}, {"attrs": ["nosuch"]}):
            with self.fails(errno.EPROTO if "states" in bad else errno.EINVAL):
                self.ids(**bad)

    def test_constraints(self):
        good = {"name": ["good"]}
        for constraint, ids in (
            (good, [self.good]),
            ({"and": [good, {"states": ["inactive"]}]}, [self.good]),
            ({"and": [good, {"not": [{"results": ["completed"]}]}]}, []),
            ({"and": [good, {"name": ["good"]}]}, [self.good]),
            ({"and": [good, {"t_submit": [">1"]}]}, [self.good]),
            ({"and": [good, {"t_inactive": ["<1"]}]}, []),
        ):
            self.assertEqual(self.ids(constraint=constraint), ids, constraint)
        for bad in ({"nosuch": []}, {"states": ["nosuch"]}, {"t_run": ["5"]}, []):
            with self.fails(errno.EPROTO, "constraint object invalid"):
                self.ids(constraint=bad)

    def test_joblist(self):
        jobs = JobList(self.handle, filters=["failed,canceled", "sched"]).jobs()
        ids = {info.id for info in jobs}
        self.assertLessEqual({self.bad, self.gone, self.held}, ids)
        self.assertNotIn(self.good, ids)
        some = JobList(self.handle, ids=[self.good, UNKNOWN])
        self.assertEqual([info.id for info in some.jobs()], [self.good])
        self.assertEqual(some.errors, ["JobID 1234 unknown"])
        everybody = JobList(self.handle, user="all", name="good")
        self.assertEqual([info.id for info in everybody.jobs()], [self.good])
        self.assertEqual(JobList(self.handle, user="4711").jobs(), [])
        with self.assertRaises(ValueError):
            JobList(self.handle, user="no such user")
        with self.assertRaises(ValueError):
            JobList(self.handle, filters=["nosuch"])
        future = JobListIdsFuture()
        future.push(job.job_list_id(self.handle, self.bad))
        self.assertEqual([info.id for info in future.get_jobinfos()], [self.bad])

    def test_lookup(self):
        found = job.job_kvs_lookup(self.handle, self.good, ["jobspec", "R", "eventlog"])
        self.assertEqual(found["id"], self.good)
        self.assertEqual(found["jobspec"]["tasks"][0]["command"][0], "sh")
        self.assertEqual(found["R"]["version"], 1)
        self.assertTrue(found["eventlog"].endswith("\n"))
        text = job.job_kvs_lookup(self.handle, self.good, decode=False)
        self.assertEqual(json.loads(text["jobspec"]), found["jobspec"])
        base = job.job_kvs_lookup(self.handle, self.good, base=True)
        self.assertEqual(base["jobspec"], found["jobspec"])
        # what has been signed has the environment still
        signed = job.job_kvs_lookup(self.handle, self.good, original=True)["jobspec"]
        system = signed["attributes"]["system"]
        self.assertEqual(system.pop("environment"), dict(os.environ))
        self.assertEqual(signed, found["jobspec"])
        self.assertIsNone(job.job_kvs_lookup(self.handle, UNKNOWN))
        self.assertIsNone(job.job_kvs_lookup(self.handle, self.good, ["nosuch"]))
        self.assertIsNone(job.job_kvs_lookup(self.handle, self.held, ["R"]))
        rpc = job.job_info_lookup(self.handle, self.good, ["R"])
        self.assertIsInstance(rpc.get()["R"], str)
        with self.fails(errno.ENOENT, "invalid job id"):
            job.job_info_lookup(self.handle, UNKNOWN).get()
        with self.fails(errno.ENOENT, "nosuch: key not found"):
            job.job_info_lookup(self.handle, self.good, ["nosuch"]).get()
        with self.fails(errno.EPROTO):
            job.job_info_lookup(self.handle, self.good, flags=0x100).get()

    def test_lookup_many(self):
        lookup = JobKVSLookup(self.handle, [self.good, self.bad, UNKNOWN], ["R"])
        data = lookup.data()
        self.assertEqual([item["id"] for item in data], [self.good, self.bad])
        self.assertEqual(data[0]["R"]["version"], 1)
        self.assertEqual(lookup.errors, ["JobID 1234 unknown"])
        lookup = JobKVSLookup(
            self.handle, [self.good], ["jobspec"], decode=False, original=True
        )
        self.assertIsInstance(lookup.data()[0]["jobspec"], str)

    def test_kvs(self):
        directory = job.job_kvs(self.handle, self.good)
        self.assertLessEqual({"J", "R", "eventlog", "guest", "jobspec"}, set(directory))
        guest = job.job_kvs_guest(self.handle, self.good)
        self.assertLessEqual({"exec", "output"}, set(guest))
        self.assertTrue(kvs.isdir(self.handle, self.good.kvs))
        with self.fails(errno.ENOENT):
            job.job_kvs(self.handle, UNKNOWN)

    def test_stats(self):
        now = stats.JobStats(self.handle).update_sync()
        self.assertEqual((now.sched, now.pending, now.active), (1, 1, 1))
        self.assertGreaterEqual(now.failed, 2)
        self.assertGreaterEqual(now.successful, 1)
        self.assertEqual(now.total, now.inactive + 1)
        self.assertEqual((now.run, now.cleanup, now.running), (0, 0, 0))
        seen = []

        def updated(counts, key):
            seen.append((counts.total, key))
            self.handle.reactor_stop()

        stats.JobStats(self.handle).update(updated, key=1)
        self.run_reactor()
        self.assertEqual(seen, [(now.total, 1)])
        with self.assertRaisesRegex(ValueError, "no stats available for queue nosuch"):
            stats.JobStats(self.handle, "nosuch").update_sync()
        counts = stats.JobStats.QueueStats()
        counts += counts
        self.assertEqual(counts.total, 0)
        text = StatsInfo(self.handle).update_sync()
        self.assertEqual(f"{text:>1}", repr(text))
        self.assertTrue(repr(text).startswith("PD:1 R:0 CD:"))

    def test_instance(self):
        """The data that a job that is an instance has of itself."""
        uri = self.handle.attr_get("local-uri")
        info = InstanceInfo(uri)
        self.assertEqual(info.utilization, 0)
        self.assertGreater(info.progress, 0)
        self.assertEqual((info.gpu_utilization, InstanceInfo().nosuch), ("", ""))
        plain = self.info(self.good).get_instance_info()
        self.assertEqual(str(plain.instance.stats.total), "")

    def test_small_classes(self):
        notes = AnnotationsInfo({"sched": {"x": 1}})
        self.assertEqual((notes.sched.x, repr(notes)), (1, '{"sched": {"x": 1}}'))
        empty = EmptyObject()
        self.assertEqual((str(empty.a.b), repr(empty), f"{empty:>3d}"), ("", "", "   "))
        info = JobInfo({"id": 1, "dependencies": ["a", "begin-time=1.5"]})
        self.assertTrue(str(info.dependencies).startswith("a,begin@"))

    def test_format(self):
        fmt = JobInfoFormat("{id.f58plain:>12} {name} {status_abbrev}")
        self.assertIn("JOBID", fmt.header())
        line = fmt.format(self.info(self.good))
        self.assertEqual(line.split(), [self.good.f58plain, "good", "CD"])
        with self.assertRaises(ValueError):
            JobInfoFormat("{nosuch}")


class TestWatcher(Case):
    def test_output(self):
        seen = []
        watcher = JobWatcher(
            self.handle,
            output_callback=lambda jobid, stream, data: seen.append((stream, data)),
        )
        jobid = job.submit(self.handle, self.jobspec("sh", "-c", "echo x; exit 3"))
        watcher.add_jobid(jobid)
        watcher.start()
        self.handle.reactor_run()
        watcher.stop()
        self.assertIn(("stdout", "x\n"), seen)
        self.assertEqual(watcher.exitcode, 3)

    def test_streams(self):
        jobid = job.submit(self.handle, self.jobspec("echo", "hello"))
        info = job.job_list_id(self.handle, jobid).get_jobinfo()
        with open(os.devnull, "w+") as null, io.TextIOWrapper(io.BytesIO()) as out:
            watcher = JobWatcher(
                self.handle, [info], stdout=out, stderr=null, labelio=True
            )
            watcher.start()
            self.handle.reactor_run()
            out.seek(0)
            self.assertEqual(out.read(), f"{jobid}: 0: hello\n")
        self.assertEqual(watcher.exitcode, 0)

    def test_progress(self):
        jobid = job.submit(self.handle, self.jobspec(), urgency=0)
        info = job.job_list_id(self.handle, jobid).get_jobinfo()
        progress = JobProgressBar(self.handle, jps=True)
        progress.redraw = lambda *args, **kwargs: None
        progress.add_jobs(info)
        self.assertEqual((progress.pending, progress.total), (1, 1))
        with self.assertRaises(ValueError):
            progress.add_job(info)
        with self.assertRaises(ValueError):
            progress.add_job(7)
        for name, status in (("alloc", "running"), ("finish", "complete")):
            entry = {"timestamp": 1.0, "name": name, "context": {"status": 0}}
            progress.process_event(jobid, EventLogEvent(entry))
            self.assertEqual(progress.jobs[jobid].status, status)
        progress.process_event(jobid)
        self.assertEqual((progress.complete, progress.count), (1, 1))
        self.assertGreater(progress.jobs_per_sec(), 0)
        job.cancel(self.handle, jobid)

    def test_status(self):
        info = JobInfo({"id": 1, "state": constants.FLUX_JOB_STATE_SCHED})
        status = JobStatus(info)
        self.assertTrue(status.active)
        status.add_event("x")
        self.assertEqual((status.event_count("x"), status.has_event("y")), (1, False))
        with self.assertRaises(ValueError):
            JobStatus(7)
        entry = {
            "timestamp": 1.0,
            "name": "exception",
            "context": {"severity": 0, "type": "x", "note": "y"},
        }
        self.assertEqual(
            JobExceptionEvent(entry).render(), "job.exception: type=x severity=0 y"
        )
