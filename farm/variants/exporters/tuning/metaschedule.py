"""Tuning of what TVM compiles, by its MetaSchedule: schedules are compiled and timed. Imports tvm."""

import logging
import os
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import tvm
from tvm import relax
from tvm.ir.utils import derived_object
from tvm.s_tir.meta_schedule import relax_integration
from tvm.s_tir.meta_schedule.builder import LocalBuilder
from tvm.s_tir.meta_schedule.database import JSONDatabase
from tvm.s_tir.meta_schedule.measure_callback import MeasureCallback, PyMeasureCallback
from tvm.s_tir.meta_schedule.runner import LocalRunner
from tvm.s_tir.meta_schedule.tune import tune_tasks

from farm.core.errors import VariantInvalid
from farm.variants.recipe import SEED
from farm.variants.sources.tuning_records import TuningRecords, read_records

#: Of one part of the network before the next one's turn; fewer where not all parts would have a turn.
_TRIALS_PER_ROUND = 16
#: Of compiling one schedule, and of timing it. A process that compiles first imports TVM.
_TIMEOUT_S = 60.0


def tuned(
    module: Any, target: Any, trials: int, records: TuningRecords | None, say: Callable[[str], None]
) -> TuningRecords:
    """Return records of `trials` schedules that are compiled and timed here, behind those given.

    Schedules are timed on one thread, one after another, each with random inputs. The search starts from the
    same seed, and follows the times: no two tunings are the same.

    Raises:
        VariantInvalid: the network has no loops, or no schedule could be timed.
    """
    # Inherited by the processes that compile and time, which import nothing from where a person works.
    os.environ |= {"TVM_NUM_THREADS": "1", "PYTHONSAFEPATH": "1"}
    logging.getLogger("tvm.s_tir.meta_schedule").setLevel(logging.WARNING)
    tasks = _tasks(module, target)
    if not tasks:
        raise VariantInvalid("TVM finds nothing in the network that could be tuned")
    say(f"tuning {len(tasks)} parts by {trials} trials")
    with tempfile.TemporaryDirectory() as folder:
        if records is not None:
            records.write_folder(Path(folder))
        # TVM imports this module for definitions of tensor instructions, which takes it 20 s of CPU, here and
        # in each process that compiles. Schedules for CPUs in float32 use none.
        sys.modules.setdefault("tvm.s_tir.tensor_intrin", ModuleType("tvm.s_tir.tensor_intrin"))
        contexts, weights = relax_integration.extracted_tasks_to_tune_contexts(
            tasks, folder, space="llvm", seed=SEED, num_threads=os.cpu_count() or 1
        )
        tune_tasks(
            tasks=contexts,
            task_weights=weights,
            work_dir=folder,
            max_trials_global=trials,
            num_trials_per_iter=max(1, min(_TRIALS_PER_ROUND, trials // len(tasks))),
            builder=_builder(),
            runner=LocalRunner(timeout_sec=_TIMEOUT_S),
            measure_callbacks=[*MeasureCallback.create("default"), _TrialCount(trials, say)],
        )
        found = read_records(Path(folder))
    if found.timed == (0 if records is None else records.timed):
        raise VariantInvalid("no schedule could be compiled and timed")
    return found


def _builder() -> LocalBuilder:
    """Return what compiles schedules, in processes that have no module of the farm."""

    # Sent to them as it is, because it is no function of a module.
    def build(module: Any, target: Any, _parameters: Any) -> Any:
        from tvm.driver import build as build_module
        from tvm.s_tir.transform import RemoveWeightLayoutRewriteBlock

        plain = RemoveWeightLayoutRewriteBlock(skip_tensor_rewrite=True)(module)
        return build_module(plain, target=target)

    return LocalBuilder(max_workers=os.cpu_count() or 1, timeout_sec=_TIMEOUT_S, f_build=build)


@derived_object
class _TrialCount(PyMeasureCallback):  # type: ignore[misc]
    """Says how many of the trials were made."""

    def __init__(self, trials: int, say: Callable[[str], None]) -> None:
        super().__init__()
        self.trials, self.done, self.say = trials, 0, say

    def apply(self, _scheduler: Any, _task: int, candidates: Any, _built: Any, _timed: Any) -> None:
        """Count a round."""
        self.done += len(candidates)
        self.say(f"tuning, {self.done} of {self.trials} trials")


def compiled(module: Any, target: Any, records: TuningRecords) -> Any:
    """Return the executable whose loops are as the quickest of the records; others stay untuned.

    Raises:
        VariantInvalid: no loop of the network has a record that TVM would use.
    """
    with tempfile.TemporaryDirectory() as folder:
        records.write_folder(Path(folder))
        database = JSONDatabase(work_dir=folder)
        if not any(_has_record(database, task, target) for task in _tasks(module, target)):
            raise VariantInvalid(
                "no record is of this network",
                hint="records are of one network with its input sizes: measure some with --tune TRIALS",
            )
        with target:
            prepared = tvm.transform.Sequential(_PREPARATION)(module)
        return relax_integration.compile_relax(database, prepared, target, params=None)


def _tasks(module: Any, target: Any) -> list[Any]:
    """Return the parts of the network that can be tuned."""
    with target:
        prepared = tvm.transform.Sequential([*_PREPARATION, relax.get_pipeline("zero")])(module)
    return relax_integration.extract_tasks(prepared, target, {})  # type: ignore[no-any-return]


def _has_record(database: Any, task: Any, target: Any) -> bool:
    """Return whether a part has a record of a trial that did not fail."""
    [part] = task.dispatched
    return database.query_tuning_record(part, target, task.task_name) is not None


#: What comes before loops are found; the same for tuning and for compiling, or no record would be found.
_PREPARATION = (relax.transform.DecomposeOpsForInference(), relax.transform.CanonicalizeBindings())
