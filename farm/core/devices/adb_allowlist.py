"""Allowlist of adb commands for people on the farm's server: those that concern one device only."""

from collections.abc import Sequence

_SERVER = "it concerns the adb server, which serves other phones too"
_AWAY = "it would take the phone from this server, and so from the farm"
_REASON_BY_COMMAND = {
    **dict.fromkeys(("kill-server", "start-server", "server", "nodaemon", "fork-server"), _SERVER),
    **dict.fromkeys(("connect", "disconnect", "pair", "reconnect", "mdns"), _SERVER),
    **dict.fromkeys(("tcpip", "usb", "attach", "detach"), _AWAY),
}


def forbidden_reason(words: Sequence[str]) -> str | None:
    """Return why adb may not run with these arguments; None when it may."""
    if not words:
        return "nothing is said that adb should do"
    first = words[0]
    if first.startswith("-"):
        return f"{first}: which phone and which server it is are chosen already"
    reason = _REASON_BY_COMMAND.get(first)
    return None if reason is None else f"{first}: {reason}"
