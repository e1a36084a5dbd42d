"""Every environment variable that `aj` reads, read once into one frozen object.

`help environment` prints the table below, so a variable that is not here does not exist.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import field
from types import MappingProxyType

from aj.base.errors import ConfigError
from aj.base.noun import dataclass
from aj.base.units import parse_duration

TRUE = frozenset({"1", "true", "yes", "on"})
FALSE = frozenset({"0", "false", "no", "off"})
CREDENTIALS = ("environment", "workload", "managed", "cli")  # of AJ_CREDENTIAL, in the order of trying
LOG_LEVELS = ("debug", "info", "warning", "error")  # of AJ_LOG_LEVEL, the most talkative first

# name -> meaning, in the order of the help page.
OURS: Mapping[str, str] = MappingProxyType(
    {
        "AJ_HOME": "project directory (default: the nearest .azure_jobs, upwards)",
        "AJ_CONFIG_DIR": "user settings (default: XDG_CONFIG_HOME/aj)",
        "AJ_STATE_DIR": "queue, journal, jobs (default: XDG_STATE_HOME/aj)",
        "AJ_CACHE_DIR": "caches; may be deleted at any time (default: XDG_CACHE_HOME/aj)",
        "AJ_RUNTIME_DIR": "the daemon's socket (default: XDG_RUNTIME_DIR/aj, else run/ in the state directory)",
        "AJ_NAME": "base of the name of submitted jobs",
        "AJ_TEMPLATE_NAME": "default of --template",
        "AJ_EXPERIMENT": "default of --experiment",
        "AJ_WORKSPACE": "default of --ws",
        "AJ_OUTPUT": "default of --output",
        "AJ_DEBUG": "tracebacks: on stderr, and in the daemon's log",
        "AJ_LOG_LEVEL": "log level of the daemon",
        "AJ_NO_INPUT": "never ask, as --no-input",
        "AJ_DAEMON_IDLE": "how long an idle daemon stays (default 1h, 0 = for ever); read at its start",
        "AJ_AMLT_TIMEOUT": "limit of one amlt run (default 1800s); read at the daemon's start",
        "AJ_CREDENTIAL": "the one Azure credential source to use; read at the daemon's start",
        "AJ_AGENT": "name of the coding agent, instead of detection; `none` for no agent at all",
        "AJ_SESSION": "session of the coding agent, instead of detection",
    }
)
FOREIGN: Mapping[str, str] = MappingProxyType(
    {
        "NO_COLOR": "no colour",
        "FORCE_COLOR": "colour off a terminal too",
        "CLICOLOR_FORCE": "as FORCE_COLOR",
        "TERM": "`dumb` means no colour",
        "COLUMNS": "width of tables",
        "PAGER": "pager of help pages",
        "CI": "no moving progress",
        "TZ": "time zone of tables",
        "TMPDIR": "place of temporary files",
        "HOME": "home directory",
        "XDG_CONFIG_HOME": "see AJ_CONFIG_DIR",
        "XDG_STATE_HOME": "see AJ_STATE_DIR",
        "XDG_CACHE_HOME": "see AJ_CACHE_DIR",
        "XDG_RUNTIME_DIR": "see AJ_RUNTIME_DIR",
        "KUBECONFIG": "clusters",
        "KUBERNETES_SERVICE_HOST": "the cluster that this machine is a pod of",
        "KUBERNETES_SERVICE_PORT": "its port",
        "AZURE_CONFIG_DIR": "the az command's folder",
        "AZURE_TENANT_ID": "Azure identity",
        "AZURE_CLIENT_ID": "Azure identity",
        "AZURE_CLIENT_SECRET": "Azure identity: secret of a service principal",
        "AZURE_CLIENT_CERTIFICATE_PATH": "Azure identity: certificate of a service principal",
        "AZURE_CLIENT_CERTIFICATE_PASSWORD": "Azure identity: what opens that certificate",
        "AZURE_FEDERATED_TOKEN_FILE": "Azure identity of a pod",
        "AZURE_SUBSCRIPTION_ID": "default subscription",
        "HTTPS_PROXY": "proxy",
        "HTTP_PROXY": "proxy",
        "NO_PROXY": "hosts without proxy",
        "REGISTRY_AUTH_FILE": "who this user is to registries of images",
        "DOCKER_CONFIG": "the docker command's folder, for the same",
        "SSL_CERT_FILE": "certificate bundle",
        "REQUESTS_CA_BUNDLE": "certificate bundle",
        "CLAUDECODE": "Claude Code calls, where stdin or stdout is no terminal",
        "CLAUDE_CODE_SESSION_ID": "its session",
        "CLAUDE_CONFIG_DIR": "its folder, for the session's title (default: ~/.claude)",
        "CODEX_THREAD_ID": "Codex calls, likewise; its session",
        "CODEX_BIN_PATH": "an older Codex calls, likewise; its session is named by the parent process",
        "CODEX_SANDBOX": "Codex calls, likewise",
        "CODEX_HOME": "its folder, for the session's title (default: ~/.codex)",
        "CURSOR_AGENT": "Cursor calls, likewise",
        "OR_APP_NAME": "`Aider`: that agent calls, likewise",
        "AIDER_VERSION": "Aider calls, likewise",
        "AIDER_MODEL": "Aider calls, where neither stdin nor stdout is a terminal",
    }
)
# What a running daemon was started with and a client may compare with its own.
DAEMON_SIDE = (
    "AJ_AMLT_TIMEOUT",
    "AJ_CREDENTIAL",
    "AJ_DAEMON_IDLE",
    "AJ_LOG_LEVEL",
    "AJ_STATE_DIR",
    "AJ_CACHE_DIR",
    "AZURE_CONFIG_DIR",
    "AZURE_TENANT_ID",
    "AZURE_CLIENT_ID",
    "AZURE_SUBSCRIPTION_ID",
    "KUBECONFIG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "SSL_CERT_FILE",
    "REQUESTS_CA_BUNDLE",
)
# Names that a job finds in its environment; a job may call `aj` itself.
INJECTED = frozenset(
    {
        "AJ_ID",
        "AJ_TEMPLATE",
        "AJ_SUBMIT_TIMESTAMP_UTC",
        "AJ_NODES",
        "AJ_PROCESSES",
        "AJ_GPUS_PER_NODE",
        "AJ_PROCESSES_PER_NODE",
        "AJ_WORLD_SIZE",
        "AJ_CODE_DIGEST",
        "AJ_CODE_ARCHIVE_SHA256",
        "AJ_WORKDIR",
        "AJ_NODE_RANK",
        "AJ_INPUT_DIR",
        "AJ_OUTPUT_DIR",
        "AJ_CHECKPOINT_DIR",
        "AJ_TASK_NAME",
        "AJ_TASK_INDEX",
        "AJ_TASK_REPLICAS",
        "AJ_GPU_NODES",
        "AJ_TOTAL_GPUS",
        "AJ_API_URL",
        "AJ_DEPLOYMENT_ID",
        "AJ_WORKLOAD_TOKEN_FILE",
        "AJ_SETUP",
        "AJ_COMMAND",
        "AJ_SETUP_TIMEOUT",
        "AJ_TERM_GRACE",
        "AJ_BOOTSTRAP_TIMEOUT",
        "AJ_ATTEMPT",
        "AJ_ATTEMPT_TOKEN",
        "AJ_NODE_DIR",
        "AJ_RANK_DIR",
        "AJ_SSH",
    }
)


@dataclass(frozen=True)
class Settings:
    """The environment of this process, as it was at the start."""

    env: Mapping[str, str] = field(default_factory=dict, repr=False)

    def get(self, name: str) -> str | None:
        """Return a variable; empty counts as unset."""
        return self.env.get(name) or None

    def flag(self, name: str) -> bool:
        """Return a yes-or-no variable. Raises ConfigError on any other word."""
        word = (self.get(name) or "").strip().lower()
        if word in TRUE:
            return True
        if not word or word in FALSE:
            return False
        raise ConfigError(f"{name}={self.env[name]!r} is neither yes nor no", hint="write 1 or 0")

    def seconds(self, name: str, default_s: float) -> float:
        """Return a duration variable in seconds. Raises ConfigError on a malformed one."""
        word = self.get(name)
        if word is None:
            return default_s
        try:
            return parse_duration(word)
        except ValueError as error:
            raise ConfigError(f"{name}: {error}", hint=f"`export {name}=30m`, or `unset {name}`") from error

    @property
    def debug(self) -> bool:
        return self.flag("AJ_DEBUG")

    @property
    def log_level(self) -> str:
        """Return how much the daemon's log tells. Raises ConfigError on a word that is no level."""
        return self._one_of("AJ_LOG_LEVEL", LOG_LEVELS) or "info"

    @property
    def credential(self) -> str | None:
        """Return the one source of Azure credentials to use, None for all. Raises ConfigError on another word."""
        return self._one_of("AJ_CREDENTIAL", CREDENTIALS)

    def _one_of(self, name: str, known: tuple[str, ...]) -> str | None:
        word = self.get(name)
        if word is None or word in known:
            return word
        raise ConfigError(f"{name}={word!r} is none of {', '.join(known)}", hint=f"`unset {name}`")

    def unknown(self) -> list[str]:
        """Return `AJ_*` names that mean nothing to this release."""
        return sorted(
            name
            for name in self.env
            if name.startswith("AJ_") and name not in OURS and name not in INJECTED and not name.startswith("AJ_TEST_")
        )


def read(environ: Mapping[str, str] | None = None) -> Settings:
    """Read the environment once."""
    source = os.environ if environ is None else environ
    return Settings(MappingProxyType(dict(source)))
