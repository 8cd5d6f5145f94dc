"""The package as it is published."""

from __future__ import annotations

import importlib.metadata
import json

from servers import REPOSITORY


def test_the_version_is_that_of_the_server() -> None:
    server = json.loads((REPOSITORY / "package.json").read_text())
    assert importlib.metadata.version("sagitta") == server["version"]
