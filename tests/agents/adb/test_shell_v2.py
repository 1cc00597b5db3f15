"""Shell packets and what is gathered from them."""

from hypothesis import given
from hypothesis import strategies as st

from agents.adb.shell_v2 import HEADER, OutputCollector, PacketId, packet, stdin_packets
from farm.phone.adb.listing import SEVERAL, state_by_serial


@given(st.binary(max_size=70_000))
def test_input_is_cut_into_packets_and_closed(data: bytes) -> None:
    raw = stdin_packets(data)

    kinds, content, at = [], b"", 0
    while at < len(raw):
        kind, length = HEADER.unpack_from(raw, at)
        content += raw[at + HEADER.size : at + HEADER.size + length]
        kinds.append(kind)
        at += HEADER.size + length
    assert content == data
    assert kinds[-1] == PacketId.CLOSE_STDIN
    assert set(kinds[:-1]) <= {PacketId.STDIN}


@given(st.lists(st.tuples(st.integers(0, 255), st.binary(max_size=50))), st.integers(0, 100))
def test_what_is_kept_and_what_is_dropped_add_up(packets: list[tuple[int, bytes]], limit: int) -> None:
    collector = OutputCollector(limit)
    for kind, data in packets:
        collector.add(kind, data)
    result = collector.result(0)

    output = sum(len(data) for kind, data in packets if kind in (PacketId.STDOUT, PacketId.STDERR))
    assert len(result.stdout) + len(result.stderr) + result.dropped_bytes == output
    assert max(len(result.stdout), len(result.stderr)) <= limit


def test_an_exit_packet_carries_one_byte() -> None:
    assert packet(PacketId.EXIT, b"\x07") == b"\x03\x01\x00\x00\x00\x07"


def test_serials_may_hold_spaces_and_colons() -> None:
    text = "127.0.0.1:5555\tdevice\nadb-01 (2)._adb-tls-connect._tcp\toffline\r\n\n"

    assert state_by_serial(text) == {
        "127.0.0.1:5555": "device",
        "adb-01 (2)._adb-tls-connect._tcp": "offline",
    }


def test_phones_of_one_serial_number_are_several_unless_one_row_is_what_is_left_of_it() -> None:
    assert state_by_serial("0123\tdevice\n0123\tdevice\nR5\tdevice\n") == {"0123": SEVERAL, "R5": "device"}
    assert state_by_serial("0123\tunauthorized\n0123\tdevice\n0123\toffline\n") == {"0123": SEVERAL}
    assert state_by_serial("0123\toffline\n0123\tdevice\n") == {"0123": "device"}
    assert state_by_serial("0123\tdevice\n0123\toffline\n") == {"0123": "device"}


@given(st.text())
def test_no_listing_is_too_strange(text: str) -> None:
    state_by_serial(text)
