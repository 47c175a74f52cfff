# SPDX-License-Identifier: LGPL-3.0-only
"""Send a request to the simulated cluster, as its admin:

k8s.py KUBECONFIG get|create|patch|delete KIND [NAME] [JSON]

KIND is a plural of the newest version, in namespace default, or nnf-system if it
is one of NNF. Prints the object, or the server's message (status 1).
"""

import base64
import json
import ssl
import sys
import urllib.error
import urllib.request

DWS = "/apis/dataworkflowservices.github.io/v1alpha7/namespaces/default"
NNF = "/apis/nnf.cray.hpe.com/v1alpha11/namespaces/nnf-system"
METHODS = {"get": "GET", "create": "POST", "patch": "PATCH", "delete": "DELETE"}


def admin(path: str) -> tuple[str, str, str]:
    """The server's address, the admin's token, and the authority's certificate."""
    with open(path, encoding="utf-8") as stream:
        config = json.load(stream)
    users = {user["name"]: user["user"].get("token") for user in config["users"]}
    context = {c["name"]: c["context"] for c in config["contexts"]}["admin"]
    cluster = config["clusters"][0]["cluster"]
    authority = base64.b64decode(cluster["certificate-authority-data"]).decode()
    return cluster["server"], users[context["user"]], authority


def main() -> int:
    kubeconfig, verb, kind, *rest = sys.argv[1:]
    server, token, authority = admin(kubeconfig)
    trust = ssl.create_default_context(cadata=authority)
    group = NNF if kind.startswith("nnf") else DWS
    body = rest.pop() if verb in ("create", "patch") else None
    request = urllib.request.Request(
        "/".join([server + group, kind, *rest]),
        method=METHODS[verb],
        data=body.encode() if body else None,
        headers={
            "Authorization": f"Bearer {token}",
            "Content-Type": "application/merge-patch+json"
            if verb == "patch"
            else "application/json",
        },
    )
    try:
        with urllib.request.urlopen(request, context=trust) as response:
            print(json.dumps(json.load(response)))
    except urllib.error.HTTPError as exc:
        print(json.load(exc)["message"], file=sys.stderr)
        return 1
    return 0


sys.exit(main())
