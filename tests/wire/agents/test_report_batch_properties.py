"""Several reports in one body: what is packed comes out as it was, and garbage is refused."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from farm.core.base.ids import AttemptId
from farm.core.errors import InvalidInput
from farm.wire.agents.report_batch import MAX_REPORTS, pack_reports, unpack_reports

_REPORTS = st.lists(
    st.tuples(st.integers(0, 2**53 - 1).map(AttemptId), st.binary()), min_size=1, max_size=MAX_REPORTS
)


@pytest.mark.invariant("I12")
@given(_REPORTS)
def test_reports_come_out_byte_for_byte(reports: list[tuple[AttemptId, bytes]]) -> None:
    assert unpack_reports(pack_reports(reports)) == reports


@given(
    st.binary()
    | st.text().map(str.encode)
    | st.builds(lambda head, rest: head + b"\n" + rest, st.binary(), st.binary())
)
def test_garbage_is_refused_and_nothing_else_happens(body: bytes) -> None:
    with suppress(InvalidInput):
        unpack_reports(body)


def test_empty_reports_whose_line_was_cut_are_refused() -> None:
    with pytest.raises(InvalidInput, match="no end"):
        unpack_reports(pack_reports([(AttemptId(0), b"")]).removesuffix(b"\n"))


@given(_REPORTS, st.data())
def test_a_body_that_was_cut_or_added_to_is_refused(
    reports: list[tuple[AttemptId, bytes]], data: st.DataObject
) -> None:
    body = pack_reports(reports)
    cut = data.draw(st.integers(0, len(body) - 1))
    for changed in (body[:cut], body + b"x"):
        with pytest.raises(InvalidInput):
            unpack_reports(changed)
