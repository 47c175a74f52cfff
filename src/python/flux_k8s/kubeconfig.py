# The kubeconfig: which API server, and who the agent is there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reading a kubeconfig, with errors that name the file."""

from __future__ import annotations

import os
import pathlib
from typing import Any

import kubernetes.client
import kubernetes.config
import yaml
from kubernetes.config.config_exception import ConfigException

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
    try:
        kubernetes.config.load_kube_config(
            config_file=path, client_configuration=configuration
        )
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
