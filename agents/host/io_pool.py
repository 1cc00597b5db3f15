"""Thread pool for file operations of any size: hashing, pushing, downloading.

It is separate from the event loop's default pool, which resolves host names: a heartbeat must not wait for a
disk.
"""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar, TypeVarTuple

Arguments = TypeVarTuple("Arguments")
Value = TypeVar("Value")

#: More threads only cause disk seeks; devices of one host share its USB controllers, too.
THREADS = 8


async def run_in_io_pool(action: Callable[[*Arguments], Value], *arguments: *Arguments) -> Value:
    """Run a blocking file operation in the pool; raises what it raises."""
    return await asyncio.get_running_loop().run_in_executor(_pool(), action, *arguments)


@cache
def _pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(max_workers=THREADS, thread_name_prefix="agent-files")
