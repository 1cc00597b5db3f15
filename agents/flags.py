"""The command line of `farm-agent`."""

import argparse

from farm import __version__


def flags() -> argparse.ArgumentParser:
    """What may be said there; every flag is a setting, too."""
    parser = argparse.ArgumentParser(
        prog="farm-agent",
        description="Look after the phones of this machine for a farm. Settings come from FARM_AGENT_*.",
        epilog="Exit codes: 0 stopped, 2 your input or credential, 5 this host, 6 the farm.",
    )
    parser.add_argument("--farm-url", metavar="URL", help="where the farm listens")
    parser.add_argument("--host", metavar="NAME", help="what the farm calls this machine")
    parser.add_argument("--data-dir", metavar="FOLDER", help="the agent's own folder")
    parser.add_argument("--join-token-file", metavar="FILE", help="needed once, to enroll")
    parser.add_argument("--adb-connect", metavar="HOST:PORT,...", help="phones on TCP, kept connected")
    parser.add_argument("--no-adb-usb", dest="adb_usb", action="store_false", default=None, help="TCP only")
    parser.add_argument(
        "--adb-server", metavar="HOST:PORT", help="an adb server to use instead of an own one"
    )
    parser.add_argument("--adb-key", metavar="FILE", help="a private key that phones already know")
    parser.add_argument("--version", action="version", version=f"farm-agent {__version__}")
    return parser
