"""A server with TLS, and the advice in errors if only one side uses it."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from servers import Server

from sagitta import Retry, Sagitta, SagittaError

pytestmark = pytest.mark.skipif(shutil.which("openssl") is None, reason="there is no openssl")

CERTIFICATE = "req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost"


@pytest.fixture(scope="module")
def authority(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The self-signed certificate of the server. key.pem is in the same folder."""
    folder = tmp_path_factory.mktemp("tls")
    names = ["-addext", "subjectAltName=DNS:localhost"]
    files = ["-out", folder / "ca.pem", "-keyout", folder / "key.pem"]
    make = ["openssl", *CERTIFICATE.split(), *names, *files]
    subprocess.run(make, check=True, capture_output=True)
    return folder / "ca.pem"


@pytest.fixture(scope="module")
def address(authority: Path) -> Iterator[str]:
    """Host and port of the server."""
    key = str(authority.with_name("key.pem"))
    with contextlib.closing(Server(SAGITTA_TLS_CERT=str(authority), SAGITTA_TLS_KEY=key)) as one:
        yield one.url.partition("://")[2]


def message_of(url: str) -> str:
    with (
        Sagitta(url, retry=Retry(attempts_max=1)) as client,
        pytest.raises(SagittaError) as caught,
    ):
        client.limits()
    assert caught.value.code == "network_error"
    return str(caught.value)


def test_the_environment_names_a_private_authority(
    address: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"https://{address.replace('127.0.0.1', 'localhost')}"
    assert "name its authority: SSL_CERT_FILE=ca.pem" in message_of(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with Sagitta(url) as client:
        assert client.limits()["top_k_max"] == 10_000
    # The certificate does not name the address.
    assert "use a name or an address of the certificate" in message_of(f"https://{address}")


def test_errors_tell_servers_with_tls_from_servers_without(address: str, server: Server) -> None:
    assert "if the server uses TLS, use https://" in message_of(f"http://{address}")
    plain = server.url.replace("http:", "https:")
    assert "the server speaks plain HTTP: use http://" in message_of(plain)
