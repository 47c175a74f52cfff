# SPDX-License-Identifier: LGPL-3.0-only
#
# Making, reading and asking the rabbitmapping, and R from configuration.
"""Tests of flux_k8s.rabbitmap and flux_k8s.resourceconfig."""

import pathlib
import sys

import pytest
from flux_k8s import rabbitmap, resourceconfig

pytest.importorskip("flux.hostlist", exc_type=ImportError)

DATA = pathlib.Path(__file__).parent.parent / "data" / "rabbitmap"
GIB = 1 << 30


def configuration(*nodes):
    return {
        "metadata": {"name": "default"},
        "spec": {
            "storageNodes": [
                {
                    "type": "Rabbit",
                    "name": name,
                    "computesAccess": [
                        {"name": host, "index": i} for i, host in enumerate(hosts)
                    ],
                }
                for name, hosts in nodes
            ]
        },
    }


def storage(name, capacity, *computes):
    return {
        "metadata": {"name": name},
        "status": {
            "capacity": capacity,
            "access": {"computes": [{"name": c, "status": "Ready"} for c in computes]},
        },
    }


CONFIG = configuration(("r1", ["c1", "c2"]), ("r2", ["c3"]), ("r3", []))


def test_build():
    storages = [storage("r1", 100, "c1", "c2"), storage("r2", 80, "c3")]
    assert rabbitmap.build(CONFIG, storages) == {
        "computes": {"c1": "r1", "c2": "r1", "c3": "r2"},
        "rabbits": {
            "r1": {"hostlist": "c[1-2]", "capacity": 100},
            "r2": {"hostlist": "c3", "capacity": 80},
            # never up: as large as the largest
            "r3": {"hostlist": "", "capacity": 100},
        },
    }


def test_build_counts_drives():
    """The capacity comes from the drives, not from the free space of some moment."""

    def drives(name, *sizes):
        obj = storage(name, 29582104002560)
        obj["status"]["devices"] = [
            {"slot": str(n), "status": "Ready" if size else "Failed", "capacity": size}
            for n, size in enumerate(sizes)
        ]
        return obj

    tib = 1 << 40
    storages = [
        drives("r1", *[2 * tib] * 18),
        drives("r2", *[2 * tib] * 15, *[tib] * 2, 0),
        drives("r3", *[2 * tib] * 13, *[0] * 5),
    ]
    rabbits = rabbitmap.build(CONFIG, storages)["rabbits"]
    # too few drives: as large as the others, once it is whole
    assert [entry["capacity"] // tib for entry in rabbits.values()] == [32, 16, 32]
    rabbits = rabbitmap.build(CONFIG, storages, raw=True)["rabbits"]
    assert [entry["capacity"] // tib for entry in rabbits.values()] == [36, 32, 26]


@pytest.mark.parametrize(
    "config, storages, text",
    [
        (
            configuration(("r1", ["c1"]), ("r2", ["c1"])),
            [],
            "c1 is connected to r1 and r2",
        ),
        (CONFIG, [storage("r2", 1, "c1")], "Storage r2 has a connection to c1"),
    ],
)
def test_build_refuses_contradictions(config, storages, text):
    with pytest.raises(rabbitmap.MappingError, match=text):
        rabbitmap.build(config, storages)


@pytest.mark.parametrize(
    ("config", "storages"),
    [
        ({}, []),
        ({"spec": {"storageNodes": [{"name": "r1", "computesAccess": [1]}]}}, []),
        (CONFIG, [{}]),
        (CONFIG, [{"metadata": {"name": "r1"}, "status": "x"}]),
        (configuration(("r1", ["c["])), []),
    ],
)
def test_build_refuses_what_is_malformed(config, storages):
    with pytest.raises(rabbitmap.MappingError, match="malformed"):
        rabbitmap.build(config, storages)


def test_build_without_status():
    # before the first boot there is no status, and a rabbit may be unknown
    storages = [{"metadata": {"name": "r1"}}, storage("other", 5)]
    rabbits = rabbitmap.build(CONFIG, storages)["rabbits"]
    assert {entry["capacity"] for entry in rabbits.values()} == {0}


def test_ask():
    mapping = rabbitmap.load(str(DATA / "mapping.json"))
    assert rabbitmap.all_rabbits(mapping) == "fig[101-102]"
    assert rabbitmap.rabbits_of(mapping, ["fig[1-2]", "fig3"]) == ["fig101", "fig102"]
    assert rabbitmap.computes_of(mapping, ["fig[101-102]"]) == ["fig1", "fig2", "fig3"]
    with pytest.raises(rabbitmap.MappingError, match="fig4 has no rabbit"):
        rabbitmap.rabbits_of(mapping, ["fig[3-4]"])
    with pytest.raises(rabbitmap.MappingError, match="no rabbit fig1"):
        rabbitmap.computes_of(mapping, ["fig1"])
    with pytest.raises(rabbitmap.MappingError, match="not a hostlist"):
        rabbitmap.rabbits_of(mapping, ["fig["])


@pytest.mark.parametrize(
    "content, text",
    [
        (None, "No such file"),
        ("{", "not JSON"),
        ("[" * 100000, "not JSON"),
        ('{"computes": {"n0": 1}}', "'computes.n0' must be a rabbit"),
        ("[]", "'computes' must be an object"),
        ('{"computes": {}, "rabbits": []}', "'rabbits' must be an object"),
        ('{"rabbits": {"r1": "a[1-2]"}}', "'rabbits.r1' must have a hostlist"),
        ('{"rabbits": {"r1": {"hostlist": 1}}}', "'rabbits.r1' must have a hostlist"),
    ],
)
def test_load_names_the_file(tmp_path, content, text):
    path = tmp_path / "map.json"
    if content is not None:
        path.write_text(content)
    with pytest.raises(rabbitmap.MappingError) as info:
        rabbitmap.load(str(path))
    assert str(path) in str(info.value)
    assert text in str(info.value)


needs_toml = pytest.mark.skipif(sys.version_info < (3, 11), reason="no TOML reader")


@needs_toml
def test_R_from_configuration():
    table = resourceconfig.load(str(DATA / "resource.toml"))
    assert resourceconfig.exclude(table) == "fig3"
    assert resourceconfig.build_R(table) == {
        "version": 1,
        "execution": {
            "R_lite": [
                {"rank": "0-2", "children": {"core": "0-3", "gpu": "0-1"}},
                {"rank": "3-4", "children": {"core": "0"}},
            ],
            "starttime": 0,
            "expiration": 0,
            "nodelist": ["fig[1-3,9,101]"],
            "properties": {"batch": "1,3", "big": "1,3"},
        },
    }


@needs_toml
def test_configuration_may_be_a_directory(tmp_path):
    (tmp_path / "a.toml").write_text("[other]\nx = 1\n")
    (tmp_path / "b.toml").write_text('[[resource.config]]\nhosts = "h1"\n')
    table = resourceconfig.load(str(tmp_path))
    R = resourceconfig.build_R(table)
    assert R["execution"]["nodelist"] == ["h1"]
    assert resourceconfig.exclude(table) == ""


@needs_toml
@pytest.mark.parametrize(
    "content, text",
    [
        ("", "no [[resource.config]]"),
        ("x = ", "Invalid value"),
        ("[resource]\nconfig = 5\n", "no [[resource.config]]"),
        ("[[resource.config]]\n", "resource.config[0]: 'hosts' is missing"),
        ('[[resource.config]]\nhosts = "a["\n', "resource.config[0].hosts"),
        (
            '[[resource.config]]\nhosts = "a"\ncores = "x"\n',
            "resource.config[0].cores",
        ),
        (
            '[[resource.config]]\nhosts = "a"\ncoers = "0"\n',
            "resource.config[0]: unknown key 'coers'",
        ),
        ("[resource]\nconfig = [1]\n", "resource.config[0]: not a table"),
        (
            '[[resource.config]]\nhosts = "a"\nproperties = "big"\n',
            "resource.config[0].properties: not an array of strings",
        ),
        (
            '[[resource.config]]\nhosts = "a"\nproperties = [1]\n',
            "resource.config[0].properties",
        ),
    ],
)
def test_configuration_errors_name_the_key(tmp_path, content, text):
    path = tmp_path / "resource.toml"
    path.write_text(content)
    with pytest.raises(resourceconfig.ConfigError) as info:
        resourceconfig.build_R(resourceconfig.load(str(path)))
    assert text in str(info.value)
