"""joblib's parallel loops on the batch queue.

After `register`, `with joblib.parallel_config("windrow", on="slurm"):` does it.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from joblib.parallel import AutoBatchingMixin, ParallelBackendBase, register_parallel_backend

from windrow.python.executor import Executor


class WindrowBackend(AutoBatchingMixin, ParallelBackendBase):  # type: ignore[misc]
    """Each batch of calls is a task. `n_jobs` says how many are handed over ahead; -1: as many as
    there may be."""

    supports_retrieve_callback = True
    supports_timeout = True
    default_n_jobs = -1
    _MANY = 1000

    def __init__(
        self, *, on: str = "local", nesting_level: int | None = None, **given: Any
    ) -> None:
        super().__init__(nesting_level=nesting_level, inner_max_num_threads=None)
        self._given = {"on": on, **given}
        self._executor: Executor | None = None

    def effective_n_jobs(self, n_jobs: int) -> int:
        """How many batches may be on their way."""
        if n_jobs == 0:
            raise ValueError("n_jobs == 0 in Parallel has no meaning")
        return self._MANY if n_jobs is None or n_jobs < 0 else n_jobs

    def configure(self, n_jobs: int = 1, parallel: Any = None, **_: Any) -> int:
        """A loop begins."""
        self.parallel = parallel
        self._executor = Executor(**self._given)
        return self.effective_n_jobs(n_jobs)

    def submit(
        self, func: Callable[[], Any], callback: Callable[[Any], None] | None = None
    ) -> Future[Any]:
        """Carry out a batch."""
        assert self._executor is not None
        future = self._executor.submit(func)
        if callback is not None:
            future.add_done_callback(callback)
        return future

    apply_async = submit

    def retrieve_result_callback(self, out: Future[Any]) -> Any:
        """What came of a batch that has ended."""
        return out.result()

    def terminate(self) -> None:
        """The loop is over."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)
            self._executor = None

    def abort_everything(self, ensure_ready: bool = True) -> None:
        """Give up what is left."""
        if self._executor is not None:
            self._executor.shutdown(wait=False, cancel_futures=True)
            self._executor = None
        if ensure_ready:
            self.configure(self.parallel.n_jobs, self.parallel)


def register() -> None:
    """Make `windrow` the name of a backend of joblib."""
    register_parallel_backend("windrow", WindrowBackend)
