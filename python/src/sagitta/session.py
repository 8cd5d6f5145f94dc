"""Tracks what a client has seen of a cluster and sends it along with each request in a header.

This way no reply shows an older state, whichever node sends it. A single server sends no such
header.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

SESSION = "sagitta-session"

LOGS_MAX = 32
"""The logs of the most recently used collections and of the catalogue. The server accepts 64."""


class Session:
    """The positions of logs that replies have reported. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: dict[str, int] = {}
        """The position of each log, the most recently seen log last."""

    def headers(self) -> dict[str, str]:
        """The headers of the next request."""
        with self._lock:
            items = [f"{log}:{position}" for log, position in self._positions.items()]
        return {SESSION: ",".join(items)} if items else {}

    def note(self, headers: Mapping[str, str]) -> None:
        """Updates the positions from the headers of a reply."""
        text = headers.get(SESSION)
        if text is None:
            return
        with self._lock:
            for item in text.split(","):
                log, _, position = item.strip().partition(":")
                if not (log and position.isascii() and position.isdigit()):
                    continue
                known = self._positions.pop(log, 0)
                self._positions[log] = max(known, int(position))
            while len(self._positions) > LOGS_MAX:
                del self._positions[next(iter(self._positions))]
