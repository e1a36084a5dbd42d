"""A person at a small Azure: real commands, a real daemon, a sign-in service, and servers that check each request."""

from __future__ import annotations

import contextlib
import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from aj.base.clock import SYSTEM
from aj.base.settings import Settings
from tests.cli.conftest import Ran, Shell
from tests.engine.cloud import subscribe
from tests.servers.authority import CLIENT, SECRET, TENANT, Authority, signing_in
from tests.servers.azure import ONE, WORKSPACE, SmallAzure, running, table
from tests.servers.loopback import Loopback

RUN = "pretrain_0a1b2c3d"
LOGS = {
    "user_logs/std_log_process_0.txt": b"one\nloss 2\n",
    "user_logs/std_log_process_1.txt": b"two\n",
    "system_logs/cap/a.log": b"sys\n",
}


@dataclass(frozen=True)
class Place:
    """The shell of a project whose settings lead to a small Azure."""

    shell: Shell
    azure: SmallAzure
    authority: Authority
    door: Loopback

    def __call__(self, *words: str, code: int = 0, **variables: str) -> Ran:
        ran = self.shell(*words, **variables)
        assert ran.code == code, (ran.err, ran.out)
        return ran

    def settings(self, text: str = "") -> None:
        """Write the settings of the project; the cloud stays."""
        cloud = table(self.azure.arm_server.url, self.azure.plane_server.url, self.door.url)
        lines = [f"{name} = {json.dumps(value)}" for name, value in cloud.items()]
        own = 'cloud = "small"\n' + text + "\n[clouds.small]\n" + "\n".join(lines) + "\n"
        self.shell.write(".azure_jobs/aj.toml", own)

    def choose(self) -> None:
        """Make a workspace, and choose it in the settings."""
        self.azure.add_workspace()
        at = WORKSPACE
        lines = (f'name = "{at.name}"', f'resource_group = "{at.group}"', f'subscription_id = "{at.subscription}"')
        self.settings("[workspace]\n" + "\n".join(lines) + "\n")

    def ran(self, name: str = RUN) -> None:
        """Give a job log files."""
        self.azure.plane.files.update(LOGS)
        signed = {path: self.azure.plane.signed(path) for path in LOGS}
        self.azure.plane.details[name] = {"runId": name, "status": "Running", "logFiles": signed}

    def end(self, name: str, status: str) -> None:
        """Let a job have ended."""
        self.azure.arm.resources[f"{WORKSPACE.id}/jobs/{name}".lower()]["properties"]["status"] = status


@contextlib.contextmanager
def at(shell: Shell, folder: Path) -> Iterator[Place]:
    """Serve a small Azure for the length of a block; a request that broke a rule fails it at the end."""
    with signing_in(folder) as (authority, door, bundle), running(Settings({}), SYSTEM) as azure:
        authority.tokens = azure.arm.tokens
        azure.arm.page_rows = 50
        subscribe(azure, ONE)
        home = shell.home.having(
            PATH=f"{sys.prefix}/bin:/usr/bin:/bin",
            AZURE_TENANT_ID=TENANT,
            AZURE_CLIENT_ID=CLIENT,
            AZURE_CLIENT_SECRET=SECRET,
            AJ_CREDENTIAL="environment",
            SSL_CERT_FILE=str(bundle),
        )
        place = Place(Shell(home, shell.directory), azure, authority, door)
        place.settings()
        yield place
