# How the agent gets to the API server: proxies, names, and the end of a watch.
# SPDX-License-Identifier: LGPL-3.0-only
import gc
import http.server
import json
import pathlib
import socket
import threading
from urllib.parse import parse_qs, urlsplit

import faulty_server
import pytest
import urllib3
from faulty_server import LIMIT_S, Server, answer, drip, hang_up, pour
from flux_k8s import lists, transport
from flux_k8s.crd import RESOURCES
from flux_k8s.errors import TOO_LARGE, UNREACHABLE, ApiError
from flux_k8s.kube import Kube
from flux_k8s.loop import Loop, Pause

server = pytest.fixture(faulty_server.server)


def change(to, **cluster):
    """A server's kubeconfig, with more fields of the cluster."""
    path = pathlib.Path(to.kubeconfig())
    config = json.loads(path.read_text())
    config["clusters"][0]["cluster"].update(cluster)
    path.write_text(json.dumps(config))
    return str(path)


@pytest.fixture
def proxy():
    """A proxy that refuses all requests, and records them."""

    class Refusing(http.server.BaseHTTPRequestHandler):
        def do_GET(self):
            self.server.asked.append(f"{self.command} {self.path}")
            self.send_error(403, "not through here")

        do_CONNECT = do_GET

        def log_message(self, *args):
            pass

    made = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Refusing)
    made.asked = []
    threading.Thread(target=made.serve_forever, daemon=True).start()
    made.url = f"http://127.0.0.1:{made.server_address[1]}"
    yield made
    made.shutdown()
    made.server_close()


async def events_of(stream):
    """The events of a watch, to its end."""
    events = []
    while (more := await stream.next()) is not None:
        events += more
    return events


async def watch(api):
    """The events of a watch from its beginning to its end."""
    return await events_of(await api.awatch("workflows", "1", "", 600))


def get(path):
    return Kube(path).get("workflows", "default", "w")


def test_the_proxy_of_the_kubeconfig_is_taken(server, proxy):
    path = change(server, **{"proxy-url": proxy.url})
    with pytest.raises(ApiError, match="not through here"):
        get(path)
    assert proxy.asked[0].startswith(f"GET http://127.0.0.1:{server.port}/apis/")
    assert server.http.seen == []


def test_a_proxy_that_refuses_a_tunnel_is_no_connection(server, proxy):
    path = change(
        server,
        server=f"https://127.0.0.1:{server.port}",
        **{"proxy-url": proxy.url},
    )
    with pytest.raises(ApiError) as error:
        get(path)
    assert proxy.asked == [f"CONNECT 127.0.0.1:{server.port}"]
    assert (error.value.status, error.value.reason) == (0, UNREACHABLE)


@pytest.mark.parametrize("name", ["http_proxy", "all_proxy", "ALL_PROXY"])
def test_the_environment_is_not_libcurls_to_read(server, proxy, monkeypatch, name):
    """The kubernetes package has looked at it, and made a pool without a proxy."""
    monkeypatch.setenv(name, proxy.url)
    host = f"http://127.0.0.1:{server.port}"
    reached = transport.Transport(host, urllib3.PoolManager(), 1)
    asked = transport.Request(reached, "GET", "/x", (), None, LIMIT_S)

    async def ask():
        return await asked

    assert Loop().run(ask()).status == 200
    assert proxy.asked == []


def paths_of(server, path, rename=False):
    """Paths in the request lines of a request and of a watch of that path."""
    pool = urllib3.PoolManager(**({"server_hostname": "localhost"} if rename else {}))
    reached = transport.Transport(f"http://127.0.0.1:{server.port}", pool, 1)

    async def ask():
        await transport.Request(reached, "GET", path, (), None, LIMIT_S)
        stream = reached.stream(path, (), LIMIT_S)
        await stream.open()
        stream.close()

    Loop().run(ask())
    return [path for _, path, _ in server.http.seen]


@pytest.mark.parametrize("rename", [False, True])
@pytest.mark.parametrize("name", ["..", ".", "a/../b", "x/./y", "../../z"])
def test_a_path_is_asked_for_as_it_is(server, name, rename):
    """libcurl would take out the names "." and "..", and ask for another object."""
    path = f"/api/v1/namespaces/default/secrets/{name}"
    assert paths_of(server, path, rename) == [path, path]


def test_a_request_has_nothing_of_the_one_before(server):
    """Requests reuse libcurl handles, but no header or body of the one before."""
    host = f"http://127.0.0.1:{server.port}"
    reached = transport.Transport(host, urllib3.PoolManager(), 2)
    bodies = []

    def note(handler):
        bodies.append(handler.body)
        handler.send(200 if handler.body != b"1" else 409, {"n": len(bodies)})

    async def ask(method, token, body):
        lines = (f"Authorization: {token}",)
        return await transport.Request(reached, method, "/x", lines, body, LIMIT_S)

    asked = [
        *[("PATCH", "a", b"1"), ("PATCH", "a", b"22"), ("GET", "a", None)],
        *[("DELETE", "a", None), ("PATCH", "b", b"3"), ("PATCH", "a", b"4")],
    ]
    server.http.script = [note] * len(asked)
    loop = Loop()
    answers = [loop.run(ask(*how)) for how in asked]
    assert [a.status for a in answers] == [409, 200, 200, 200, 200, 200]
    assert [json.loads(a.data)["n"] for a in answers] == [1, 2, 3, 4, 5, 6]
    seen = [
        (method, headers["Authorization"]) for method, _, headers in server.http.seen
    ]
    assert seen == [how[:2] for how in asked]
    assert bodies == [how[2] or b"" for how in asked]


def test_handles_are_used_again_by_every_method(server, monkeypatch):
    """As many requests with each method as there are connections keep handles."""
    host, made = f"http://127.0.0.1:{server.port}", []
    curl = transport.pycurl.Curl
    monkeypatch.setattr(transport.pycurl, "Curl", lambda: made.append(1) or curl())
    reached = transport.Transport(host, urllib3.PoolManager(), 6)
    kinds = [
        *[("GET", "Accept: a", None), ("PATCH", "Content-Type: merge", b"1")],
        *[("PATCH", "Content-Type: json", b"2"), ("DELETE", "Accept: a", b"3")],
        ("POST", "Accept: a", b"4"),
    ]

    async def ask(method, line, body, done):
        what = transport.Request(reached, method, "/x", (line,), body, LIMIT_S)
        done.append((await what).status)

    def ask_all():
        loop, done = Loop(), []
        for kind in 3 * kinds:
            loop.spawn(ask(*kind, done))

        async def rest():
            while len(done) < 3 * len(kinds):
                await Pause(0.001)

        loop.run(rest())
        return done

    seen = []
    for _ in range(3):
        assert ask_all() == [200] * 3 * len(kinds)
        seen.append(len(made))
    assert seen == [seen[0]] * 3


def test_tokens_come_and_go(server):
    """Requests with different tokens share a connection, and old tokens are freed."""
    host = f"http://127.0.0.1:{server.port}"
    reached = transport.Transport(host, urllib3.PoolManager(), 2)

    async def ask(*lines):
        return await transport.Request(reached, "GET", "/x", lines, None, LIMIT_S)

    tokens = [f"Authorization: gone-{number}" for number in range(10)]
    loop = Loop()
    for token in tokens:
        assert loop.run(ask(token)).status == 200
    assert len(server.http.seen) == 10
    assert len(set(server.http.connections)) == 1
    gc.collect()
    kept = [
        each
        for each in gc.get_objects()
        if isinstance(each, transport.Transfer) and set(tokens) & set(each.headers)
    ]
    assert 1 <= len(kept) <= 2


def test_a_watch_through_a_tunnel(tmp_path):
    """The proxy's headers are not taken for the server's."""
    from dws_sim.tls import Authority

    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    server = Server(tmp_path, authority.server_context())
    event = {"type": "ADDED", "object": {"metadata": {"name": "a"}}}

    def gone(handler):
        answer(410, "Expired", "too old")(handler)

    def stream(handler):
        handler.stream(event)
        handler.end_stream()

    server.http.script = [gone, stream]
    tunnel = socket.create_server(("127.0.0.1", 0))
    threading.Thread(
        target=serve_tunnels, args=(tunnel, server.port), daemon=True
    ).start()
    try:
        path = change(
            server,
            **{
                "proxy-url": f"http://127.0.0.1:{tunnel.getsockname()[1]}",
                "certificate-authority": str(tmp_path / "ca.pem"),
            },
        )
        api = Kube(path)
        with pytest.raises(ApiError) as error:
            api.watch("workflows", "1", "", 600)
        assert error.value.status == 410
        assert Loop().run(watch(api)) == [("ADDED", event["object"])]
    finally:
        tunnel.close()
        server.close()


def serve_tunnels(listener, port):
    """Take each connection to a port of this machine, wherever it wants to go."""

    def copy(source, sink):
        while data := source.recv(65536):
            sink.sendall(data)
        sink.shutdown(socket.SHUT_WR)

    while True:
        try:
            near, _ = listener.accept()
        except OSError:
            return
        asked = b""
        while b"\r\n\r\n" not in asked:
            asked += near.recv(4096)
        far = socket.create_connection(("127.0.0.1", port))
        near.sendall(b"HTTP/1.1 200 Connection established\r\nVia: us\r\n\r\n")
        for pair in ((near, far), (far, near)):
            threading.Thread(target=copy, args=pair, daemon=True).start()


@pytest.mark.parametrize("name, trusted", [("localhost", True), ("other", False)])
def test_the_server_has_another_name_than_its_address(tmp_path, name, trusted):
    from dws_sim.tls import Authority

    authority = Authority()
    (tmp_path / "ca.pem").write_bytes(authority.pem)
    server = Server(tmp_path, authority.server_context())
    try:
        path = change(
            server,
            **{
                "tls-server-name": name,
                "certificate-authority": str(tmp_path / "ca.pem"),
            },
        )
        if trusted:
            assert get(path)
            hosts = {headers["Host"] for _, _, headers in server.http.seen}
            assert hosts == {f"127.0.0.1:{server.port}"}
            return
        with pytest.raises(ApiError) as error:
            get(path)
        assert (error.value.status, error.value.reason) == (0, UNREACHABLE)
        assert server.http.seen == []
    finally:
        server.close()


def test_a_server_of_an_unknown_authority_is_not_trusted(tmp_path):
    from dws_sim.tls import Authority

    server = Server(tmp_path, Authority().server_context())
    try:
        with pytest.raises(ApiError) as error:
            get(server.kubeconfig())
        assert (error.value.status, error.value.reason) == (0, UNREACHABLE)
        assert server.http.seen == []
    finally:
        server.close()


def test_a_watch_is_ended_while_it_is_read(server):
    def silent(handler):
        handler.stream()
        handler.rfile.read(1)

    server.http.script = [silent]
    ended, loop, api = [], Loop(), server.kube()

    async def follow():
        stream = await api.awatch("workflows", "1", "", 600)
        loop.call_soon(stream.close)
        ended.append(await events_of(stream))
        stream.close()  # as often as one likes

    loop.run(follow())
    assert ended == [[]]


def test_an_event_comes_whole_however_it_is_cut(server):
    event = {"type": "ADDED", "object": {"metadata": {"name": "a" * 100_000}}}

    def in_pieces(handler):
        handler.stream()
        data = json.dumps(event).encode() + b"\n"
        for at in range(0, len(data), 997):
            part = data[at : at + 997]
            handler.wfile.write(b"%x\r\n%s\r\n" % (len(part), part))
        handler.end_stream()

    server.http.script = [in_pieces]
    assert Loop().run(watch(server.kube())) == [("ADDED", event["object"])]


def ask_of(server):
    """Carries out requests over connections that are kept."""
    host = f"http://127.0.0.1:{server.port}"
    reached = transport.Transport(host, urllib3.PoolManager(), 2)
    loop = Loop()

    def ask(method="GET", body=None, timeout_s=LIMIT_S):
        async def one():
            return await transport.Request(reached, method, "/x", (), body, timeout_s)

        return loop.run(one())

    return ask


@pytest.mark.parametrize("method", ["PATCH", "POST", "DELETE"])
def test_libcurl_repeats_nothing_that_changes_something(server, method):
    """The server closes a kept connection in the place of an answer: it may have done
    what it was asked to."""
    ask = ask_of(server)
    assert ask(method, b"{}").status == 200
    server.http.script = [hang_up]
    with pytest.raises(transport.NoAnswer, match="without an answer") as error:
        ask(method, b"{}")
    assert error.value.connected
    assert len(server.http.seen) == 2
    assert ask(method, b"{}").status == 200


def test_a_review_is_about_a_namespace(server, monkeypatch):
    kube, asked = server.kube(), []

    async def request(*args):
        asked.append(args[-1]["spec"]["resourceAttributes"])
        return {"status": {"allowed": True}}

    monkeypatch.setattr(kube, "_request", request)
    assert Loop().run(kube.amay(RESOURCES["servers"], "get", "rabbits"))
    assert asked[0]["namespace"] == "rabbits" and asked[0]["verb"] == "get"


def test_a_byte_now_and_then_is_no_answer(server):
    server.http.script = [drip]
    with pytest.raises(transport.NoAnswer) as error:
        ask_of(server)(timeout_s=0.2)
    assert error.value.timed_out


def headers_only(handler):
    handler.send_response(200)
    handler.send_header("Content-Length", str(200 << 20))
    handler.server.poured = 0
    handler.end_headers()
    handler.rfile.read(1)
    handler.close_connection = True


def endless_headers(handler):
    handler.send_response(200)
    handler.server.poured = 0
    try:
        while handler.server.poured < 200 << 20:
            handler.wfile.write(b"X: %s\r\n" % (b"x" * 4096))
            handler.server.poured += 4096
    except OSError:
        pass
    handler.close_connection = True


@pytest.mark.parametrize("big", [pour(200 << 20), headers_only, endless_headers])
def test_what_is_larger_than_any_answer_is_not_taken(server, big):
    ask = ask_of(server)
    server.http.script = [big]
    with pytest.raises(transport.NoAnswer) as error:
        ask()
    assert error.value.too_large or big is endless_headers
    # what is on its way then, in buffers of the two ends
    assert server.http.poured <= transport.ANSWER_BYTES + (16 << 20)
    assert ask().status == 200


def test_a_page_that_is_too_large_is_asked_for_in_parts(server, monkeypatch):
    monkeypatch.setattr(transport, "ANSWER_BYTES", 100_000)
    objects = [
        {"metadata": {"name": str(n), "namespace": "default"}, "x": "x" * 30_000}
        for n in range(10)
    ]
    asked = []

    def page(handler):
        query = parse_qs(urlsplit(handler.path).query)
        limit, start = int(query["limit"][0]), int(query.get("continue", ["0"])[0])
        asked.append((start, limit))
        end = start + limit
        more = {"continue": str(end)} if end < len(objects) else {}
        metadata = {"resourceVersion": "7", **more}
        handler.send(200, {"items": objects[start:end], "metadata": metadata})

    server.http.script = [page] * 30
    listed, version = server.kube().list_all("workflows")
    assert (listed, version) == (objects, "7")
    sizes = [limit for _, limit in asked]
    assert sizes == sorted(sizes, reverse=True) and 1 <= sizes[-1] <= 3


def test_a_list_that_does_not_end_is_trouble(server, monkeypatch):
    monkeypatch.setattr(lists, "LIST_BYTES", 100_000)
    item = {"metadata": {"name": "a", "namespace": "default"}, "x": "x" * 30_000}
    parts = [{"continue": str(n), "resourceVersion": "7"} for n in range(1, 30)]

    def page(handler):
        handler.send(200, {"items": [item], "metadata": parts.pop(0) if parts else {}})

    server.http.script = [page] * 40
    with pytest.raises(ApiError, match="the list of workflows is more than") as error:
        server.kube().list_all("workflows")
    assert error.value.transient and error.value.reason == TOO_LARGE
    assert len(parts) > 20


def test_an_object_that_is_too_large_is_trouble(server, monkeypatch):
    monkeypatch.setattr(transport, "ANSWER_BYTES", 100_000)
    server.http.script = [pour(1 << 20)] * 30
    with pytest.raises(ApiError) as error:
        server.kube().list_all("workflows")
    assert error.value.transient and error.value.reason == TOO_LARGE
