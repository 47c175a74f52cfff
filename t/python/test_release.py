# The tarball of a release, and the package's metadata for pip.
# SPDX-License-Identifier: LGPL-3.0-only

from __future__ import annotations

import email.message
import email.parser
import hashlib
import json
import os
import pathlib
import re
import shutil
import subprocess
import sys
import tarfile
from collections.abc import Iterator

import pytest

TOP = pathlib.Path(__file__).parents[2]
VERSION = subprocess.check_output([TOP / "packaging" / "version"], text=True).strip()
ROOT = f"flux-dws-{VERSION}"

pytestmark = pytest.mark.skipif(not (TOP / ".git").exists(), reason="no clone")


def git(clone: pathlib.Path, *args: str) -> str:
    who = ("-c", "user.name=t", "-c", "user.email=t@t")
    return subprocess.check_output(["git", "-C", str(clone), *who, *args], text=True)


def release(
    clone: pathlib.Path, out: pathlib.Path, umask: int = 0o022, sign: str = "--no-sign"
) -> subprocess.CompletedProcess[str]:
    path = f"{pathlib.Path(sys.executable).parent}:{os.environ['PATH']}"
    return subprocess.run(
        [clone / "scripts" / "release", "--no-tests", *sign.split(), out],
        capture_output=True,
        text=True,
        umask=umask,
        env={**os.environ, "PATH": path},
    )


@pytest.fixture(scope="module")
def clones(tmp_path_factory: pytest.TempPathFactory) -> list[pathlib.Path]:
    """Two clones, of what is committed."""
    found = []
    for name in ("one", "another"):
        clone = tmp_path_factory.mktemp(name) / "flux-dws"
        subprocess.check_call(["git", "clone", "-q", "--shared", TOP, clone])
        git(clone, "checkout", "-q", "--detach")
        for tag in git(clone, "tag").split():
            git(clone, "tag", "-d", tag)
        found.append(clone)
    return found


def test_the_tarball_is_the_same_whoever_makes_it(
    clones: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    made = []
    for clone, umask in zip(clones, (0o022, 0o077)):
        result = release(clone, tmp_path / f"{umask}", umask)
        assert result.returncode == 0, result.stderr
        assert "not signed" in result.stderr
        files = sorted((tmp_path / f"{umask}").iterdir())
        made.append({path.name: path.read_bytes() for path in files})
    assert made[0] == made[1]
    assert set(made[0]) == {f"{ROOT}.{end}" for end in ("tar.gz", "cdx.json", "sha256")}

    with tarfile.open(tmp_path / "18" / f"{ROOT}.tar.gz") as tar:
        files = {m.name for m in tar.getmembers() if not m.isdir()}
        assert {(m.uid, m.gid, m.uname) for m in tar.getmembers()} == {(0, 0, "")}
        spec = tar.extractfile(f"{ROOT}/flux-dws.spec")
        assert spec
        assert f"Version:        {VERSION}\n" in spec.read().decode()
    known = set(git(clones[0], "ls-files").split("\n")) - {""}
    unwanted = {
        name for name in known if re.match(r"\.ci/|\.gitignore|\.gitattrib", name)
    }
    assert len(unwanted) >= 3
    assert files == {
        f"{ROOT}/{name}" for name in (known - unwanted) | {"flux-dws.spec"}
    }


@pytest.mark.parametrize(
    ("tag", "day", "error"),
    [
        ("v9.9", "2026-12-01", "the tag is v9.9, the version is"),
        (f"v{VERSION}", "unreleased", "NEWS.md has no day of the release"),
        (f"v{VERSION}", "2026-12-01", ""),
    ],
)
def test_a_tag_is_of_a_release(
    clones: list[pathlib.Path], tmp_path: pathlib.Path, tag: str, day: str, error: str
) -> None:
    clone = clones[0]
    news = clone / "NEWS.md"
    text = news.read_text(encoding="utf8")
    news.write_text(re.sub(r"\(.*\)", f"({day})", text, count=1), encoding="utf8")
    git(clone, "commit", "-qa", "--allow-empty", "-m", "Release")
    git(clone, "tag", tag)
    try:
        result = release(clone, tmp_path)
    finally:
        git(clone, "tag", "-d", tag)
    assert error in result.stderr
    assert (result.returncode == 0) == (error == "")
    if not error:
        entry = subprocess.check_output(
            [clone / "packaging/changelog", "deb"], text=True
        )
        assert f"({VERSION})" in entry
        assert "Tue, 01 Dec 2026 00:00:00 +0000" in entry


def test_nothing_is_released_that_is_not_committed(
    clones: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    (clones[1] / "README.md").write_text("changed", encoding="utf8")
    result = release(clones[1], tmp_path)
    git(clones[1], "checkout", "-q", ".")
    assert result.returncode == 1
    assert "not committed" in result.stderr


@pytest.fixture
def keys(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> Iterator[dict[str, str]]:
    """A signing key of each format, and a git configuration without anything else."""
    home = tmp_path / "gnupg"
    home.mkdir(mode=0o700)
    monkeypatch.setenv("GNUPGHOME", str(home))
    monkeypatch.setenv("GIT_CONFIG_GLOBAL", os.devnull)
    ssh = tmp_path / "id"
    subprocess.check_call(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", ssh])
    gpg = ["gpg", "-q", "--batch", "--passphrase", "", "--quick-gen-key", "t@t"]
    subprocess.check_call(gpg)
    yield {"ssh": str(ssh), "openpgp": "t@t"}
    subprocess.check_call(["gpgconf", "--kill", "all"])


def verify(out: pathlib.Path, key: str, form: str) -> None:
    sums = out / f"{ROOT}.sha256"
    if form == "openpgp":
        subprocess.check_call(["gpg", "-q", "--verify", f"{sums}.asc", sums])
    else:
        allowed = out / "allowed"
        public = pathlib.Path(f"{key}.pub").read_text(encoding="utf8")
        allowed.write_text(f"t@t {public}", encoding="utf8")
        command = ["ssh-keygen", "-Y", "verify", "-f", allowed, "-I", "t@t"]
        with open(sums, "rb") as stream:
            subprocess.check_call(
                [*command, "-n", "file", "-s", f"{sums}.sig"], stdin=stream
            )
    subprocess.check_call(["sha256sum", "-c", "--quiet", sums.name], cwd=out)


@pytest.mark.skipif(
    not (shutil.which("gpg") and shutil.which("ssh-keygen")), reason="no gpg or no ssh"
)
def test_a_release_is_signed_with_the_key_of_git(
    clones: list[pathlib.Path], tmp_path: pathlib.Path, keys: dict[str, str]
) -> None:
    clone, out = clones[1], tmp_path / "out"
    result = release(clone, out, sign="")
    assert result.returncode == 1 and not list(out.iterdir())
    assert "git config user.signingkey KEY" in result.stderr
    assert "--no-sign" in result.stderr
    try:
        for form, key in keys.items():
            git(clone, "config", "gpg.format", form)
            git(clone, "config", "user.signingkey", key)
            result = release(clone, out, sign="")
            assert result.returncode == 0, result.stderr
            verify(out, key, form)
            assert result.stdout == (out / f"{ROOT}.sha256").read_text()
        git(clone, "config", "user.signingkey", "nobody@nowhere")
        result = release(clone, tmp_path / "none", sign="")
        assert result.returncode == 1 and not list((tmp_path / "none").iterdir())
        assert "could not sign with the key nobody@nowhere" in result.stderr
    finally:
        git(clone, "config", "--unset", "user.signingkey")


def test_the_bill_of_materials(
    clones: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    result = release(clones[1], tmp_path)
    assert result.returncode == 0, result.stderr
    bill = json.loads((tmp_path / f"{ROOT}.cdx.json").read_text())
    assert (bill["bomFormat"], bill["specVersion"]) == ("CycloneDX", "1.5")
    itself = bill["metadata"]["component"]
    assert (itself["name"], itself["version"]) == ("flux-dws", VERSION)
    digest = hashlib.sha256((tmp_path / f"{ROOT}.tar.gz").read_bytes()).hexdigest()
    assert itself["hashes"] == [{"alg": "SHA-256", "content": digest}]
    refs = [entry["bom-ref"] for entry in bill["components"]]
    assert len(refs) == len(set(refs))
    assert bill["dependencies"] == [{"ref": itself["bom-ref"], "dependsOn": refs}]
    requires = {
        entry["name"]: entry["properties"][0]["value"]
        for entry in bill["components"]
        if "version" not in entry
    }
    assert set(requires) == {"flux-core", "jansson"} and ">=" in requires["jansson"]
    lock = (TOP / "scripts/lock/base.txt").read_text(encoding="utf8")
    pinned = re.findall(r"^([^ #=]+)==([^ ]+)", lock, re.MULTILINE)
    assert [f"pkg:pypi/{name}@{version}" for name, version in pinned] == refs[2:]


def metadata(sdist: pathlib.Path) -> email.message.Message:
    with tarfile.open(sdist) as tar:
        file = tar.extractfile(f"flux_dws-{VERSION}/PKG-INFO")
        assert file
        return email.parser.BytesParser().parsebytes(file.read())


def test_the_sdist_says_what_it_is(
    clones: list[pathlib.Path], tmp_path: pathlib.Path
) -> None:
    build = f"import mesonpy; mesonpy.build_sdist({str(tmp_path)!r})"
    subprocess.check_call([sys.executable, "-c", build], cwd=clones[0])
    sdist = tmp_path / f"flux_dws-{VERSION}.tar.gz"
    subprocess.check_call([sys.executable, "-m", "twine", "check", "--strict", sdist])
    said = metadata(sdist)
    assert said["Name"] == "flux-dws"
    assert said["Version"] == VERSION
    assert said["License-Expression"] == "LGPL-3.0-only"
    assert said["Requires-Python"] == ">=3.9"
    assert said["Description-Content-Type"] == "text/markdown"
    needs = {re.split("[^a-z-]", need)[0] for need in said.get_all("Requires-Dist", [])}
    assert needs >= {"cffi", "kubernetes", "prometheus-client", "pycurl", "flux-python"}
