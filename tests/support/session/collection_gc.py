"""Keep the garbage collector off while tests are collected: all that is built then stays."""

import gc
from collections.abc import Generator

import pytest


class CollectionGc:
    """Turns the collector off while tests are collected, and leaves their objects out of later searches."""

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_collection(self) -> Generator[None, object, object]:
        """Collect tests without a search for garbage."""
        gc.disable()
        try:
            return (yield)
        finally:
            gc.freeze()
            gc.enable()
