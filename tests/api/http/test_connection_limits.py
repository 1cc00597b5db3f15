"""Limits of open connections, of one address and in all."""

import asyncio
import resource
from contextlib import suppress

import pytest
from structlog.testing import capture_logs

from farm.api.http.connection_limits import ConnectionLimits, raise_file_limit
from farm.api.http.server import GuardedProtocol
from tests.api.http.test_header_timeout import GET, connected


class Narrow(GuardedProtocol):
    """Eight connections in all, two of an address."""

    limits = ConnectionLimits(8)


@pytest.mark.anyio
async def test_a_connection_more_than_one_address_may_have_is_closed_at_once() -> None:
    async with connected(Narrow) as (first, writer):
        port = writer.get_extra_info("peername")[1]
        others = [await asyncio.open_connection("127.0.0.1", port) for _ in range(3)]
        with capture_logs() as logs:
            # The first two stay; who waits for an end of those that do not gets it.
            for reader, _ in others[1:]:
                with suppress(ConnectionError):
                    assert await reader.read() == b""
        for reader, open_writer in ((first, writer), others[0]):
            open_writer.write(GET + b"\r\n")
            assert (await reader.readline()).startswith(b"HTTP/1.1 200")
        for _, other in others:
            other.close()
    assert len([each for each in logs if each["event"] == "connections_refused"]) <= 1


def test_of_all_connections_there_are_no_more_than_the_limit_and_one_line_a_minute_says_so() -> None:
    limits = ConnectionLimits(8)
    addresses = [f"10.0.0.{number}" for number in range(8)]
    assert limits.admits(addresses[-1], addresses, 0.0)
    with capture_logs() as logs:
        for second in range(150):
            assert not limits.admits("10.0.0.9", [*addresses, "10.0.0.9"], float(second))
    assert [each["count"] for each in logs] == [1, 60, 60]


def test_the_limit_of_files_is_raised_to_what_the_user_may_have() -> None:
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (min(soft, 512), hard))
        raise_file_limit()
        assert resource.getrlimit(resource.RLIMIT_NOFILE)[0] >= min(hard, 65_536)
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
