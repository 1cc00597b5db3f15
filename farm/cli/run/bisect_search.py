"""The search of `farm bisect`: its comparisons are matrices, by whose names a search goes on.

What is compared next follows from the matrices that there are, so a search that was interrupted goes on where
it was. Each submission has a key that its matrix and the number of the try determine: of two commands that
search the same at once, both watch one matrix.
"""

import json
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from farm.cli.matrices.watch import POLL_S, watch_matrix
from farm.cli.run.matrix import DEFAULT_AXES, run_selectors, variant_axes
from farm.cli.run.versions import with_own_name
from farm.cli.shell.output import err
from farm.client.farm_client import FarmClient
from farm.core.base.ids import DeviceId, MatrixId, digest_of
from farm.core.base.setting_values import SettingValue
from farm.core.models.variant import Variant
from farm.core.results.history.bisect import (
    LogChange,
    VersionResult,
    judge_version,
    narrow,
    sought_half_width,
)
from farm.core.runs.measurement import MIN_ROUNDS, Outcome, Verdict
from farm.wire.documents.matrices.matrices import MatrixSummary, MatrixView
from farm.wire.documents.results.bisect import (
    BisectComparison,
    BisectOutcome,
    BisectSpeedup,
    BisectVersion,
    BisectView,
)
from farm.wire.documents.results.speedups import SpeedupView

_NAME_DIGITS = 8
_DIFFERS = (Verdict.FASTER, Verdict.FASTER_SIZE_OPEN, Verdict.SLOWER, Verdict.SLOWER_SIZE_OPEN)
_ENDS_DIFFERED = "good and bad did not differ in this session"
_MIDDLE = "it is between both"
_FILE_GONE = "its file was deleted"
#: Of the bad end, by what its own comparison says.
_END_RESULTS: Mapping[BisectOutcome, VersionResult] = {
    "found": VersionResult.BAD,
    "same": VersionResult.GOOD,
    "undecided": VersionResult.UNDECIDED,
    "not_measured": VersionResult.NOT_RUN,
}
#: Of one version: speedups against the good end by device.
_Speedups = Mapping[DeviceId, SpeedupView]


@dataclass(frozen=True, slots=True, kw_only=True)
class BisectOptions:
    """What each comparison of a search is made with."""

    harness: str
    settings: Mapping[str, SettingValue]
    backend: str
    #: As the user names them; none for all active ones.
    devices: tuple[str, ...]
    margin: float
    #: Of each comparison at most.
    rounds: int
    timeout_s: float


@dataclass(frozen=True, slots=True, kw_only=True)
class _MeasuredVersion:
    """A finished matrix of a search."""

    matrix: MatrixView
    version: _Speedups
    bad: _Speedups


@dataclass(slots=True)
class BisectSearch:
    """One search over versions, the good end first and the bad one last."""

    farm: FarmClient
    versions: Sequence[Variant]
    options: BisectOptions
    #: Called with each comparison, once it is judged.
    on_comparison: Callable[[BisectComparison], None]
    poll_s: float = POLL_S
    _earlier: dict[str, list[MatrixSummary]] = field(default_factory=dict)
    _comparisons: list[BisectComparison] = field(default_factory=list)

    @property
    def name(self) -> str:
        """Return the name that the matrices of this search begin with, and no others."""
        identity = {
            "versions": [version.manifest.digest for version in self.versions],
            "harness": self.options.harness,
            "settings": dict(self.options.settings),
            "backend": self.options.backend,
            "devices": sorted(self.options.devices),
            "margin": self.options.margin,
            "rounds": self.options.rounds,
            "timeout_s": self.options.timeout_s,
        }
        return f"bisect {digest_of(json.dumps(identity, sort_keys=True).encode())[:_NAME_DIGITS]}"

    def run(self) -> BisectView:
        """Compare until one version is left, or no comparison would say more.

        Raises:
            KeyboardInterrupt: the user stopped watching; the matrix continues.
        """
        for summary in self.farm.matrices(name=self.name):
            self._earlier.setdefault(summary.name, []).append(summary)
        last = len(self.versions) - 1
        until_decided = self._rounds({"until": "decided"})
        first = self._session(last, until_decided, run_selectors(self.farm, self.options.devices))
        measured = {device: change for device, view in first.bad.items() if (change := _log_change(view))}
        differing = [device for device in measured if first.bad[device].verdict in _DIFFERS]
        outcome = "found" if differing else _outcome_without_difference(first.bad.values(), measured)
        reason = None if measured else self._reason(last, first.matrix)
        self._tell(last, first.matrix.matrix_id, _END_RESULTS[outcome], first.bad, reason=reason)
        if not differing:
            return self._view(outcome, measured=measured)
        device = max(differing, key=lambda device: measured[device].least)
        results = self._narrow(device, measured[device], [{"device_id": sorted(differing)}])
        reached = narrow(len(self.versions), results)
        return self._view(
            "found" if reached.is_exact else "range",
            last_good=reached.last_good,
            first_bad=reached.first_bad,
            device=device,
            differing=differing,
            measured=measured,
        )

    def _narrow(
        self, device: DeviceId, change: LogChange, devices: list[dict[str, Any]]
    ) -> dict[int, VersionResult]:
        """Compare versions between the ends, and return what they are like on a device."""
        results: dict[int, VersionResult] = {}
        changes = [change.value]
        while (place := narrow(len(self.versions), results).next) is not None:
            if self.versions[place].expired_at is not None:
                results[place] = VersionResult.NOT_RUN
                self._tell(place, None, results[place], {}, reason=_FILE_GONE)
                continue
            rounds = self._rounds({"until": {"half_width": round(sought_half_width(changes), 6)}})
            session = self._session(place, rounds, devices)
            bad = _log_change(session.bad.get(device))
            if bad is not None:
                changes.append(bad.value)
            results[place], reason = _judge(session, device, change, self._reason(place, session.matrix))
            self._tell(
                place,
                session.matrix.matrix_id,
                results[place],
                session.version,
                reason=reason,
                by_device={each: _judge(session, each, change, None)[0] for each in session.version},
            )
        return results

    def _rounds(self, until: Mapping[str, object]) -> dict[str, object]:
        return {"at_least": MIN_ROUNDS, "at_most": self.options.rounds, **until}

    def _session(
        self, place: int, rounds: Mapping[str, object], devices: Sequence[Mapping[str, object]]
    ) -> _MeasuredVersion:
        """Return the finished matrix of a version beside both ends: an earlier one where it is usable."""
        earlier = self._earlier.get(self._matrix_name(place), [])
        kept = [summary for summary in earlier if not summary.jobs_by_outcome.get(Outcome.CANCELLED)]
        if kept:
            session = self._finished(kept[0].matrix_id, place)
            if session.bad or session.version:
                return session
        spec = self._spec(place, rounds, devices)
        key = f"{self.name}-{place}-{len(earlier)}".replace(" ", "-")
        return self._finished(self.farm.submit_matrix(spec, key=key).matrix_id, place)

    def _matrix_name(self, place: int) -> str:
        return f"{self.name}: version {place + 1} of {len(self.versions)}"

    def _spec(
        self, place: int, rounds: Mapping[str, object], devices: Sequence[Mapping[str, object]]
    ) -> dict[str, Any]:
        """Return the matrix of a version beside both ends; each is under a name of its own."""
        registered = self.farm.variants()
        places = dict.fromkeys([0, place, len(self.versions) - 1])
        good, *others = (
            variant_axes(with_own_name(self.farm, registered, self.versions[each])) for each in places
        )
        named = [
            axis for axis in good if {axes[axis] for axes in (good, *others)} != {DEFAULT_AXES.get(axis)}
        ]
        return {
            "name": self._matrix_name(place),
            "harness": self.options.harness,
            "axes": {**{axis: good[axis] for axis in named}, "backend": self.options.backend},
            "include": [{axis: axes[axis] for axis in named} for axes in others],
            "baseline": {
                axis: good[axis] for axis in named if any(axes[axis] != good[axis] for axes in others)
            },
            "settings": {flag: value for flag, value in self.options.settings.items() if value != ""},
            "devices": list(devices),
            "rounds": dict(rounds),
            "timeout_s": self.options.timeout_s,
            "equivalence_margin": self.options.margin,
        }

    def _finished(self, matrix_id: MatrixId, place: int) -> _MeasuredVersion:
        matrix = watch_matrix(lambda: self.farm.matrix(matrix_id), err(), poll_s=self.poll_s)
        views = [view for view in self.farm.speedups(matrix_id=matrix_id) if view.speedup is not None]

        def of(version: Variant) -> _Speedups:
            digest = version.manifest.digest
            return {view.device_id: view for view in views if view.variant_digest == digest}

        return _MeasuredVersion(matrix=matrix, version=of(self.versions[place]), bad=of(self.versions[-1]))

    def _reason(self, place: int, matrix: MatrixView) -> str | None:
        """Return why a version has no measurement."""
        digest = self.versions[place].manifest.digest
        cells = [cell for cell in matrix.cell_list if cell.variant_digest == digest]
        problems = [problem for cell in cells for problem in cell.problems]
        if not cells:
            problems = [rejection.reason for rejection in matrix.rejected_list]
        return next(iter(problems), None)

    def _tell(
        self,
        place: int,
        matrix_id: MatrixId | None,
        result: VersionResult,
        speedups: _Speedups,
        *,
        reason: str | None = None,
        by_device: Mapping[DeviceId, VersionResult] | None = None,
    ) -> None:
        comparison = BisectComparison(
            version=self._version(place),
            matrix_id=matrix_id,
            result=result,
            reason=reason,
            devices=tuple(
                BisectSpeedup.of(view, result=(by_device or {}).get(device))
                for device, view in speedups.items()
            ),
        )
        self._comparisons.append(comparison)
        self.on_comparison(comparison)

    def _version(self, place: int) -> BisectVersion:
        version = self.versions[place]
        return BisectVersion.of(version, version.manifest, place=place + 1)

    def _view(
        self,
        outcome: BisectOutcome,
        *,
        last_good: int = 0,
        first_bad: int | None = None,
        device: DeviceId | None = None,
        differing: Sequence[DeviceId] = (),
        measured: Mapping[DeviceId, LogChange],
    ) -> BisectView:
        last = len(self.versions) - 1
        bad_version = self._version(last if first_bad is None else first_bad)
        rows = [
            row
            for comparison in self._comparisons
            if comparison.version.place == bad_version.place
            for row in comparison.devices
            if row.device_id == device
        ]
        return BisectView(
            name=self.name,
            outcome=outcome,
            versions=len(self.versions),
            good=self._version(0),
            bad=self._version(last),
            last_good=self._version(last_good),
            first_bad=bad_version,
            device_id=device,
            device_label=rows[0].device_label if rows else None,
            change=rows[0] if rows else None,
            differing_devices=tuple(differing),
            measured_devices=tuple(measured),
            comparisons=tuple(self._comparisons),
        )


def _log_change(view: SpeedupView | None) -> LogChange | None:
    return None if view is None else LogChange.of_speedup(view.speedup, view.ci_low, view.ci_high)


def _judge(
    session: _MeasuredVersion, device: DeviceId, change: LogChange, why_not_run: str | None
) -> tuple[VersionResult, str | None]:
    """Return which end a version is like on a device, and the reason where it is like none."""
    version, bad = _log_change(session.version.get(device)), _log_change(session.bad.get(device))
    if version is None:
        return VersionResult.NOT_RUN, why_not_run
    if bad is None:
        return VersionResult.UNDECIDED, _ENDS_DIFFERED
    result = judge_version(version, bad, change=change.value)
    if result is not VersionResult.UNDECIDED:
        return result, None
    return result, _MIDDLE if bad.is_shown else _ENDS_DIFFERED


def _outcome_without_difference(
    views: Iterable[SpeedupView], measured: Mapping[DeviceId, LogChange]
) -> BisectOutcome:
    if not measured:
        return "not_measured"
    return "undecided" if any(view.verdict is Verdict.UNDECIDED for view in views) else "same"
