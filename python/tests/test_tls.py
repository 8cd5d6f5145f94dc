"""A server with TLS, and what errors advise when the two sides do not agree on it."""

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
    """The certificate of the server, which is its own authority; key.pem is beside it."""
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


def test_an_authority_of_your_own_is_named_by_the_environment(
    address: str, authority: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    url = f"https://{address.replace('127.0.0.1', 'localhost')}"
    assert "name its authority: SSL_CERT_FILE=ca.pem" in message_of(url)
    monkeypatch.setenv("SSL_CERT_FILE", str(authority))
    with Sagitta(url) as client:
        assert client.limits()["top_k_max"] == 10_000
    # The address is not in the certificate.
    assert "use a name or an address of the certificate" in message_of(f"https://{address}")


def test_a_server_with_tls_is_told_from_one_without(address: str, server: Server) -> None:
    assert "if the server uses TLS, use https://" in message_of(f"http://{address}")
    plain = server.url.replace("http:", "https:")
    assert "the server speaks plain HTTP: use http://" in message_of(plain)
