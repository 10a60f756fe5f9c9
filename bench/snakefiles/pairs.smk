# Pairs of jobs, one after the other: 500 jobs where width is 250.
import random


def seconds(name):
    return round(random.Random(f"{config['seed']} {name}").uniform(20, 60), 1)


wildcard_constraints:
    i=r"\d+",


rule all:
    input:
        expand("done/sort-{i}", i=range(int(config["width"]))),


rule align:
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
