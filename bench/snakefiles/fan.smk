# One job, then chains of three, then one: 60 jobs where width is 20.
import random

WIDTH = int(config["width"])


def seconds(name):
    return round(random.Random(f"{config['seed']} {name}").uniform(20, 60), 1)


wildcard_constraints:
    i=r"\d+",


rule all:
    input:
        "done/report",


rule prepare:
    output:
        "done/prepare",
    params:
        seconds=seconds("prepare"),
    resources:
        runtime=2,
    shell:
        "sh task.sh prepare {params.seconds}"


rule align:
    input:
        "done/prepare",
    output:
        "done/align-{i}",
    params:
        seconds=lambda wildcards: seconds(f"align {wildcards.i}"),
    resources:
        runtime=2,
    shell:
        "sh task.sh align-{wildcards.i} {params.seconds}"


rule sort:
    input:
        "done/align-{i}",
    output:
        "done/sort-{i}",
    params:
        seconds=lambda wildcards: seconds(f"sort {wildcards.i}"),
    resources:
        runtime=2,
    shell:
        "sh task.sh sort-{wildcards.i} {params.seconds}"


rule call:
    input:
        "done/sort-{i}",
    output:
        "done/call-{i}",
    params:
        seconds=lambda wildcards: seconds(f"call {wildcards.i}"),
    resources:
        runtime=2,
    shell:
        "sh task.sh call-{wildcards.i} {params.seconds}"


rule report:
    input:
        expand("done/call-{i}", i=range(WIDTH - 2)),
        expand("done/sort-{i}", i=range(WIDTH - 2, WIDTH)),
    output:
        "done/report",
    params:
        seconds=seconds("report"),
    resources:
        runtime=2,
    shell:
        "sh task.sh report {params.seconds}"
