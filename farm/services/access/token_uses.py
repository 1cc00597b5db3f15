"""When access tokens were last used: collected in memory, stored by one write a minute."""

import threading
from datetime import datetime

from farm.clock import Clock
from farm.database.engine import Database
from farm.database.transaction import bind_tx
from farm.store.operations.access_tokens import store_token_uses

#: Interval of storing; a farm that is killed forgets the uses since the last time.
STORE_EVERY_S = 60.0


class TokenUses:
    """The newest use of each token that was not stored yet. No call waits for the write."""

    def __init__(self, database: Database, clock: Clock) -> None:
        self._database = database
        self._clock = clock
        self._lock = threading.Lock()
        self._used_at: dict[str, datetime] = {}

    def note(self, token_hash: str) -> None:
        """Note that a token was used now."""
        with self._lock:
            self._used_at[token_hash] = self._clock.now()

    def __call__(self) -> None:
        """Store what was noted; it is kept where the database cannot be written."""
        with self._lock:
            used_at, self._used_at = self._used_at, {}
        if not used_at:
            return
        try:
            self._database.write(bind_tx(store_token_uses, now=self._clock.now()), used_at)
        except Exception:
            with self._lock:
                self._used_at = used_at | self._used_at
            raise
