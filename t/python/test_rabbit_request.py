# Requests of jobs, from options, scripts or jobspecs, and their forecast.
# SPDX-License-Identifier: LGPL-3.0-only
"""flux_rabbit.request and flux_rabbit.foresee, without an instance."""

from __future__ import annotations

import json
import pathlib
import pwd
import sys
import types
from typing import Any

import pytest
from flux_rabbit import feasible, foresee, request

XFS = "#DW jobdw type=xfs capacity=10GiB name=scratch"
GFS2 = "#DW jobdw type=gfs2 capacity=1500MiB name=the-shared"
GIB = 1 << 30


class Jobspec:
    """As much of one as is looked at."""

    def __init__(self, resources: list[Any], dw: Any = None) -> None:
        self.attributes: dict[str, Any] = {"system": {}}
        self.jobspec = {"resources": resources}
        if dw is not None:
            self.attributes["system"]["dw"] = dw

    def setattr(self, key: str, value: str) -> None:
        top, name = key.split(".")
        assert top == "system"
        self.attributes["system"][name] = value

    @property
    def dw(self) -> Any:
        return self.attributes["system"].get("dw")


def nodes(count: int) -> list[Any]:
    core = {"type": "core", "count": 1}
    return [
        {
            "type": "node",
            "count": count,
            "with": [{"type": "slot", "count": 1, "label": "task", "with": [core]}],
        }
    ]


def asked(
    *lines: str,
    options: tuple[str, ...] = (),
    dw: Any = None,
    resources: list[Any] | None = None,
) -> request.Request:
    """A batch job with a script of these lines."""
    script = ("job.sh", "\n".join(("#!/bin/sh", *lines))) if lines else None
    spec = Jobspec(nodes(2) if resources is None else resources, dw)
    found = request.Request("batch", script, list(options), spec)
    found.apply()
    return found


@pytest.fixture(autouse=True)
def no_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "configured", lambda key: None)
    monkeypatch.setattr(foresee, "ask_rabbits", lambda: None)
    monkeypatch.setattr(feasible, "check", lambda *args: None)


@pytest.mark.parametrize(
    ("lines", "numbers"),
    [
        ((XFS, "true"), [2]),
        (("", "# comment", XFS, "", GFS2, "true"), [4, 6]),
        (("true",), []),
        ((f"# {XFS}", f"#{XFS}", "#DWARF", "#dwarf", "# about DW jobdw"), []),
        (("\t", XFS + "  "), [3]),
        (("#DW jobdw type=xfs \\", "#DW capacity=1GiB\\", "#DW name=aa"), [2, 3, 4]),
        (("#DW jobdw type=xfs \\", "capacity=1GiB name=aa", "true"), [2, 3]),
    ],
)
def test_header(lines: tuple[str, ...], numbers: list[int]) -> None:
    found, late = request.header("job.sh", "\n".join(("#!/bin/sh", *lines)))
    assert [number for number, _ in found.lines] == numbers
    assert not late


@pytest.mark.parametrize(
    "line",
    [
        f" {XFS}",
        f"\t{XFS}",
        "# DW jobdw type=xfs",
        "#\tdw persistentdw name=a",
        " # DW copy_in",
    ],
)
def test_miswritten(line: str) -> None:
    found, unread = request.header("job.sh", f"#!/bin/sh\n{line}\n{XFS}\ntrue\n")
    assert [number for number, _ in found.lines] == [3]
    assert len(unread) == 1 and unread[0].startswith("job.sh:2: ")
    with pytest.raises(ValueError, match=r"^job.sh:2: .*is not read"):
        asked(line, XFS)


@pytest.mark.parametrize(
    ("line", "noted"),
    [
        ("#BB create_persistent name=aa", True),
        ("#BB_LUA x", True),
        ("#BBQ", False),
        ("# flux: -N1", False),
        ("# flux: --dw=x -N1", True),
        ("##FLUX: -N1 --setattr=dw=x", True),
        ("# flux: -S dw=x", True),
        ("# flux: --dw-near=x", True),
        ("# flux: --dwell", False),
    ],
)
def test_lines_of_others(line: str, noted: bool) -> None:
    found, unread = request.header("job.sh", f"#!/bin/sh\n{line}\ntrue\n", True)
    assert not found.lines and not unread
    assert len(found.notes) == noted
    found, _ = request.header("job.sh", f"#!/bin/sh\n{line}\ntrue\n")
    assert len(found.notes) == line.startswith("#BB") * noted


def test_warning_is_not_kept_back(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not until the program exits: flux run becomes another one."""
    with (tmp_path / "err").open("w") as stream:
        monkeypatch.setattr(sys, "stderr", stream)
        request.warn("run", "text")
        assert (tmp_path / "err").read_text() == "flux-run: warning: text\n"


def test_script_of_another_program(capsys: pytest.CaptureFixture[str]) -> None:
    request.warn_unread("run", ("./job.sh", f"#!/bin/sh\n\n{XFS}\n"))
    request.warn_unread("run", ("./job.sh", f"#!/bin/sh\ntrue\n{XFS}\n"))
    request.warn_unread("run", ("./job.sh", f"{XFS} \\\n\n"))
    request.warn_unread("run", ("./job.sh", "#!/bin/sh\ntrue\n"))
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == 3 and all("./job.sh:" in line for line in lines)


@pytest.mark.parametrize("text", ["", " \n", "# none\n", f"\n# {XFS}\n"])
def test_option_without_directives(text: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "mine").write_text(text)
    for value in (str(tmp_path / "mine"), text):
        with pytest.raises(ValueError, match="^--dw: .*there is no directive"):
            asked(options=(value, XFS))


def test_empty_attribute(capsys: pytest.CaptureFixture[str]) -> None:
    for dw in ("", [], [" \n", ""]):
        assert not asked(dw=dw).sources
        assert "warning: -S dw: is empty" in capsys.readouterr().err


def test_nobody_acts_on_directives(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(request, "service_there", lambda: False)
    monkeypatch.setenv("DW_JOB_scratch", "/mnt")
    asked("true").find_service(True)
    found = asked(XFS)
    found.find_service(False)
    assert found.jobspec.dw is None
    assert "are not acted on" in capsys.readouterr().err
    copy = "#DW copy_in source=/a destination=$DW_JOB_scratch/"
    for found, binding in (
        (asked(XFS), True),
        (asked(XFS, GFS2), False),
        (asked(XFS, copy), False),
    ):
        with pytest.raises(ValueError, match="that this instance does not have"):
            found.find_service(binding)
    monkeypatch.setattr(request, "service_there", lambda: True)
    asked(XFS, GFS2).find_service(True)


@pytest.mark.parametrize(
    "lines",
    [
        ("#DW jobdw type=xfs \\", "#DW capacity=10GiB\\", "#DW name=scratch", "true"),
        ("#DW jobdw type=xfs\\", "  capacity=10GiB \\", "name=scratch", "true"),
    ],
)
def test_continued(lines: tuple[str, ...]) -> None:
    found = asked(*lines)
    assert found.judged
    assert [d["text"] for d in found.judged["directives"]] == [XFS]


def test_late() -> None:
    lines = (XFS, "", "cd /", GFS2, f"  {GFS2}", "#dw = 1", GFS2.lower())
    text = "\n".join(("#!/bin/sh", *lines))
    found, late = request.header("job.sh", text)
    assert [number for number, _ in found.lines] == [2]
    assert [line.split(" ")[0] for line in late] == ["job.sh:5:", "job.sh:8:"]
    assert "on line 4" in late[0]
    with pytest.raises(ValueError, match=r"^job.sh:3: .*on line 2; move it up"):
        asked("cd /", XFS)


@pytest.mark.parametrize(
    "line", ["# capacity=1GiB", "my-app -n 4", "", "=x", "my-app a=b", "#dw a=b"]
)
def test_continuation_that_is_none(line: str) -> None:
    with pytest.raises(ValueError, match=r"^job.sh:2: ends in .*, but line 3 "):
        asked("#DW jobdw type=xfs \\", line, "true")


@pytest.mark.parametrize(
    ("value", "place"),
    [
        ("#DW jobdw type=zfs capacity=1GiB name=aa", "--dw: "),
        (f"{XFS}\n\n#DW jobdw type=zfs capacity=1GiB name=aa", "--dw, line 3: "),
    ],
)
def test_place_in_option(value: str, place: str) -> None:
    with pytest.raises(ValueError, match=f"^{place}#DW directive .*zfs"):
        asked(options=(value,))


def test_file(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine").write_text(f"# two\n{XFS}\n{GFS2}\n")
    (tmp_path / "small").mkdir()
    assert asked(options=("mine",)).jobspec.dw == f"# two\n{XFS}\n{GFS2}\n"
    # no file, so a preset, whose text is not available here
    assert asked(options=("small",)).jobspec.dw == "small"
    with pytest.raises(FileNotFoundError):
        asked(options=("./none",))
    (tmp_path / "mine").write_text("\n\n#DW jobwd\n")
    with pytest.raises(ValueError, match="^mine:3: .*jobwd"):
        asked(options=("mine",))


def test_together() -> None:
    found = asked(XFS, "true", options=(GFS2,), dw=["#DW persistentdw name=pp", " "])
    assert found.judged
    assert [d["text"] for d in found.judged["directives"]] == [
        XFS,
        GFS2,
        "#DW persistentdw name=pp",
    ]
    places = [found.place(d["line"]) for d in found.judged["directives"]]
    assert places == ["job.sh:2", "--dw", "-S dw, line 1"]
    assert found.place(0) == found.place(99) == ""


@pytest.mark.parametrize("dw", [1, ["#DW", 2], {}])
def test_no_text(dw: Any) -> None:
    with pytest.raises(ValueError, match="-S dw: is not a text"):
        asked(XFS, dw=dw)


def test_contradiction() -> None:
    with pytest.raises(
        ValueError, match=r"^--dw: .*'scratch' is that of directive 1.* \(job.sh:3\)$"
    ):
        asked("", XFS, options=("#DW jobdw type=gfs2 capacity=1GiB name=scratch",))


def test_presets(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "configured", lambda key: {"tiny": XFS})
    found = asked(options=("tiny",))
    assert found.jobspec.dw == "tiny"
    assert found.judged and found.judged["directives"][0]["text"] == XFS
    with pytest.raises(ValueError, match="^--dw: .*'tinny' is not a preset.*'tiny'"):
        asked(options=("tinny",))


def test_preset_with_the_users_name(monkeypatch: pytest.MonkeyPatch) -> None:
    mine = [XFS, "#DW copy_out source=$DW_JOB_scratch/o destination=/lus/$USER"]
    monkeypatch.setattr(request, "configured", lambda key: {"mine": mine})
    entry = types.SimpleNamespace(pw_name="ann")
    monkeypatch.setattr(pwd, "getpwuid", lambda userid: entry)
    found = asked(options=("mine",))
    assert found.judged
    assert found.judged["directives"][1]["text"].endswith(" destination=/lus/ann")

    def unknown(userid: int) -> None:
        raise KeyError(userid)

    monkeypatch.setattr(pwd, "getpwuid", unknown)
    with pytest.raises(ValueError, match=r"preset 'mine'\): \$USER: the job has none"):
        asked(options=("mine",))


def test_what_flux_was_told_stays() -> None:
    found = asked(dw=["tiny"])
    assert found.jobspec.dw == ["tiny"]


def test_foreseen() -> None:
    told = foresee.foresee(asked(XFS, GFS2))
    assert [entry["sets"] for entry in told["directives"]] == [
        [{"label": "xfs", "bytes": 10 * GIB, "count": 2}],
        [{"label": "gfs2", "bytes": 1500 << 20, "count": 2}],
    ]
    # 1500 MiB are 2 GiB for the scheduler, and 1500 MiB on a rabbit
    assert told["scheduled"] == {"groups": 2, "nodes": 1, "gib": 12}
    assert told["sizes"]["job"] == {
        "asked": 2 * (10 * GIB + (1500 << 20)),
        "taken": 2 * (10 * GIB + (1500 << 20)),
    }
    assert told["rabbits"] == {"least": 1, "most": 2}
    assert [entry["variables"] for entry in told["directives"]] == [
        ["DW_JOB_scratch"],
        ["DW_JOB_the_shared"],
    ]


def test_foreseen_chassis() -> None:
    chassis = [{"type": "chassis", "count": 3, "with": nodes(4)}]
    told = foresee.foresee(asked(XFS, resources=chassis))
    assert told["scheduled"] == {"groups": 3, "nodes": 4, "gib": 40}
    assert told["rabbits"] == {"least": 3, "most": 3}
    assert told["nodes"] == 12
    assert told["directives"][0]["sets"][0]["count"] == 12


def test_foreseen_without_storage() -> None:
    told = foresee.foresee(asked("#DW destroy_persistent name=pp"))
    assert told["scheduled"]["gib"] == 0
    assert told["rabbits"] == {"least": 0, "most": 0}
    assert not told["directives"][0]["sets"]
    assert foresee.lines(foresee.foresee(asked())) == [
        "no #DW directives: the job gets no storage of rabbits"
    ]


def test_foreseen_rabbits(monkeypatch: pytest.MonkeyPatch) -> None:
    def rabbit(free: int, state: str = "Ready") -> dict[str, Any]:
        return {"state": state, "capacity": 12 * GIB, "free": free * GIB}

    rabbits = [rabbit(12), rabbit(9), rabbit(12, "Disabled"), rabbit(10)]
    monkeypatch.setattr(foresee, "ask_rabbits", lambda: rabbits)
    told = foresee.foresee(asked(XFS, resources=nodes(8)))
    # a rabbit has room for one of them
    assert told["rabbits"] == {"least": 7, "most": 7, "there": 4, "roomy": 2}
    told = foresee.foresee(asked(XFS))
    assert told["rabbits"] == {"least": 2, "most": 2, "there": 4, "roomy": 2}
    with pytest.raises(ValueError, match="no rabbit has more than 12 GiB"):
        foresee.foresee(asked(XFS.replace("10GiB", "13GiB")))


def test_foreseen_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "configured", lambda key: {"xfs": 9})
    with pytest.raises(ValueError, match="more than the 9 GiB that this system allows"):
        foresee.foresee(asked(XFS))


def test_preset_that_nobody_knows() -> None:
    with pytest.raises(ValueError, match="no Flux instance to ask for its presets"):
        foresee.foresee(asked(options=("tiny",)))


def test_report(capsys: pytest.CaptureFixture[str]) -> None:
    found = asked(XFS)
    assert "xfs: 2" in foresee.report(found, False, "1-2")
    assert "this is the first of the jobs 1-2" in capsys.readouterr().err
    assert json.loads(foresee.report(found, True)) == foresee.foresee(found)
    assert "reserved: 10 GiB or more for each node" in foresee.report(found, False)


def place(where: dict[str, Any], *lines: str) -> request.Request:
    found = asked(*lines)
    found.place_at(where)
    return found


def test_place(monkeypatch: pytest.MonkeyPatch) -> None:
    there = [{"name": f"rabbit{n}"} for n in range(3)]
    monkeypatch.setattr(request, "rabbits_there", lambda: there)
    found = place({"rabbits": "rabbit[1-2]", "near": None}, XFS)
    assert found.rabbits == ["rabbit1", "rabbit2"]
    assert found.jobspec.attributes["system"]["dw_rabbits"] == "rabbit[1-2]"
    assert "dw_near" not in found.jobspec.attributes["system"]
    with pytest.raises(ValueError, match=r"no rabbit 'r7', there are rabbit\[0-2\]"):
        place({"rabbits": "rabbit1,r7"}, XFS)
    for text in ("", "r["):
        with pytest.raises(ValueError, match="is not a hostlist of rabbits"):
            place({"rabbits": text}, XFS)
    with pytest.raises(ValueError, match="--dw-near: there are no #DW directives"):
        place({"near": "f1"})


def test_place_without_instance(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(request, "rabbits_there", lambda: None)
    assert place({"rabbits": "any"}, XFS).rabbits == ["any"]


def test_foreseen_place(monkeypatch: pytest.MonkeyPatch) -> None:
    one = {"state": "Ready", "capacity": 99 * GIB, "free": 99 * GIB}
    there = [{**one, "name": "rabbit0"}, {**one, "name": "rabbit1"}]
    monkeypatch.setattr(request, "rabbits_there", lambda: there)
    monkeypatch.setattr(foresee, "ask_rabbits", lambda: there)
    told = foresee.foresee(place({"rabbits": "rabbit1", "near": "f1"}, XFS))
    assert told["rabbits"] == {"least": 1, "most": 1, "there": 1, "roomy": 1}
    assert "nodes: 2, next to rabbit1 and f1" in foresee.lines(told)


def test_data_first() -> None:
    found = place({}, XFS)
    found.data_first()
    assert found.jobspec.attributes["system"]["dw_data_first"] is True
    with pytest.raises(ValueError, match="--dw-data-first: there are no #DW direc"):
        place({}).data_first()
