"""The same farm for asyncio: every call runs on a thread, so that no call exists twice."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import wraps
from typing import Concatenate, Generic, ParamSpec, Self, TypeVar, overload

from benchfarm.farm import Farm
from benchfarm.files import Harnesses, StoredFiles, Variants
from benchfarm.imports import Imports
from benchfarm.run import Run
from farm.cli.matrices.watch import POLL_S
from farm.wire.documents.matrices.matrices import MatrixView

P = ParamSpec("P")
T = TypeVar("T")
S = TypeVar("S")


class _OnThread(Generic[S, P, T]):
    """A method of `Farm`, `Run` or another object, awaited on the object of the same name."""

    def __init__(self, method: Callable[Concatenate[S, P], T]) -> None:
        self._method = method
        self.__doc__ = method.__doc__

    @overload
    def __get__(self, instance: None, owner: type) -> Self: ...
    @overload
    def __get__(self, instance: "_Asynchronous[S]", owner: type) -> Callable[P, Awaitable[T]]: ...
    def __get__(self, instance: "_Asynchronous[S] | None", owner: type) -> "Self | Callable[P, Awaitable[T]]":
        if instance is None:
            return self
        synchronous = instance.synchronous

        def call(*args: P.args, **kwargs: P.kwargs) -> Awaitable[T]:
            return asyncio.to_thread(self._method, synchronous, *args, **kwargs)

        return call


class _Asynchronous(Generic[S]):
    """An object whose calls are those of a synchronous one."""

    def __init__(self, synchronous: S) -> None:
        self.synchronous = synchronous


class AsyncRun(_Asynchronous[Run]):
    """A matrix, for asyncio; `synchronous` is the same as a `Run`."""

    refresh = _OnThread(Run.refresh)
    cancel = _OnThread(Run.cancel)
    cells = _OnThread(Run.cells)
    jobs = _OnThread(Run.jobs)
    rejected = _OnThread(Run.rejected)
    why = _OnThread(Run.why)
    explain = _OnThread(Run.explain)
    attempt = _OnThread(Run.attempt)
    speedups = _OnThread(Run.speedups)
    results = _OnThread(Run.results)
    samples = _OnThread(Run.samples)
    report = _OnThread(Run.report)

    def _repr_html_(self) -> str:
        """Return its progress, with a link to its page."""
        return self.synchronous._repr_html_()

    @property
    def id(self) -> int:
        """Return the number of the matrix."""
        return self.synchronous.id

    @property
    def url(self) -> str:
        """Return the address of its page."""
        return self.synchronous.url

    @property
    def state(self) -> str:
        """Return the state as of the last answer."""
        return self.synchronous.state

    @property
    def name(self) -> str:
        """Return the name of the matrix."""
        return self.synchronous.name

    @property
    def is_finished(self) -> bool:
        """Return whether all jobs had ended as of the last answer."""
        return self.synchronous.is_finished

    @property
    def view(self) -> MatrixView:
        """Return the last answer of the farm."""
        return self.synchronous.view

    async def wait(self, *, timeout_s: float | None = None) -> Self:
        """Wait until all jobs have ended; nothing is shown. A cancelled wait leaves the matrix running.

        Raises:
            TimeoutError: the matrix has not finished by then; it goes on.
        """
        async with asyncio.timeout(timeout_s):
            while True:
                if (await self.refresh()).is_finished:
                    return self
                # There is no event of its end to wait for.
                await asyncio.sleep(POLL_S)

    async def rerun(self, *, failed: bool = False, key: str | None = None) -> "AsyncRun":
        """Submit the matrix again, or with `failed` only its cells without a valid number."""
        return AsyncRun(await asyncio.to_thread(self.synchronous.rerun, failed=failed, key=key))

    async def rerun_attempt(self, attempt_id: int, *, key: str | None = None) -> "AsyncRun":
        """Measure the number of one attempt again, as it was made."""
        return AsyncRun(await asyncio.to_thread(self.synchronous.rerun_attempt, attempt_id, key=key))

    def __repr__(self) -> str:
        return f"<Async{repr(self.synchronous)[1:]}"


def _begun(method: Callable[Concatenate[Farm, P], Run]) -> "_OnThread[Farm, P, AsyncRun]":
    """Return a method of `Farm` that begins a matrix, with what it returns for asyncio."""

    @wraps(method)
    def begin(farm: Farm, /, *args: P.args, **kwargs: P.kwargs) -> AsyncRun:
        return AsyncRun(method(farm, *args, **kwargs))

    return _OnThread(begin)


class AsyncVariants(_Asynchronous[Variants]):
    """The model files of a farm, for asyncio."""

    add = _OnThread(Variants.add)
    list = _OnThread(Variants.list)
    get = _OnThread(Variants.get)
    remove = _OnThread(Variants.remove)


class AsyncStoredFiles(_Asynchronous[StoredFiles]):
    """The files that the caller uploaded, for asyncio."""

    list = _OnThread(StoredFiles.list)
    remove = _OnThread(StoredFiles.remove)


class AsyncHarnesses(_Asynchronous[Harnesses]):
    """The harnesses of a farm, for asyncio."""

    add = _OnThread(Harnesses.add)
    list = _OnThread(Harnesses.list)
    get = _OnThread(Harnesses.get)


class AsyncImports(_Asynchronous[Imports]):
    """The imported files of a farm, for asyncio."""

    add = _OnThread(Imports.add)
    list = _OnThread(Imports.list)
    results = _OnThread(Imports.results)
    withdraw = _OnThread(Imports.withdraw)


class AsyncFarm(_Asynchronous[Farm]):
    """A farm, for asyncio: `async with AsyncFarm() as farm: run = await farm.run(...)`."""

    def __init__(self, url: str | None = None, *, token: str | None = None) -> None:
        """Find the farm as `Farm` does; nothing is sent yet."""
        super().__init__(Farm(url, token=token))
        self.variants = AsyncVariants(self.synchronous.variants)
        self.harnesses = AsyncHarnesses(self.synchronous.harnesses)
        self.files = AsyncStoredFiles(self.synchronous.files)
        self.imports = AsyncImports(self.synchronous.imports)

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(self, *_: object) -> None:
        self.synchronous.close()

    @property
    def url(self) -> str:
        """Return the address of the farm, where its pages are."""
        return self.synchronous.url

    async def close(self) -> None:
        """Close the connections."""
        self.synchronous.close()

    whoami = _OnThread(Farm.whoami)
    devices = _OnThread(Farm.devices)
    plan = _OnThread(Farm.plan)
    matrices = _OnThread(Farm.matrices)
    speedups = _OnThread(Farm.speedups)
    group_speedups = _OnThread(Farm.group_speedups)
    results = _OnThread(Farm.results)
    samples = _OnThread(Farm.samples)
    history = _OnThread(Farm.history)
    regressions = _OnThread(Farm.regressions)
    regression = _OnThread(Farm.regression)
    placements = _OnThread(Farm.placements)
    explain = _OnThread(Farm.explain)
    explain_job = _OnThread(Farm.explain_job)
    matrix = _begun(Farm.matrix)
    run = _begun(Farm.run)
    run_program = _begun(Farm.run_program)
    submit = _begun(Farm.submit)
