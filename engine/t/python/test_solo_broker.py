# SPDX-License-Identifier: LGPL-3.0-only
"""The broker: attributes, services, events, log, modules, users, start."""

import base64
import ctypes
import errno
import glob
import json
import os
import select
import shutil
import signal
import struct
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import flux
import pytest
import solo_support
from flux.constants import (
    FLUX_MSGTYPE_RESPONSE,
    FLUX_RPC_NORESPONSE,
    FLUX_RPC_STREAMING,
)
from flux.core.inner import raw
from instance_support import FLUX
from solo_support import Instance, load_module, processes, remove_module, start

pytestmark = pytest.mark.skipif(
    not solo_support.available() or not solo_support.is_solo(), reason="needs solo"
)

ECHO = """
from flux.brokermod import BrokerModule, request_handler

class Echo(BrokerModule):
    @request_handler("say", allow_guest=True)
    def say(self, msg):
        self.handle.respond(msg, {"name": self.name, "args": list(self.args),
                                  "payload": msg.payload})

    @request_handler("wait")
    def wait(self, msg):
        pass

    @request_handler("config-reload")
    def reload(self, msg):
        if "bad" in msg.payload:
            self.handle.respond_error(msg, 22, "bad is not allowed")
        else:
            self.handle.respond(msg, None)

    @request_handler("hang")
    def hang(self, msg):
        import signal
        self.handle.respond(msg, None)
        signal.pause()

    @request_handler("die")
    def die(self, msg):
        import os
        os._exit(3)
"""


@pytest.fixture(scope="module", name="instance")
def fixture_instance():
    with Instance("--scheduler=none", size=4) as instance:
        yield instance
        assert instance.close() == 0


@pytest.fixture(name="handle")
def fixture_handle(instance):
    return instance.open()


@pytest.fixture(name="echo")
def fixture_echo(handle, tmp_path):
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    load_module(handle, str(path), ["one", "two"])
    yield "echo"
    remove_module(handle, "echo")


def test_attributes(handle):
    assert handle.attr_get("size") == "4"
    assert handle.attr_get("rank") == "0"
    assert handle.attr_get("hostlist") == "node[0-3]"
    assert handle.attr_get("instance-level") == "0"
    with pytest.raises(FileNotFoundError):
        handle.attr_get("no-such-attribute")
    handle.attr_set("test.foo", "bar")
    assert handle.attr_get("test.foo") == "bar"
    with pytest.raises(OSError, match="may not be updated"):
        handle.rpc("attr.set", {"name": "size", "value": "5"}).get()


def test_unknown_service(handle):
    with pytest.raises(OSError, match="No service matching foo.bar is reg") as exc:
        handle.rpc("foo.bar").get()
    assert exc.value.errno == errno.ENOSYS


def test_no_such_node(handle):
    assert handle.rpc("attr.get", {"name": "rank"}, nodeid=3).get()
    with pytest.raises(OSError) as exc:
        handle.rpc("attr.get", {"name": "rank"}, nodeid=4).get()
    assert exc.value.errno == errno.EHOSTUNREACH


SERVICE = """
import flux, os
h = flux.Flux()

def callback(_h, _mtype, msg, _arg):
    if msg.topic == "clientsvc.echo":
        h.respond(msg, {"got": msg.payload})
    elif msg.topic == "clientsvc.die":
        os._exit(0)

h.service_register("clientsvc").get()
watcher = h.msg_watcher_create(callback, topic_glob="clientsvc.*")
watcher.start()
print("ready", flush=True)
h.reactor_run()
"""


def test_client_service_and_its_end(instance, handle):
    with subprocess.Popen(
        [sys.executable, "-c", SERVICE],
        env=dict(os.environ, FLUX_URI=instance.uri),
        stdout=subprocess.PIPE,
    ) as client:
        assert client.stdout.readline() == b"ready\n"
        with pytest.raises(FileExistsError):
            handle.service_register("clientsvc").get()
        assert handle.rpc("clientsvc.echo", {"a": 1}).get() == {"got": {"a": 1}}
        pending = handle.rpc("clientsvc.hold")
        handle.rpc("clientsvc.die", flags=FLUX_RPC_NORESPONSE)
        with pytest.raises(OSError) as exc:
            pending.get()
        assert exc.value.errno == errno.EHOSTUNREACH
        with pytest.raises(OSError, match="No service matching"):
            handle.rpc("clientsvc.echo").get()


def test_events(instance, handle):
    other = instance.open()
    handle.event_subscribe("foo.a")
    other.event_send("foo.b", {"n": 1})
    other.event_send("foo.a", {"n": 2})
    other.event_send("foo.aa", {"n": 3})
    first = handle.event_recv()
    second = handle.event_recv()
    assert (first.topic, first.payload) == ("foo.a", {"n": 2})
    assert (second.topic, second.payload) == ("foo.aa", {"n": 3})
    handle.event_unsubscribe("foo.a")
    with pytest.raises(FileNotFoundError):
        handle.rpc("event.unsubscribe", {"topic": "foo.a"}).get()


def test_log(handle):
    handle.log(6, "first entry")
    follower = handle.rpc(
        "log.dmesg", {"follow": True, "nobacklog": True}, flags=FLUX_RPC_STREAMING
    )
    handle.log(6, "second entry")
    assert "second entry" in follower.get_str()
    backlog = handle.rpc("log.dmesg", {"follow": False}, flags=FLUX_RPC_STREAMING)
    entries = []
    while True:
        try:
            entries.append(backlog.get_str())
        except OSError as exc:
            assert exc.errno == errno.ENODATA
            break
        backlog.reset()
    assert any("first entry" in entry for entry in entries)


def test_python_module(handle, echo):
    reply = handle.rpc(f"{echo}.say", {"x": 1}).get()
    assert reply == {"name": "echo", "args": ["one", "two"], "payload": {"x": 1}}
    mods = {m["name"]: m for m in handle.rpc("module.list").get()["mods"]}
    assert mods[echo]["status"] == 1
    assert mods[echo]["services"] == ["echo"]
    with pytest.raises(FileExistsError):
        load_module(handle, mods[echo]["path"])


def test_python_module_killed(handle, tmp_path):
    path = tmp_path / "mortal.py"
    path.write_text(ECHO)
    handle.attr_set("broker.module-nopanic", "1")
    load_module(handle, str(path))
    pending = handle.rpc("mortal.wait")
    handle.rpc("mortal.die", flags=FLUX_RPC_NORESPONSE)
    with pytest.raises(OSError) as exc:
        pending.get()
    assert exc.value.errno == errno.EHOSTUNREACH
    with pytest.raises(FileNotFoundError):
        remove_module(handle, "mortal")
    handle.attr_set("broker.module-nopanic", "0")


def test_instance_ends_with_its_kvs():
    """Requests that wait are answered."""
    with Instance() as instance:
        handle = instance.open()
        watch = handle.rpc(
            "kvs-watch.lookup",
            {"key": "not.there", "namespace": "primary", "flags": 8},
        )
        (pid,) = processes(handle, "kvs")
        os.kill(pid, signal.SIGKILL)
        with pytest.raises(OSError) as exc:
            watch.get()
        assert exc.value.errno == errno.EHOSTUNREACH
        del handle, watch
        assert instance.close() == 1
        assert "kvs: module process was killed: Killed" in instance.stderr


def test_modules_end_with_their_interpreter(tmp_path):
    """The next module starts another one."""
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    with Instance("-Sbroker.rc1_path=") as instance:
        handle = instance.open()
        handle.attr_set("broker.module-nopanic", "1")
        load_module(handle, str(path))
        pending = handle.rpc("echo.wait")
        (pid,) = processes(handle, "echo")
        stat = Path(f"/proc/{pid}/stat").read_text()
        os.kill(int(stat.rpartition(")")[2].split()[1]), signal.SIGKILL)
        with pytest.raises(OSError) as exc:
            pending.get()
        assert exc.value.errno == errno.EHOSTUNREACH
        load_module(handle, str(path))
        assert handle.rpc("echo.say", {}).get()["name"] == "echo"
        del handle, pending
        assert instance.close() == 0


def test_modules_end_with_a_killed_broker(tmp_path):
    """Also one that would not see it."""
    path = tmp_path / "echo.py"
    path.write_text(ECHO)
    with Instance() as instance:
        handle = instance.open()
        load_module(handle, str(path))
        handle.rpc("echo.hang").get()
        assert processes(handle, "echo")
        pids = [os.pidfd_open(pid) for pid in processes(handle)]
        del handle
        instance.kill()
        for pid in pids:
            assert select.select([pid], [], [], 60)[0]
            os.close(pid)


def test_interrupt_is_for_the_broker(tmp_path):
    """A terminal sends it to all processes: the KVS serves until jobs have ended."""
    done = subprocess.run(
        [FLUX, "start", f"--statedir={tmp_path}"]
        + [
            "sh",
            "-c",
            "flux submit --wait-event=start sleep 1000; kill -INT 0; sleep 9",
        ],
        capture_output=True,
        text=True,
        timeout=60,
        start_new_session=True,
    )
    assert done.returncode == 128 + signal.SIGINT
    assert "failure" not in done.stderr
    with Instance(f"--statedir={tmp_path}") as instance:
        handle = instance.open()
        (job,) = handle.rpc(
            "job-list.list", {"max_entries": 0, "attrs": ["result", "exception_note"]}
        ).get()["jobs"]
        assert job["exception_note"] == "instance shutdown"


def test_python_hides_an_old_shared_object(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "echo.so").write_bytes(b"of an older version")
    path = {"FLUX_MODULE_PATH_PREPEND": str(tmp_path)}
    with Instance("-Sbroker.rc1_path=", env=path) as instance:
        handle = instance.open()
        load_module(handle, "echo")
        assert handle.rpc("echo.say", {}).get()["name"] == "echo"


def test_module_errors(handle, tmp_path):
    with pytest.raises(FileNotFoundError, match="not found in search path"):
        load_module(handle, "no-such-module")
    bad = tmp_path / "bad.py"
    bad.write_text("def mod_main(h, *args):\n    raise OSError(17, 'no')\n")
    with pytest.raises(FileExistsError):
        load_module(handle, str(bad))
    empty = tmp_path / "empty.py"
    empty.write_text("x = 1\n")
    with pytest.raises(OSError):
        load_module(handle, str(empty))
    with pytest.raises(FileNotFoundError):
        remove_module(handle, "no-such-module")


def test_config(handle, echo):
    before = handle.rpc("config.get").get()
    stream = handle.rpc("config.get", flags=FLUX_RPC_STREAMING)
    assert stream.get() == before
    stream.reset()
    handle.rpc("config.load", {"good": {"x": 1}}).get()
    assert stream.get() == {"good": {"x": 1}}
    with pytest.raises(OSError, match="error updating echo: bad is not allowed"):
        handle.rpc("config.load", {"bad": 1}).get()
    assert handle.rpc("config.get").get() == {"good": {"x": 1}}
    handle.rpc("config.load", before).get()


def test_guests(instance, handle, echo, monkeypatch):
    monkeypatch.setenv("FLUX_HANDLE_USERID", "1234")
    monkeypatch.setenv("FLUX_HANDLE_ROLEMASK", "2")
    guest = instance.open()
    assert guest.rpc(f"{echo}.say", {}).get()["name"] == "echo"
    for topic, payload in (
        ("module.remove", {"name": "kvs"}),
        ("config.load", {}),
        ("attr.set", {"name": "test.x", "value": "y"}),
        (f"{echo}.wait", {}),
        ("service.add", {"service": "foo"}),
        ("kvs.lookup", {"key": "a", "namespace": "primary", "flags": 0}),
    ):
        with pytest.raises(PermissionError):
            guest.rpc(topic, payload).get()
    guest.rpc("service.add", {"service": "1234-foo"}).get()


def as_guest(function):
    """Have another user call function; returns its result, or errno."""
    rfd, wfd = os.pipe()
    pid = os.fork()
    if pid == 0:
        try:
            os.setgroups([])
            os.setgid(65534)
            os.setuid(65534)
            result = function()
        except OSError as exc:
            result = exc.errno
        except BaseException as exc:
            result = repr(exc)
        os.write(wfd, json.dumps(result).encode())
        os._exit(0)
    os.close(wfd)
    with open(rfd) as stream:
        result = json.load(stream)
    os.waitpid(pid, 0)
    return result


@pytest.fixture(name="shared")
def fixture_shared():
    """An instance whose socket other users can reach."""
    if os.getuid() != 0:
        pytest.skip("only root can play other users")
    with tempfile.TemporaryDirectory() as rundir:
        os.chmod(rundir, 0o711)
        with Instance("--scheduler=none", f"--rundir={rundir}") as instance:
            yield instance


def test_other_users(shared, tmp_path):
    handle = shared.open()
    (tmp_path / "echo.py").write_text(ECHO)
    load_module(handle, str(tmp_path / "echo.py"))
    private = glob.glob(os.path.dirname(shared.uri[8:]) + "/module-*")
    assert private

    def connect(uri):
        return as_guest(lambda: flux.Flux(uri).attr_get("size"))

    assert connect(shared.uri) == errno.EPERM
    handle.rpc("config.load", {"access": {"allow-guest-user": True}}).get()
    assert connect(shared.uri) == "1"
    # who connects there speaks for the owner
    for path in private:
        assert connect(f"local://{path}") == errno.EPERM


def test_guest_cannot_answer_for_others(shared, tmp_path):
    handle = shared.open()
    os.mkfifo(tmp_path / "go")
    (tmp_path / "echo.py").write_text(
        ECHO.replace(
            'if "bad" in',
            f'bad = "bad" in msg.payload and open("{tmp_path}/go")\n'
            '        if "bad" in',
        )
    )
    load_module(handle, str(tmp_path / "echo.py"))
    handle.rpc("config.load", {"access": {"allow-guest-user": True}}).get()

    def forge():
        guest = flux.Flux(shared.uri)
        for tag in range(1, 1000):
            msg = raw.flux_msg_create(FLUX_MSGTYPE_RESPONSE)
            raw.flux_msg_set_topic(msg, "x")
            raw.flux_msg_set_matchtag(msg, tag)
            raw.flux_send(guest.handle, msg, 0)
        return guest.attr_get("size")

    # The broker asks echo, which will refuse; the guest answers first.
    load = handle.rpc("config.load", {"bad": 1})
    handle.rpc("attr.get", {"name": "rank"}).get()
    assert as_guest(forge) == "1"
    (tmp_path / "go").write_text("")
    with pytest.raises(OSError, match="bad is not allowed"):
        load.get()


def test_signed_by_nobody(handle):
    """Two versions do not make up for the userid."""
    header = b"version\0i1\0version\0i1\0mechanism\0snone\0"
    parts = [base64.b64encode(part).decode() for part in (header, b"{}")]
    job = {"J": ".".join([*parts, "none"]), "urgency": 16, "flags": 0}
    with pytest.raises(OSError, match="unwrap"):
        handle.rpc("job-ingest.submit", job).get()


def test_many_clients(instance):
    clients = [instance.open() for _ in range(200)]
    futures = [c.rpc("attr.get", {"name": "size"}) for c in clients]
    assert [f.get()["value"] for f in futures] == ["4"] * 200


def test_many_futures(handle):
    """Futures that were waited for and are kept cost no descriptors."""
    before = len(os.listdir("/proc/self/fd"))
    futures = [handle.rpc("attr.get", {"name": "size"}) for _ in range(1200)]
    assert {f.get()["value"] for f in futures} == {"4"}
    assert len(os.listdir("/proc/self/fd")) <= before + 5


def test_exit_codes():
    assert start("true").returncode == 0
    assert start("exit 7").returncode == 7
    assert start("sh", "-c", "exit 8").returncode == 8
    assert start("kill -TERM $$").returncode == 128 + signal.SIGTERM
    assert start("--no-such-option").returncode == 1
    assert start("--scheduler=no-such-module", "true").returncode == 1


def test_attributes_that_are_options(tmp_path):
    state, rundir, uri = tmp_path / "state", tmp_path / "run", f"local://{tmp_path}/s"
    options = [f"-Sstatedir={state}", f"-o-Srundir={rundir},-Slocal-uri={uri}"]
    show = "for name in statedir rundir local-uri; do flux getattr $name; done"
    script = f"{show}; flux kvs put a=1"
    result = start(*options, "--scheduler=none", script)
    assert result.stdout.split() == [str(state), str(rundir), uri], result.stderr
    result = start(*options, "--scheduler=none", "flux kvs get a")
    assert result.stdout == "1\n", result.stderr
    result = start("-Slocal-uri=/tmp/s", "true")
    assert result.returncode == 1
    assert "not of the form local://PATH" in result.stderr


def test_failed_start_leaves_nothing():
    # The path of a socket may not be as long as those of pytest's directories.
    with tempfile.TemporaryDirectory(dir="/tmp") as tmp:
        env = dict(os.environ, TMPDIR=tmp)
        result = start("-Sno-such-attribute=1", "--scheduler=none", "true", env=env)
        assert result.returncode == 1
        assert "unknown attribute" in result.stderr
        assert os.listdir(tmp) == []


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give files away")
@pytest.mark.parametrize("option", ["--statedir", "--rundir"])
def test_directory_of_another_user(tmp_path, option):
    os.chown(tmp_path, 65534, 65534)
    result = start(f"{option}={tmp_path}", "--scheduler=none", "true")
    assert result.returncode == 1
    assert "not owned by the instance owner" in result.stderr


def test_environment_of_program(tmp_path):
    out = start("--test-hosts=a[1-2],b", "-s3", "-Stest.x=y", "env").stdout
    assert "FLUX_URI=local://" in out
    rundir = out.split("FLUX_URI=local://")[1].split("/local-0")[0]
    assert not os.path.exists(rundir)
    done = start("--test-hosts=a[1-2]", "-s3", "true")
    assert done.returncode == 1
    assert "3 nodes, but 2 host names" in done.stderr


def test_config_path(tmp_path):
    (tmp_path / "a.toml").write_text("[bar]\nfoo = 1\n")
    (tmp_path / "b.toml").write_text("[foo]\nbar = 1\n")
    with Instance(f"--config-path={tmp_path}", size=3) as instance:
        h = instance.open()
        assert h.rpc("config.get").get()["foo"] == {"bar": 1}
        (tmp_path / "b.toml").write_text("[foo]\nbar = 2\n")
        h.rpc("config.reload").get()
        assert h.rpc("config.get").get()["foo"] == {"bar": 2}
        (tmp_path / "b.toml").write_text("[foo\n")
        with pytest.raises(OSError, match="b.toml"):
            h.rpc("config.reload").get()


def test_config_reader_inherits_nothing(tmp_path):
    python = tmp_path / "python"
    python.write_text(f"""#!{sys.executable}
import os, sys
for fd in os.listdir("/proc/self/fd"):
    if int(fd) > 2 and os.path.exists("/proc/self/fd/" + fd):
        print(fd, os.readlink("/proc/self/fd/" + fd), file=sys.stderr)
os.execv(sys.executable, [sys.executable] + sys.argv[1:])
""")
    python.chmod(0o755)
    (tmp_path / "flux.toml").write_text("[a]\nb = 1\n")
    result = start(
        f"--config-path={tmp_path}/flux.toml",
        *("--scheduler=none", "-Sbroker.rc1_path=", "true"),
        env=dict(os.environ, FLUX_PYTHON=str(python)),
    )
    assert (result.returncode, result.stderr) == (0, "")


def refuse_pidfd_open():
    """As old kernels and some sandboxes do."""
    number = {"x86_64": 434, "aarch64": 434}[os.uname().machine]
    program = struct.pack(
        "HBBIHBBIHBBIHBBI",
        *(0x20, 0, 0, 0),  # load the number of the system call
        *(0x15, 0, 1, number),
        *(0x06, 0, 0, 0x00050000 | errno.ENOSYS),
        *(0x06, 0, 0, 0x7FFF0000),
    )
    code = ctypes.create_string_buffer(program, len(program))
    fprog = struct.pack("HxxxxxxP", 4, ctypes.addressof(code))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, fprog, 0, 0):
        raise OSError(ctypes.get_errno(), "prctl")


def test_without_pidfd_open():
    result = start("flux run echo hello", preexec_fn=refuse_pidfd_open)
    assert (result.returncode, result.stdout) == (0, "hello\n"), result.stderr


def test_shutdown_gives_up_on_jobs():
    """A job that takes long to end does not keep the instance alive."""
    job = "sh -c 'trap : TERM; touch ready; while :; do sleep 0.1; done'"
    command = f"flux submit --wait-event=start {job} && until test -e ready; do :; done"
    with tempfile.TemporaryDirectory() as cwd:
        done = start("-Sbroker.cleanup-timeout=0.5", command, cwd=cwd)
    assert done.returncode == 0, done.stderr
    assert "giving up on jobs" in done.stderr


def test_modules_of_config(tmp_path):
    (tmp_path / "echo.py").write_text(ECHO)
    (tmp_path / "a.toml").write_text(
        f'modules = [{{ module = "{tmp_path}/echo.py", name = "two", args = ["x"] }}]'
    )
    options = ["--scheduler=none", f"--config-path={tmp_path}/a.toml"]
    with Instance(*options) as instance:
        reply = instance.open().rpc("two.say", {}).get()
        assert (reply["name"], reply["args"]) == ("two", ["x"])


def test_program_from_stdin():
    done = start("--scheduler=none", input="echo $FLUX_URI; exit 3", env=None)
    assert done.returncode == 3
    assert done.stdout.startswith("local://")


def test_sigterm():
    instance = Instance("--scheduler=none")
    instance.process.send_signal(signal.SIGTERM)
    deadline = time.monotonic() + 30
    while instance.process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
    assert instance.process.poll() not in (None, 0)
    assert not os.path.exists(instance.uri[len("local://") :])
    instance.process.communicate()


def test_refused_configuration_is_no_format(tmp_path):
    (tmp_path / "exec.toml").write_text('[exec]\nkill-timeout = "%s%n"\n')
    done = start(f"--config-path={tmp_path}", "--scheduler=none", "true")
    assert done.returncode == 1
    assert "error loading job-exec: Invalid argument" in done.stderr
    assert "invalid kill-timeout: %s%n" in done.stderr


def test_no_start_compiles_python():
    """Bytecode is installed, as those who start an instance may not be able to write
    any."""
    prefix = Path(str(shutil.which(FLUX))).parents[1]
    sources = [
        *prefix.glob("lib/flux-solo/modules/*.py"),
        *prefix.glob("libexec/flux-solo/*.py"),
        *prefix.glob("lib/flux/modules/*.py"),
    ]
    assert {"kvs.py", "kvs_tree.py", "sched-rabbit.py"} <= {p.name for p in sources}
    for source in sources:
        name = f"{source.stem}.{sys.implementation.cache_tag}.pyc"
        header = (source.parent / "__pycache__" / name).read_bytes()[:16]
        flags, mtime, size = struct.unpack("<4xIII", header)
        stat = source.stat()
        assert (flags, mtime, size) == (0, int(stat.st_mtime), stat.st_size), source
