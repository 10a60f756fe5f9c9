"""The shapes of workflows that people publish (rules, wildcards, checkpoints), with commands that only
say that they ran: what Snakemake itself carries out on this machine is the law.

Written from what their pages say of them; takes minutes: WINDROW_FULL=1, or make prove.
"""  # noqa: E501

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("snakemake", reason="no Snakemake is installed")
pytest.importorskip("snakemake_executor_plugin_windrow", reason="no Snakemake that has the plugin")

IS_FULL = bool(os.environ.get("WINDROW_FULL"))
ON = os.environ.get("WINDROW_TEST_ON", "local")
pytestmark = pytest.mark.slow

HEAD = """
RAN = "echo {rule} {wildcards} >> ran; for file in {output}; do echo {rule} {input} > $file; done"
"""
EXPRESSION = """
UNITS = ["A-1", "A-2", "B-1", "C-1"]
localrules: all
rule all:
    input: "qc/report", expand("diffexp/{c}.tsv", c=["A-vs-B", "A-vs-C"]), "pca.svg"
rule genome:
    output: "ref/genome.fa"
    cache: False
    shell: RAN
rule annotation:
    output: "ref/genome.gtf"
    shell: RAN
rule index:
    input: "ref/genome.fa", "ref/genome.gtf"
    output: "ref/star.idx"
    threads: 4
    shell: RAN
rule trim:
    output: fq1="trimmed/{unit}.1.fq", fq2="trimmed/{unit}.2.fq"
    log: "logs/trim/{unit}.log"
    shell: RAN
rule align:
    input: "trimmed/{unit}.1.fq", "trimmed/{unit}.2.fq", "ref/star.idx"
    output: bam="star/{unit}.bam", counts="star/{unit}.counts"
    threads: 24
    shell: RAN
rule rseqc:
    input: "star/{unit}.bam", "ref/genome.gtf"
    output: "qc/rseqc/{unit}.{what}.txt"
    wildcard_constraints: what="[a-z]+"
    shell: RAN
rule multiqc:
    input: expand("qc/rseqc/{u}.{w}.txt", u=UNITS, w=["infer", "stat", "gc"])
    output: "qc/report"
    shell: RAN
rule matrix:
    input: expand("star/{u}.counts", u=UNITS)
    output: "counts.tsv"
    shell: RAN
rule deseq:
    input: "counts.tsv"
    output: "deseq.rds", "norm.tsv"
    shell: RAN
rule pca:
    input: "deseq.rds"
    output: report("pca.svg")
    shell: RAN
rule contrast:
    input: "deseq.rds"
    output: "diffexp/{contrast}.tsv"
    shell: RAN
"""
VARIANTS = """
SAMPLES = ["A", "B"]
rule all:
    input: "annotated.vcf", "qc/multiqc"
rule genome:
    output: "ref/genome.fa"
    shell: RAN
checkpoint faidx:
    input: "ref/genome.fa"
    output: "ref/genome.fai"
    shell: "echo {rule} >> ran; printf '1\\\\n2\\\\nX\\\\n' > {output}"
rule bwa_index:
    input: "ref/genome.fa"
    output: multiext("ref/genome", ".amb", ".ann", ".sa")
    resources: mem_mb=500
    shell: RAN
rule trim:
    output: temp("trimmed/{s}-{u}.fq")
    shell: RAN
rule map:
    input: "trimmed/{s}-{u}.fq", rules.bwa_index.output
    output: temp("mapped/{s}-{u}.bam")
    threads: 8
    shell: RAN
rule dedup:
    input: lambda w: expand("mapped/{s}-{u}.bam", s=w.s, u=[1, 2] if w.s == "A" else [1])
    output: bam=temp("dedup/{s}.bam"), metrics="qc/dedup/{s}.txt"
    shell: RAN
rule recal:
    input: "dedup/{s}.bam", "ref/genome.fai"
    output: protected("recal/{s}.bam")
    shell: RAN
rule call:
    input: "recal/{s}.bam"
    output: "called/{s}.{contig}.g.vcf"
    shell: RAN
rule combine:
    input: expand("called/{s}.{{contig}}.g.vcf", s=SAMPLES)
    output: "called/all.{contig}.g.vcf"
    shell: RAN
rule genotype:
    input: "called/all.{contig}.g.vcf"
    output: temp("genotyped/all.{contig}.vcf")
    shell: RAN
def contigs(wildcards):
    with checkpoints.faidx.get().output[0].open() as fai:
        return [f"genotyped/all.{line.strip()}.vcf" for line in fai]
rule merge:
    input: contigs
    output: "merged.vcf"
    shell: RAN
rule select:
    input: "merged.vcf"
    output: temp("filtered/{kind}.vcf")
    shell: RAN
rule annotate:
    input: expand("filtered/{kind}.vcf", kind=["snvs", "indels"])
    output: "annotated.vcf"
    shell: RAN
rule multiqc:
    input: expand("qc/dedup/{s}.txt", s=SAMPLES)
    output: "qc/multiqc"
    shell: RAN
ruleorder: combine > call
"""
ENERGY = """
rule all:
    input: "results/summary.csv", "results/map.pdf"
rule retrieve:
    output: "data/{what}.nc"
    resources: downloads=1
    shell: RAN
rule shapes:
    input: "data/regions.nc"
    output: "shapes.json"
    shell: RAN
rule profile:
    input: "data/weather.nc", "shapes.json"
    output: "profiles/{tech}.nc"
    resources: mem_mb=lambda w, attempt: 200 * attempt
    shell: RAN
rule base:
    input: "data/grid.nc", "shapes.json"
    output: "networks/base.nc"
    shell: RAN
rule add_electricity:
    input: "networks/base.nc", expand("profiles/{t}.nc", t=["onwind", "offwind", "solar"])
    output: "networks/elec.nc"
    shell: RAN
rule cluster:
    input: "networks/elec.nc"
    output: "networks/elec_{n}.nc"
    wildcard_constraints: n=r"\\d+"
    shell: RAN
rule solve:
    input: "networks/elec_{n}.nc"
    output: "results/{n}_{opts}.nc"
    threads: 2
    shadow: "minimal"
    shell: RAN
rule summary:
    input: expand("results/{n}_{o}.nc", n=[5, 37], o=["Co2L", "1H"])
    output: "results/summary.csv"
    shell: RAN
rule plot:
    input: "results/37_Co2L.nc"
    output: "results/map.pdf"
    shell: RAN
"""
BINS = """
rule all:
    input: "report.html"
rule qc:
    output: "qc/{s}.fq"
    group: "reads"
    shell: RAN
rule assemble:
    input: "qc/{s}.fq"
    output: "assembly/{s}.fa"
    group: "reads"
    shell: RAN
checkpoint bin:
    input: "assembly/{s}.fa"
    output: directory("bins/{s}")
    shell: "echo {rule} {wildcards} >> ran; mkdir -p {output}; touch {output}/x.fa {output}/y.fa"
rule annotate:
    input: "bins/{s}/{b}.fa"
    output: "genes/{s}/{b}.gff"
    shell: RAN
rule quality:
    input: "bins/{s}/{b}.fa"
    output: "quality/{s}/{b}.txt"
    shell: RAN
def of_sample(wildcards):
    folder = checkpoints.bin.get(s=wildcards.s).output[0]
    found = glob_wildcards(str(folder) + "/{b}.fa").b
    return expand("genes/{s}/{b}.gff", s=wildcards.s, b=sorted(found)) + expand(
        "quality/{s}/{b}.txt", s=wildcards.s, b=sorted(found)
    )
rule sample:
    input: of_sample
    output: "samples/{s}.txt"
    shell: RAN
checkpoint choose:
    input: expand("samples/{s}.txt", s=["S1", "S2"])
    output: "chosen.txt"
    shell: "echo {rule} >> ran; echo S2 > {output}"
def chosen(wildcards):
    with checkpoints.choose.get().output[0].open() as file:
        return [f"trees/{line.strip()}.nwk" for line in file]
rule tree:
    input: "samples/{s}.txt"
    output: "trees/{s}.nwk"
    shell: RAN
rule report:
    input: chosen
    output: "report.html"
    shell: RAN
"""
PHYLOGENY = """
localrules: clean
rule all:
    input: "auspice/tree.json", "auspice/tips.json"
rule filter:
    output: "filtered.fa"
    shell: RAN
rule split:
    input: "filtered.fa"
    output: expand("split/{i}.fa", i=range(6))
    shell: RAN
rule align:
    input: "split/{i}.fa"
    output: temp("aligned/{i}.fa")
    threads: 2
    shell: RAN
rule join:
    input: expand("aligned/{i}.fa", i=range(6))
    output: "aligned.fa"
    benchmark: "bench/join.txt"
    shell: RAN
rule tree:
    input: "aligned.fa"
    output: "raw.nwk"
    shell: RAN
rule refine:
    input: "raw.nwk", "aligned.fa"
    output: tree="tree.nwk", nodes="branch.json"
    shell: RAN
rule traits:
    input: "tree.nwk"
    output: "{what}.node.json"
    shell: RAN
rule export:
    input: "tree.nwk", "branch.json", expand("{w}.node.json", w=["nt", "aa", "traits"])
    output: "export.json"
    shell: RAN
rule clean:
    input: "export.json"
    output: "auspice/{part}.json"
    shell: RAN
"""
SHAPES = {
    "expression": EXPRESSION,
    "variants": VARIANTS,
    "energy": ENERGY,
    "bins": BINS,
    "phylogeny": PHYLOGENY,
}


def carried_out(folder: Path, text: str, *more: str) -> tuple[list[str], dict[str, str]]:
    """What ran, in no order, and all files that are left."""
    folder.mkdir()
    (folder / "Snakefile").write_text(HEAD + text)
    argv = [sys.executable, "-m", "snakemake", "-j", "50", "--resources", "downloads=1", *more]
    done = subprocess.run(
        argv, cwd=folder, capture_output=True, text=True, check=False, timeout=900
    )
    assert done.returncode == 0, done.stderr
    files = {
        str(file.relative_to(folder)): file.read_text()
        for file in folder.rglob("*")
        if file.is_file() and not {".snakemake", ".windrow", "bench"} & set(file.parts)
    }
    return sorted(files.pop("ran").splitlines()), files


@pytest.mark.skipif(not IS_FULL, reason="takes minutes: WINDROW_FULL=1, or make prove")
@pytest.mark.parametrize("name", SHAPES)
def test_a_published_shape_runs_as_under_snakemake_alone(name: str, tmp_path: Path) -> None:
    law = carried_out(tmp_path / "law", SHAPES[name])
    ours = carried_out(tmp_path / "ours", SHAPES[name], "--executor", "windrow", "--windrow-on", ON)
    assert ours == law
    assert len(ours[0]) >= 13  # what works in a shadow leaves no word
