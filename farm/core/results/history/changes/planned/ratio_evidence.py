"""What series show of a change in their ratios."""

from collections.abc import Mapping

from farm.core.results.history.changes.breaks import Catalog
from farm.core.results.history.changes.differences import Difference, combined, contrasts, pooled
from farm.core.results.history.changes.ratios import RatioHistory

#: Ratios that moved by this share of a step, with such a score, were not moved by what moves everything.
_MOVED = 0.5
_MOVED_SCORE = 2.5


class RatioEvidence:
    """Compares the sessions of ratios from one on with those before."""

    def __init__(self, catalog: Catalog, ratios: RatioHistory) -> None:
        self._catalog = catalog
        self._ratios = ratios

    def of(self, tick_by_row: Mapping[int, int], *, is_whole: bool = False) -> dict[int, Difference]:
        """Return the contrast of each row that has sessions before and after."""
        return contrasts(self._ratios, tick_by_row, is_whole=is_whole)

    def by_baseline(self, evidence: Mapping[int, Difference]) -> list[Difference]:
        """Combine what the series of each baseline show, which share its noise."""
        rows_by_group: dict[tuple[str, str, str], list[int]] = {}
        for row in evidence:
            rows_by_group.setdefault(self._catalog.series[row].group, []).append(row)
        return [combined([evidence[row] for row in rows]) for rows in rows_by_group.values()]

    def stayed(self, tick_by_row: Mapping[int, int], size: float) -> bool:
        """Return whether ratios stayed, as they do where everything moves by a size."""
        evidence = self.of(
            {r: tick for r, tick in tick_by_row.items() if not self._catalog.series[r].is_baseline}
        )
        if not evidence:
            return True
        mean = pooled(self.by_baseline(evidence))
        return abs(mean.size) < _MOVED * abs(size) or abs(mean.z) < _MOVED_SCORE
