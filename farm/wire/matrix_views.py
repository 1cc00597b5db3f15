"""What the farm tells of matrices besides their progress: what is planned, what was cancelled."""

from farm.core.ids import DeviceId, MatrixId
from farm.wire.base import Wire


class Cancellation(Wire):
    """POST /api/v1/matrices/{id}/cancel: the whole matrix, or what is left of it on one device."""

    device: DeviceId | None = None


class CancelledView(Wire):
    """What a cancellation did; all counts are 0 where everything was finished already."""

    matrix_id: MatrixId
    name: str
    #: Jobs that will never start.
    queued: int
    #: Jobs that were under way: their runs are stopped, and count no longer.
    active: int
    #: Jobs that were finished before, and stay as they are.
    finished: int
