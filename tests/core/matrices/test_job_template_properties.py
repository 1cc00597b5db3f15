"""A matrix that is unfolded in pieces comes to what it comes to at once, wherever it is cut."""

from dataclasses import replace
from itertools import accumulate, groupby

from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import DeviceId
from farm.core.matrices.blocks import BlockPlan, PlannedStart, shuffled
from farm.core.matrices.job_template import DeviceExpansion, JobTemplate, freeze_expansion
from farm.core.matrices.matrix import Expansion, cell_label_by_axes, varying_axes
from farm.core.matrices.partial_rerun import select_cells
from farm.store.matrices.lazy_expansion import pack_job_template, unpack_job_template
from tests.core.matrices.test_partial_rerun_properties import expansion

PROGRAMS = ((0, 1), (1, 4), (2, 9))
EXPANSIONS = st.builds(expansion, aa=st.booleans(), threads=st.integers(1, 4))


def frozen(whole: Expansion, *, rounds: int, seed: int) -> JobTemplate:
    return freeze_expansion(
        whole,
        rounds=rounds,
        seed=seed,
        varying=varying_axes(slot.key for slot in whole.slots),
        programs_by_device={DeviceId(f"phone-{number}"): {"h": program} for number, program in PROGRAMS},
    )


@st.composite
def parts(draw: st.DrawFn) -> Expansion:
    """An expansion in which devices have cells of their own each."""
    whole = draw(EXPANSIONS)
    indexes = [cell.index for cell in whole.cells]
    return select_cells(whole, draw(st.sets(st.sampled_from(indexes), min_size=1)))


@given(EXPANSIONS | parts(), st.integers(1, 4), st.integers(0, 2**31), st.data())
def test_wherever_it_is_cut_its_jobs_are_those_of_the_whole(
    whole: Expansion, rounds: int, seed: int, data: st.DataObject
) -> None:
    job_template = frozen(whole, rounds=rounds, seed=seed)
    counts = []
    for part in job_template.parts:
        own = [cell for cell in whole.cells if cell.device_id == part.device_id]
        plan = BlockPlan(own, device_id=part.device_id, seed=seed)
        assert job_template.start_count_per_round(part) == plan.start_count_per_round
        counts.append(rounds * plan.start_count_per_round)
        expected = list(plan.starts(0, counts[-1]))
        # A batch ends where a block does.
        sizes = [len(list(block)) for _, block in groupby(expected, key=lambda job: (job.round, job.block))]
        ends = [0, *accumulate(sizes)]
        pieces: list[PlannedStart] = []
        # Each piece by a process that has seen no other.
        while len(pieces) < len(expected):
            stop = data.draw(st.integers(len(pieces) + 1, len(expected) + 9))
            pieces += DeviceExpansion(job_template, part).jobs(len(pieces), stop)
            assert len(pieces) == next(end for end in ends if end >= min(stop, len(expected)))
        assert pieces == expected
    assert sum(counts) == job_template.job_count


@given(EXPANSIONS | parts(), st.integers(1, 4), st.integers(0, 2**31))
def test_a_template_of_before_small_blocks_gives_the_rounds_that_it_was_made_for(
    whole: Expansion, rounds: int, seed: int
) -> None:
    stored = unpack_job_template(pack_job_template(_older(frozen(whole, rounds=rounds, seed=seed))))
    for part in stored.parts:
        own = [cell.index for cell in whole.cells if cell.device_id == part.device_id]
        jobs = DeviceExpansion(stored, part).jobs(0, stored.job_count)
        assert [(job.cell_index, job.round, job.block) for job in jobs] == [
            (index, round, 0)
            for round in range(1, rounds + 1)
            for index in shuffled(own, f"{seed}/{part.device_id}/{round}/0/")
        ]
        # Its cursor may stand anywhere in a round.
        rest = DeviceExpansion(stored, part).jobs(len(jobs) // 2, len(jobs))
        assert rest == jobs[len(jobs) // 2 :]


def _older(job_template: JobTemplate) -> JobTemplate:
    parts = tuple(replace(part, starts=None) for part in job_template.parts)
    return replace(job_template, parts=parts, block_candidates=None)


@given(EXPANSIONS | parts(), st.data())
def test_a_cell_of_a_blueprint_is_that_of_the_expansion_and_comes_with_its_baseline(
    whole: Expansion, data: st.DataObject
) -> None:
    job_template = frozen(whole, rounds=1, seed=7)
    varying = varying_axes(slot.key for slot in whole.slots)
    for part in job_template.parts:
        own = {cell.index: cell for cell in whole.cells if cell.device_id == part.device_id}
        asked = data.draw(st.lists(st.sampled_from(sorted(own)), unique=True))
        unfolding = DeviceExpansion(job_template, part)
        given = list(unfolding.cells(asked))
        for placed in given:
            cell = own[placed.index]
            assert placed.baseline_index == cell.baseline_index
            assert placed.slot.label == cell_label_by_axes(cell.key, varying, replica=cell.replica)
            assert (placed.slot.variant_id, placed.slot.backend) == (cell.variant_id, cell.backend)
            assert list(unfolding.settings(placed.slot).items()) == list(cell.settings.items())
        baselines = {own[index].baseline_index for index in asked} - {None}
        assert {placed.index for placed in given} == {*asked, *baselines}
        assert len(given) == len({placed.index for placed in given})


@given(EXPANSIONS | parts(), st.integers(1, 3), st.integers(0, 2**31))
def test_a_blueprint_survives_being_stored(whole: Expansion, rounds: int, seed: int) -> None:
    job_template = frozen(whole, rounds=rounds, seed=seed)
    assert unpack_job_template(pack_job_template(job_template)) == job_template
