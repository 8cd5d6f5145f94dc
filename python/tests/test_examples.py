"""The examples and the README, run as a reader would run them."""

from __future__ import annotations

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pyarrow
import pyarrow.parquet
import pytest
from servers import REPOSITORY, Server

from sagitta import Sagitta

EXAMPLES = REPOSITORY / "python/examples"
RUN_SECONDS_MAX = 120
"""Only catches hangs."""
TEXTS = [f"{word} number {n}" for n in range(50) for word in ("whale", "bread")]


def run(server: Server, folder: Path, script: str, *args: str) -> list[str]:
    finished = subprocess.run(
        [sys.executable, EXAMPLES / script, *args],
        cwd=folder,
        # Keeps compiled modules out of the folder of examples.
        env={**os.environ, "SAGITTA_URL": server.url, "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=RUN_SECONDS_MAX,
        check=False,
    )
    assert finished.returncode == 0, finished.stderr
    return finished.stdout.splitlines()


def test_batches_are_written_queried_and_exported(
    server: Server, client: Sagitta, tmp_path: Path
) -> None:
    assert run(server, tmp_path, "load_and_query.py") == [
        "written: 10000 rows in 4 commits",
        "matches: 6000 the first: row-0 the last: row-1999",
        "odd matches: 30 all odd: True",
        "pages: [10, 10, 5] nearest: row-0",
        "rejected: dimension_mismatch",
    ]
    assert run(server, tmp_path, "export_parquet.py", "even.parquet") == [
        "table: 3 rows, fixed_size_list<item: float not null>[16]",
        "metadata: {'number': 0, 'parity': 'even'}",
        "file: 5000 rows",
    ]
    assert client.collection("python-example").count({"parity": "odd"}) == 5_000


def test_duplicates_are_found(server: Server, tmp_path: Path) -> None:
    assert run(server, tmp_path, "deduplicate.py") == ["pairs: 8 deleted: 3 left: 3"]


@pytest.mark.parametrize("library", ["ray", "dask"])
def test_a_batch_job_writes_neighbours(server: Server, tmp_path: Path, library: str) -> None:
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    ids = [f"t{n}" for n in range(len(TEXTS))]
    texts = pyarrow.table({"id": ids, "text": TEXTS})
    pyarrow.parquet.write_table(texts, tmp_path / "texts.parquet")
    printed = run(server, tmp_path, f"{library}_batch.py", "texts.parquet", "neighbours")
    assert printed == [f"written: {len(TEXTS)}"]
    found = pyarrow.parquet.read_table(tmp_path / "neighbours", columns=["id", "neighbour"])
    assert found.num_rows == 3 * len(TEXTS)
    text_of = dict(zip(ids, TEXTS, strict=True))
    for id, neighbour in zip(*(column.to_pylist() for column in found.columns), strict=True):
        assert id != neighbour
        assert text_of[id].split()[0] == text_of[neighbour].split()[0]


def test_the_examples_in_the_readme_print_the_output_shown(
    server: Server, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("langchain_core")
    text = (REPOSITORY / "python/README.md").read_text()
    program = "\n".join(re.findall(r"^```python\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    expected = [
        line
        for outputs in re.findall(r"^ *print\(.*\)  # (.*)$", program, re.MULTILINE)
        for line in outputs.split(" | ")
    ]
    exec(program.replace("http://127.0.0.1:8484", server.url), {"__name__": "__main__"})
    assert capsys.readouterr().out.splitlines() == expected
    assert len(expected) > 10
