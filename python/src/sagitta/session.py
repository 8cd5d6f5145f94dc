"""What a client has seen of a cluster, which goes along with each request in a header.

No reply has less then, whichever node gives it. A service that is alone sends no such header.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping

SESSION = "sagitta-session"

LOGS_MAX = 32
"""Of the collections used last, and the catalogue; the server accepts 64."""


class Session:
    """Up to where the logs were that replies tell of. For several threads."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._positions: dict[str, int] = {}
        """By log, the one seen last at the end."""

    def headers(self) -> dict[str, str]:
        """Of the next request."""
        with self._lock:
            items = [f"{log}:{position}" for log, position in self._positions.items()]
        return {SESSION: ",".join(items)} if items else {}

    def note(self, headers: Mapping[str, str]) -> None:
        """The headers of a reply."""
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
