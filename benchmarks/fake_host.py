"""A fake host that talks to the farm over HTTP: only the farm is measured; an agent would cost as much."""

import http.client
import json
from collections.abc import Iterable, Sequence
from functools import cache
from typing import Any
from urllib.parse import urlsplit

from program import ITERATIONS

from farm.core.runs.evidence import Evidence, ExitRecord
from farm.wire.agents.protocol import Report
from farm.wire.agents.report_batch import pack_reports

#: What the program of a benchmark prints; a small report, as quick programs make them.
_OUTPUT = (
    "Starting benchmark.\nRunning warmup runs.\nMain runs.\n"
    + 'PyTorchObserver {"type": "NET", "unit": "us", "metric": "latency", "value": "1000"}\n' * ITERATIONS
    + "Main run finished. Microseconds per iter: 1000. Iters per second: 1000\n"
)


class FakeHost:
    """One host with phones that need no time for a run."""

    def __init__(self, url: str, name: str, join_token: str, phones: int) -> None:
        address = urlsplit(url)
        self._http = http.client.HTTPConnection(str(address.hostname), address.port, timeout=60)
        self._headers = {"Content-Type": "application/json"}
        credential = self._post("/enroll", {"host": name, "join_token": join_token})["credential"]
        self._headers["Authorization"] = f"Bearer {credential}"
        opening = {"boot_id": "boot", "agent_version": "benchmark"}
        self._session: int = self._post("/sessions", opening)["session_id"]
        self._seq = 0
        self._phones = {id: _phone(id) for id in (f"{name}-{number}" for number in range(phones))}

    def exchange(self) -> list[dict[str, Any]]:
        """Report the phones, and return their next assignments."""
        self._seq += 1
        report = {"seq": self._seq, "devices": list(self._phones.values())}
        answer = self._post(f"/sessions/{self._session}/exchange", report)
        for phone in self._phones.values():
            # As an agent does: facts are sent once, and again when the farm wants them.
            if phone["device_id"] not in answer["facts_wanted"]:
                phone.pop("facts", None)
        return list(answer["assignments"])

    def run_all(self, assignments: Iterable[dict[str, Any]]) -> int:
        """Report a good run of each assignment in one call each, clean the phones up, return the count."""
        count = 0
        for assignment in assignments:
            self._send(f"/attempts/{assignment['attempt_id']}/report", _report(assignment))
            self._clean(assignment)
            count += 1
        return count

    def run_all_together(self, assignments: Sequence[dict[str, Any]]) -> int:
        """Do `run_all` with one call, as an agent whose runs end at the same time."""
        reports = [(assignment["attempt_id"], _report(assignment)) for assignment in assignments]
        outcomes = self._send("/attempts/reports", pack_reports(reports))["reports"]
        if bad := [outcome for outcome in outcomes if outcome["answer"] is None]:
            raise RuntimeError(f"refused: {bad}")
        for assignment in assignments:
            self._clean(assignment)
        return len(outcomes)

    def run_until_idle(self) -> None:
        """Run all assignments until there are none, such as the checks of new phones."""
        while assignments := self.exchange():
            self.run_all(assignments)

    def _clean(self, assignment: dict[str, Any]) -> None:
        self._phones[assignment["device_id"]]["cleaned_fence"] = assignment["fence"]

    def close(self) -> None:
        """Close the connection."""
        self._http.close()

    def _post(self, path: str, body: dict[str, Any]) -> Any:
        return self._send(path, json.dumps(body).encode())

    def _send(self, path: str, body: bytes) -> Any:
        self._http.request("POST", f"/api/v1/agent{path}", body, self._headers)
        answer = self._http.getresponse()
        content = answer.read()
        if answer.status >= 300:
            raise RuntimeError(f"{path}: {answer.status} {content.decode(errors='replace')}")
        return json.loads(content)


def _phone(device_id: str) -> dict[str, Any]:
    facts = {
        "serialno": device_id,
        "device_model": "played phone",
        "abis": ["x86_64"],
        "api_level": 34,
        "work_root": "/data/local/tmp",
        "virtual": True,
    }
    return {
        "device_id": device_id,
        "serial": device_id,
        "presence": "online",
        "facts": facts,
        "cleaned_fence": 0,
    }


@cache
def _good_report() -> str:
    """Return the report of a good run, made once to cost the benchmark little."""
    return _report_of(0, 0, _OUTPUT).decode()


def _report(assignment: dict[str, Any]) -> bytes:
    plan = assignment["plan"]
    if plan["harness"] == "device_check":
        size, digest = int(plan["settings"]["payload_bytes"]), plan["settings"]["payload_sha256"]
        stdout = f"shell_exit 7\npayload_sha256 {digest}\ncopied_bytes {2 * size}\n"
        return _report_of(assignment["fence"], 23, stdout)
    return _good_report().replace('"fence":0,', f'"fence":{assignment["fence"]},', 1).encode()


def _report_of(fence: int, code: int, stdout: str) -> bytes:
    evidence = Evidence(
        fence=fence, argv=("./program",), exit=ExitRecord(code=code, duration_s=1.0), stdout=stdout
    )
    return Report(evidence=evidence).model_dump_json().encode()
