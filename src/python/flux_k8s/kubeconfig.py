# The kubeconfig: which API server, and who the agent is there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reading a kubeconfig, with errors that name the file."""

from __future__ import annotations

import os
import pathlib
import time
from typing import Any

import kubernetes.client
import kubernetes.config
import kubernetes.config.kube_config
import yaml
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.exec_provider import ExecProvider

# An exec plugin that has not answered after so long is killed: the agent waits for it.
EXEC_S = 20.0

# What the kubernetes package raises for a file that is not what it should be.
_FAULTS = (
    ConfigException,
    OSError,
    yaml.YAMLError,
    ValueError,
    TypeError,
    KeyError,
    AttributeError,
)


class ConfigError(Exception):
    """There is no usable kubeconfig; the text names the file."""


class InsecureError(ConfigError):
    """The kubeconfig would have the agent trust anybody."""


def default() -> str:
    """The kubeconfig used when none is configured: $KUBECONFIG, then the
    home directory of the user that the agent runs as."""
    return os.environ.get("KUBECONFIG") or os.path.expanduser("~/.kube/config")


# What an exec plugin has failed with: the kubernetes package only logs that.
_failed: list[str] = []


def _plugin(config: Any, *args: Any) -> Any:
    """An exec plugin that has to answer in time, all its processes with it."""
    provider = ExecProvider(config, *args)
    command = provider.args[0]
    provider.args = ["timeout", "--signal=KILL", str(EXEC_S), *provider.args]
    run = provider.run

    def run_in_time(*args: Any) -> Any:
        began = time.monotonic()
        try:
            return run(*args)
        except (ConfigException, OSError, ValueError) as exc:
            late = time.monotonic() - began >= EXEC_S
            text = f"exec: {command}: no answer within {EXEC_S:g} s" if late else exc
            _failed.append(str(text))
            raise ConfigException(str(text)) from exc

    provider.run = run_in_time
    return provider


kubernetes.config.kube_config.ExecProvider = _plugin


def _proxy(path: str) -> Any:
    """The proxy-url of the cluster that a kubeconfig selects."""
    config = yaml.safe_load(pathlib.Path(path).read_text(encoding="utf8"))
    contexts = {item["name"]: item["context"] for item in config["contexts"]}
    clusters = {item["name"]: item["cluster"] for item in config["clusters"]}
    return clusters[contexts[config["current-context"]]["cluster"]].get("proxy-url")


def read(path: str, configuration: Any) -> kubernetes.client.ApiClient:
    """Read a kubeconfig into a kubernetes.client.Configuration.

    Returns:
        a client that has it.
    Raises:
        ConfigError: the file cannot be used.
    """
    _failed.clear()
    try:
        kubernetes.config.load_kube_config(
            config_file=path, client_configuration=configuration
        )
        if _failed:
            raise ConfigException(_failed[-1])
        client = kubernetes.client.ApiClient(configuration)
        passed_over = configuration.proxy is None and _proxy(path)
    except _FAULTS as exc:
        known = isinstance(exc, (ConfigException, OSError, yaml.YAMLError))
        text = exc if known else f"not a kubeconfig ({exc})"
        raise ConfigError(f"kubeconfig {path}: {text}") from exc
    if passed_over:
        # Older packages would go to the server by themselves.
        raise ConfigError(
            f"kubeconfig {path}: proxy-url needs a newer Python package kubernetes"
            f" than {kubernetes.__version__}"
        )
    return client
