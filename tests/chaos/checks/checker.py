"""What must be true after a storm: the farm's books against what the phones themselves wrote down."""

import json
import zlib
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import sqlalchemy as sa
from sqlalchemy.engine import Connection

from agents.virtual.pool import LOG as PHONE_LOG
from agents.virtual.processes import JOURNAL_FILE, open_runs
from farm.core.runs.samples import decode_samples
from tests.chaos.checks.log import mistakes
from tests.chaos.checks.oracle import Said, Start, find_token, said, samples_ns, starts
from tests.chaos.testbed.testbed import Arena
from tests.support.agents.run_spans import RunSpan, overlapping_runs, run_spans
from tests.support.invariants.invariants import violations

#: How long a run may outlive the order that its phone is given to the next one.
KILL_BUDGET_S = 5.0
_ATTEMPTS = sa.text("SELECT attempt_id, device_id, fence, state, outcome FROM attempts")
_EVIDENCE = sa.text("SELECT attempt_id, counted, body FROM evidence")
_MEASUREMENTS = sa.text("SELECT attempt_id, job_id, accepted, samples FROM measurements")
_Row = Mapping[str, Any]


@dataclass(frozen=True, slots=True, kw_only=True)
class Books:
    """What the farm believes."""

    attempts: Sequence[_Row]
    measurements: Sequence[_Row]
    #: Output of every report that came, by attempt; whether it counted.
    outputs: Sequence[tuple[int, bool, str]]


@dataclass(frozen=True, slots=True, kw_only=True)
class Proof:
    """What the phone of that name wrote down."""

    serial: str
    starts: Sequence[Start]
    said: Sequence[Said]
    spans: Sequence[RunSpan]


def reckon(arena: Arena) -> None:
    """Raises AssertionError with all that is wrong."""
    database = arena.farms[0].database
    found = [*database.read(lambda connection: list(violations(connection)))]
    proofs = proofs_of(arena)
    found += disagreements(database.read(books_of), proofs)
    found += [f"I8 {proof.serial}: {each}" for proof in proofs for each in overlong(proof.spans)]
    found += [each for phone in arena.phones for each in alive(phone.state)]
    found += [each for agent in arena.agents for each in refused(agent.spool)]
    logs = [process.log for process in (*arena.farms, *arena.agents)]
    logs += [phone.state / PHONE_LOG for phone in arena.phones]
    found += [each for log in logs for each in mistakes(log)]
    assert not found, "\n".join(found)


def proofs_of(arena: Arena) -> list[Proof]:
    """All that its phones prove."""
    return [proof_of(phone.serial, phone.state) for phone in arena.phones]


def proof_of(serial: str, state: Path) -> Proof:
    """All that a phone's folder proves."""
    spans = run_spans(state / JOURNAL_FILE)
    return Proof(serial=serial, starts=starts(state), said=list(said(state)), spans=spans)


def books_of(connection: Connection) -> Books:
    """What matters here of a farm's tables."""
    return Books(
        attempts=_rows(connection, _ATTEMPTS),
        measurements=_rows(connection, _MEASUREMENTS),
        outputs=[
            (row["attempt_id"], bool(row["counted"]), _output(row["body"]))
            for row in _rows(connection, _EVIDENCE)
        ],
    )


def disagreements(books: Books, proofs: Sequence[Proof]) -> Iterator[str]:
    """Nothing lost, nothing doubled, nothing invented."""
    yield from _doubled(books, proofs)
    yield from _invented(books, proofs)
    yield from _unknown(books, proofs)


def overlong(spans: Sequence[RunSpan]) -> Iterator[str]:
    """Runs of one phone that were alive together for longer than the kill budget (I8)."""
    for first, second in overlapping_runs(spans):
        if (together_s := _together_s(first, second)) > KILL_BUDGET_S:
            yield f"runs {first.fence} and {second.fence} were alive together for {together_s:.1f} s"


def longest_together_s(proofs: Sequence[Proof]) -> float:
    """For how long at most two runs of one phone were alive at the same time."""
    pairs = (pair for proof in proofs for pair in overlapping_runs(proof.spans))
    return max((_together_s(first, second) for first, second in pairs), default=0.0)


def _together_s(first: RunSpan, second: RunSpan) -> float:
    return (min(first.last_seen_ns, second.last_seen_ns) - second.first_seen_ns) / 1e9


def _doubled(books: Books, proofs: Sequence[Proof]) -> Iterator[str]:
    """No attempt was started twice, and no run's output reached the farm under two names."""
    for proof in proofs:
        for fence, times in Counter(start.fence for start in proof.starts).items():
            if times > 1:
                yield f"I8 {proof.serial}: run {fence} began {times} times"
    tokens = Counter(token for _, counted, text in books.outputs if counted and (token := find_token(text)))
    for token, times in tokens.items():
        if times > 1:
            yield f"I4 the output with token {token} counted {times} times"


def _invented(books: Books, proofs: Sequence[Proof]) -> Iterator[str]:
    """Every measurement is what its own attempt's run printed on its own phone."""
    attempt_by_id = {row["attempt_id"]: row for row in books.attempts}
    text_by_attempt = {attempt_id: text for attempt_id, counted, text in books.outputs if counted}
    text_by_run = {(proof.serial, each.fence): each.text for proof in proofs for each in proof.said}
    for row in books.measurements:
        attempt = attempt_by_id[row["attempt_id"]]
        name = f"measurement of attempt {row['attempt_id']}"
        printed = text_by_run.get((attempt["device_id"], attempt["fence"]))
        if printed is None:
            yield f"I5 {name}: {attempt['device_id']} knows of no run {attempt['fence']}"
        elif printed != text_by_attempt.get(row["attempt_id"]):
            yield f"I5 {name}: its evidence is not what the phone printed"
        elif decode_samples(bytes(row["samples"])) != samples_ns(printed):
            yield f"I5 {name}: its samples are not what the phone printed"


def _unknown(books: Books, proofs: Sequence[Proof]) -> Iterator[str]:
    """Every run on a phone belongs to an attempt of the farm's, and what succeeded was measured."""
    claimed = {(row["device_id"], row["fence"]) for row in books.attempts}
    measured = {row["attempt_id"] for row in books.measurements}
    for proof in proofs:
        for start in proof.starts:
            if (proof.serial, start.fence) not in claimed:
                yield f"I3 {proof.serial}: no attempt has run {start.fence}"
    began = {(proof.serial, start.fence) for proof in proofs for start in proof.starts}
    for row in books.attempts:
        # A check runs another program.
        is_benchmark = (row["device_id"], row["fence"]) in began
        if is_benchmark and row["outcome"] == "succeeded" and row["attempt_id"] not in measured:
            yield f"I5 attempt {row['attempt_id']} succeeded without a measurement"


def alive(phone: Path) -> Iterator[str]:
    """Processes of runs whose end the phone has not seen (I8)."""
    for entry in open_runs(phone / JOURNAL_FILE).values():
        yield f"I8 {entry.serial}: process {entry.pid} of run {entry.fence} is alive"


def refused(spool: Path) -> Iterator[str]:
    """Reports that the farm would not take (I12); none of these storms gives a reason to."""
    for path in sorted(spool.glob("refused/*.json")):
        yield f"I12 refused: {path}"


def _rows(connection: Connection, query: sa.TextClause) -> list[_Row]:
    return [dict(row) for row in connection.execute(query).mappings()]


def _output(body: bytes | None) -> str:
    report = json.loads(zlib.decompress(body)) if body is not None else {"evidence": {"stdout": ""}}
    return str(report["evidence"]["stdout"])
