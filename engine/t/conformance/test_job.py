# SPDX-License-Identifier: LGPL-3.0-only
"""flux.job: submit, wait for, watch and end jobs"""

import concurrent.futures
import errno
import os
import signal

from flux import constants, job
from flux.job import FluxExecutor, JobException, JobID, JournalConsumer
from flux.job.executor import FluxExecutorFuture
from flux.job.journal import JournalEvent
from flux.job.output import LogEvent, OutputHeaderEvent, Taskset
from support import LIMIT, Case

UNKNOWN = 1234


class TestSubmit(Case):
    def test_submit(self):
        jobid = job.submit(self.handle, self.jobspec())
        self.assertIsInstance(jobid, JobID)
        other = job.submit_async(self.handle, self.jobspec().dumps()).get_id()
        self.assertGreater(other, jobid)
        future = job.submit_async(self.handle, self.jobspec(), debug=True)
        self.assertGreater(job.submit_get_id(future), other)
        for id_ in jobid, other:
            self.assertTrue(job.result(self.handle, id_).result, "COMPLETED")
        with self.fails(errno.EINVAL):
            job.submit_get_id(None)

    def test_refused(self):
        for jobspec, error in (
            (None, OSError),
            (7, TypeError),
            ("{}", OSError),
            ("[", OSError),
        ):
            with self.assertRaises(error, msg=jobspec):
                job.submit(self.handle, jobspec)
        for urgency in (-1, 32):
            with self.fails(errno.EINVAL, "urgency range is [0:31]"):
                job.submit(self.handle, self.jobspec(), urgency=urgency)
        # The rest of the text depends on whether Flux was built with flux-security.
        with self.fails(errno.EINVAL, "unwrap"):
            job.submit(self.handle, self.jobspec(), pre_signed=True)

    def test_infeasible(self):
        """The scheduler says so, at the latest when it is asked to allocate."""
        spec = self.jobspec(num_nodes=5, num_tasks=5)
        info = job.result(self.handle, job.submit(self.handle, spec))
        self.assertEqual((info.result, info.exception.type), ("FAILED", "alloc"))

    def test_wait(self):
        jobid = job.submit(self.handle, self.jobspec(), waitable=True)
        result = job.wait(self.handle, jobid)
        self.assertEqual(
            (result.jobid, result.success, result.errstr), (jobid, True, b"")
        )
        with self.fails(errno.ECHILD):
            job.wait(self.handle, jobid)
        bad = job.submit(self.handle, self.jobspec("false"), waitable=True)
        result = job.wait_async(self.handle).get_status()
        self.assertEqual((result.jobid, result.success), (bad, False))
        self.assertEqual(result.errstr, b"task(s) exited with exit code 1")
        with self.fails(errno.ECHILD, "there are no more waitable jobs"):
            job.wait(self.handle)
        with self.fails(
            errno.ECHILD, "invalid job id, or job may be inactive and not waitable"
        ):
            job.wait(self.handle, UNKNOWN)
        plain = job.submit(self.handle, self.jobspec("sleep", "inf"))
        with self.fails(errno.ECHILD, "job was not submitted with FLUX_JOB_WAITABLE"):
            job.wait(self.handle, plain)
        job.cancel(self.handle, plain)
        with self.fails(errno.EINVAL):
            job.wait_get_status(None)

    def test_wait_many(self):
        jobids = {
            job.submit(self.handle, self.jobspec(simulated="0.001s"), waitable=True)
            for _ in range(10)
        }
        waited = {job.wait(self.handle).jobid for _ in jobids}
        self.assertEqual(waited, jobids)

    def test_result(self):
        info = job.result(self.handle, job.submit(self.handle, self.jobspec()))
        self.assertEqual((info.result, info.returncode), ("COMPLETED", 0))
        jobid = job.submit(self.handle, self.jobspec("sh", "-c", "exit 3"))
        future = job.result_async(self.handle, jobid)
        self.assertEqual(future.get_info().returncode, 3)
        result = future.get_dict()
        self.assertEqual(
            (result["id"], result["result"], result["waitstatus"]),
            (jobid, constants.FLUX_JOB_RESULT_FAILED, 3 << 8),
        )
        self.assertFalse(result["exception_occurred"])
        with self.fails(errno.ENOENT):
            job.result(self.handle, UNKNOWN)


class TestEnd(Case):
    def start(self, *command, **kwargs):
        jobid = job.submit(
            self.handle, self.jobspec(*(command or ("sleep", "inf")), **kwargs)
        )
        job.event_wait(self.handle, jobid, "start")
        job.event_wait(self.handle, jobid, "shell.start", "guest.exec.eventlog")
        return jobid

    def test_cancel(self):
        jobid = self.start()
        job.cancel(self.handle, jobid, "enough")
        info = job.result(self.handle, jobid)
        self.assertEqual(info.result, "CANCELED")
        self.assertEqual(
            (info.exception.type, info.exception.note), ("cancel", "enough")
        )
        with self.fails(errno.ENOENT, "job is inactive"):
            job.cancel_async(self.handle, jobid).get()
        with self.fails(errno.ENOENT, "unknown job id"):
            job.cancel(self.handle, UNKNOWN)

    def test_cancel_pending(self):
        jobid = job.submit(self.handle, self.jobspec(), urgency=0)
        job.cancel(self.handle, jobid)
        info = job.result(self.handle, jobid)
        self.assertEqual((info.result, info.returncode), ("CANCELED", -128))
        with self.assertRaisesRegex(JobException, "job.exception: type=cancel: "):
            job.event_wait(self.handle, jobid, "start")

    def test_kill(self):
        jobid = self.start()
        job.kill(self.handle, jobid, signal.SIGUSR1)
        info = job.result(self.handle, jobid)
        self.assertEqual(info.result, "FAILED")
        self.assertEqual(info.returncode, 128 + signal.SIGUSR1)
        with self.fails(errno.EINVAL, "job is inactive"):
            job.kill(self.handle, jobid)
        held = job.submit(self.handle, self.jobspec(), urgency=0)
        with self.fails(errno.EINVAL, "job is not running"):
            job.kill_async(self.handle, held).get()
        with self.fails(errno.EINVAL):
            job.kill(self.handle, held, 1000)
        with self.fails(errno.EINVAL, "unknown job id"):
            job.kill(self.handle, UNKNOWN)
        job.cancel(self.handle, held)

    def test_raise(self):
        jobid = self.start()
        job.job_raise(self.handle, jobid, "odd", 3, "look at this")
        event = job.event_wait(self.handle, jobid, "exception")
        self.assertEqual(
            {key: event.context[key] for key in ("type", "severity", "note", "userid")},
            {
                "type": "odd",
                "severity": 3,
                "note": "look at this",
                "userid": os.getuid(),
            },
        )
        job.job_raise_async(self.handle, jobid, "bad", note="over").get()
        info = job.result(self.handle, jobid)
        self.assertEqual((info.result, info.exception.type), ("FAILED", "bad"))
        with self.fails(errno.ENOENT):
            job.job_raise(self.handle, UNKNOWN, "x")
        other = self.start()
        for kind, severity, text in (
            ("a b", 0, "invalid exception type"),
            ("", 0, "invalid exception type"),
            ("x", 8, "invalid exception severity"),
            ("x", -1, "invalid exception severity"),
        ):
            with self.fails(errno.EPROTO, text):
                job.job_raise(self.handle, other, kind, severity)
        job.cancel(self.handle, other)

    def test_timelimit(self):
        spec = self.jobspec("sleep", "inf")
        spec.duration = "2s"
        info = job.result(self.handle, job.submit(self.handle, spec))
        self.assertEqual((info.result, info.exception.type), ("TIMEOUT", "timeout"))
        self.assertIn("resource allocation expired", info.exception.note)


class TestEvents(Case):
    ORDINARY = [
        "submit",
        "validate",
        "depend",
        "priority",
        "alloc",
        "start",
        "finish",
        "release",
        "free",
        "clean",
    ]

    def names(self, events):
        return [event.name for event in events if event.name != "annotations"]

    def test_watch(self):
        jobid = job.submit(self.handle, self.jobspec())
        events = list(job.event_watch(self.handle, jobid))
        self.assertEqual(self.names(events), self.ORDINARY)
        times = [event.timestamp for event in events]
        self.assertEqual(times, sorted(times))
        context = {event.name: event.context for event in events}
        self.assertEqual(
            context["submit"],
            {"userid": os.getuid(), "urgency": 16, "flags": 0, "version": 1},
        )
        self.assertEqual(context["priority"], {"priority": 16})
        self.assertEqual(context["finish"], {"status": 0})
        self.assertEqual(context["release"], {"ranks": "all", "final": True})
        self.assertEqual(context["free"], {})
        with self.fails(errno.ENOENT):
            next(job.event_watch(self.handle, UNKNOWN))
        with self.fails(errno.ENOENT):
            next(job.event_watch(self.handle, jobid, "nosuch"))

    def test_other_logs(self):
        jobid = job.submit(self.handle, self.jobspec())
        job.event_wait(self.handle, jobid, "clean")
        names = self.names(job.event_watch(self.handle, jobid, "guest.exec.eventlog"))
        self.assertEqual(names[0], "init")
        for name in (
            "starting",
            "shell.init",
            "shell.start",
            "complete",
            "done",
        ):
            self.assertIn(name, names)
        names = self.names(job.event_watch(self.handle, jobid, "guest.output"))
        self.assertEqual(names[0], "header")

    def test_wait(self):
        jobid = job.submit(self.handle, self.jobspec())
        event = job.event_wait(self.handle, jobid, "finish")
        self.assertEqual((event.name, event.context["status"]), ("finish", 0))
        with self.fails(errno.ENODATA, "eventlog ended before event='nosuch'"):
            job.event_wait(self.handle, jobid, "nosuch")
        bad = job.submit(self.handle, self.jobspec("/nosuch/program"))
        job.event_wait(self.handle, bad, "clean", raiseJobException=False)
        self.assertEqual(job.result(self.handle, bad).returncode, 127)

    def test_cancel(self):
        jobid = job.submit(self.handle, self.jobspec(), urgency=0)
        watch = job.event_watch_async(self.handle, jobid)
        seen = [watch.get_event().name for _ in range(4)]
        self.assertEqual(seen, self.ORDINARY[:4])
        self.assertFalse(watch.is_ready())
        watch.cancel()
        self.assertIsNone(watch.get_event())
        job.cancel(self.handle, jobid)

    def test_then(self):
        seen = []

        def changed(future, jobid):
            event = future.get_event()
            if event is None:
                self.handle.reactor_stop()
            else:
                seen.append(event)

        jobid = job.submit(self.handle, self.jobspec(simulated="0.01s"))
        job.event_watch_async(self.handle, jobid).then(changed, jobid)
        self.run_reactor()
        self.assertEqual(self.names(seen), self.ORDINARY)

    def test_journal(self):
        old = job.submit(self.handle, self.jobspec())
        job.event_wait(self.handle, old, "clean")
        consumer = JournalConsumer(self.handle, include_sentinel=True).start()
        events = []
        while not (event := consumer.poll(LIMIT)).is_empty():
            events.append(event)
        self.assertEqual(str(event), "-1: End of historical data stream")
        ours = [event for event in events if event.jobid == old]
        self.assertEqual(self.names(ours), self.ORDINARY)
        self.assertEqual(ours[0].jobspec["tasks"][0]["command"], ["true"])
        alloc = next(event for event in ours if event.name == "alloc")
        self.assertEqual(alloc.R["version"], 1)
        self.assertIn("jobspec=", str(ours[0]))
        new = job.submit(self.handle, self.jobspec())
        names = []
        while True:
            event = consumer.poll(LIMIT)
            if event.jobid == new:
                names.append(event.name)
                if event.name == "clean":
                    break
        self.assertEqual([n for n in names if n != "annotations"], self.ORDINARY)
        consumer.stop()
        self.assertIsNone(consumer.poll(LIMIT))
        self.assertTrue(JournalEvent(-1, {}).is_empty())

    def test_journal_of_the_active(self):
        old = job.submit(self.handle, self.jobspec())
        job.event_wait(self.handle, old, "clean")
        consumer = JournalConsumer(self.handle, full=False).start()
        self.assertEqual(consumer.request_payload, {"full": False})
        new = job.submit(self.handle, self.jobspec(), urgency=0)
        while (event := consumer.poll(LIMIT)).jobid != new:
            self.assertNotEqual(event.jobid, old)
        self.assertEqual(event.name, "submit")
        job.cancel(self.handle, new)
        consumer.stop()


class TestOutput(Case):
    def run_job(self, script, **kwargs):
        spec = self.jobspec("sh", "-c", script, **kwargs)
        spec.environment = dict(os.environ)
        return job.submit(self.handle, spec)

    def test_output(self):
        jobid = self.run_job("echo out; echo err >&2; printf nolf")
        output = job.job_output(self.handle, jobid)
        self.assertEqual((output.stdout, output.stderr), ("out\nnolf", "err\n"))
        job.event_wait(self.handle, jobid, "clean")
        self.assertEqual(job.job_output(self.handle, jobid, nowait=True), output)
        with self.assertRaises(FileNotFoundError):
            job.job_output(self.handle, UNKNOWN, nowait=True)
        with self.fails(errno.ENOENT):
            job.job_output(self.handle, UNKNOWN)

    def test_tasks(self):
        jobid = self.run_job("echo $FLUX_TASK_RANK", num_tasks=3)
        output = job.job_output(self.handle, jobid, labelio=True)
        self.assertEqual(sorted(output.stdout.splitlines()), ["0: 0", "1: 1", "2: 2"])
        output = job.job_output(self.handle, jobid, tasks="1-2")
        self.assertEqual(sorted(output.stdout.splitlines()), ["1", "2"])
        output = job.job_output(self.handle, jobid, tasks="7")
        self.assertEqual(output.stdout, "")

    def test_exception(self):
        jobid = job.submit(self.handle, self.jobspec(), urgency=0)
        job.cancel(self.handle, jobid)
        with self.assertRaises(JobException):
            job.job_output(self.handle, jobid)

    def test_watch(self):
        jobid = self.run_job("printf 'a\\nb\\n'; echo c >&2")
        parts = {"stdout": "", "stderr": ""}
        for stream, data in job.output_watch(self.handle, jobid):
            parts[stream] += data
        self.assertEqual(parts, {"stdout": "a\nb\n", "stderr": "c\n"})
        lines = sorted(job.output_watch_lines(self.handle, jobid, labelio=True))
        self.assertEqual(
            lines, [("stderr", "0: c"), ("stdout", "0: a"), ("stdout", "0: b")]
        )
        lines = list(
            job.output_watch_lines(self.handle, jobid, keepends=True, nowait=True)
        )
        self.assertIn(("stdout", "b\n"), lines)
        events = list(job.output_event_watch(self.handle, jobid))
        self.assertIsInstance(events[0], OutputHeaderEvent)
        header = events[0]
        self.assertEqual((header.version, header.stdout_count), (1, 1))
        self.assertEqual(header.stdout_encoding, "UTF-8")
        ends = [event.stream for event in events if event.name == "data" and event.eof]
        self.assertEqual(sorted(ends), ["stderr", "stdout"])
        with self.fails(errno.ENOENT):
            list(job.output_event_watch(self.handle, UNKNOWN))

    def test_watch_in_reactor(self):
        seen = []

        def output(future):
            stream, data = future.get_output()
            if data is None:
                self.handle.reactor_stop()
            else:
                seen.append((stream, data))

        job.output_watch_async(self.handle, self.run_job("echo x")).then(output)
        self.run_reactor()
        self.assertEqual(seen, [("stdout", "x\n")])
        watch = job.output_watch_lines_async(self.handle, self.run_job("echo y"))
        self.assertEqual(watch.getline(), ["stdout", "y"])
        watch = job.output_event_watch_async(self.handle, self.run_job("echo y"))
        self.assertEqual(watch.get_event().name, "header")

    def test_binary(self):
        jobid = self.run_job("printf '\\377\\376'")
        output = job.job_output(self.handle, jobid)
        self.assertEqual(output.stdout.encode("utf-8", "surrogateescape"), b"\xff\xfe")

    def test_log(self):
        """Messages of the shell are in the output, too."""
        jobid = job.submit(self.handle, self.jobspec("/nosuch/program"))
        events = list(job.output_event_watch(self.handle, jobid))
        log = next(event for event in events if event.name == "log")
        self.assertIsInstance(log, LogEvent)
        self.assertEqual((log.level, log.levelstr), (0, "FATAL"))
        self.assertIn("/nosuch/program: No such file or directory", log.message)
        self.assertTrue(log.render().startswith("flux-shell[0]: FATAL: "))
        output = job.job_output(self.handle, jobid)
        self.assertIn("No such file or directory", output.stderr)

    def test_tasksets(self):
        every, some = Taskset("all"), Taskset("1-3")
        self.assertEqual((str(every), str(some)), ("all", "1-3"))
        self.assertEqual(str(some.intersect("2-9")), "2-3")
        self.assertEqual(str(every.intersect(some)), "1-3")
        self.assertEqual(str(some.intersect(every)), "1-3")
        self.assertTrue(every and some)
        self.assertFalse(Taskset(""))


class TestExecutor(Case):
    def test_submit(self):
        seen = []
        with FluxExecutor(poll_interval=0.01) as executor:
            good = executor.submit(self.jobspec())
            bad = executor.submit(self.jobspec("sh", "-c", "exit 2"))
            wrong = executor.submit("{}")
            for future in good, bad:
                future.add_jobid_callback(lambda f: seen.append("jobid"))
                future.add_event_callback("clean", lambda f, e: seen.append(e.name))
                self.assertIs(future.add_done_callback(lambda f: None), future)
            with self.assertRaises(ValueError):
                good.add_event_callback("nosuch", print)
            self.assertEqual((good.result(LIMIT), bad.result(LIMIT)), (0, 2))
            self.assertIsNone(good.exception(LIMIT))
            self.assertGreater(bad.jobid(LIMIT), 0)
            self.assertIsInstance(wrong.exception(LIMIT), OSError)
            with self.assertRaisesRegex(RuntimeError, "job could not be submitted"):
                wrong.jobid(LIMIT)
        self.assertEqual(sorted(seen), ["clean"] * 2 + ["jobid"] * 2)
        with self.assertRaises(RuntimeError):
            executor.submit(self.jobspec())

    def test_attach(self):
        jobid = job.submit(self.handle, self.jobspec())
        executor = FluxExecutor(threads=2, poll_interval=0.01)
        self.assertEqual(executor.attach(jobid).result(LIMIT), 0)
        with self.assertRaisesRegex(ValueError, "does not match any job"):
            executor.attach(UNKNOWN).result(LIMIT)
        held = job.submit(self.handle, self.jobspec(), urgency=0)
        future = executor.attach(held)
        job.cancel(self.handle, held)
        self.assertIsInstance(future.exception(LIMIT), JobException)
        executor.shutdown()

    def test_cancel(self):
        future = FluxExecutorFuture(0)
        with self.assertRaises(concurrent.futures.TimeoutError):
            future.jobid(0.001)
        self.assertTrue(future.cancel())
        self.assertTrue(future.cancel())
        with self.assertRaises(concurrent.futures.CancelledError):
            future.jobid()
