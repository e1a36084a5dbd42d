"""What a service tells the shared build about a template, and nothing more.

Each service has an options room whose `parse` takes the merged `config` and gives its own typed options. Those
carry `facts`, by which the shared build does its part without knowing any service by name.
"""

from __future__ import annotations

from collections.abc import Callable
from enum import StrEnum
from typing import Protocol, TypeAlias

from aj.base.noun import dataclass
from aj.model.job import Task
from aj.model.names import NameStyle
from aj.template.issue import Issue
from aj.template.tree import Section


class SkuRule(StrEnum):
    """What a service makes of `jobs[0].sku`: it must be one, it must be there, or it is not looked at."""

    STRICT = "strict"
    LOOSE = "loose"
    UNUSED = "unused"


@dataclass(frozen=True)
class Facts:
    """What the shared build asks of a service.

    `sku_processes` is the per-node SKU selector when neither the command line nor `gpus_per_node` gives one.
    Without `zero_gpus` a G SKU needs at least one; without `cpu_sizes` a C SKU only says that there are no GPUs.
    With `runs_here` the job runs on this machine: it gets the caller's environment, and links out of the code
    tree are no error. `reserves_runner` refuses a file of the user's that has the runner's name. With
    `takes_buckets` its jobs can have buckets and secrets, for our own engine drives them. `tasks` are
    roles with a shape of their own; with them the template owns the whole shape.
    """

    image: str | None = None
    sku_rule: SkuRule = SkuRule.STRICT
    name_style: NameStyle = NameStyle.PLAIN
    sku_processes: int | None = None
    zero_gpus: bool = True
    cpu_sizes: bool = True
    runs_here: bool = False
    reserves_runner: bool = False
    takes_buckets: bool = False
    tasks: tuple[Task, ...] = ()
    warnings: tuple[Issue, ...] = ()


class Options(Protocol):
    """Typed options of a service, of which the shared build sees the facts alone."""

    @property
    def facts(self) -> Facts:
        """What the shared build needs."""


# The merged `config` to typed options; raises TemplateError with every fault in its details.
Parser: TypeAlias = Callable[[Section], Options]
# The name of a service to its parser; raises UserError with the nearest name for a service nobody knows.
OptionsOf: TypeAlias = Callable[[str], Parser]
