"""Fixtures of the tests of agents: virtual phones behind a real adb server, an agent, a fake farm."""

from tests.support.agents.adb_fixtures import attach, device, own_device, shared_phone
from tests.support.agents.agent_fixtures import bench, config, played, port
from tests.support.agents.device_fixtures import phone, server

__all__ = [
    "attach",
    "bench",
    "config",
    "device",
    "own_device",
    "phone",
    "played",
    "port",
    "server",
    "shared_phone",
]
