# A checkpoint says how many parts there are; two jobs for each, then one: 62 jobs where width is 30.
import random


def seconds(name):
    return round(random.Random(f"{config['seed']} {name}").uniform(20, 60), 1)


def sorted_parts(wildcards):
    parts = checkpoints.split.get().output[0]
    return expand("done/sort-{i}", i=glob_wildcards(f"{parts}/{{i}}.part").i)


wildcard_constraints:
    i=r"\d+",


rule all:
    input:
        "done/report",


checkpoint split:
    output:
        directory("parts-found"),
    params:
        seconds=seconds("split"),
        last=int(config["width"]) - 1,
    resources:
        runtime=2,
    shell:
        "mkdir {output}; for i in $(seq 0 {params.last}); do touch {output}/$i.part; done; "
        "sh task.sh split {params.seconds}"


rule align:
    input:
        "parts-found/{i}.part",
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


rule report:
    input:
        sorted_parts,
    output:
        "done/report",
    params:
        seconds=seconds("report"),
    resources:
        runtime=2,
    shell:
        "sh task.sh report {params.seconds}"
