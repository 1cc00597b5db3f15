"""Addresses as people write them."""

import pytest

from farm.config import FarmConfig
from farm.core.base.address import host_and_port, web_address


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("127.0.0.1:8471", "127.0.0.1", 8471),
        ("farm.lab:0", "farm.lab", 0),
        ("[::1]:8471", "::1", 8471),
        ("[fe80::1%eth0]:65535", "fe80::1%eth0", 65535),
    ],
)
def test_a_host_and_a_port_are_told_apart(text: str, host: str, port: int) -> None:
    assert host_and_port(text) == (host, port)


@pytest.mark.parametrize(
    "text", ["", ":1", "host", "host:", "host:x", "host:65536", "::1:80", "[host]:80", "[]:1"]
)
def test_what_is_no_host_and_port_is_named(text: str) -> None:
    with pytest.raises(ValueError, match="is not HOST:PORT"):
        host_and_port(text)


def test_a_web_address_brackets_ipv6() -> None:
    assert web_address("::1", 8471) == "http://[::1]:8471"
    assert web_address("farm.lab", 8471) == "http://farm.lab:8471"


def test_agents_are_told_a_name_where_the_farm_listens_everywhere() -> None:
    assert FarmConfig(agents_bind="10.0.0.7:8471").agents_url == "http://10.0.0.7:8471"
    everywhere = FarmConfig(agents_bind="0.0.0.0:8471").agents_url
    assert everywhere is not None
    assert "0.0.0.0" not in everywhere
    assert FarmConfig().agents_url is None
