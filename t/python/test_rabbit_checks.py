# What flux rabbit selftest says of a configuration.
# SPDX-License-Identifier: LGPL-3.0-only
from typing import Any

import pytest
from flux_rabbit import checks


def fluxion(**keys: str) -> str:
    """The verdict about Fluxion with these keys in its table."""
    table = {name.replace("_", "-"): value for name, value in keys.items()}
    config: dict[str, Any] = {"resource": {"path": "/R.json"}}
    if table:
        config["sched-fluxion-resource"] = table
    return checks._fluxion(checks.Site(handle=None, config=config))


@pytest.mark.parametrize("format", ["rv1", "rv1_shorthand"])
def test_formats_that_say_which_rabbits(format):
    assert fluxion(match_format=format) == "Fluxion"


@pytest.mark.parametrize(
    "keys,text",
    [
        ({}, "match-format is not set"),
        ({"queue_policy": "fcfs"}, "match-format is not set"),
        ({"match_format": "rv1_nosched"}, 'match-format is "rv1_nosched"'),
    ],
)
def test_formats_that_do_not(keys, text):
    with pytest.raises(checks.Wrong, match=text) as info:
        fluxion(**keys)
    assert info.value.hint == "with rabbits it has to be rv1 or rv1_shorthand"
