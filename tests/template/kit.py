"""Small projects of YAML text for the tests of templates."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from aj.backend import registry
from aj.base.errors import AjError
from aj.base.paths import Project
from aj.model.json import Json
from aj.template import build, check, load, merge, tree, yaml
from aj.template.build import Built, Request
from aj.template.issue import Issue
from aj.template.load import Resolved
from aj.template.tree import Section

EXAMPLES = Path(__file__).parent / "examples"
ID = "0a1b2c3d"


def project(root: Path, files: Mapping[str, str]) -> Project:
    """Write files below `.azure_jobs`; a name without a folder is a template. `.yaml` is added."""
    directory = root / ".azure_jobs"
    (directory / "template").mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        path = directory / (f"{name}.yaml" if "/" in name else f"template/{name}.yaml")
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return Project(directory)


def resolved(root: Path, files: Mapping[str, str], name: str = "t") -> Resolved:
    """Write files and merge one of them."""
    return load.resolve(project(root, files), name)


def section(text: str) -> Section:
    """Read YAML text that is a mapping without faults."""
    document = yaml.read(text.encode(), "t.yaml")
    assert document.faults == ()
    assert isinstance(document.root, Section)
    return document.root


def merged(*layers: str) -> dict[str, Json]:
    """Merge layers of `config`, lowest first, to plain values."""
    return tree.mapping(merged_tree(*layers))


def merged_tree(*layers: str, notes: list[Issue] | None = None) -> Section:
    """Merge layers of `config`, lowest first."""
    found = tree.EMPTY
    told: list[Issue] = [] if notes is None else notes
    for layer in layers:
        found = merge.merge(found, section(layer), told)
    return merge.finished(found, told)


def issues(root: Path, text: str, **others: str) -> list[Issue]:
    """Check one template `t` with whatever else is there."""
    found = check.validate(project(root, {"t": text, **others}), ["t"], options_of=registry.options)
    return list(found[0].issues)


def errors(root: Path, text: str, **others: str) -> list[Issue]:
    """Check one template and return what stops it."""
    return [found for found in issues(root, text, **others) if found.is_error]


def built(root: Path, text: str, *argv: str, request: Request | None = None, **others: str) -> Built:
    """Build the JobSpec of a template `t`."""
    where = project(root, {"t": text, **others})
    asked = request or Request(ID, root, argv or ("python", "train.py"), where)
    return build.build(load.resolve(where, "t"), asked, options_of=registry.options)


def spot(found: Issue | AjError) -> tuple[int, int]:
    """Line and column of a finding or an error."""
    assert found.place is not None
    return found.place.line, found.place.column


LOCAL = "base:\nconfig:\n  target: {service: local}\n  jobs:\n  - instance_count: 1\n"
SING = """base:
config:
  target: {service: sing, workspace_name: ws, gpus_per_node: 8}
  environment: {image: train:1}
  jobs:
  - sku: "{nodes}x80G{processes}-A100"
    instance_count: 2
"""
VOLCANO = """base:
config:
  target: {service: volcano, gpus_per_node: 8, cpus_per_node: 96, memory: 512Gi}
  environment: {image: train:1}
  jobs:
  - sku: "{nodes}xG{processes}"
    instance_count: 2
    submit_args:
      env: {AMLT_PERSISTENT_VOLUME_NAME: pvc, AMLT_PERSISTENT_VOLUME_MOUNT_DIR: /mnt/pvc}
"""
