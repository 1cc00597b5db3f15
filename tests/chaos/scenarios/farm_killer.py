"""Ends a farm by SIGKILL at chosen moments of what it does."""

import json
import time
from enum import StrEnum
from pathlib import Path
from random import Random
from typing import assert_never

from tests.chaos.scenarios.scenario import Stage, is_alive
from tests.support.farm.processes import eventually


class Moment(StrEnum):
    """When the farm is killed."""

    #: A run is alive on a phone.
    MEASURING = "measuring"
    #: A report is on the agent's disk, and the farm has not acknowledged it.
    SPOOLED = "spooled"
    #: Between two statements of a settle, or right before its commit.
    SETTLING = "settling"
    #: A settle is on the farm's disk, and its answer is not sent.
    COMMITTED = "committed"
    ANY = "any"


#: Where some of a settle is written and nothing is committed: its third statement stores the evidence, few
#: have more than twelve.
_WITHIN_SETTLE = range(4, 13)


class Killer:
    """Waits for a moment, then kills; the farm stays dead until the caller starts it again."""

    def __init__(self, stage: Stage, random: Random) -> None:
        self._stage = stage
        self._farm = stage.farm
        self._random = random
        self._halt, self._halted = stage.farm.folder / "halt.json", stage.farm.folder / "halted.json"

    def kill_at(self, moment: Moment) -> Moment:
        """Kill at that moment; gives ANY where the moment was over before the signal arrived."""
        match moment:
            case Moment.MEASURING:
                return self._while_measuring()
            case Moment.SPOOLED:
                return self._while_spooled()
            case Moment.SETTLING:
                return self._halted_before(self._random.choice(_WITHIN_SETTLE), moment)
            case Moment.COMMITTED:
                return self._halted_before(None, moment)
            case Moment.ANY:
                # At any time, whatever the farm does then: no condition would be that.
                time.sleep(self._random.uniform(0.0, 1.5))
                self._farm.kill()
                return moment
            case _:
                assert_never(moment)

    def _while_measuring(self) -> Moment:
        run = self._stage.await_run()
        # Anywhere in the run.
        time.sleep(self._random.uniform(0.0, 0.15))
        self._farm.kill()
        return Moment.MEASURING if is_alive(run) else Moment.ANY

    def _while_spooled(self) -> Moment:
        known = self._spooled()
        fresh = eventually(lambda: self._spooled() - known, "a report is spooled", every_s=0.001)
        self._farm.kill()
        # As long as an agent that just got its answer takes to forget the report.
        time.sleep(0.1)
        return Moment.SPOOLED if fresh <= self._spooled() else Moment.ANY

    def _spooled(self) -> set[Path]:
        return set(self._stage.agent.spool.glob("*.json"))

    def _halted_before(self, statement: int | None, moment: Moment) -> Moment:
        draft = self._halt.with_suffix(".new")
        draft.write_text(json.dumps({"statement": statement}))
        draft.replace(self._halt)
        eventually(self._halted.exists, f"the farm halts in a settle, before {statement}", every_s=0.002)
        self._farm.kill()
        self._halt.unlink()
        self._halted.unlink()
        return moment
