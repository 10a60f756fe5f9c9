"""Parquet is an extra (`windrow-hpc[parquet]`): it takes a third of all that would be installed,
and few need it."""

from windrow.errors import UserError


def need_parquet(who: str) -> None:
    """UserError if Parquet cannot be read or written; `who` is what needs it. To be asked before
    any work."""
    try:
        import pyarrow  # noqa: F401, PLC0415  (heavy, and seldom wanted)
    except ImportError:
        raise UserError(
            f"{who} needs pyarrow, which is not installed; pip install 'windrow-hpc[parquet]'"
        ) from None
