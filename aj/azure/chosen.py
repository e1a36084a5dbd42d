"""What the user's settings say to Azure: workspace, tenant, and what Singularity takes where it tells nothing."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from aj.azure.workplace import Wish
from aj.base.errors import ConfigError
from aj.base.noun import dataclass
from aj.model.json import Json
from aj.store.config import Config, Setting

PLACEHOLDER = "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04:latest"


@dataclass(frozen=True)
class Chosen:
    """The settings of one project. `gpu_sizes` are GB of each GPU by model.

    `placeholder_image` is registered for jobs that run an image of the service's own.
    """

    workspace: Wish = field(default_factory=Wish)
    tenant: str | None = None
    placeholder_image: str = PLACEHOLDER
    gpu_sizes: Mapping[str, int] = field(default_factory=dict)


def read(config: Config) -> Chosen:
    """Read the settings. Raises ConfigError at file and line when one is wrong."""
    wish = Wish(
        config.text("workspace.name"), config.text("workspace.subscription_id"), config.text("workspace.resource_group")
    )
    return Chosen(
        wish,
        config.text("tenant"),
        config.text("sing.placeholder_image") or PLACEHOLDER,
        _sizes(_find(config, "sing.gpus")),
    )


def _find(config: Config, key: str) -> Setting | None:
    """The setting of a service's own table, of the nearest file that has it."""
    return next((setting for layer in config.layers if (setting := layer.find(key)) is not None), None)


def _sizes(found: Setting | None) -> dict[str, int]:
    if found is None:
        return {}
    table: Json = found.value
    if not isinstance(table, Mapping):
        raise ConfigError(
            "`sing.gpus` is no table", hint="[sing.gpus] with lines such as H300 = 288", place=found.place
        )
    sizes: dict[str, int] = {}
    for name, size in table.items():
        if isinstance(size, bool) or not isinstance(size, int) or size < 1:
            raise ConfigError(f"`sing.gpus.{name}` is {size!r}: it takes the GB of a GPU", place=found.place)
        sizes[name] = size
    return sizes
