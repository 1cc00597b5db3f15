"""What earlier matrices say of a comparison: the variance of the pair, and the alarms of A/A pairs."""

from collections import defaultdict
from collections.abc import Collection, Sequence

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
from farm.store.results.history.session_starts import starts_of_cells
from farm.store.results.past_pairs import (
    PastMeasurement,
    SeriesPast,
    aa_pairs,
    past_measurements,
)

#: The newest matrices of a device whose A/A pairs are counted.
AA_MATRICES = 50
#: Devices whose A/A pairs are read at once.
AA_DEVICES = 50
#: The newest matrices in which earlier sessions are looked for.
SESSIONS = 12
#: The series of baseline and candidate, and the number of the baseline's duplicates that joined it.
PastPairKey = tuple[SeriesId, SeriesId, int]


def variance_priors(
    connection: Connection, pairs: Collection[tuple[PastPairKey, MatrixId]]
) -> dict[tuple[PastPairKey, MatrixId], VariancePrior]:
    """Return what earlier matrices say of the variance of pairs; nothing of those without a past.

    Each has its own past, whichever others are asked for.

    Args:
        connection: the database.
        pairs: each with the matrix before which its past ends.
    """
    asked = {(pair, before): SeriesPast(pair[0], pair[1], before) for pair, before in pairs}
    past = past_measurements(connection, {*asked.values()}, matrices=MAX_MATRICES)
    priors = {
        key: variance_prior([known for own in past[series] if (known := _variance(own, key[0]))])
        for key, series in asked.items()
    }
    return {key: prior for key, prior in priors.items() if prior is not None}


def _variance(measured: Sequence[PastMeasurement], pair: PastPairKey) -> PastVariance | None:
    """Return the variance of a pair in one matrix; None where it was not measured in the same way."""
    by_series: defaultdict[SeriesId, defaultdict[CellId, list[PastMeasurement]]]
    by_series = defaultdict(lambda: defaultdict(list))
    for measurement in measured:
        by_series[measurement.series_id][measurement.cell_id].append(measurement)
    baseline_id, candidate_id, duplicates = pair
    baseline = [own for _, own in sorted(by_series[baseline_id].items())]
    candidate = [own for _, own in sorted(by_series[candidate_id].items())]
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
    asked = {series_id: SeriesPast(series_id, series_id, before) for series_id, _, _ in keys}
    past = past_measurements(connection, {*asked.values()}, matrices=SESSIONS)
    sessions: defaultdict[SessionKey, defaultdict[MatrixId, list[float]]]
    sessions = defaultdict(lambda: defaultdict(list))
    for measurement in (measurement for own in past.values() for matrix in own for measurement in matrix):
        if measurement.quality in COUNTED:
            key = measurement.series_id, measurement.variant_digest, measurement.program_digest
            sessions[key][measurement.matrix_id].append(measurement.value_ns)
    spreads = {key: session_spread([*sessions[key].values()]) for key in keys if key in sessions}
    return {key: spread for key, spread in spreads.items() if spread is not None}


def aa_alarms(connection: Connection, device_ids: Collection[DeviceId]) -> dict[DeviceId, AlarmShare]:
    """Return how many of the last A/A pairs of devices had an interval that left out 1.

    Devices without any pair that has an interval are missing.
    """
    wanted = sorted(device_ids)
    shares: dict[DeviceId, AlarmShare] = {}
    for start in range(0, len(wanted), AA_DEVICES):
        shares |= _aa_alarms_of_some(connection, wanted[start : start + AA_DEVICES])
    return shares


def _aa_alarms_of_some(
    connection: Connection, device_ids: Collection[DeviceId]
) -> dict[DeviceId, AlarmShare]:
    pairs = aa_pairs(connection, device_ids, matrices=AA_MATRICES)
    wanted = {cell_id for own in pairs.values() for pair in own for cell_id in pair}
    starts = starts_of_cells(connection, wanted) if wanted else {}
    shares: dict[DeviceId, AlarmShare] = {}
    for device_id, own in pairs.items():
        results = [
            speedup(paired_rounds(starts.get(baseline, ()), starts.get(duplicate, ()))[0])
            for baseline, duplicate in own
        ]
        decided = [result for result in results if result.rounds >= MIN_ROUNDS]
        if decided:
            alarms = sum(result.verdict in DIRECTED for result in decided)
            shares[device_id] = alarm_share(alarms, len(decided))
    return shares
