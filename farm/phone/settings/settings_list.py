"""What `settings list` prints of one of Android's namespaces: one `key=value` a line."""

import re

from farm.phone.adb.decoding import lines

_ROW = re.compile(r"([A-Za-z_][\w.\-/]*)=(.*)", re.ASCII)


def settings_list(text: str, namespace: str) -> dict[str, str]:
    """Values by `NAMESPACE/KEY`; a key whose value is `null` is not there, as `settings get` has it."""
    rows = (_ROW.fullmatch(line) for line in lines(text))
    return {f"{namespace}/{row[1]}": row[2] for row in rows if row and row[2] != "null"}
