"""Settings of the interpreter that keep a request from waiting for another one, or for garbage collection."""

import gc
import sys

#: How long a thread that computes may keep others from running, once one wants to. The interpreter's default
#: is 5 ms, which the event loop would wait for each time it comes back from its sockets.
SWITCH_INTERVAL_S = 0.001
#: New objects that may be cycles are inspected after so many. A page reads thousands of rows at once: with
#: the interpreter's default of 700 they are inspected again and again, and none of them is garbage yet.
YOUNG_OBJECTS = 10_000


def shorten_pauses() -> None:
    """Exempt all present objects from garbage collection, and have threads that compute give way sooner.

    For a process that serves, once it is composed: a full collection stops all threads, and would look at
    modules, classes and routes each time, none of which ever goes. Present garbage is collected first.
    Objects that are exempt are still freed when their last reference goes; only cycles of them are not.
    """
    gc.collect()
    gc.freeze()
    _, *older = gc.get_threshold()
    gc.set_threshold(YOUNG_OBJECTS, *older)
    sys.setswitchinterval(SWITCH_INTERVAL_S)
