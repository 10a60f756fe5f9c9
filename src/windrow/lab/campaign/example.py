"""The campaign file that `windrow lab --example` prints: every key, with its meaning. A test runs it."""

from __future__ import annotations

EXAMPLE = """\
# A campaign: every combination of what is listed here is one trial, a workflow run once by one strategy on a simulated
# cluster. Run it with: windrow lab campaign.toml --out results
# Durations are seconds, or strings with a unit: "90s", "30m", "4h", "7d". Paths are relative to this file's folder.

name = "example"                    # of the table; by default that of this file

# When the workflow is submitted, counted from the log's first job: a list like ["1d", "36h"], or first, last and gap.
submit = { from = "1d", to = "3d", every = "1d" }

requests = ["accurate", "actual"]   # others' requested times: equal to their runs, or as users gave them ("actual")
policies = ["conservative", "easy"] # of the batch system; or tables with policy, priority, events, placement
caps = [4]                          # maximum number of our jobs queued or running (16)
margins = [1.1, 1.5]                # requested time as a multiple of the expected run (1.1)
noise = [0, 0.3]                    # spread of task times around their estimates; 0 makes them exact (0)
seeds = [0, 1]                      # of the noise; without noise only the first one is used (0)

# Logs: files, or models as of `windrow generate log` with their parameters.
# In the tables below any value may be a list: then each combination is tried, and its name says what differs.
[[logs]]
model = "lublin"
nodes = 32
days = 4
seed = 1
load = [0.7, 0.9]                   # a parameter of the model

# [[logs]]
# file = "KTH-SP2-1996-2.1-cln.swf.gz"
# name = "KTH"                      # by default the file's
# nodes = 100                       # by default as the header says

# Workflows: files (with * and ? for several), or recipes as of `windrow generate` with their parameters.
[[workflows]]
recipe = "montage"
tasks = 30
work = "20h"                        # all run times together
seed = 1

# [[workflows]]
# file = "workflows/*.json"

# Strategies with their parameters; by default all, as they come. A plain list of names does as well:
# strategies = ["one-job", "glume"]
[[strategies]]
strategy = "one-job"

[[strategies]]
strategy = "glume"
beat = [0.0, 0.1]
"""
