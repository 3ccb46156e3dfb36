"""Files of a TLS certificate and its key, and places without them: which are refused, and with what
message.
"""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest
from testbed.webserver import certify
from uncaged_bundles.errors import UsageError
from uncaged_engine.api import Engine
from uncaged_serve.certificate import check_certificate
from uncaged_serve.server import Place, serve


@pytest.fixture(scope="module")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two pairs (NAME.pem has certificate and key, NAME.key the key), and the key a.key with a
    passphrase as locked.key.
    """
    directory = tmp_path_factory.mktemp("pairs")
    for name in ("a", "b"):
        both = certify(directory, name).read_text()
        (directory / f"{name}.crt").write_text(both.partition("-----BEGIN PRIVATE KEY")[0])
    (directory / "broken.crt").write_text(
        "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n"
    )
    locked = ("-out", "locked.key", "-aes256", "-passout", "pass:secret")
    subprocess.run(["openssl", "pkey", "-in", "a.key", *locked], check=True, cwd=directory)
    return directory


@pytest.mark.parametrize(
    ("certificate", "key", "message"),
    [
        ("a.key", "a.crt", "a.key holds no certificate in PEM; --tls takes"),
        ("a.crt", "b.crt", "b.crt holds no private key in PEM; --tls takes"),
        ("a.crt", "b.key", "b.key is not that of the certificate"),
        ("a.crt", "locked.key", "locked.key has a passphrase; write it without one: openssl"),
        ("broken.crt", "a.key", "cannot be used for TLS"),
        ("a.crt", "gone.key", "gone.key cannot be read: No such file"),
    ],
)
def test_files_that_a_server_cannot_use_are_refused(
    files: Path, certificate: str, key: str, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        check_certificate(files / certificate, files / key)
    assert message in str(refused.value)


def test_a_pair_in_two_files_or_in_one_is_accepted(files: Path) -> None:
    check_certificate(files / "a.crt", files / "a.key")
    check_certificate(files / "a.pem", files / "a.pem")


def test_a_server_checks_its_certificate_before_it_listens(engine: Engine, files: Path) -> None:
    place = Place(port=0, certificate=(files / "a.crt", files / "b.key"))
    with pytest.raises(UsageError, match="name the files of one pair"):
        serve(engine, place, ready=lambda serving: pytest.fail(serving.address), report=pytest.fail)


@pytest.mark.parametrize(
    ("host", "proxy", "message"),
    [
        ("192.0.2.1", "https://flows.example.org", "run the proxy on this machine"),
        (
            "192.0.2.1",
            None,
            "192.0.2.1 is not served without TLS, only 127.0.0.1, localhost, ::1; add --tls",
        ),
        ("127.0.0.2", None, "127.0.0.2 is not served without TLS"),
        ("127.0.0.1", "http://flows.example.org", "takes the proxy's origin"),
        ("127.0.0.1", "https://flows.example.org/page", "takes the proxy's origin"),
    ],
)
def test_a_place_at_which_the_token_crosses_a_network_is_refused(
    host: str, proxy: str | None, message: str
) -> None:
    with pytest.raises(UsageError) as refused:
        Place(port=0, host=host, proxy=proxy).check()
    assert message in str(refused.value)


def test_a_proxy_on_this_machine_is_served() -> None:
    place = Place(port=0, proxy="https://flows.example.org:8443")
    place.check()
    assert place.origin(1) == "https://flows.example.org:8443"
