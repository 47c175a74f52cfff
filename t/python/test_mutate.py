# scripts/mutate: its rules, and the mutants that it excuses.
# SPDX-License-Identifier: LGPL-3.0-only
import json
import subprocess
import sys

from page_support import TOP

sys.path.insert(0, str(TOP / "scripts" / "lib"))

from mutate import judges, rules
from mutate.__main__ import harmless, report, sources

C = b"""#define LIMIT 30
static int f (int a)
{
    if (a && g (a))
        note (a);
    free (a);
    char *s = calloc (1, sizeof (table[0]));
    json_pack ("{s:i}", "jobid", a);
    return a < 2 ? -1 : 0;
}
"""
PYTHON = b"""def f(a=1, b="x"):
    if not a:
        note(a)
    log.info("said")
    return {"jobid": a, "x": True}
"""


def changed(name, source):
    return [
        mutant.apply(source).decode().splitlines()[mutant.number - 1].strip()
        for mutant in rules.mutants(name, source)
    ]


def test_c():
    assert changed("f.c", C) == [
        "#define LIMIT (30 + 1)",
        "if (!((a && g (a))))",
        "if ((a))",
        "if ((g (a)))",
        ";",
        "char *s = calloc ((1 + 1), sizeof (table[0]));",
        ";",
        'json_pack ("{s:i}", "x-jobid", a);',
        "return (!(a < 2)) ? -1 : 0;",
        "return a < (2 + 1) ? -1 : 0;",
        "return a < 2 ? -1 : (0 + 1);",
    ]


def test_python():
    assert changed("f.py", PYTHON) == [
        'def f(a=(1 + 1), b="x"):',
        "def f(a=1, b=(\"x\" + 'x')):",
        "if (not (not a)):",
        "pass",
        'return {**{}, "x": True}',
        'return {"jobid": a, **{}}',
        'return {"jobid": a, "x": False}',
    ]


def test_each_file_has_tests():
    copy = object.__new__(judges.Copy)
    copy.top = TOP
    for folder in judges.FOLDERS:
        names = list(sources(TOP, folder))
        assert names
        for name in names:
            tests = copy.shells(name)
            assert all((TOP / test.rstrip("@")).exists() for test in tests)


def test_the_row_of_a_file_is_its_own():
    copy = object.__new__(judges.Copy)
    copy.top = TOP
    assert copy.shells("src/modules/dws-jobtap/timelimit.c") == ["t/t1059-time-limit.t"]
    assert "t/t1100-dws-module.t" in copy.shells("src/modules/dws/service.c")


def test_code_for_fluxion_is_judged_under_flux_core():
    copy = object.__new__(judges.Copy)
    copy.top = TOP
    assert copy.shells("src/modules/dws/sched/fluxion.c") == ["t/t1016-fluxion.t@"]
    assert not judges.is_unit("t/t1016-fluxion.t@")


def test_a_mutant_that_is_the_same_program(tmp_path, monkeypatch, capsys):
    def build(copy, targets):
        command = ["cc", "-O2", "-g", "-c", "-o", *targets, "../f.c"]
        done = subprocess.run(command, cwd=copy.top / "build", stderr=subprocess.PIPE)
        return done.returncode == 0

    monkeypatch.setattr(judges.Copy, "build", build)
    (tmp_path / "build").mkdir()
    commands = [
        {"file": "../g.c", "output": "g.o"},
        {"file": "../f.c", "output": "f.o"},
    ]
    (tmp_path / "build/compile_commands.json").write_text(json.dumps(commands))
    (tmp_path / "f.c").write_bytes(b"int f (int a) { return a * 2; }")
    copy = judges.Copy(tmp_path)
    assert copy.is_same("f.c", b"int f (int a) { return\na + a; }") is True
    assert copy.is_same("f.c", b"int f (int a) { return a * 3; }") is False
    assert copy.is_same("f.c", b"int f (int a) { return a *; }") is None
    mutants = rules.mutants("f.c", C)
    assert report({"f": [(mutants[0], "same"), (mutants[1], "t/t1.t")]}) == 0
    assert "f: 1 of 2 died, 1 harmless" in capsys.readouterr().out


def test_unit_tests_that_a_file_is_linked_with_judge_it():
    copy = object.__new__(judges.Copy)
    copy.top = TOP
    assert {"src/modules/dws/test_dws_totals", "src/modules/dws/test_dws_ledger"} <= {
        *copy.units("src/modules/dws/facts/accounts.c")
    }


def test_what_is_excused_is_there():
    for key, reason in harmless().items():
        path, line, _ = key.split(" | ", 2)
        lines = (TOP / path).read_text(encoding="utf8").splitlines()
        assert line in map(str.strip, lines), key
        assert reason


def test_a_test_that_is_silent_is_told_from_one_that_fails(tmp_path):
    (tmp_path / "tmp").mkdir()
    copy = judges.Copy(tmp_path)
    assert copy.run(["sleep", "inf"], 0.2) < 0 and copy.was_silent
    assert copy.run(["false"], 60) < 0 and not copy.was_silent
