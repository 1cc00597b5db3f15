"""Networks of the person who builds: a factory, a `.pt2` or a TorchScript file. Imports torch.

This runs code of that person, in the process of one build on that person's machine: a factory with all that
it imports, and what torch's loaders run of a file. The farm never loads a source.
"""

import sys
from collections.abc import Mapping
from difflib import get_close_matches
from importlib import import_module
from typing import Any

import torch
from torch import nn

from farm.core.errors import VariantInvalid
from farm.core.models.declared_inputs import input_text
from farm.core.models.variant import TensorSpec
from farm.variants.recipe import SEED
from farm.variants.sources.samples import drawn_samples, output_row, spec_of
from farm.variants.sources.source import Source, SourceKind

_PT2 = "torch.export.save(torch.export.export(net, inputs), 'net.pt2')"
_INPUT_HINT = "give each input in the order in which the network takes them: --input 1x3x224x224:float32"
_FACTORY_HINT = "a factory takes no argument and returns the network as an nn.Module, with its weights"
_MOST_KEYS = 3


def load_network(source: Source) -> tuple[Any, tuple[TensorSpec, ...]]:
    """Return a network that computes, and its inputs.

    Raises:
        VariantInvalid: the source does not yield a network, or one that does not take the inputs.
    """
    stated: tuple[TensorSpec, ...] = ()
    match source.kind:
        case SourceKind.FACTORY:
            net = called_factory(source)
        case SourceKind.EXPORTED:
            net, stated = _exported(source)
        case _:
            net = _scripted(source)
    specs = source.inputs or stated
    if not specs:
        raise VariantInvalid(f"nothing states the inputs of {source.origin}", hint=_INPUT_HINT)
    check_runs(net, specs, source)
    return net, specs


def called_factory(source: Source) -> nn.Module:
    """Return the network of a factory in evaluation mode, with the weights of the state dict if there is one.

    Raises:
        VariantInvalid: the module, factory or network is none, or the weights are not its own.
    """
    factory = _factory(source)
    torch.manual_seed(SEED)
    if isinstance(factory, nn.Module):
        net: Any = factory
    else:
        try:
            with torch.enable_grad():
                net = factory()
        except Exception as error:  # a person's own code raises what it likes
            raise VariantInvalid(
                f"{source.origin} failed: {_reason(error)}",
                hint=_missing_hint(error) or _FACTORY_HINT,
            ) from error
    if not isinstance(net, nn.Module):
        raise VariantInvalid(f"{source.origin} returned no nn.Module but {_kind(net)}", hint=_FACTORY_HINT)
    if source.state_dict:
        load_weights(net, source)
    return net.eval()


def load_weights(net: nn.Module, source: Source) -> None:
    """Load the weights of a source's state dict into a network, all of them.

    Raises:
        VariantInvalid: the file is no state dict, or that of another network.
    """
    weights = _state_dict(source.state_dict)
    own = net.state_dict()
    wrong = [
        f"{key} has {tuple(weights[key].shape)} instead of {tuple(value.shape)}"
        for key, value in own.items()
        if key in weights and isinstance(value, torch.Tensor) and weights[key].shape != value.shape
    ]
    problems = [
        *_keys("misses", [key for key in own if key not in weights]),
        *_keys("has besides", [key for key in weights if key not in own]),
        *wrong[:_MOST_KEYS],
    ]
    if problems:
        raise VariantInvalid(
            f"the state dict is not of {source.origin}: {'; '.join(problems)}", hint=_keys_hint(own, weights)
        )
    net.load_state_dict(weights)


def check_runs(net: Any, specs: tuple[TensorSpec, ...], source: Source) -> None:
    """Run a network once.

    Raises:
        VariantInvalid: it does not take the inputs, or returns no tensor.
    """
    [sample] = drawn_samples(specs, 1, seed=SEED)
    try:
        output_row(net(*sample))
    except Exception as error:  # a person's own code raises what it likes
        raise VariantInvalid(
            f"{source.origin} does not run with {', '.join(map(input_text, specs))}: {_reason(error)}",
            hint=_INPUT_HINT,
        ) from error


def _factory(source: Source) -> Any:
    name, _, attribute = source.origin.partition(":")
    sys.path.insert(0, source.folder)
    try:
        module = import_module(name)
    except ModuleNotFoundError as error:
        missing = error.name or ""
        if name == missing or name.startswith(f"{missing}."):
            message = f"there is no module {missing!r}"
            hint = (
                f"modules are searched in {source.folder} and among the packages of the build environment;"
                f" or save the network where its module is, and build from the file: {_PT2}"
            )
        else:
            message, hint = f"{name} needs the module {missing!r}", _missing_hint(error)
        raise VariantInvalid(message, hint=hint) from error
    except Exception as error:  # a person's own code raises what it likes
        raise VariantInvalid(
            f"{name} cannot be imported: {_reason(error)}", hint=f"`python -c 'import {name}'` shows where"
        ) from error
    try:
        factory = getattr(module, attribute)
    except AttributeError as error:
        close = get_close_matches(attribute, [word for word in vars(module) if word[0] != "_"], n=3)
        hint = f"did you mean {' or '.join(close)}?" if close else _FACTORY_HINT
        raise VariantInvalid(f"{name} has no {attribute!r}", hint=hint) from error
    if not callable(factory):
        raise VariantInvalid(f"{source.origin} is no function but {_kind(factory)}", hint=_FACTORY_HINT)
    return factory


def _exported(source: Source) -> tuple[Any, tuple[TensorSpec, ...]]:
    """Return the network of a `.pt2`, and its inputs where the archive has an example of them."""
    try:
        program = torch.export.load(source.origin)
    except Exception as error:  # the loader raises nothing more particular
        raise VariantInvalid(
            f"{source.origin} cannot be loaded by this torch ({torch.__version__}): {_reason(error)}",
            hint=f"save it again with a version near this one: {_PT2}",
        ) from error
    arguments, keywords = program.example_inputs or ((), {})
    if keywords or not all(isinstance(each, torch.Tensor) for each in arguments):
        raise VariantInvalid(
            f"{source.origin} takes inputs by keyword, or others than tensors",
            hint="export the network with positional tensors alone",
        )
    return program.module(), tuple(map(spec_of, arguments))


def _scripted(source: Source) -> Any:
    try:
        return torch.jit.load(source.origin, map_location="cpu").eval()
    except Exception as error:  # the loader raises nothing more particular
        raise VariantInvalid(
            f"{source.origin} cannot be loaded by this torch ({torch.__version__}): {_reason(error)}",
            hint="an archive of torch.jit.save for the CPU is needed",
        ) from error


def _state_dict(path: str) -> Mapping[str, Any]:
    hint = "torch.save(net.state_dict(), 'net.pth') writes one"
    try:
        # No code of the file is run.
        weights = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # the unpickler raises what it likes
        raise VariantInvalid(f"{path} is no state dict: {_reason(error)}", hint=hint) from error
    if isinstance(weights, Mapping):
        nested = [key for key, value in weights.items() if isinstance(value, Mapping) and value]
        if weights and all(isinstance(value, torch.Tensor) for value in weights.values()):
            return weights
        if nested:
            hint = (
                f"save its item {nested[0]!r} alone: torch.save(torch.load(path)[{nested[0]!r}], 'net.pth')"
            )
    raise VariantInvalid(f"{path} is no state dict but {_kind(weights)} of other things", hint=hint)


def _keys(what: str, keys: list[str]) -> list[str]:
    if not keys:
        return []
    more = f" and {len(keys) - _MOST_KEYS} more" if len(keys) > _MOST_KEYS else ""
    return [f"it {what} {', '.join(keys[:_MOST_KEYS])}{more}"]


def _keys_hint(own: Mapping[str, Any], weights: Mapping[str, Any]) -> str:
    """Return what to do, where one prefix explains all keys."""
    some = next(iter(weights), "")
    prefix = next((some[: -len(key)] for key in own if some.endswith(f".{key}")), "")
    if prefix and {f"{prefix}{key}" for key in own} == weights.keys():
        return f"its keys begin with {prefix!r}, as a wrapper of the network saves them: save them without it"
    return "save the weights of the very network that is built: torch.save(net.state_dict(), 'net.pth')"


def _missing_hint(error: Exception) -> str:
    if not isinstance(error, ModuleNotFoundError):
        return ""
    return (
        "the build environment has torch, torchvision and numpy; save the network where its modules are, and"
        f" build from the file: {_PT2}"
    )


def _kind(value: object) -> str:
    return f"a {type(value).__name__}"


def _reason(error: Exception) -> str:
    """Return the first lines of an error."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {' '.join(lines[:2])}"[:300]
