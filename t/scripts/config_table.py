# SPDX-License-Identifier: LGPL-3.0-only
#
# Put many [rabbit] tables to flux-coral2-dws --check-config and to flux config reload.
# Usage: flux python config_table.py CONF_DIR PLAIN KUBECONFIG MAPPING
"""The agent and the module have to reject the same tables, with the same words."""

import contextlib
import io
import pathlib
import re
import sys

import flux
import yaml
from flux_k8s import configcheck, dws

CONF, PLAIN, KUBECONFIG, MAPPING = sys.argv[1:]
HANDLE = flux.Flux()
TABLE = pathlib.Path(CONF) / "test.toml"

# A value that no key of that type has.
WRONG = {
    "text": "5",
    "true or false": "1",
    "number": '"many"',
    "time": "true",
    "array": '"one"',
    "table": "5",
}
# Kubeconfigs that are none, by the name of a file: its text, or what takes the place of
# a key of the good one.
SPOILS: dict[str, str | dict[str, object]] = {
    "empty": "",
    "list": "- 5",
    "no-yaml": "{",
    "no-context": {"current-context": None},
    "other-context": {"current-context": "none"},
    "no-clusters": {"clusters": []},
    "clusters": {"clusters": "nonsense"},
}
SPOILT = pathlib.Path("spoilt").resolve()

# Lines of [rabbit], and part of what is said of them.
REFUSED = [
    ("tc_timeuot = 5", "unknown key, did you mean tc_timeout?"),
    ("nonsense = 5", "rabbit.nonsense: unknown key"),
    ('tc_timeout = "5min"', 'got "5min", did you mean "5m"?'),
    ('setup_timeout = "1h30m"', 'did you mean "90m"?'),
    ('stage_out_retry = "2 weeks"', 'did you mean "14d"?'),
    ("tc_timeout = -1", "expected seconds >= 0, got -1"),
    ("save_datamovements = -1", "expected an integer >= 0, got -1"),
    ('release_nodes = "unmout"', 'expected "teardown" or "unmount"'),
    ('lustre_placement = "far"', 'expected "near" or "anywhere"'),
    ('data_first = "maybe"', 'expected "never", "asked" or "always"'),
    ('metrics = "0.0.0.0:9464"', "expected 127.0.0.1:PORT"),
    (f'metrics = "unix:/{"a" * 107}"', "the path of a socket has 107 bytes at most"),
    ('network_file_systems = ["lustr"]', "rabbit.network_file_systems: remove it"),
    ("workers = 4", "it is the option --workers"),
    ('mapping = "/no/such"', "rabbit.mapping: /no/such: No such file or directory"),
    ('mapping = "/tmp"', "rabbit.mapping: /tmp: Is a directory"),
    ('mapping = "/etc/passwd"', "rabbit.mapping: /etc/passwd: line 1: not JSON"),
    ('kubeconfig = "/no/such"', "rabbit.kubeconfig: /no/such: No such file"),
    ('kubeconfig = "/tmp"', "rabbit.kubeconfig: /tmp: not a file"),
    ('kubeconfig = "kubeconfig"', "expected an absolute path"),
    ('kubeconfig = "~/no-such-file"', "No such file or directory"),
    ('kubeconfig = "/etc/passwd"', "kubeconfig /etc/passwd: "),
    *(
        (f'kubeconfig = "{SPOILT}/{name}"', f"kubeconfig {SPOILT}/{name}: ")
        for name in SPOILS
    ),
    ('drain_queues = ["debgu"]', "there is no queue debgu, did you mean debug?"),
    ('notice_command = ["mail"]', "begins with an absolute path"),
    ('notice_command = ["/no/such"]', "/no/such: No such file or directory"),
    ('notice_command = ["/etc/passwd"]', "is not a program that can be run"),
    ('postrun_timeout = "15m"\nteardown_after = "10m"', "rabbit.teardown_after: "),
    ('prolog_timeout = "5m"\nspace_timeout = "6m"', "rabbit.space_timeout: "),
    ("restrict_persistent = false\nrestrict_persistent_creation = true", "old name"),
    ("policy.maximum.xfs = 5", "rabbit.policy.maximum: unknown key, did you mean"),
    ("policy.maximums = 5", "rabbit.policy.maximums: expected a table"),
    ("policy.maximums.lustr = 5", "unknown file system type, did you mean lustre?"),
    ('policy.maximums.xfs = "1TiB"', "did you mean 1024?"),
    ("policy.maximums.xfs = -1", "expected GiB >= 0, got -1"),
    ("limits.contact = 5", "rabbit.limits.contact: expected a text"),
    ("limits.a = 5", "rabbit.limits.a: expected a table"),
    ("limits.a.user = 'root'", "one of allow, job, node and total is required"),
    ("limits.a.allow = 1", "rabbit.limits.a.allow: expected true or false"),
    ("limits.a.job = 5", "rabbit.limits.a.job: expected a size"),
    ('limits.a.node = "20T"', 'did you mean "20TiB"?'),
    ('limits.a.total = "1.5TiB"', 'did you mean "1536GiB"?'),
    ('limits.a.jbo = "1TiB"', "rabbit.limits.a.jbo: unknown key, did you mean job?"),
    ('limits.a.total = "1TiB"\nlimits.a.per = "job"', 'expected "user" or "bank"'),
    ('limits.a.job = "1TiB"\nlimits.a.per = "user"', "the rule has no total"),
    *(
        (f"limits.a.allow = false\nlimits.a.{key} = 5", f"rabbit.limits.a.{key}: ")
        for key in ("user", "group", "bank", "queue")
    ),
    (
        'limits.a.allow = false\nlimits.a.user = "no-such-user"',
        "rabbit.limits.a.user: there is no user no-such-user",
    ),
    (
        'limits.a.allow = false\nlimits.a.group = "no-such-group"',
        "rabbit.limits.a.group: there is no group no-such-group",
    ),
    (
        'limits.a.allow = false\nlimits.a.queue = "bacth"',
        "rabbit.limits.a.queue: there is no queue bacth, did you mean batch?",
    ),
    ("daemons.copy-offload = 5", "rabbit.daemons.copy-offload: expected a systemd"),
    ("presets.a = 5", "rabbit.presets.a"),
    ('presets.a = "#DW jobwd"', "did you mean 'jobdw'"),
]
ACCEPTED = [
    "",
    "restrict_persistent = true",
    'nnf_api_version = "v1"',
    'postrun_timeout = "15m"\nteardown_after = "15m"',
    'postrun_timeout = "15m"\nteardown_after = 0',
    'prolog_timeout = "5m"',
    'drain_queues = ["debug"]\nlimits.a.allow = true\nlimits.a.queue = "batch"',
    'limits.a.user = "root"\nlimits.a.group = "0"\nlimits.a.allow = true',
]


def put(lines: str) -> tuple[list[str], str]:
    """Use these lines. Returns the faults that the check tells, and what the reload
    says, "" if it is content."""
    keys = {line.split("=")[0].strip() for line in lines.splitlines()}
    for key, path in (("kubeconfig", KUBECONFIG), ("mapping", MAPPING)):
        if key not in keys:
            lines += f'\n{key} = "{path}"'
    text = pathlib.Path(PLAIN).read_text(encoding="utf8")
    TABLE.write_text(f"{text}\n[queues.debug]\n[queues.batch]\n[rabbit]\n{lines}\n")
    said = io.StringIO()
    with contextlib.redirect_stderr(said):
        code = configcheck.run(CONF)
    try:
        HANDLE.rpc("config.reload", {}).get()
        reload = ""
    except OSError as exc:
        reload = exc.strerror or str(exc)
    return said.getvalue().splitlines() if code else [], reload


def same(fault: str, reload: str) -> bool:
    """Flux says first which module it is, and cuts the whole at 160 characters,
    with a "+" at the end."""
    words = re.sub("^error updating [a-z-]+: ", "", reload.rstrip("+"))
    return words == fault or (len(reload) >= 159 and fault.startswith(words))


def main() -> int:
    SPOILT.mkdir()
    good = yaml.safe_load(pathlib.Path(KUBECONFIG).read_text(encoding="utf8"))
    for name, spoil in SPOILS.items():
        text = spoil if isinstance(spoil, str) else yaml.safe_dump({**good, **spoil})
        (SPOILT / name).write_text(text, encoding="utf8")
    rows = [
        (f"{key['name']} = {WRONG[key['type']]}", f"rabbit.{key['name']}: ")
        for key in dws.config_keys()
    ]
    rows += REFUSED
    wrong = 0
    for lines, text in rows:
        faults, reload = put(lines)
        if not (len(faults) == 1 and text in faults[0] and same(faults[0], reload)):
            print(f"{lines}: check: {faults}; reload: {reload}")
            wrong += 1
    for lines in ACCEPTED:
        faults, reload = put(lines)
        if faults or reload:
            print(f"{lines}: check: {faults}; reload: {reload}")
            wrong += 1
    print(f"{len(rows)} refused, {len(ACCEPTED)} accepted, {wrong} wrong")
    return wrong


if __name__ == "__main__":
    sys.exit(main() > 0)
