"""What a person may have adb do through the farm's server: all that concerns their own phone alone."""

from collections.abc import Sequence

_SERVER = "it concerns the adb server, which serves other phones too"
_AWAY = "it would take the phone from this server, and so from the farm"
_REASON_BY_COMMAND = {
    **dict.fromkeys(("kill-server", "start-server", "server", "nodaemon", "fork-server"), _SERVER),
    **dict.fromkeys(("connect", "disconnect", "pair", "reconnect", "mdns"), _SERVER),
    **dict.fromkeys(("tcpip", "usb", "attach", "detach"), _AWAY),
}


def forbidden_reason(words: Sequence[str]) -> str | None:
    """Why adb is not to be run with these words; None when it may be."""
    if not words:
        return "nothing is said that adb should do"
    first = words[0]
    if first.startswith("-"):
        return f"{first}: which phone and which server it is are chosen already"
    reason = _REASON_BY_COMMAND.get(first)
    return None if reason is None else f"{first}: {reason}"
