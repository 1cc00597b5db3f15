"""Planned tests: what a new version calls for, in ratios and in absolute times."""

from farm.core.results.history.changes.breaks import Catalog, VersionBreak
from farm.core.results.history.changes.choice import Candidate
from farm.core.results.history.changes.device_level.beside_level import BesideLevel
from farm.core.results.history.changes.device_level.levels import DeviceLevels
from farm.core.results.history.changes.planned.conditions import LEAST_AFTER
from farm.core.results.history.changes.planned.level_tests import LevelTests
from farm.core.results.history.changes.planned.ratio_evidence import RatioEvidence
from farm.core.results.history.changes.planned.ratio_tests import RatioTests
from farm.core.results.history.changes.points import Cause
from farm.core.results.history.changes.ratios import RatioHistory


class PlannedTests:
    """Tests open breaks with the ratios and levels of the farm."""

    def __init__(self, catalog: Catalog, ratios: RatioHistory, levels: DeviceLevels) -> None:
        self._catalog = catalog
        self._ratios = ratios
        self._levels = levels
        self.evidence = RatioEvidence(catalog, ratios)
        self.beside_level = BesideLevel(catalog, ratios, levels)
        self.of_levels = LevelTests(catalog, levels, self.evidence)
        self._of_ratios = RatioTests(catalog, ratios, self.evidence, self.beside_level)

    def of_break(self, known: VersionBreak) -> list[Candidate]:
        """Return all candidates that a break explains, whether they are significant or not."""
        if self._is_followed(known):
            return []
        found = list(self._of_ratios.candidates(known))
        if known.cause is not Cause.FILE:
            found += self.of_levels.candidates(known, list(known.tick_by_row))
        else:
            alone = [row for row in known.tick_by_row if not self._has_ratio(row)]
            if alone:
                found += self.of_levels.candidates(known, alone)
        return found

    def _is_followed(self, known: VersionBreak) -> bool:
        """Return whether most devices got another version so soon that both cannot be distinguished yet."""
        row_by_device = {self._catalog.series[row].device_row: row for row in known.tick_by_row}
        followed = sum(self._follows(known, row, device) for device, row in row_by_device.items())
        return 2 * followed > len(row_by_device)

    def _follows(self, known: VersionBreak, row: int, device: int) -> bool:
        # A ratio moves with its baseline, too.
        baseline = self._catalog.baseline_of(row)
        measured = [row] if baseline is None or baseline in known.tick_by_row else [row, baseline]
        later = [
            other.tick_by_row[of]
            for of in measured
            for other in self._catalog.breaks_of([of])
            if other.tick_by_row[of] > known.tick_by_row[row]
        ]
        return any(self._levels.sessions_since(device, tick) < LEAST_AFTER for tick in later)

    def _has_ratio(self, row: int) -> bool:
        if self._catalog.series[row].is_baseline:
            return any(self._ratios.count[other] for other in self._catalog.siblings(row))
        return bool(self._ratios.count[row])
