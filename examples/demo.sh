#!/bin/sh
# A workflow on a small cluster of four nodes, played on this machine, three of which other people hold at first.
# `make demo` runs it in out/, with windrow on the PATH; the argument is the folder of this file.
set -eu
cp "$1/demo.yaml" "$1/others.yaml" .
printf '[queues.cluster]\nkind = "local"\nnodes = 4\n' > windrow.toml
rm -rf data # what an earlier demonstration learned
export XDG_STATE_HOME="$PWD/state" XDG_DATA_HOME="$PWD/data" # apart from your own queues

echo '--- Other people submit three jobs to a cluster of four nodes.'
windrow run others.yaml --on cluster --strategy individual --again --detach
for _ in $(seq 50); do
    windrow status --json | grep -q '"running": 3' && break
    sleep 0.2
done

echo '--- We have a workflow of 62 tasks, serial at first. Watch the second job wait while the first one runs:'
windrow run demo.yaml --on cluster --again
windrow status | tail -n 3
echo '--- Why it was cut like that:'
windrow explain 0
windrow report --html demo.html > /dev/null
windrow show demo.yaml --html workflow.html > /dev/null
echo '--- What the tasks found:'
tail -n 3 primes/summary.txt
