"""What the settings of a project say to Azure."""

from __future__ import annotations

import pytest

from aj.azure import chosen
from aj.azure.chosen import Chosen
from aj.azure.workplace import Wish
from aj.base.errors import ConfigError
from aj.store import config
from tests.conftest import Home


def read(home: Home, project: str, user: str = "") -> Chosen:
    where = home.project()
    (where.directory / "aj.toml").write_text(project)
    home.layout.user_settings.parent.mkdir(parents=True, exist_ok=True)
    home.layout.user_settings.write_text(user)
    return chosen.read(config.read(home.layout, where, home.settings))


@pytest.mark.rule("A-056", "A-019", "A-094")
def test_nothing_is_chosen_by_default(home: Home) -> None:
    assert read(home, "") == Chosen(Wish(), None, "mcr.microsoft.com/azureml/openmpi4.1.0-ubuntu20.04:latest", {})


@pytest.mark.rule("A-056", "A-019", "A-067", "A-094")
def test_the_nearest_file_wins_key_by_key(home: Home) -> None:
    user = '[workspace]\nname = "far"\nresource_group = "rg"\n[sing]\nplaceholder_image = "far:1"\n'
    project = 'tenant = "t"\n[workspace]\nname = "near"\n[sing.gpus]\nH300 = 288\n'
    found = read(home, project, user)
    assert found == Chosen(Wish("near", None, "rg"), "t", "far:1", {"H300": 288})
    assert read(home.having(AJ_WORKSPACE="typed"), project).workspace.name == "typed"


@pytest.mark.rule("A-067")
@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("tenant = 1\n", 1),
        ('\ntenant = ""\n', 2),
        ("[sing]\ngpus = 1\n", 2),
        ('[sing.gpus]\nA = 1\nB = "2"\n', 1),
        ("[sing.gpus]\nA = true\n", 1),
        ("[sing.gpus]\nA = 0\n", 1),
        ("[sing]\nplaceholder_image = 3\n", 2),
    ],
)
def test_a_wrong_value_is_told_with_its_place(home: Home, text: str, line: int) -> None:
    with pytest.raises(ConfigError) as error:
        read(home, text)
    assert error.value.place is not None
    assert error.value.place.file.endswith("aj.toml")
    assert error.value.place.line == line
