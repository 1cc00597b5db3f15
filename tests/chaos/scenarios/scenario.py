"""What every chaos test plays on: a farm that can be halted, an agent, two phones that share a CPU."""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agents.virtual.pool import VirtualDeviceHandle
from farm.core.base.ids import MatrixId
from tests.chaos.checks.database_checker import Ledger
from tests.support.agents.run_spans import overlapping_runs
from tests.support.fakes import STARTS, matrix_spec, stand_in_model, steady_program
from tests.support.farm.processes import (
    AgentProcess,
    FarmProcess,
    eventually,
    running_agent,
    running_farm,
    running_phones,
    runs_of,
)
from tests.support.invariants.invariants import check_invariants

_FARM = (sys.executable, str(Path(__file__).with_name("halting_farm.py")))
_RUNS = "data/local/tmp/benchfarm/runs"


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """Processes with nothing to do yet; both phones are healthy."""

    farm: FarmProcess
    agent: AgentProcess
    phones: list[VirtualDeviceHandle]

    def submit(self, *, run_s: float, **changes: object) -> MatrixId:
        """A matrix whose every run takes that long."""
        self.farm.register_program(steady_program(run_s))
        return self.farm.submit(matrix_spec(**changes))

    def await_run(self) -> Path:
        """The folder of a run as soon as one is alive on a phone."""
        return eventually(self._find_run, "a run begins", every_s=0.005)

    def ledger(self) -> Ledger:
        """What the farm has written down, with no invariant broken."""
        check_invariants(self.farm.database_path)
        return Ledger(self.farm.database_path)

    def await_end(self, run: Path) -> None:
        eventually((run / "exit").exists, f"run {run.name} ends", every_s=0.005)

    def check_ledger(self) -> None:
        ledger = self.ledger()
        ledger.check_first_attempts_sufficed()
        ledger.check_evidence()

    def check_spool(self) -> None:
        """The farm takes every report, and refuses none (I12)."""
        # It knows before the agent hears that it does.
        eventually(lambda: not sorted(self.agent.spool.glob("*.json")), "no report waits")
        assert sorted((self.agent.spool / "refused").iterdir()) == []

    def check_phones(self) -> None:
        """No two runs overlapped on the CPU that the phones share, and no attempt was started twice (I8)."""
        assert overlapping_runs(runs_of(self.phones)) == []
        for phone in self.phones:
            for noted in phone.state.glob(STARTS):
                starts = noted.read_text().split()
                assert len(starts) == len(set(starts))

    def _find_run(self) -> Path | None:
        for phone in self.phones:
            for record in (phone.state / _RUNS).glob("*/harness"):
                if is_alive(record.parent):
                    return record.parent
        return None


def is_alive(run: Path) -> bool:
    """Whether a run has begun and not ended."""
    return (run / "harness").exists() and not (run / "exit").exists()


@contextmanager
def set_stage(folder: Path) -> Iterator[Stage]:
    """Start everything, and end it whatever happens."""
    with (
        running_farm(FarmProcess(folder / "farm", command=_FARM)) as farm,
        running_phones(2, folder / "phones") as phones,
        running_agent(AgentProcess(farm, folder / "agent", phones, host="bench-1")) as agent,
    ):
        for precision in ("float32", "int8-core"):
            farm.register_model(*stand_in_model(precision))
        farm.await_phones(phones)
        yield Stage(farm=farm, agent=agent, phones=phones)
