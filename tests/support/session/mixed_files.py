"""Files of tests in an order in which those that wait stand beside those that compute.

Workers begin with equal parts of the list. In the order of folders, one worker gets all that waits for
devices, the others compete for the cores, and the cores idle at the end.
"""

from hashlib import sha256

import pytest


class MixedFiles:
    """Orders the files of a run, alike on each of its workers; the tests of a file stay together."""

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, config: pytest.Config, items: list[pytest.Item]) -> None:
        """Sort by a digest of the file's name, which has nothing to do with what is in it."""
        if hasattr(config, "workerinput"):
            items.sort(key=lambda item: sha256(str(item.path.relative_to(config.rootpath)).encode()).digest())
