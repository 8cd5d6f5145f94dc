"""The package as published: its wheel, its dependencies and its types."""

from __future__ import annotations

import json
import re
import subprocess
import sys
import venv
import zipfile
from pathlib import Path

import pytest
from servers import REPOSITORY, Server

import sagitta

PROGRAM = """
import sys
from sagitta import Sagitta, SagittaError

with Sagitta(sys.argv[1]) as client:
    client.collections.create(id=sys.argv[2], dimension=2)
    vectors = client.collection(sys.argv[2])
    vectors.write_all({"id": f"v{n}", "values": [n, 1]} for n in range(3))
    print([match["id"] for match in vectors.query_all(vector=[1, 0], top_k=2)])
    for use in (vectors.export_batches, lambda: vectors.get("v0", include_values="numpy")):
        try:
            use()
        except SagittaError as error:
            print(error)
"""

TYPED_PROGRAM = """
from collections.abc import AsyncIterator, Iterator
from typing_extensions import assert_type
from sagitta import AsyncSagitta, AsyncStream, Sagitta, Stream, wire

one = Sagitta("").collection("a")
assert_type(one.query(vector=[1.0], top_k=3), wire.QueryReply)
assert_type(one.list_all(), Iterator[wire.Vector])
assert_type(one.export_stream(format="arrow"), Stream[bytes])
one.upsert([{"id": "a", "values": [1.0], "metadata": {"n": 1}}, {"embed": "text"}])
one.write_all({"id": "a", "values": [1.0]} for _ in range(3))
one.query(vektor=[1.0])  # misspelt
one.query(top_k="3")  # of another type
one.upsert([{"ids": "a"}])  # not a member

async def main() -> None:
    other = AsyncSagitta("").collection("a")
    assert_type(await other.query(id="a"), wire.QueryReply)
    assert_type(other.list_all(), AsyncIterator[wire.Vector])
    assert_type(await other.export_stream(format="arrow"), AsyncStream[bytes])
    other.count()  # not awaited
"""


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("wheel")
    build = [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", folder]
    subprocess.run(build, cwd=REPOSITORY / "python", check=True, capture_output=True)
    return next(folder.glob("*.whl"))


def test_the_version_equals_the_version_of_the_server() -> None:
    server = json.loads((REPOSITORY / "package.json").read_text())
    assert sagitta.__version__ == server["version"]


def test_the_wheel_and_the_module_have_the_same_version(wheel: Path) -> None:
    assert wheel.name == f"sagitta-{sagitta.__version__}-py3-none-any.whl"


def test_the_wheel_contains_only_modules_and_their_types(wheel: Path) -> None:
    with zipfile.ZipFile(wheel) as archive:
        names = {name for name in archive.namelist() if ".dist-info/" not in name}
    sources = (REPOSITORY / "python/src").glob("sagitta/*.*")
    assert names == {str(path.relative_to(REPOSITORY / "python/src")) for path in sources}
    assert "sagitta/py.typed" in names


def test_the_wheel_works_in_a_new_environment(
    server: Server, name: str, wheel: Path, tmp_path: Path
) -> None:
    venv.create(tmp_path, with_pip=True)
    python = tmp_path / "bin/python"
    pip = [python, "-m", "pip", "install", "--quiet", "--retries", "0", wheel]
    installed = subprocess.run(pip, capture_output=True, text=True, check=False)
    if installed.returncode != 0:
        pytest.skip(f"pip cannot install httpx: {installed.stderr.splitlines()[-1]}")
    # -I isolates the program from this environment.
    run = [python, "-I", "-c", PROGRAM, server.url, name]
    finished = subprocess.run(run, capture_output=True, text=True, check=False)
    assert finished.stderr == ""
    assert finished.stdout.splitlines() == [
        "['v2', 'v1']",
        'invalid_argument: this method needs pyarrow: pip install "sagitta[arrow]"',
        'invalid_argument: include_values="numpy" needs NumPy: pip install "sagitta[arrow]"',
    ]


def test_types_of_both_clients_are_known(tmp_path: Path) -> None:
    program = tmp_path / "program.py"
    program.write_text(TYPED_PROGRAM)
    check = [sys.executable, "-m", "mypy", "--strict", "--cache-dir", tmp_path / "cache", program]
    checked = subprocess.run(check, cwd=tmp_path, capture_output=True, text=True, check=False)
    found = {int(line) for line in re.findall(r"^program.py:(\d+): error", checked.stdout, re.M)}
    lines = enumerate(TYPED_PROGRAM.split("\n"), 1)
    assert found == {number for number, line in lines if "#" in line}, checked.stdout
