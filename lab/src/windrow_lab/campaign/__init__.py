"""Campaigns: many trials as data, spread over processes and jobs, kept in chunks.

`EXAMPLE` is the file that `windrow lab --example` prints: every key of a campaign, with its
meaning. A test runs it.
"""

from pathlib import Path

EXAMPLE = Path(__file__).with_name("example.toml")
