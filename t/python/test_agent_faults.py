# Faults between the agent and the API server, each with a small server on a socket
# that follows the test's script.
# SPDX-License-Identifier: LGPL-3.0-only
import datetime
import email.utils
import json
import pathlib
import socket
import ssl
from urllib.parse import parse_qs, urlsplit

import faulty_server
import pytest
from faulty_server import (
    GROUP,
    LIMIT_S,
    Results,
    Server,
    answer,
    cut,
    hang_up,
    never,
    run,
    tls_authority,
)
from flux_k8s import commands, errors, kube, kubeconfig, lists, outage, transport
from flux_k8s.errors import UNREACHABLE, ApiError
from flux_k8s.kube import Kube
from flux_k8s.kubeconfig import ConfigError
from flux_k8s.listwatch import pause_s
from flux_k8s.loop import Loop
from hypothesis import example, given
from hypothesis import strategies as st
from sim_support import workflow

server = pytest.fixture(faulty_server.server)
fast = pytest.fixture(faulty_server.fast, autouse=True)
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


NESTED = b"[" * 100_000


@pytest.mark.parametrize("code", [200, 404, 422, 503])
def test_what_is_nested_too_deeply_is_trouble(server, code):
    server.http.script = [lambda h: h.send(code, NESTED)]
    got, trouble = run(server.kube(), PATCH)
    assert got[0]["ok"] and len(trouble) == 1


@pytest.mark.parametrize(
    "header", ["\u00b2", "\u00b9\u00b2", "9" * 400, "-1", "1e9", ""]
)
def test_an_odd_retry_after_is_not_more_than_that(server, header):
    sent = [("Retry-After", header)]
    server.http.script = [answer(429, headers=sent)]
    pause = errors.retry_after_s(header)
    assert pause in (None, errors.RETRY_AFTER_CAP_S)
    if pause is None:
        got, trouble = run(server.kube(), PATCH)
        assert got[0]["ok"] and [t["status"] for t in trouble] == [429]


@given(st.text(st.characters(max_codepoint=255)))
@example("Mon, 01 Jan 0000 00:00:00 +9999")
@example("1 Jan 10000000000000000000000 0:0:0")
def test_no_retry_after_is_more_than_odd(header):
    pause = errors.retry_after_s(header)
    assert pause is None or 0 <= pause <= errors.RETRY_AFTER_CAP_S


def test_of_a_long_message_the_beginning_is_told(server):
    server.http.script = [answer(500, "InternalError", "x" * 5_000_000)]
    with pytest.raises(errors.ApiError, match="x{4096} ... .*more characters") as error:
        server.kube().get("workflows", "default", "w")
    assert len(str(error.value)) == len(error.value.message) < 5000


def test_a_version_of_the_api_is_no_path(server):
    """Nor does an odd one keep a command from having a result."""

    def discovery(handler):
        handler.send(200, {"versions": [{"version": "v1\u00e9/../x"}]})

    server.http.no_discovery = True
    server.http.script = [discovery]
    got, _ = run(server.kube(), GET)
    assert got[0]["ok"]
    assert "/v1%C3%A9%2F..%2Fx/" in server.http.seen[-1][1]


def test_a_request_that_cannot_be_begun_has_a_result(server, monkeypatch):
    def refuse(*_):
        raise MemoryError("no room")

    monkeypatch.setattr(transport.Transport, "begin", refuse)
    got, _ = run(server.kube(), GET, GET)
    assert ["no room" in result["message"] for result in got] == [True, True]


@pytest.mark.parametrize("odd", [{}, {"metadata": {}}, {"metadata": 7}])
def test_the_object_with_a_finalizer_is_one(server, odd):
    server.http.script = [answer(422, "Invalid"), lambda h: h.send(200, odd)]
    drop = {"op": "drop-finalizer", "finalizer": "f"}
    got, trouble = run(server.kube(), drop)
    assert got[0]["ok"] and len(trouble) == 1


def test_what_the_module_cannot_read_is_replaced(server):
    page = (
        b'{"kind":"K","metadata":{"name":"w"},"spec":{"dwDirectives":'
        b'["a\\u0000b","\\ud800","\\\\u0000"]}}'
    )
    server.http.script = [lambda h: h.send(200, page)]
    got, _ = run(server.kube(), GET)
    assert got[0]["object"]["directives"] == [
        "a\ufffdb",
        "\ufffd",
        "\\u0000",
    ]


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
    api.outage = outage.Outage(lambda: now[0])
    server.http.script = [answer(503), *[answer(403, "Forbidden", FORBIDDEN)] * 2]
    tried = []

    def tell(report):
        tried.append(report)
        now[0] += outage.SETTLE_S * 0.6

    results = Results()
    pool = commands.CommandQueue(api, results.loop, 1, results.put, tell)
    pool.submit({"kind": "workflows", "namespace": "default", "name": "w", **PATCH})
    assert results.get(timeout=LIMIT_S)["status"] == 403
    assert len(tried) == 2
    server.http.script = [answer(403, "Forbidden", FORBIDDEN)]
    pool.submit({"kind": "workflows", "namespace": "default", "name": "w", **PATCH})
    assert results.get(timeout=LIMIT_S)["status"] == 403
    assert len(tried) == 2
    pool.stop()


def test_rules_that_are_not_read_for_long_are_none(server, monkeypatch):
    monkeypatch.setattr(outage, "SETTLE_S", 0.0)
    server.http.script = [cut, answer(403, "Forbidden", FORBIDDEN)]
    got, _ = run(server.kube(), PATCH)
    assert got[0]["status"] == 403


def test_nobody_listens(server):
    """The connection is refused, until the kubeconfig names a server that listens."""
    with socket.socket() as reserved:
        reserved.bind(("127.0.0.1", 0))
        port, server.port = server.port, reserved.getsockname()[1]
        api = server.kube()
        with pytest.raises(ApiError) as refused:
            api.get("workflows", "default", "w")
    assert (refused.value.status, refused.value.reason) == (0, UNREACHABLE)
    assert refused.value.transient
    assert {status for _, _, status in api.stats.requests} == {0}
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
    assert delay("999999999") <= errors.RETRY_AFTER_CAP_S * 1.25


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
    """The connection breaks after the server has created the object: the next try gets
    409, and reads that object."""
    server.http.script = [cut, answer(409, "AlreadyExists", "already exists")]
    create = {"op": "create", "object": workflow("w")}
    got, _ = run(server.kube(), create)
    assert (got[0]["ok"], got[0]["status"]) == (False, 409)
    assert got[0]["object"]["name"] == "w"


def test_a_list_that_expires_halfway_begins_anew(server):
    first, second = {"metadata": {"name": "a"}}, {"metadata": {"name": "b"}}
    part = {"items": [first], "metadata": {"continue": "more"}}
    rest = {"items": [second], "metadata": {"resourceVersion": "9"}}
    server.http.script = [
        lambda h: h.send(200, part),
        answer(410, "Expired", "the continue token is too old"),
        lambda h: h.send(200, part),
        lambda h: h.send(200, rest),
    ]
    objects, version = server.kube().list_all("workflows")
    assert (objects, version) == ([first, second], "9")


def test_a_list_of_what_the_server_has_at_hand(server):
    """Only the first part is requested from the cache: the other parts belong to the
    same version."""
    part = {"items": [], "metadata": {"continue": "more"}}
    rest = {"items": [], "metadata": {"resourceVersion": "9"}}
    server.http.script = [lambda h: h.send(200, part), lambda h: h.send(200, rest)]
    listed = server.kube().apick_all("workflows", "!a", recent=True)
    assert Loop().run(listed) == ([], "9")
    asked = [parse_qs(urlsplit(path).query) for _, path, _ in server.http.seen[-2:]]
    common = {"limit": [str(lists.LIST_PART)], "labelSelector": ["!a"]}
    assert asked == [
        {**common, "resourceVersion": ["0"]},
        {**common, "continue": ["more"]},
    ]


def test_an_object_that_is_not_as_it_should_be_is_left_out(server, caplog):
    """The others of the list go on, and it is counted."""
    good = {"metadata": {"name": "a"}}
    odd = {"metadata": {"name": "b"}, "spec": {"allocationSets": [{}, 7]}}
    page = {"items": [odd, good], "metadata": {"resourceVersion": "9"}}
    server.http.script = [lambda h: h.send(200, page)]
    api = server.kube()
    assert Loop().run(api.apick_all("servers", "")) == ([good], "9")
    assert api.stats.refused == {"servers": 1}
    assert api.stats.summary()["refused"] == 1
    text = "servers b: spec.allocationSets[1]: expected an object"
    assert [record.message for record in caplog.records] == [text]


def test_a_list_that_always_expires_is_trouble_not_a_loop(server):
    server.http.script = [answer(410, "Expired")] * 100
    with pytest.raises(ApiError) as error:
        server.kube().list_all("workflows")
    assert error.value.transient and error.value.status == 0
    assert len(server.http.seen) <= 2 + lists.LIST_TRIES


@pytest.mark.parametrize("code,reason", [(422, "Invalid"), (409, "Conflict")])
def test_a_finalizer_list_that_somebody_else_changes(server, code, reason):
    def obj(finalizers):
        meta = {"name": "w", "resourceVersion": "1", "finalizers": finalizers}
        return lambda h: h.send(200, {"kind": "Workflow", "metadata": meta})

    server.http.script = [
        answer(422, "Invalid", "the server rejected our request"),
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


def nobody(handler):
    """A server that serves a request without credentials as that of a stranger."""
    if handler.headers.get("Authorization"):
        handler.send(200, {"kind": "Workflow", "metadata": {"name": "w"}})
    else:
        text = FORBIDDEN.replace('"flux"', '"system:anonymous"')
        handler.send(403, faulty_server.status(403, "Forbidden", text))


def test_a_token_file_that_was_read_while_it_was_empty(server, tmp_path):
    """Its owner writes it anew: the requests in between are no refusals."""
    (tmp_path / "token").write_text("")
    api = server.kube(user={"tokenFile": str(tmp_path / "token")})
    server.http.script = [nobody] * 10
    trouble = []

    def tell(report):
        trouble.append(report)
        (tmp_path / "token").write_text("second")

    results = Results()
    pool = commands.CommandQueue(api, results.loop, 1, results.put, tell)
    pool.submit({"kind": "workflows", "namespace": "default", "name": "w", **PATCH})
    assert results.get(timeout=LIMIT_S)["ok"]
    assert [report["status"] for report in trouble] == [401]
    assert f"kubeconfig {api.path}: no credentials" in trouble[0]["message"]
    pool.stop()


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


WRITES = [
    PATCH,
    {"op": "create", "object": workflow("w")},
    {"op": "delete"},
    {"op": "drop-finalizer", "finalizer": "ours"},
]


@pytest.mark.parametrize("write", WRITES, ids=lambda write: write["op"])
def test_a_connection_that_is_closed_in_the_place_of_an_answer(server, write):
    """The write is retried, and the trouble is reported. A 403 on the second attempt
    counts as trouble, too: a restarting server may not have read its roles yet."""
    api, loop = server.kube(), Loop()
    assert run(api, write, loop=loop)[0][0]["ok"]
    before = len(server.http.seen)
    server.http.script = [hang_up, answer(403, "Forbidden", FORBIDDEN)]
    got, trouble = run(api, write, loop=loop)
    assert got[0]["ok"]
    assert [t["status"] for t in trouble] == [0, 0]
    assert "closed the connection" in trouble[0]["message"]
    assert FORBIDDEN in trouble[1]["message"]
    assert len(server.http.seen) == before + 3
    loop.close()


def test_a_kubeconfig_that_cannot_be_read_is_told_of_once(server, tmp_path, caplog):
    """Until then all that was said is that the server does not know us any more."""
    api = server.kube(token="first")
    server.http.token = "Bearer second"
    path = tmp_path / "kubeconfig"

    def lines():
        return [r.getMessage() for r in caplog.records if str(path) in r.getMessage()]

    path.unlink()
    for _ in range(3):
        with pytest.raises(ApiError, match=f"Unauthorized; kubeconfig {path}: "):
            api.get("workflows", "default", "w")
    assert len(lines()) == 1
    path.write_text("apiVersion: [")
    for _ in range(3):
        with pytest.raises(ApiError):
            api.get("workflows", "default", "w")
    assert len(lines()) == 2
    server.kubeconfig(token="second")
    assert run(api, GET)[0][0]["ok"]
    assert lines()[2:] == [f"kubeconfig {path} can be read again"]


def exec_plugin(*command):
    api = "client.authentication.k8s.io/v1"
    return {"exec": {"apiVersion": api, "command": command[0], "args": command[1:]}}


def test_an_exec_plugin_has_to_answer_in_time(server, monkeypatch):
    """Also what it has started."""
    monkeypatch.setattr("flux_k8s.kubeconfig.EXEC_S", 0.5)
    user = exec_plugin("sh", "-c", "sleep 1000 & sleep 1000")
    with pytest.raises(ConfigError, match=r"exec: sh: no answer within 0.5 s"):
        server.kube(user=user)
    with pytest.raises(ConfigError, match=r"exec: process returned 3. no cache"):
        server.kube(user=exec_plugin("sh", "-c", "echo no cache >&2; exit 3"))
    with pytest.raises(ConfigError, match="no-such"):
        server.kube(user=exec_plugin("/no-such"))


def test_an_exec_plugin_gives_the_token(server):
    credential = (
        '{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential",'
        ' "status": {"token": "first"}}'
    )
    server.http.token = "Bearer first"
    api = server.kube(user=exec_plugin("echo", credential))
    assert run(api, GET)[0][0]["ok"]


def test_a_version_that_is_not_served_any_more(server):
    """Not to be mistaken for a workflow that is gone."""
    api = server.kube()
    assert api.get("workflows", "default", "w")
    server.http.script = [lambda h: h.send(404, b"404 page not found\n")]
    got, trouble = run(api, {"op": "delete"})
    assert got[0]["ok"] and [t["status"] for t in trouble] == [0]
    # the agent has discovered the API versions again
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
    load = kubeconfig.KubeConfigLoader.load_and_set

    def load_without(loader, configuration):
        load(loader, configuration)
        configuration.proxy = None

    monkeypatch.setattr(kubeconfig.KubeConfigLoader, "load_and_set", load_without)
    with pytest.raises(ConfigError, match="proxy-url needs a newer Python package"):
        Kube(str(path))


def renew(directory, identity):
    """Replace the certificate in the file that the kubeconfig names."""
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
        loop = Loop()
        assert run(api, GET, loop=loop)[0][0]["ok"]
        server.http.subject = "new"
        renew(tmp_path, authority.client("new"))
        got, trouble = run(api, PATCH, loop=loop)
        assert got[0]["ok"] and [t["status"] for t in trouble] == [401]
    finally:
        server.close()


def test_a_client_certificate_of_another_authority(tmp_path):
    """The server refuses the connection of a client with the old certificate."""
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
