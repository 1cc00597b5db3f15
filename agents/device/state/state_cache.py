"""The cached state of a device, valid until something happens that could change it."""

import asyncio
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from agents.device.state.preflight import Preflight, is_executable
from farm.core.base.ids import Digest
from farm.core.devices.condition import Condition
from farm.core.devices.controls import Screen
from farm.core.devices.screen_state import ScreenState
from farm.core.runs.plan import PlanFile

#: After this a file's digest is computed again, even if its state is unchanged.
VERIFIED_FOR_S = 3600.0
#: The age up to which a preflight serves the next run.
PREFLIGHT_MAX_AGE_S = 3.0


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedFile:
    """A file whose digest was computed on the device."""

    #: Its state just before that: inode, size, mode, times.
    state: str
    at_s: float


@dataclass(slots=True, kw_only=True)
class DeviceStateCache:
    """The cached state of one device; created again after every change of its transport or new probe.

    Times are on the agent's monotonic clock.
    """

    verified_by_digest: dict[Digest, VerifiedFile] = field(default_factory=dict)
    #: The stay-awake and screen settings that were set last and not restored.
    lasting_controls: tuple[bool, Screen] | None = None
    #: The screen state before that.
    screen_found: ScreenState = field(default_factory=ScreenState)
    #: Held during a preflight, so that none is taken on a device that has begun to measure.
    preflight_lock: asyncio.Lock = field(default_factory=asyncio.Lock)
    #: Held while the screen's setting changes.
    screen: asyncio.Lock = field(default_factory=asyncio.Lock)
    _fence_by_digest: dict[Digest, int] = field(default_factory=dict)
    _preflight: Preflight | None = None
    _preflight_at_s: float = 0.0
    #: The condition right after the last run.
    _after: Condition | None = None
    _after_at_s: float = 0.0

    @property
    def is_awake(self) -> bool:
        """Return whether its screen, or its setting, was changed by us and not restored."""
        return self.lasting_controls is not None

    def record_verified(self, state_by_digest: Mapping[Digest, str], at_s: float) -> None:
        """Record files whose digests were right."""
        for digest, state in state_by_digest.items():
            if state:
                self.verified_by_digest[digest] = VerifiedFile(state=state, at_s=at_s)

    def holds_files(self, files: Iterable[PlanFile], preflight: Preflight, now_s: float) -> bool:
        """Return whether every file is unchanged since its digest was computed, not long ago."""
        return all(self._holds(file, preflight, now_s) for file in files)

    def store_preflight(self, preflight: Preflight, at_s: float) -> None:
        """Store a preflight for the next run."""
        self._preflight, self._preflight_at_s = preflight, at_s

    def record_after_run(self, condition: Condition | None, at_s: float) -> None:
        """Store the condition right after a run, until the run has been cleaned up."""
        self._after, self._after_at_s = condition, at_s

    def forget_after_run(self) -> None:
        """Forget the condition after the run: something ran since."""
        self._after = None

    def record_cleaned(self, state_by_digest: Mapping[Digest, str]) -> None:
        """Record the state of the cache after a clean-up; with the condition after the run, it is a
        preflight.
        """
        if (after := self._after) is not None:
            self._after = None
            self.store_preflight(
                Preflight(condition=after, state_by_digest=state_by_digest), self._after_at_s
            )

    def record_use(self, files: Iterable[PlanFile], fence: int) -> None:
        """Record that a run uses these files, without touching them."""
        for file in files:
            self._fence_by_digest[file.digest] = fence

    def take_recorded_uses(self) -> dict[int, list[Digest]]:
        """Return and forget the recorded uses by fence; the caller touches the files on the device."""
        uses: dict[int, list[Digest]] = {}
        for digest, fence in self._fence_by_digest.items():
            uses.setdefault(fence, []).append(digest)
            self.verified_by_digest.pop(digest, None)
        self._fence_by_digest.clear()
        return uses

    def find_preflight(self, now_s: float) -> Preflight | None:
        """Return the stored preflight, while it is recent."""
        return self._preflight if now_s - self._preflight_at_s <= PREFLIGHT_MAX_AGE_S else None

    def take_preflight(self, now_s: float) -> Preflight | None:
        """Return and forget the stored preflight."""
        preflight, self._preflight = self.find_preflight(now_s), None
        return preflight

    def forget(self) -> None:
        """Forget everything: something went wrong on the device."""
        self.verified_by_digest.clear()
        self.lasting_controls, self._preflight, self._after = None, None, None

    def _holds(self, file: PlanFile, preflight: Preflight, now_s: float) -> bool:
        verified, state = self.verified_by_digest.get(file.digest), preflight.state_by_digest.get(file.digest)
        if verified is None or state != verified.state or now_s - verified.at_s > VERIFIED_FOR_S:
            return False
        return is_executable(state) or not file.executable
