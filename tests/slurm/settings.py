"""The configuration files of a private Slurm, as text; no I/O.

Everything is on this machine: one controller, `n1` ... `nN`, and where asked for a database daemon
with its MariaDB. Times that a site sets to minutes are seconds here, so that tests do not wait.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from tests.slurm import releases

POLICE = """\
JobAcctGatherType=jobacct_gather/linux
JobAcctGatherParams=OverMemoryKill
JobAcctGatherFrequency=task=1"""
PREEMPTION = """\
PreemptType=preempt/partition_prio
PreemptMode=CANCEL
PartitionName=high Nodes=ALL MaxTime=10 PriorityTier=10 PreemptMode=OFF State=UP
PartitionName=low Nodes=ALL MaxTime=10 PriorityTier=1 PreemptMode=CANCEL GraceTime=0 State=UP
PartitionName=spot Nodes=ALL MaxTime=1 PriorityTier=1 PreemptMode=CANCEL GraceTime=8 State=UP
"""


@dataclass(frozen=True, slots=True)
class Kind:
    """Nodes that are alike. `gres` and `features` as in slurm.conf; each GPU has a device of its
    own."""

    count: int
    cpus: int
    memory_mib: int
    tmp_mib: int = 0
    gres: str = ""
    features: str = ""


@dataclass(frozen=True, slots=True)
class Settings:
    """What a private Slurm is like. `min_job_age_s` is how long the controller remembers a job that
    is over.

    `kinds`: its nodes, where they differ; then there are `nodes` in all.

    `disk_mib`: each node has a disk of its own of this size, at the same path (`Place.disk`); needs
    root. `on_node`: a shell command that runs first on such a node, whose name is
    `$WINDROW_TEST_NODE`; only the node sees what it mounts.

    `polices_memory`: jobs that take more than their memory are killed; they are looked at each
    second.

    `preempts`: there are partitions `high`, `low` and `spot`, and jobs of the first one cancel
    those of the others: in `spot` after a notice.

    `main`: options of the partition `main`; `partitions`: further ones, as slurm.conf has them
    after `PartitionName=`.

    `accounts`: what `sacctmgr` is told in the beginning, by lines.

    `binds`: each task is bound to its cores; nodes must then have no more of them than this
    machine.

    `release`: the folder of another Slurm than the installed one (`releases`).
    """

    nodes: int = 8
    cpus: int = 2
    memory_mib: int = 1000
    select: str = "select/linear"
    accounting: bool = False
    min_job_age_s: int = 300
    node_timeout_s: int = 10
    message_timeout_s: int = 10
    max_array_size: int = 1001
    max_time_min: int = 600
    preempts: bool = False
    polices_memory: bool = False
    kinds: tuple[Kind, ...] = ()
    disk_mib: int = 0
    on_node: str = "true"
    main: str = ""
    partitions: tuple[str, ...] = ()
    accounts: tuple[str, ...] = ()
    binds: bool = False
    release: Path | None = field(default_factory=releases.chosen)


@dataclass(frozen=True, slots=True)
class Place:
    """Where one private Slurm lives: its directory, and the first of its ports (see `port`)."""

    directory: Path
    first_port: int
    user: str

    def port(self, what: str) -> int:
        """The port of a daemon: `controller`, `database daemon`, `database`, or a node's name."""
        fixed = {"controller": 0, "database daemon": 1, "database": 2}
        return self.first_port + (fixed[what] if what in fixed else 2 + int(what.removeprefix("n")))

    @property
    def disk(self) -> Path:
        """Where nodes have their own disks."""
        return self.path("disk")

    def path(self, name: str) -> Path:
        """A file of this Slurm."""
        return self.directory / name


def slurm_conf(place: Place, settings: Settings) -> str:
    """The text of slurm.conf. Seconds-long intervals and a two-second purge age are for tests, not
    for sites."""
    schedule = "bf_interval=1,bf_resolution=1,bf_continue,sched_interval=1,sched_min_interval=0,batch_sched_delay=0"  # noqa: E501
    return f"""\
ClusterName=windrow
SlurmctldHost=localhost(127.0.0.1)
SlurmctldPort={place.port("controller")}
SlurmUser={place.user}
SlurmdUser={place.user}
AuthType=auth/munge
AuthInfo=socket={place.path("munge.socket")}
StateSaveLocation={place.path("state")}
SlurmdSpoolDir={place.path("spool")}/%n
SlurmctldPidFile={place.path("slurmctld.pid")}
SlurmdPidFile={place.path("slurmd-%n.pid")}
ProctrackType=proctrack/linuxproc
TaskPlugin={"task/affinity" if settings.binds else "task/none"}
SwitchType=switch/none
MpiDefault=none
{POLICE if settings.polices_memory else "JobAcctGatherType=jobacct_gather/none"}
SelectType={settings.select}
{"SelectTypeParameters=CR_Core_Memory" if settings.select == "select/cons_tres" else ""}
SchedulerType=sched/backfill
SchedulerParameters={schedule}
PriorityType=priority/multifactor
PriorityWeightAge=1000
PriorityMaxAge=1-0
ReturnToService=2
MailProg=/bin/true
KillWait=2
MinJobAge={settings.min_job_age_s}
MessageTimeout={settings.message_timeout_s}
SlurmdTimeout={settings.node_timeout_s}
MaxArraySize={settings.max_array_size}
SlurmdParameters=config_overrides
{_plugins(settings)}
{_accounting(place, settings)}
{_nodes(place, settings)}
PartitionName=main Nodes=ALL Default=YES MaxTime={settings.max_time_min} State=UP {settings.main}
PartitionName=small Nodes=n[1-{min(2, settings.nodes)}] MaxTime=10 MaxNodes=1 State=UP
{PREEMPTION if settings.preempts else ""}
{_partitions(settings)}"""


def _partitions(settings: Settings) -> str:
    return "".join(f"PartitionName={one} State=UP\n" for one in settings.partitions)


def _by_kind(settings: Settings) -> Iterator[tuple[int, Kind]]:
    """The number of the first node of each kind."""
    first = 1
    for kind in settings.kinds or (Kind(settings.nodes, settings.cpus, settings.memory_mib),):
        yield first, kind
        first += kind.count


def _nodes(place: Place, settings: Settings) -> str:
    lines = ["GresTypes=gpu,lic"] if settings.kinds else []
    for first, kind in _by_kind(settings):
        last = first + kind.count - 1
        ports = f"[{place.port(f'n{first}')}-{place.port(f'n{last}')}]"
        more = (f" TmpDisk={kind.tmp_mib}" if kind.tmp_mib else "") + (
            f" Gres={kind.gres}" if kind.gres else ""
        )
        more += f" Features={kind.features}" if kind.features else ""
        size = f"CPUs={kind.cpus} RealMemory={kind.memory_mib}{more}"
        where = "NodeHostname=localhost NodeAddr=127.0.0.1"
        lines.append(f"NodeName=n[{first}-{last}] {where} Port={ports} {size}")
    return "\n".join(lines)


def gres_conf(place: Place, settings: Settings) -> tuple[str, list[Path]]:
    """The text of gres.conf, and the devices that it names: one for each GPU, since a shared one
    stops slurmd."""
    lines, devices = [], []
    for first, kind in _by_kind(settings):
        for node in range(first, first + kind.count):
            for name, *types, count in (one.split(":") for one in kind.gres.split(",") if one):
                what = f"NodeName=n{node} Name={name}" + (f" Type={types[0]}" if types else "")
                if name != "gpu":
                    lines.append(f"{what} Count={count}")
                    continue
                devices += (own := [place.path(f"gpu-n{node}-{i}") for i in range(int(count))])
                lines += [f"{what} File={device}" for device in own]
    return "\n".join([*lines, ""]), devices


def _accounting(place: Place, settings: Settings) -> str:
    if not settings.accounting:
        return "AccountingStorageType=accounting_storage/none"
    counted = sorted({name for _, kind in _by_kind(settings) for name in _counted(kind.gres)})
    return f"""\
{f"AccountingStorageTRES={','.join(counted)}" if counted else ""}
AccountingStorageType=accounting_storage/slurmdbd
AccountingStorageHost=127.0.0.1
AccountingStoragePort={place.port("database daemon")}
AccountingStoragePass={place.path("munge.socket")}
AccountingStorageEnforce=associations,limits,qos"""


def _counted(gres: str) -> set[str]:
    """What accounts and limits count of it: `gres/gpu`, and each type of it."""
    names = [one.split(":") for one in gres.split(",") if one]
    return {f"gres/{':'.join(name[:end])}" for name in names for end in range(1, len(name))}


def _plugins(settings: Settings) -> str:
    if settings.release:
        return f"PluginDir={releases.plugins(settings.release)}"
    return ""


def slurmdbd_conf(place: Place, password: str, settings: Settings) -> str:
    """The text of slurmdbd.conf."""
    return f"""\
{_plugins(settings)}
AuthType=auth/munge
AuthInfo=socket={place.path("munge.socket")}
DbdHost=localhost
DbdAddr=127.0.0.1
DbdPort={place.port("database daemon")}
SlurmUser={place.user}
PidFile={place.path("slurmdbd.pid")}
StorageType=accounting_storage/mysql
StorageHost=127.0.0.1
StoragePort={place.port("database")}
StorageUser=slurm
StoragePass={password}
StorageLoc=slurm_acct
"""


def mariadb_options(place: Place) -> list[str]:
    """The options of a private mariadbd: small, reachable from this machine only."""
    return [
        "--no-defaults",
        f"--datadir={place.path('database')}",
        f"--tmpdir={place.path('database.tmp')}",
        f"--socket={place.path('database.socket')}",
        f"--pid-file={place.path('database.pid')}",
        f"--port={place.port('database')}",
        f"--user={place.user}",
        "--bind-address=127.0.0.1",
        "--innodb-buffer-pool-size=64M",
        "--innodb-log-file-size=16M",
        "--innodb-lock-wait-timeout=900",
        "--innodb-flush-log-at-trx-commit=0",
        f"--init-file={place.path('init.sql')}",
    ]


def init_sql(password: str) -> str:
    """What the private MariaDB runs at each start: the one account that it has besides root."""
    return (
        f"CREATE USER IF NOT EXISTS 'slurm'@'%' IDENTIFIED BY '{password}';\n"
        "GRANT ALL ON slurm_acct.* TO 'slurm'@'%';\n"
    )
