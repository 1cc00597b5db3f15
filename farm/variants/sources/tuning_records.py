"""Records of TVM's tuner: which schedules of a network's loops were measured, where, and how long they took.

The tuner (MetaSchedule) keeps two files in a folder, a JSON value in each line: workloads, and records that
name a workload by its number. One document has both here: `{"workloads": [...], "records": [...]}`. A record
is `[workload, [trace, seconds, target, arguments]]`.
"""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from farm.core.base.ids import Digest, digest_of
from farm.core.errors import VariantInvalid

#: As the tuner names them (tvm, json_database.py).
_WORKLOADS, _RECORDS = "database_workload.json", "database_tuning_record.json"
_ABI_BY_CPU = {"x86_64": "x86_64", "aarch64": "arm64-v8a", "arm64": "arm64-v8a"}
#: Of a trial that failed, the tuner says that it took 1e10 s.
_FAILED_S = 1e9
_HINT = "give a file of records of `farm variant records`, or the folder in which TVM's tuner keeps them"


@dataclass(frozen=True, slots=True, kw_only=True)
class TuningRecords:
    """Workloads and records, as the tuner wrote them. Every record has a workload, seconds and a target."""

    workloads: tuple[Any, ...]
    records: tuple[Any, ...]

    @property
    def trials(self) -> int:
        """Return how many schedules were tried, those that failed included."""
        return len(self.records)

    @property
    def timed(self) -> int:
        """Return how many schedules were timed, without those that failed."""
        return sum(_is_timed(record[1][1]) for record in self.records)

    @property
    def abis(self) -> set[str]:
        """Return for which ABIs schedules were measured; the CPU's name where it is none of Android's."""
        cpus = {str(record[1][2].get("mtriple", "")).partition("-")[0] for record in self.records}
        return {_ABI_BY_CPU.get(cpu, cpu) for cpu in cpus}

    def content(self) -> bytes:
        """Return the document's bytes; the same records give the same ones."""
        document = {"workloads": self.workloads, "records": self.records}
        return json.dumps(document, separators=(",", ":")).encode() + b"\n"

    def digest(self) -> Digest:
        """Return the digest of the document."""
        return digest_of(self.content())

    def write_folder(self, folder: Path) -> None:
        """Write the two files of TVM's tuner."""
        for name, values in ((_WORKLOADS, self.workloads), (_RECORDS, self.records)):
            (folder / name).write_text("".join(f"{json.dumps(value)}\n" for value in values))


def read_records(path: Path) -> TuningRecords:
    """Read a document of records, or the folder of TVM's tuner.

    Raises:
        VariantInvalid: it is neither.
    """
    try:
        if path.is_dir():
            workloads, records = _values(path / _WORKLOADS), _values(path / _RECORDS)
        else:
            document = json.loads(path.read_bytes())
            workloads, records = document["workloads"], document["records"]
        found = TuningRecords(workloads=tuple(workloads), records=tuple(records))
        if not all(_is_record(record, len(found.workloads)) for record in found.records):
            raise ValueError("a record has no workload, no seconds or no target")
    except (OSError, ValueError, LookupError, TypeError, RecursionError) as error:
        raise VariantInvalid(f"{path} has no records of TVM's tuner: {error}", hint=_HINT) from error
    return found


def check_records(records: TuningRecords, abi: str) -> None:
    """Check that records can order the loops of a library.

    Raises:
        VariantInvalid: none is of a schedule that was timed, or they were measured for another ABI.
    """
    if not records.timed:
        raise VariantInvalid(f"no schedule was timed in {records.trials} trials", hint=_HINT)
    if others := records.abis - {abi}:
        raise VariantInvalid(
            f"the records were measured for {', '.join(sorted(others))}, and the library is for {abi}",
            hint="what is quick on one CPU is not on another: tune on a device of that ABI",
        )


def _values(path: Path) -> list[Any]:
    return [json.loads(line) for line in path.read_text().splitlines() if line.strip()]


def _is_record(record: Any, workloads: int) -> bool:
    """Return whether a value has the form of a record; its trace is for TVM to read."""
    workload, (_trace, seconds, target, *_arguments) = record
    has_workload = isinstance(workload, int) and 0 <= workload < workloads
    return has_workload and _are_numbers(seconds) and isinstance(target, dict)


def _are_numbers(values: Any) -> bool:
    return isinstance(values, list) and all(type(value) in {int, float} for value in values)


def _is_timed(seconds: list[float]) -> bool:
    return bool(seconds) and all(0 <= value < _FAILED_S for value in seconds)
