"""Output of `settings list` for one of Android's namespaces: one `key=value` per line."""

import re

from farm.phone.adb.decoding import lines

_ROW = re.compile(r"([A-Za-z_][\w.\-/]*)=(.*)", re.ASCII)


def settings_list(text: str, namespace: str) -> dict[str, str]:
    """Return values by `NAMESPACE/KEY`; a key with the value `null` is missing, as in `settings get`."""
    rows = (_ROW.fullmatch(line) for line in lines(text))
    return {f"{namespace}/{row[1]}": row[2] for row in rows if row and row[2] != "null"}
