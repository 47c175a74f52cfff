# scripts/mutate: its rules, and the mutants that it excuses.
# SPDX-License-Identifier: LGPL-3.0-only
import sys

from page_support import TOP

sys.path.insert(0, str(TOP / "scripts" / "lib"))

from mutate import judges, rules
from mutate.__main__ import harmless, sources

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
            assert all((TOP / test).exists() for test in copy.shells(name))


def test_the_row_of_a_file_is_its_own():
    copy = object.__new__(judges.Copy)
    copy.top = TOP
    assert copy.shells("src/modules/dws-jobtap/waits.c") == ["t/t1054-dependencies.t"]
    assert "t/t1100-dws-module.t" in copy.shells("src/modules/dws/service.c")


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
