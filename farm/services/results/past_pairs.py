"""What earlier matrices say of a comparison: the variance of the pair, and the alarms of A/A pairs."""

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence

from sqlalchemy.engine import Connection

from farm.core.base.ids import CellId, DeviceId, Digest, MatrixId, SeriesId
from farm.core.results.pairing import join_duplicates, paired_rounds
from farm.core.results.speedup import pair_variance, speedup
from farm.core.results.statistics.families import AlarmShare, alarm_share
from farm.core.results.statistics.past_variance import (
    MAX_MATRICES,
    PastVariance,
    VariancePrior,
    variance_prior,
)
from farm.core.results.statistics.sessions import SessionSpread, session_spread
from farm.core.results.statistics.verdict import DIRECTED
from farm.core.runs.measurement import COUNTED, MIN_ROUNDS
from farm.store.results import measurements
from farm.store.results.measurements import Measurement
from farm.store.results.past_pairs import PastMeasurement, aa_pairs, past_measurements

#: A/A pairs are counted over so many matrices.
AA_MATRICES = 50
#: Earlier sessions are looked for in so many matrices.
SESSIONS = 12
#: The series of baseline and candidate, and the number of the baseline's duplicates that joined it.
PairKey = tuple[SeriesId, SeriesId, int]


def variance_priors(
    connection: Connection, pairs: Collection[PairKey], *, before: MatrixId
) -> dict[PairKey, VariancePrior]:
    """Return what the matrices before one say of the variance of pairs; nothing of those without a past."""
    series_ids = {series_id for baseline, candidate, _ in pairs for series_id in (baseline, candidate)}
    past = past_measurements(connection, series_ids, before=before, matrices=MAX_MATRICES)
    cells: defaultdict[MatrixId, _CellsBySeries] = defaultdict(lambda: defaultdict(dict))
    for measurement in past:
        own = cells[measurement.matrix_id][measurement.series_id]
        own.setdefault(measurement.cell_id, []).append(measurement)
    newest_first = [cells[matrix_id] for matrix_id in sorted(cells, reverse=True)]
    priors = {
        pair: variance_prior([known for by_series in newest_first if (known := _variance(by_series, pair))])
        for pair in pairs
    }
    return {pair: prior for pair, prior in priors.items() if prior is not None}


_CellsBySeries = Mapping[SeriesId, dict[CellId, list[PastMeasurement]]]


def _variance(by_series: _CellsBySeries, pair: PairKey) -> PastVariance | None:
    """Return the variance of a pair in one matrix; None where it was not measured in the same way."""
    baseline_id, candidate_id, duplicates = pair
    baseline = [own for _, own in sorted(by_series.get(baseline_id, {}).items())]
    candidate = [own for _, own in sorted(by_series.get(candidate_id, {}).items())]
    if baseline_id == candidate_id:
        baseline, candidate = baseline[:1], baseline[1:]
    if len(baseline) != duplicates + 1 or len(candidate) != 1:
        return None
    return _pair_variance(baseline, candidate[0])


def _pair_variance(
    baseline: Sequence[Sequence[PastMeasurement]], candidate: Sequence[PastMeasurement]
) -> PastVariance | None:
    joined = join_duplicates(baseline[0], [value for own in baseline[1:] for value in own])
    pairs, _ = paired_rounds(joined, candidate)
    return pair_variance(pairs)


#: Series, file and program: what earlier sessions of a cell have in common.
SessionKey = tuple[SeriesId, Digest | None, Digest]


def earlier_sessions(
    connection: Connection, keys: Collection[SessionKey], *, before: MatrixId
) -> dict[SessionKey, SessionSpread]:
    """Return how far the earlier sessions of cells lie apart; nothing of those that are new."""
    series_ids = {series_id for series_id, _, _ in keys}
    past = past_measurements(connection, series_ids, before=before, matrices=SESSIONS)
    sessions: defaultdict[SessionKey, defaultdict[MatrixId, list[float]]]
    sessions = defaultdict(lambda: defaultdict(list))
    for measurement in past:
        if measurement.quality in COUNTED:
            key = measurement.series_id, measurement.variant_digest, measurement.program_digest
            sessions[key][measurement.matrix_id].append(measurement.value_ns)
    spreads = {key: session_spread([*sessions[key].values()]) for key in keys if key in sessions}
    return {key: spread for key, spread in spreads.items() if spread is not None}


def aa_alarms(connection: Connection, device_id: DeviceId) -> AlarmShare | None:
    """Return how many of a device's last A/A pairs had an interval that left out 1; None without any."""
    cells = aa_pairs(connection, device_id, matrices=AA_MATRICES)
    measured: defaultdict[CellId, list[Measurement]] = defaultdict(list)
    wanted = {cell_id for pair in cells for cell_id in pair}
    for measurement in measurements.accepted_of_cells(connection, wanted):
        measured[measurement.cell_id].append(measurement)
    results = [
        speedup(paired_rounds(measured[baseline], measured[duplicate])[0]) for baseline, duplicate in cells
    ]
    decided = [result for result in results if result.rounds >= MIN_ROUNDS]
    alarms = sum(result.verdict in DIRECTED for result in decided)
    return alarm_share(alarms, len(decided)) if decided else None
