"""A phone that is not there for work, as the ladder of recovery knows it: in memory, and on disk."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from datetime import datetime

from agents.devices.inventory import Sighting
from agents.upkeep.recovery_state import KeptClimb
from farm.core.base.ids import DeviceId
from farm.core.devices.device import Presence
from farm.core.upkeep.recovery import (
    RESTARTS,
    Ailment,
    Climb,
    Recovery,
    RecoveryRules,
    RecoveryStep,
    RecoveryTry,
    with_step,
)

CUT_SHORT = "the agent ended meanwhile"


@dataclass(slots=True, kw_only=True)
class Patient:
    """One phone of this host, since it was first seen by this life or the one before."""

    sighting: Sighting
    #: Empty where adb does not tell, None while it was not asked.
    usb_path: str | None = None
    climb: Climb | None = None
    tries: list[RecoveryTry] = field(default_factory=list)
    #: What waits for the farm's leave, or for its turn.
    next: RecoveryStep | None = None
    #: Being taken, and since when.
    now: RecoveryStep | None = None
    now_since_s: float | None = None
    leave_at_s: float | None = None
    restarted_at_s: float | None = None
    failures: int = 0
    failed_at_s: float | None = None
    #: Until then it is not missed: adb has yet to find what an earlier life knew.
    awaited_until_s: float = 0.0

    def is_restarting(self, rules: RecoveryRules, now_s: float) -> bool:
        """Whether it counts among those that are away because of us."""
        if self.now in RESTARTS:
            return True
        at_s = self.restarted_at_s
        return self.climb is not None and at_s is not None and now_s - at_s < rules.restart_s

    def shown(self) -> Recovery | None:
        """What is told of it; None while nothing was done, nor is to be."""
        if self.climb is None or not (self.tries or self.next):
            return None
        return Recovery(
            ailment=self.climb.ailment,
            tries=tuple(self.tries),
            next=self.next,
            failed=self.failed_at_s is not None,
        )

    def find_kept(self, identity: DeviceId, rules: RecoveryRules, now_s: float) -> KeptClimb | None:
        """What the next life has to know; None where nothing was done that would hold it back."""
        begun = self.now if self.now in RESTARTS else None
        restarted_at_s = self.restarted_at_s
        if restarted_at_s is not None and now_s - restarted_at_s >= rules.again_s:
            restarted_at_s = None
        if not (self.tries or begun or self.failures or restarted_at_s is not None):
            return None
        return KeptClimb(
            device_id=identity,
            serial=self.sighting.serial,
            usb_path=self.usb_path,
            # Since when it is so is seen anew, and would have the file written whenever it changes its ways.
            climb=self.climb and replace(self.climb, since_s=0.0),
            tries=tuple(self.tries),
            begun=begun,
            begun_at_s=self.now_since_s if begun else None,
            restarted_at_s=restarted_at_s,
            failures=self.failures,
            failed_at_s=self.failed_at_s,
        )


def recalled(kept: KeptClimb, rules: RecoveryRules, *, now_s: float, now: datetime) -> Patient:
    """The phone in the next life: a restart that was begun counts as one, whatever came of it."""
    patient = Patient(
        sighting=Sighting(serial=kept.serial, presence=Presence.ABSENT, detail="adb does not list it yet"),
        usb_path=kept.usb_path,
        climb=kept.climb and replace(kept.climb, since_s=now_s),
        tries=list(kept.tries),
        restarted_at_s=kept.restarted_at_s,
        failures=kept.failures,
        failed_at_s=kept.failed_at_s,
        awaited_until_s=now_s + rules.absent_s,
    )
    if kept.begun is not None:
        at_s = now_s if kept.begun_at_s is None else kept.begun_at_s
        # It may have been well again when that was begun.
        climb = patient.climb or Climb(ailment=Ailment.ABSENT, since_s=now_s)
        patient.climb = with_step(climb, kept.begun, now_s=at_s)
        patient.restarted_at_s = at_s
        patient.tries.append(RecoveryTry(step=kept.begun, at=now, said=CUT_SHORT))
    return patient


def kept_of(patients: dict[DeviceId, Patient], rules: RecoveryRules, now_s: float) -> Iterator[KeptClimb]:
    """What there is to know of all of them."""
    for identity, patient in patients.items():
        if (kept := patient.find_kept(identity, rules, now_s)) is not None:
            yield kept
