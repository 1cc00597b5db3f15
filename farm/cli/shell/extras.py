"""Packages that only some commands need, and the extra of benchfarm that installs them."""

from importlib import import_module

from farm.core.errors import InvalidInput

#: The extra by top-level module; of all other packages it is `farm`.
_EXTRA_BY_MODULE = {
    "adbutils": "agent",
    "arro3": "frames",
    "mcp": "mcp",
    "numpy": "statistics",
    "scipy": "statistics",
}
_OWN = frozenset({"agents", "benchfarm", "farm", "harnesses", "migrations"})


def missing_extra(error: ModuleNotFoundError) -> InvalidInput | None:
    """Return the error of a command that needs a package which is not installed; None for our own."""
    module = (error.name or "").partition(".")[0]
    if not module or module in _OWN:
        return None
    extra = _EXTRA_BY_MODULE.get(module, "farm")
    return InvalidInput(
        f"this needs {module}, which is not installed", hint=f"pip install 'benchfarm[{extra}]' installs it"
    )


def require_module(module: str) -> None:
    """Import a package, before work whose end needs it.

    Raises:
        InvalidInput: the package is not installed.
    """
    try:
        import_module(module)
    except ModuleNotFoundError as error:
        missing = missing_extra(error)
        if missing is None:
            raise
        raise missing from error
