"""ExecuTorch's ETDump: times by operator, and the calls of delegates.

A flatbuffer (executorch, devtools/etdump/etdump_schema_flatcc.fbs), which the runtime writes with its size
before it. Each `Method::execute` has a block of events: `native_call_<operator>` is a kernel of the CPU,
`DELEGATE_CALL` everything that a delegate did in one call, and an event with a debug identifier of a delegate
one operator inside. Times are ticks of the runtime's clock: nanoseconds on Linux and Android.
"""

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from farm.core.models.flatbuffer import I32, U64, MalformedTable, Table, root_table, table_at
from farm.core.runs.derived.operator_times import (
    LONGEST_OPERATOR,
    MOST_PROFILE_BYTES,
    OperatorTime,
    operators_text,
    slowest_operators,
)
from farm.core.runs.placement import Accelerator, Placement, Share

#: The file in the folder of the run.
ETDUMP = "model.etdp"
#: Events of a delegate as a whole.
DELEGATE_CALL = "DELEGATE_CALL"
_IDENTIFIER, _SIZE_BYTES, _IDENTIFIER_AT = b"ED00", 4, 4
#: Fields of ETDump, RunData, Event and ProfileEvent.
_RUN_DATA, _EVENTS, _PROFILE_EVENT = 1, 3, 0
_NAME, _DEBUG_INT, _DEBUG_STR, _START, _END = 0, 3, 4, 6, 7
_UNSET = -1
_EXECUTE, _KERNEL = "Method::execute", "native_call_"
#: XNNPACK numbers operators of one kind.
_NUMBERED = re.compile(r" #[0-9]{1,6}$")
_MOST_EVENTS = 100_000
_LONGEST_NS = 86_400 * 10**9
#: Kernels of the CPU, as the placement of a log names them.
_PORTABLE = "portable"


@dataclass(frozen=True, slots=True, kw_only=True)
class EtDump:
    """What an ETDump shows of one inference."""

    #: Calls of delegates; none or one.
    calls: Sequence[OperatorTime]
    #: Inside of these calls, where the delegate reports them; most time first.
    delegated: Sequence[OperatorTime]
    #: By kernels of the CPU; most time first.
    kernels: Sequence[OperatorTime]

    @property
    def operators(self) -> Sequence[OperatorTime]:
        """Return those of all kinds, most time first; the calls contain the delegate's own operators."""
        return slowest_operators((*self.calls, *self.delegated, *self.kernels))


@dataclass(frozen=True, slots=True)
class _TracedEvent:
    #: Name and debug identifier, as printable text.
    name: str
    is_delegated: bool
    ns: int


def etdump(data: bytes) -> EtDump | None:
    """Parse an ETDump; None where the bytes are none, or show no inference.

    Times are a mean over all inferences but the first, where there are more: it allocates, and packs weights.
    """
    if len(data) > MOST_PROFILE_BYTES:
        return None
    try:
        inferences = [events for events in _blocks(data) if any(event.name == _EXECUTE for event in events)]
    except MalformedTable:
        return None
    counted = inferences[1:] or inferences
    events = [event for inference in counted for event in inference]
    dump = EtDump(
        calls=_operators((event for event in events if _is_call(event)), len(counted)),
        delegated=_operators((event for event in events if event.is_delegated), len(counted)),
        kernels=_operators((event for event in events if _is_kernel(event)), len(counted)),
    )
    return dump if dump.operators else None


def with_etdump(placement: Placement | None, dump: EtDump | None) -> Placement | None:
    """Return what log and ETDump show together: the log names the delegate, and the ETDump counts.

    The log stays alone where its name of what was called is missing: it names no delegate, several, or why
    nothing ran.
    """
    logged = placement or Placement(shares=())
    delegates = _delegates(placement)
    if dump is None or (placement is not None and not placement.shares):
        return placement
    if len(delegates) > 1 or (dump.calls and not delegates):
        return placement
    shares, warnings = [], list(logged.warnings)
    if dump.calls:
        calls, parts = _count(dump.calls), _count(dump.delegated)
        line = f"ETDump: {delegates[0].by} x{calls}{_text(dump.delegated)}"
        # A call without parts has an unknown number of operators.
        nodes = parts if parts >= calls else None
        line = f"{delegates[0].line}; {line}"
        shares.append(replace(delegates[0], nodes=nodes, partitions=calls, line=line))
    elif delegates:
        warnings.insert(0, f"the ETDump has no call of a delegate, and the log: {delegates[0].line}")
    if dump.kernels:
        nodes = _count(dump.kernels)
        line = f"ETDump: {_PORTABLE} x{nodes}{_text(dump.kernels)}"
        shares.append(Share(accelerator=Accelerator.CPU, by=_PORTABLE, nodes=nodes, line=line))
    counts = [share.nodes for share in shares if share.nodes is not None]
    total = sum(counts) if len(counts) == len(shares) else None
    return replace(logged, shares=tuple(shares), total_nodes=total, warnings=tuple(warnings))


def delegate_name(placement: Placement | None) -> str:
    """Return the delegate that is called, or `DELEGATE_CALL` where the log names none, or several."""
    delegates = _delegates(placement)
    return delegates[0].by if len(delegates) == 1 else DELEGATE_CALL


def _delegates(placement: Placement | None) -> list[Share]:
    return [] if placement is None else [share for share in placement.shares if share.by != _PORTABLE]


def _is_call(event: _TracedEvent) -> bool:
    return not event.is_delegated and event.name == DELEGATE_CALL


def _is_kernel(event: _TracedEvent) -> bool:
    return not event.is_delegated and event.name.startswith(_KERNEL)


def _operators(events: Iterator[_TracedEvent], inferences: int) -> list[OperatorTime]:
    counts: Counter[str] = Counter()
    ns: Counter[str] = Counter()
    for event in events:
        name = _NUMBERED.sub("", event.name.removeprefix(_KERNEL))[:LONGEST_OPERATOR]
        counts[name] += 1
        ns[name] += event.ns
    return slowest_operators(
        OperatorTime(operator=name, count=max(1, round(count / inferences)), ms=ns[name] / 1e6 / inferences)
        for name, count in counts.items()
    )


def _count(operators: Sequence[OperatorTime]) -> int:
    return sum(each.count for each in operators)


def _text(operators: Sequence[OperatorTime]) -> str:
    """Return those that were executed most often, in brackets; nothing for none."""
    return f" ({operators_text({each.operator: each.count for each in operators})})" if operators else ""


def _blocks(data: bytes) -> Iterator[list[_TracedEvent]]:
    """Yield the events of each block.

    Raises:
        MalformedTable: the bytes are no ETDump, or one of too many events.
    """
    content = memoryview(data)
    if data[_SIZE_BYTES + _IDENTIFIER_AT :].startswith(_IDENTIFIER):
        content = content[_SIZE_BYTES:]
    elif not data[_IDENTIFIER_AT:].startswith(_IDENTIFIER):
        raise MalformedTable("no ETDump")
    blocks, events = [], 0
    for place in root_table(content).items(_RUN_DATA):
        blocks.append(table_at(content, place).items(_EVENTS))
        # Several blocks may share one list.
        events += 1 + len(blocks[-1])
        if events > _MOST_EVENTS:
            raise MalformedTable(f"more than {_MOST_EVENTS} events")
    for block in blocks:
        tables = (table_at(content, place).table(_PROFILE_EVENT) for place in block)
        found = (_event(table) for table in tables if table is not None)
        yield [event for event in found if event is not None]


def _event(table: Table) -> _TracedEvent | None:
    """Return an event; None where its times are none."""
    ns = table.number(_END, U64) - table.number(_START, U64)
    if not 0 <= ns < _LONGEST_NS:
        return None
    text, number = table.text(_DEBUG_STR), table.number(_DEBUG_INT, I32, _UNSET)
    identifier = text or ("" if number == _UNSET else f"debug id {number}")
    name = "".join(letter for letter in identifier or table.text(_NAME) if letter.isprintable())
    return _TracedEvent(name, bool(identifier), ns) if name else None
