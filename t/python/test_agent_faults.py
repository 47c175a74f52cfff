# What can go wrong between the agent and the API server, each against a server
# on a socket: a small one that can be made to do anything, and dws-sim.
# SPDX-License-Identifier: LGPL-3.0-only
import datetime
import email.utils
import http.server
import json
import pathlib
import queue
import socket
import ssl
import threading
import time

import kubernetes.config
import pytest
from flux_k8s import comeback, commands, kube, watch
from flux_k8s.kube import UNREACHABLE, ApiError, Kube
from flux_k8s.kubeconfig import ConfigError
from flux_k8s.watch import Sink, WatchThread, pause_s
from sim_support import SOURCE, Sim, workflow

LIMIT_S = 20
GROUP = "/apis/dataworkflowservices.github.io"
WORKFLOWS = f"{GROUP}/v1alpha7/workflows"
VERSIONS = {"versions": [{"version": "v1alpha6"}, {"version": "v1alpha7"}]}
assert SOURCE


def status(code, reason, message):
    return {
        "kind": "Status",
        "status": "Failure",
        "code": code,
        "reason": reason,
        "message": message,
    }


class Handler(http.server.BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"

    def send(self, code, body, headers=()):
        data = body if isinstance(body, bytes) else json.dumps(body).encode()
        self.send_response(code)
        for name, value in headers:
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(data)))
        self.end_headers()
        self.wfile.write(data)

    def stream(self, *events):
        """Begin a watch and leave it open."""
        self.send_response(200)
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        for event in events:
            data = json.dumps(event).encode() + b"\n"
            self.wfile.write(b"%x\r\n%s\r\n" % (len(data), data))

    def end_stream(self):
        self.wfile.write(b"0\r\n\r\n")

    def serve(self):
        self.body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        self.server.seen.append((self.command, self.path, self.headers))
        if self.path == GROUP and not self.server.no_discovery:
            self.send(200, VERSIONS)
            return
        if not self.known():
            self.send(401, status(401, "Unauthorized", "Unauthorized"))
            return
        if self.server.script:
            self.server.script.pop(0)(self)
        else:
            self.send(200, {"kind": "Workflow", "metadata": {"name": "w"}})

    def known(self):
        """Has the client got the token, or the certificate, that it needs?"""
        if self.server.subject is not None:
            shown = self.connection.getpeercert()
            return shown["subject"] == ((("commonName", self.server.subject),),)
        return self.server.token in (None, self.headers.get("Authorization"))

    do_GET = do_POST = do_PATCH = do_DELETE = serve

    def log_message(self, *args):
        pass


class Server:
    """An API server that does what its script says, then answers well."""

    def __init__(self, directory, context=None):
        self.directory = directory
        self.http = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.http.daemon_threads = True
        self.http.seen = []
        self.http.script = []
        self.http.token = None
        self.http.subject = None
        self.http.no_discovery = False
        self.scheme = "http"
        if context is not None:
            self.scheme = "https"
            self.http.socket = context.wrap_socket(self.http.socket, server_side=True)
        self.port = self.http.server_address[1]
        threading.Thread(target=self.http.serve_forever, daemon=True).start()

    def kubeconfig(self, token="first", ca=None, user=None):
        path = self.directory / "kubeconfig"
        cluster = {"server": f"{self.scheme}://127.0.0.1:{self.port}"}
        if ca is not None:
            cluster["certificate-authority"] = str(ca)
        config = {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "c",
            "contexts": [{"name": "c", "context": {"cluster": "k", "user": "u"}}],
            "clusters": [{"name": "k", "cluster": cluster}],
            "users": [{"name": "u", "user": user or {"token": token}}],
        }
        path.write_text(json.dumps(config))
        return str(path)

    def kube(self, **options):
        return Kube(self.kubeconfig(**options))

    def close(self):
        self.http.shutdown()
        self.http.server_close()


@pytest.fixture
def server(tmp_path):
    made = Server(tmp_path)
    yield made
    made.close()


@pytest.fixture(autouse=True)
def fast(monkeypatch):
    monkeypatch.setattr(commands, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(watch, "BACKOFF_FIRST_S", 0.001)
    monkeypatch.setattr(kube, "RELOAD_INTERVAL_S", 0.0)


def answer(code, reason="", message="no", headers=()):
    return lambda handler: handler.send(code, status(code, reason, message), headers)


def cut(handler):
    """Close the connection in the middle of an answer."""
    handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{")
    handler.close_connection = True


def never(handler):
    """Say nothing until the client gives up."""
    handler.connection.settimeout(LIMIT_S)
    handler.rfile.read(1)
    handler.close_connection = True


def run(api, *todo):
    """Have commands carried out; their results and what trouble they had."""
    results, trouble = queue.Queue(), []
    pool = commands.CommandQueue(api, 2, results.put, trouble.append)
    for seq, command in enumerate(todo):
        pool.submit(
            {
                "kind": "workflows",
                "namespace": "default",
                "name": "w",
                "seq": seq,
                **command,
            }
        )
    got = [results.get(timeout=LIMIT_S) for _ in todo]
    pool.stop()
    return got, trouble


GET = {"op": "get"}
PATCH = {"op": "patch", "patch": {"spec": {"desiredState": "Setup"}}}


@pytest.mark.parametrize("code", [429, 500, 502, 503, 504, 408])
def test_a_server_in_trouble_is_asked_again(server, code):
    server.http.script = [answer(code), answer(code)]
    got, trouble = run(server.kube(), PATCH)
    assert got[0]["ok"]
    assert [t["status"] for t in trouble] == [code]


@pytest.mark.parametrize("fault", [cut, never])
def test_an_answer_that_does_not_come_is_waited_for_so_long(server, monkeypatch, fault):
    monkeypatch.setattr(kube, "READ_TIMEOUT_S", 0.2)
    server.http.script = [fault]
    got, trouble = run(server.kube(), GET)
    assert got[0]["ok"]
    assert [t["status"] for t in trouble] == [0]


def test_nonsense_for_an_answer_is_trouble(server):
    server.http.script = [lambda h: h.send(200, b"<html>proxy</html>")]
    got, trouble = run(server.kube(), GET)
    assert got[0]["ok"] and len(trouble) == 1


@pytest.mark.parametrize("code", [302, 400, 403, 407, 422])
def test_a_refusal_that_is_not_the_servers_is_trouble(server, code):
    """A proxy in between must not make a job fail."""
    page = b"<html>access denied by policy</html>"
    server.http.script = [lambda h: h.send(code, page)]
    got, trouble = run(server.kube(), PATCH)
    assert got[0]["ok"] and len(trouble) == 1
    assert str(code) in trouble[0]["message"] and "denied" in trouble[0]["message"]


FORBIDDEN = 'workflows is forbidden: User "flux" cannot patch resource "workflows"'


def test_a_server_that_has_just_started_has_not_read_its_rules(server):
    server.http.script = [cut, answer(403, "Forbidden", FORBIDDEN)]
    got, trouble = run(server.kube(), PATCH)
    assert got[0]["ok"] and len(trouble) == 2
    assert FORBIDDEN in trouble[1]["message"]


def test_a_refusal_of_any_other_time_stands(server):
    api = server.kube()
    server.http.script = [answer(403, "Forbidden", FORBIDDEN)]
    got, trouble = run(api, PATCH)
    assert (got[0]["status"], got[0]["message"]) == (403, FORBIDDEN)
    assert not trouble
    # as does that of a webhook, even then
    text = 'admission webhook "vworkflow.kb.io" denied the request: no'
    server.http.script = [cut, answer(403, "Forbidden", text)]
    got, _ = run(api, PATCH)
    assert (got[0]["status"], got[0]["message"]) == (403, text)


def test_a_refusal_that_stands_is_not_waited_for_again(server):
    """Having waited for rules that do not come is no trouble of the server."""
    api = server.kube()
    now = [0.0]
    api.comeback = comeback.Comeback(lambda: now[0])
    server.http.script = [answer(503), *[answer(403, "Forbidden", FORBIDDEN)] * 2]
    tried = []

    def tell(report):
        tried.append(report)
        now[0] += comeback.SETTLE_S * 0.6

    results = queue.Queue()
    pool = commands.CommandQueue(api, 1, results.put, tell)
    pool.submit({"kind": "workflows", "namespace": "default", "name": "w", **PATCH})
    assert results.get(timeout=LIMIT_S)["status"] == 403
    assert len(tried) == 2
    server.http.script = [answer(403, "Forbidden", FORBIDDEN)]
    pool.submit({"kind": "workflows", "namespace": "default", "name": "w", **PATCH})
    assert results.get(timeout=LIMIT_S)["status"] == 403
    assert len(tried) == 2
    pool.stop()


def test_rules_that_are_not_read_for_long_are_none(server, monkeypatch):
    monkeypatch.setattr(comeback, "SETTLE_S", 0.0)
    server.http.script = [cut, answer(403, "Forbidden", FORBIDDEN)]
    got, _ = run(server.kube(), PATCH)
    assert got[0]["status"] == 403


def test_nobody_listens(server):
    """Connection refused; the kubeconfig says by and by where somebody does."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port, server.port = server.port, reserved.getsockname()[1]
        api = server.kube()
        with pytest.raises(ApiError) as refused:
            api.get("workflows", "default", "w")
    assert (refused.value.status, refused.value.reason) == (0, UNREACHABLE)
    assert refused.value.transient
    server.port = port
    server.kubeconfig()
    assert run(api, GET)[0][0]["ok"]


def test_retry_after_is_kept_to():
    def delay(header):
        error = ApiError.from_response(429, b"{}", header)
        return pause_s(error, 1, 0.001, 60.0)

    assert 7.0 <= delay("7") <= 7.0 * 1.25
    soon = datetime.datetime.now(datetime.timezone.utc) + datetime.timedelta(seconds=90)
    assert 80.0 <= delay(email.utils.format_datetime(soon, usegmt=True)) <= 90.0 * 1.25
    assert delay("Thu, 01 Jan 1970 00:00:00 GMT") < 1.0
    assert delay("soon") < 1.0
    assert delay("999999999") <= kube.RETRY_AFTER_CAP_S * 1.25


def test_many_who_were_put_off_do_not_come_back_together():
    error = ApiError(429, "TooManyRequests", "later", 10.0)
    pauses = {pause_s(error, 1, 0.25, 60.0) for _ in range(100)}
    assert len(pauses) > 50
    assert (
        max(pause_s(ApiError(500, "", ""), n, 0.25, 60.0) for n in range(1, 99)) <= 90
    )


def test_conflicts(server):
    conflict = answer(409, "Conflict", "the object has been modified")
    server.http.script = [conflict, conflict]
    got, _ = run(server.kube(), PATCH)
    assert got[0]["ok"]


def test_created_though_nobody_heard_the_answer(server, monkeypatch):
    """The connection breaks after the server has done it: the next try gets
    409, and the object that is there."""
    server.http.script = [cut, answer(409, "AlreadyExists", "already exists")]
    create = {"op": "create", "object": workflow("w")}
    got, _ = run(server.kube(), create)
    assert (got[0]["ok"], got[0]["status"]) == (False, 409)
    assert got[0]["object"]["metadata"]["name"] == "w"


def test_a_list_that_expires_halfway_begins_anew(server):
    part = {"items": [{"n": 1}], "metadata": {"continue": "more"}}
    rest = {"items": [{"n": 2}], "metadata": {"resourceVersion": "9"}}
    server.http.script = [
        lambda h: h.send(200, part),
        answer(410, "Expired", "the continue token is too old"),
        lambda h: h.send(200, part),
        lambda h: h.send(200, rest),
    ]
    objects, version = server.kube().list_all("workflows")
    assert ([o["n"] for o in objects], version) == ([1, 2], "9")


def test_a_list_that_always_expires_is_trouble_not_a_loop(server):
    server.http.script = [answer(410, "Expired")] * 100
    with pytest.raises(ApiError) as error:
        server.kube().list_all("workflows")
    assert error.value.transient and error.value.status == 0
    assert len(server.http.seen) <= 2 + kube.LIST_TRIES


@pytest.mark.parametrize("code,reason", [(422, "Invalid"), (409, "Conflict")])
def test_a_finalizer_list_that_somebody_else_changes(server, code, reason):
    def obj(finalizers):
        meta = {"name": "w", "resourceVersion": "1", "finalizers": finalizers}
        return lambda h: h.send(200, {"kind": "Workflow", "metadata": meta})

    server.http.script = [
        obj(["ours", "theirs"]),
        answer(code, reason, "no new finalizers can be added"),
        obj(["ours"]),
        obj([]),
    ]
    got, _ = run(server.kube(), {"op": "drop-finalizer", "finalizer": "ours"})
    assert got[0]["ok"] and server.http.script == []


def test_an_expired_token_is_read_again(server):
    api = server.kube(token="first")
    server.http.token = "Bearer second"
    server.kubeconfig(token="second")
    got, trouble = run(api, GET)
    assert got[0]["ok"]
    assert [t["status"] for t in trouble] == [401]


def test_a_kubeconfig_that_is_being_written_is_no_end(server, tmp_path):
    api = server.kube(token="first")
    server.http.token = "Bearer second"
    (tmp_path / "kubeconfig").write_text("apiVersion: [")
    with pytest.raises(ApiError):
        api.get("workflows", "default", "w")
    server.kubeconfig(token="second")
    assert run(api, GET)[0][0]["ok"]
    with pytest.raises(ConfigError):
        Kube(str(tmp_path / "none"))


def test_a_version_that_is_not_served_any_more(server):
    """Not to be mistaken for a workflow that is gone."""
    api = server.kube()
    assert api.get("workflows", "default", "w")
    server.http.script = [lambda h: h.send(404, b"404 page not found\n")]
    got, trouble = run(api, {"op": "delete"})
    assert got[0]["ok"] and [t["status"] for t in trouble] == [0]
    # asked anew which versions there are
    assert [path for _, path, _ in server.http.seen].count(GROUP) == 2


def test_an_api_group_that_is_not_there_yet(server):
    server.http.no_discovery = True
    server.http.script = [lambda h: h.send(404, b"404 page not found\n")]
    with pytest.raises(ApiError) as error:
        server.kube().delete("workflows", "default", "w")
    assert error.value.transient


def test_what_the_user_did_wrong_comes_back_in_the_servers_words(server):
    text = 'admission webhook "vworkflow.kb.io" denied the request: no such word'
    server.http.script = [answer(403, "Forbidden", text)]
    got, trouble = run(server.kube(), {"op": "create", "object": workflow("w")})
    assert (got[0]["status"], got[0]["message"]) == (403, text)
    assert trouble == [] and len(server.http.seen) == 2


# TLS


def tls_authority():
    from dws_sim.tls import Authority

    return Authority()


def tls(directory, name):
    authority = tls_authority()
    (directory / name).write_bytes(authority.pem)
    return authority.server_context(), directory / name


def test_a_rotated_certificate(tmp_path):
    """A new CA: the kubeconfig is read again when the server is not trusted."""
    old_context, old_ca = tls(tmp_path, "old.pem")
    new_context, new_ca = tls(tmp_path, "new.pem")
    assert isinstance(old_context, ssl.SSLContext)
    server = Server(tmp_path, new_context)
    try:
        api = server.kube(ca=old_ca)
        with pytest.raises(ApiError) as error:
            api.get("workflows", "default", "w")
        assert (error.value.status, error.value.reason) == (0, UNREACHABLE)
        server.kubeconfig(ca=new_ca)
        assert run(api, GET)[0][0]["ok"]
    finally:
        server.close()


@pytest.mark.parametrize("proxy", ["nonsense://x:1", 5])
def test_a_proxy_that_is_none_names_the_kubeconfig(server, proxy):
    path = pathlib.Path(server.kubeconfig())
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = proxy
    path.write_text(json.dumps(config))
    with pytest.raises(ConfigError, match=str(path)):
        Kube(str(path))


def test_a_proxy_that_the_package_passes_over(server, monkeypatch):
    """As that of Debian 12 does, which knows no proxy-url."""
    path = pathlib.Path(server.kubeconfig())
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"]["proxy-url"] = "http://proxy:3128"
    path.write_text(json.dumps(config))
    load = kubernetes.config.load_kube_config

    def load_without(config_file, client_configuration):
        load(config_file=config_file, client_configuration=client_configuration)
        client_configuration.proxy = None

    monkeypatch.setattr(kubernetes.config, "load_kube_config", load_without)
    with pytest.raises(ConfigError, match="proxy-url needs a newer Python package"):
        Kube(str(path))


def renew(directory, identity):
    """Put a certificate in the place of the last one, where the kubeconfig says
    that it is."""
    for name, text in (("crt", identity.certificate), ("key", identity.key)):
        (directory / f"new.{name}").write_bytes(text)
        (directory / f"new.{name}").rename(directory / f"client.{name}")
    return {
        "client-certificate": str(directory / "client.crt"),
        "client-key": str(directory / "client.key"),
    }


def test_a_rotated_client_certificate(tmp_path):
    """Renewed on disk: it is read when the server does not know the old one any
    more, though it has kept the connection."""
    authority = tls_authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    server = Server(tmp_path, authority.server_context())
    server.http.subject = "old"
    try:
        user = renew(tmp_path, authority.client("old"))
        api = server.kube(ca=tmp_path / "ca.pem", user=user)
        assert api.get("workflows", "default", "w")
        server.http.subject = "new"
        renew(tmp_path, authority.client("new"))
        got, trouble = run(api, PATCH)
        assert got[0]["ok"] and [t["status"] for t in trouble] == [401]
    finally:
        server.close()


def test_a_client_certificate_of_another_authority(tmp_path):
    """The connection itself is refused to who shows the old one."""
    authority, theirs = tls_authority(), tls_authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    context = authority.server_context()
    context.verify_mode = ssl.CERT_REQUIRED
    server = Server(tmp_path, context)
    try:
        user = renew(tmp_path, theirs.client("wlm"))
        api = server.kube(ca=tmp_path / "ca.pem", user=user)
        with pytest.raises(ApiError) as error:
            api.get("workflows", "default", "w")
        assert error.value.status == 0 and error.value.transient
        renew(tmp_path, authority.client("wlm"))
        assert run(api, PATCH)[0][0]["ok"]
    finally:
        server.close()


# Watches


class Record(Sink):
    def __init__(self):
        self.got = queue.Queue()

    def listing(self, plural):
        pass

    def listed(self, plural, objects, version):
        self.got.put("listed")

    def changed(self, plural, event, obj):
        self.got.put((event, obj["metadata"]["name"]))

    def health(self, plural, error):
        self.got.put("well" if error is None else "ill")


class Follow:
    """A watch thread, and what it tells."""

    def __init__(self, api):
        self.sink = Record()
        self.thread = WatchThread(api, "workflows", "", self.sink)
        self.thread.start()

    def next(self):
        return self.sink.got.get(timeout=LIMIT_S)

    def end(self):
        self.thread.stop()
        self.thread.join(LIMIT_S)
        assert not self.thread.is_alive()


LISTED = {"items": [], "metadata": {"resourceVersion": "5"}}


def event(name, version):
    meta = {"name": name, "resourceVersion": str(version)}
    return {"type": "ADDED", "object": {"kind": "Workflow", "metadata": meta}}


def test_a_watch_that_goes_silent_is_given_up(server, monkeypatch):
    """Half-open: the server is there no more and nobody has said so."""
    monkeypatch.setattr(watch, "WATCH_TIMEOUT_S", (0, 0))
    monkeypatch.setattr(kube, "WATCH_SLACK_S", 0.3)
    ended = threading.Event()

    def silent(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)
        ended.set()
        handler.close_connection = True

    def next_stream(handler):
        handler.stream(event("b", 7))
        handler.rfile.read(1)

    server.http.script = [lambda h: h.send(200, LISTED), silent, next_stream]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(5)] == [
        "listed",
        ("ADDED", "a"),
        "ill",
        "well",
        ("ADDED", "b"),
    ]
    assert ended.wait(LIMIT_S)
    follow.end()
    # it went on where it was
    assert "resourceVersion=6" in server.http.seen[-1][1]


def test_dead_peers_are_looked_for():
    options = {(level, name): value for level, name, value in kube.KEEPALIVE}
    assert options[socket.SOL_SOCKET, socket.SO_KEEPALIVE] == 1
    idle = options[socket.IPPROTO_TCP, socket.TCP_KEEPIDLE]
    probes = options[socket.IPPROTO_TCP, socket.TCP_KEEPCNT]
    interval = options[socket.IPPROTO_TCP, socket.TCP_KEEPINTVL]
    assert idle + probes * interval <= 30


@pytest.mark.parametrize("how", ["status", "event"])
def test_410_both_ways(server, how):
    def gone(handler):
        if how == "status":
            answer(410, "Expired", "too old resource version")(handler)
        else:
            error = {"type": "ERROR", "object": status(410, "Expired", "too old")}
            handler.stream(error)
            handler.end_stream()

    def listed(handler):
        handler.send(200, LISTED)

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [listed, gone, listed, open_stream]
    follow = Follow(server.kube())
    assert [follow.next() for _ in range(3)] == ["listed", "listed", ("ADDED", "a")]
    follow.end()


def test_who_is_sent_away_again_and_again_slows_down(server, monkeypatch):
    """A server or a proxy that ends every watch at once."""
    paused = []
    monkeypatch.setattr(
        watch, "backoff_s", lambda n, first, cap: paused.append(n) or 0.001
    )

    def at_once(handler):
        handler.stream()
        handler.end_stream()

    def open_stream(handler):
        handler.stream(event("a", 6))
        handler.rfile.read(1)

    server.http.script = [lambda h: h.send(200, LISTED), *[at_once] * 5, open_stream]
    follow = Follow(server.kube())
    assert [follow.next(), follow.next()] == ["listed", ("ADDED", "a")]
    follow.end()
    assert paused == [1, 2, 3, 4]


# The same against the simulator


@pytest.fixture(scope="module")
def sim(tmp_path_factory):
    made = Sim(tmp_path_factory.mktemp("sim"), "--tls")
    yield made
    made.stop()


def test_faults_of_the_simulator_pass(sim):
    api = Kube(str(sim.kubeconfig))
    name = "faulty"
    create = {"op": "create", "name": name, "object": workflow(name)}
    for code in (429, 500, 503, 401):
        sim.ctl("api", "--status", str(code), "--count", "2")
    got, trouble = run(api, create, {"op": "delete", "name": name})
    assert [r["ok"] for r in got] == [True, True]
    assert [t["status"] for t in trouble] == [429, 500, 503, 401]
    assert api.stats.summary()["retries"] == 8


def test_watches_that_the_simulator_drops_or_expires(sim):
    api = Kube(str(sim.kubeconfig))
    follow = Follow(api)
    assert follow.next() == "listed"
    for words in (["--drop-watches"], ["--expire"], ["--drop-watches"]):
        deadline = time.monotonic() + LIMIT_S
        while json.loads(sim.ctl("state"))["watches"] == 0:
            assert time.monotonic() < deadline
        sim.ctl("api", *words)
    name = "watched"
    run(api, {"op": "create", "name": name, "object": workflow(name)})
    run(api, {"op": "delete", "name": name})
    while True:
        if follow.next() == ("DELETED", name):
            break
    follow.end()
