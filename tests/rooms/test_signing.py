"""Signatures tell who made a results folder, and OpenSSL can check them."""

from __future__ import annotations

import shutil
import subprocess
from typing import TYPE_CHECKING, Any

import pytest
from typer.testing import CliRunner

import mutandis as mm
from mutandis.cli.app import app
from mutandis.errors import OutputError, SettingsError
from mutandis.rooms.signing import read_key
from mutandis.store.files import hash_file
from mutandis.store.results_folder import SUMS, write_sums

if TYPE_CHECKING:
    from pathlib import Path

TABLE = {
    "woman": [1, 1, 0, 0, 0, 0],
    "salary": [10.0, 11.0, 10.0, 11.0, 15.0, 16.0],
    "granted": ["no", "no", "no", "yes", "yes", "yes"],
}


def run(*arguments: object) -> Any:
    return CliRunner().invoke(app, [str(each) for each in arguments])


def differences(folder: Path, key: Path) -> tuple[str, ...]:
    return mm.verify_results(folder, key=key).differences


def make_key(folder: Path, name: str, *, kind: Any = None, password: bytes | None = None) -> Path:
    """Write a private key, and the public one beside it."""
    from cryptography.hazmat.primitives import serialization as form
    from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

    key = (kind or Ed25519PrivateKey).generate()
    hidden: Any = (
        form.BestAvailableEncryption(password) if password is not None else form.NoEncryption()
    )
    private = key.private_bytes(form.Encoding.PEM, form.PrivateFormat.PKCS8, hidden)
    public = key.public_key().public_bytes(
        form.Encoding.PEM, form.PublicFormat.SubjectPublicKeyInfo
    )
    (folder / f"{name}.pem").write_bytes(private)
    (folder / f"{name}.pub").write_bytes(public)
    return folder / f"{name}.pem"


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with two keys and signed results, with a case file."""
    pytest.importorskip("cryptography", reason="signatures are an extra")
    folder = tmp_path_factory.mktemp("signed")
    key = make_key(folder, "mine")
    make_key(folder, "other")
    found = mm.audit(
        TABLE,
        outcome="granted",
        negative="no",
        protected=mm.Protection("woman", value=1, reference=0),
        attributes={"salary": "continuous"},
        ks=(1,),
    )
    found.save(folder / "out", sign=key)
    mm.save_case(folder / "out", 0, pdf=False, sign=key)
    return folder


@pytest.fixture
def folder(written: Path, tmp_path: Path) -> Path:
    shutil.copytree(written, tmp_path / "copy")
    return tmp_path / "copy"


def test_the_right_key_and_another_one(folder: Path) -> None:
    assert differences(folder / "out", folder / "mine.pub") == ()
    result = run("verify", folder / "out", "--key", folder / "mine.pub")
    assert result.exit_code == 0
    assert f"They are signed with {folder / 'mine.pub'}." in result.output
    assert differences(folder / "out", folder / "other.pub") == (
        "audit.json is not signed with this key",
        "cases/SHA256SUMS is not signed with this key",
    )
    assert run("verify", folder / "out", "--key", folder / "other.pub").exit_code == 1


def test_a_change_with_hashes_that_fit_is_found(folder: Path) -> None:
    page = folder / "out" / "cases" / "0.html"
    page.write_text(page.read_text("utf-8").replace("%", "0%", 1), encoding="utf-8")
    lines = (page.parent / SUMS).read_text().splitlines()[1:]
    sums = {name: sha256 for sha256, name in map(str.split, lines)} | {"0.html": hash_file(page)}
    write_sums(page.parent, folder / "out" / "audit.json", sums)
    assert mm.verify_results(folder / "out").differences == ()
    assert differences(folder / "out", folder / "mine.pub") == (
        "cases/SHA256SUMS is not signed with this key",
    )


@pytest.mark.parametrize("content", [b"", b"0" * 64, b"0" * 20_000])
def test_what_is_no_signature(folder: Path, content: bytes) -> None:
    (folder / "out" / "audit.json.sig").write_bytes(content)
    assert differences(folder / "out", folder / "mine.pub") == (
        "audit.json is not signed with this key",
    )


def test_signed_cases_stay_signed_by_one_key(folder: Path) -> None:
    before = {path.name: path.read_bytes() for path in (folder / "out" / "cases").iterdir()}
    for options, words in (
        ((), "are signed, and a further one needs the same key"),
        (("--sign", folder / "other.pem"), "is not signed with this key, and would be signed"),
    ):
        result = run("case", folder / "out", 1, "--no-pdf", *options)
        assert isinstance(result.exception, OutputError)
        assert words in str(result.exception)
    after = {path.name: path.read_bytes() for path in (folder / "out" / "cases").iterdir()}
    assert after == before
    done = run("case", folder / "out", 1, "--no-pdf", "--sign", folder / "mine.pem")
    assert done.exit_code == 0, done.exception
    assert differences(folder / "out", folder / "mine.pub") == ()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl is not installed")
@pytest.mark.parametrize("record", ["audit.json", "cases/SHA256SUMS"])
def test_openssl_and_sha256sum_agree(folder: Path, record: str) -> None:
    path = folder / "out" / record
    command = ["openssl", "pkeyutl", "-verify", "-pubin", "-rawin", "-in", str(path)]
    command += ["-sigfile", f"{path}.sig", "-inkey"]
    for key, code in (("mine.pub", 0), ("other.pub", 1)):
        done = subprocess.run(  # noqa: S603 - a command of the test's own
            [*command, str(folder / key)], capture_output=True, check=False
        )
        assert done.returncode == code, done.stderr
    checked = subprocess.run(
        ["sha256sum", "--check", "--strict", "SHA256SUMS"],  # noqa: S607
        cwd=folder / "out" / "cases",
        capture_output=True,
        check=False,
    )
    assert checked.returncode == 0


def test_a_key_with_a_password(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = make_key(folder, "hidden", password=b"secret")
    for password, words in ((None, "has a password"), ("wrong", "its password is another one")):
        if password is not None:
            monkeypatch.setenv("MUTANDIS_KEY_PASSWORD", password)
        with pytest.raises(SettingsError, match=words):
            read_key(path, "private")
    monkeypatch.setenv("MUTANDIS_KEY_PASSWORD", "secret")
    assert read_key(path, "private").public == read_key(folder / "hidden.pub", "public").public
    with pytest.raises(SettingsError, match="has no password"):
        read_key(folder / "mine.pem", "private")


def test_what_is_no_key(folder: Path) -> None:
    from cryptography.hazmat.primitives.asymmetric.ed448 import Ed448PrivateKey

    make_key(folder, "448", kind=Ed448PrivateKey)
    (folder / "text").write_text("key")
    for path in ("text", "448.pem", "mine.pub"):
        with pytest.raises(SettingsError, match="not a private Ed25519 key in PEM"):
            read_key(folder / path, "private")
    for path in ("text", "448.pub", "mine.pem"):
        with pytest.raises(SettingsError, match="not a public Ed25519 key in PEM"):
            read_key(folder / path, "public")
    with pytest.raises(SettingsError, match="cannot be opened"):
        read_key("/dev/zero", "public")
    with pytest.raises(SettingsError, match="cannot be opened: No such file"):
        read_key(folder / "absent", "public")
