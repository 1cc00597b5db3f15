"""The identity provider oidc-provider-mock, as a process on loopback."""

import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx

from tests.support.faults.port_faults import held_port


@contextmanager
def mock_provider(log: Path) -> Iterator[str]:
    """Run the provider; yield its address."""
    with held_port() as port, log.open("w") as output:
        command = [sys.executable, "-m", "oidc_provider_mock", "--port", str(port), "--require-nonce", "true"]
        process = subprocess.Popen(command, stdout=output, stderr=output)
        try:
            yield _when_it_answers(f"http://127.0.0.1:{port}", process, log)
        finally:
            process.terminate()
            process.wait(30)


def _when_it_answers(url: str, process: "subprocess.Popen[bytes]", log: Path) -> str:
    for _ in range(600):
        assert process.poll() is None, log.read_text()
        try:
            httpx.get(url, trust_env=False).raise_for_status()
            return url
        except httpx.TransportError:
            time.sleep(0.1)
    raise AssertionError(log.read_text())
