# doc/faults.md is what the tests prove: it is made from them, and each fault
# that they describe is one that they make.
# SPDX-License-Identifier: LGPL-3.0-only

from __future__ import annotations

import pathlib
import re
from types import ModuleType

import pytest
from page_support import load

TOP = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def faults() -> ModuleType:
    return load("faults")


def test_page_is_up_to_date(faults: ModuleType) -> None:
    text = faults.PAGE.read_text(encoding="utf-8")
    assert text == faults.page(faults.read_all()), "run scripts/lib/faults.py --write"


def test_each_fault_is_made(faults: ModuleType) -> None:
    """A comment without its test would be a promise only."""
    described = {(fault.test, fault.name) for fault in faults.read_all()}
    made = {
        (path.name, name)
        for path in (TOP / "t").glob("*.t")
        for name in re.findall(
            r"^\t*dws_(?:fault|outcomes) ([\w-]+)", path.read_text(), re.MULTILINE
        )
    }
    assert described == made
    assert len(described) > 10


def test_a_cell_without_a_test(faults: ModuleType, tmp_path: pathlib.Path) -> None:
    test = tmp_path / "t9999-x.t"
    test.write_text("# FAULT x: x\n#   depend setup: completed: y\n")
    with pytest.raises(ValueError, match="nothing about .*'pending', 'datain'"):
        faults.read(test)
    test.write_text("# FAULT x: x\n#   depend depend: completed: y\n")
    with pytest.raises(ValueError, match="phase depend"):
        faults.read(test)


def test_text_goes_on(faults: ModuleType, tmp_path: pathlib.Path) -> None:
    test = tmp_path / "t9999-x.t"
    test.write_text(
        f"# FAULT x: x\n#   {' '.join(faults.PHASES)}: failed a-b: y\n#     z.\n"
    )
    [fault] = faults.read(test)
    assert set(fault.words.values()) == {"y z."}
    assert "✗ 1" in faults.page([fault])
