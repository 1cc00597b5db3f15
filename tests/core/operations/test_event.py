"""Kinds of events name their subjects."""

from farm.core.operations.event import (
    EVENT_KINDS,
    AccessEvent,
    DeviceEvent,
    EventSubject,
    FarmEvent,
    WorkEvent,
    subject_of,
)

#: Recorded with an explicit subject.
_NAMED_OTHERWISE = {
    WorkEvent.BLOCK_REPEATED,
    DeviceEvent.PLACEMENT_CHANGED,
    AccessEvent.ACCESS_REFUSED,
    FarmEvent.EVIDENCE_EXPIRED,
    FarmEvent.HISTORY_EXPIRED,
}


def test_the_name_of_a_kind_begins_with_one_subject() -> None:
    kinds = [kind for kinds in EVENT_KINDS for kind in kinds]
    named = {kind: [subject for subject in EventSubject if kind.startswith(subject)] for kind in kinds}
    assert {kind for kind, subjects in named.items() if len(subjects) != 1} == _NAMED_OTHERWISE


def test_the_subject_follows_from_the_kind() -> None:
    assert subject_of(AccessEvent.JOIN_USED) is EventSubject.JOIN
    assert subject_of(FarmEvent.LEASE_ACQUIRED) is EventSubject.LEADER_LEASE
