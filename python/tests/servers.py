"""Servers for the tests: a real server process, and a proxy that cuts connections."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import socket
import subprocess
import tempfile
import threading
from pathlib import Path

REPOSITORY = Path(__file__).parents[2]
COMMAND = REPOSITORY / "scripts/sagitta.cjs"
START_SECONDS_MAX = 60
"""Only catches hangs."""


class Server:
    """A server on a free port with its own data directory."""

    def __init__(self, **settings: str) -> None:
        self._settings = settings
        self._directory = tempfile.mkdtemp(prefix="sagitta-python-")
        self._port = 0
        self.start()

    def start(self) -> None:
        """Starts the process. After `kill`, it uses the same port."""
        self._process = subprocess.Popen(
            ["node", COMMAND, "serve", "--port", str(self._port), "--data-dir", self._directory],
            env={**os.environ, **self._settings},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self.url = self._read_url()
        self._port = int(self.url.rsplit(":", 1)[1])
        # Reads the rest of the log, so that the server never blocks on writing it.
        threading.Thread(target=self._drain, args=[self._process.stdout], daemon=True).start()

    def kill(self) -> None:
        """Kills the process without warning. The data directory remains."""
        self._process.kill()
        self._process.wait()

    def close(self) -> None:
        self._process.terminate()
        self._process.wait()
        shutil.rmtree(self._directory)

    def _read_url(self) -> str:
        watchdog = threading.Timer(START_SECONDS_MAX, self._process.kill)
        watchdog.start()
        lines = []
        for line in self._process.stdout:
            lines.append(line)
            found = re.search(r"listening on (https?://[\d.:]+\d)", line)
            if found:
                watchdog.cancel()
                return found[1]
        raise AssertionError(f"the server did not start: {''.join(lines)}")

    @staticmethod
    def _drain(output: object) -> None:
        for _ in output:
            pass
        output.close()


class CuttingProxy:
    """Forwards connections to a server and cuts some of them.

    `requests_max` and `replies_max` are the bytes after which a connection is cut, one number per
    connection in the order of arrival. None means no limit, as for all later connections.
    """

    def __init__(
        self, server_url: str, *, requests_max: object = (), replies_max: object = ()
    ) -> None:
        host, port = server_url.removeprefix("http://").split(":")
        self._target = (host, int(port))
        self._requests_max = list(requests_max)
        self._replies_max = list(replies_max)
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._listener.getsockname()[1]}"
        self.connection_count = 0
        threading.Thread(target=self._accept, daemon=True).start()

    def close(self) -> None:
        self._listener.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._listener.accept()
            except OSError:
                return
            self.connection_count += 1
            server = socket.create_connection(self._target)
            limits = [
                limits.pop(0) if limits else None
                for limits in (self._requests_max, self._replies_max)
            ]
            for source, target, bytes_max in (
                (client, server, limits[0]),
                (server, client, limits[1]),
            ):
                threading.Thread(
                    target=self._pass, args=[source, target, bytes_max], daemon=True
                ).start()

    @staticmethod
    def _pass(source: socket.socket, target: socket.socket, bytes_max: int | None) -> None:
        left = bytes_max
        try:
            while chunk := source.recv(65_536):
                target.sendall(chunk if left is None else chunk[:left])
                if left is not None:
                    left -= len(chunk)
                    if left <= 0:
                        break
        except OSError:
            pass
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()
