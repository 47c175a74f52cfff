# The kubeconfig: the address of the API server, and the agent's credentials there.
# SPDX-License-Identifier: LGPL-3.0-only
"""Reading a kubeconfig, with errors that name the file."""

from __future__ import annotations

import copy
import os
import time
from typing import IO, Any
from urllib.parse import urlsplit

import kubernetes.client
import kubernetes.config
import kubernetes.config.kube_config
import yaml
from kubernetes.config.config_exception import ConfigException
from kubernetes.config.exec_provider import ExecProvider
from kubernetes.config.kube_config import KubeConfigLoader, KubeConfigMerger

# Time limit of an exec plugin, for which the agent blocks.
EXEC_S = 20.0

# Exceptions of the kubernetes package for a malformed file.
_FAULTS = (
    ConfigException,
    OSError,
    yaml.YAMLError,
    ValueError,
    TypeError,
    LookupError,
    AttributeError,
    RecursionError,
)


class ConfigError(Exception):
    """The kubeconfig is missing or unusable; the text names the file."""


class InsecureError(ConfigError):
    """The kubeconfig does not authenticate the API server."""


def default() -> str:
    """The kubeconfig used when none is configured: $KUBECONFIG, which may be a list
    of files with colons between them, then the home directory of the user that the
    agent runs as."""
    return os.environ.get("KUBECONFIG") or "~/.kube/config"


class _Merger(KubeConfigMerger):  # type: ignore[misc]
    """Files merged as kubectl merges them: the first one that sets a value wins. The
    kubernetes package takes current-context from the last one."""

    def _load_config_from_file_path(self, paths: list[str]) -> None:
        for path in paths:
            if len(paths) == 1 or os.path.exists(path):
                self.paths.append(path)
                self.load_config(path)
        if not self.paths:
            raise ConfigException("none of these files is there")
        self.config_saved = copy.deepcopy(self.config_files)

    def load_config(self, path: str) -> None:
        first = self.config_merged
        context = first.value.get("current-context") if first else None
        super().load_config(path)
        if context:
            self.config_merged.value["current-context"] = context


# Embedded certificates and keys of the kubeconfig that read() is reading.
_embedded: list[IO[bytes]] = []


def _in_memory(content: str | bytes, *_args: Any, **_options: Any) -> str:
    """Write an embedded certificate or key to memory, for libcurl. The kubernetes
    package would write it to /tmp once, and not notice when /tmp is cleaned."""
    # no "with": read() keeps it open
    file = open(os.memfd_create("kubeconfig"), "wb")  # noqa: SIM115
    _embedded.append(file)
    file.write(content.encode() if isinstance(content, str) else content)
    file.flush()
    return f"/proc/self/fd/{file.fileno()}"


kubernetes.config.kube_config._create_temp_file_with_content = _in_memory


# Errors of exec plugins, which the kubernetes package only logs, and of tokens.
_failed: list[str] = []


def _plugin(config: Any, *args: Any) -> Any:
    """An exec plugin with a time limit, after which its processes are killed."""
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


class _Loader(KubeConfigLoader):  # type: ignore[misc]
    """Takes tokens as kubectl does: without the newline at the end of their file."""

    token: str  # with its scheme; missing without one

    def _load_authentication(self) -> None:
        super()._load_authentication()
        if "token" not in vars(self):
            return
        scheme, _, token = self.token.partition(" ")
        token = token.strip()
        if not (token.isascii() and token.isprintable()):
            # A line break would end the headers of a request.
            _failed.append(
                "the token of the user has a character that no header may have"
            )
            token = ""
        self.token = f"{scheme} {token}" if token else ""


def _proxy(config: Any) -> Any:
    """The proxy-url of the cluster that a kubeconfig selects."""
    context = config["contexts"].get_with_name(config["current-context"])["context"]
    cluster = config["clusters"].get_with_name(context["cluster"])["cluster"]
    return cluster.safe_get("proxy-url")


def _is_address(server: str) -> bool:
    """Whether libcurl takes the address of a server."""
    try:
        port = urlsplit(server if "://" in server else f"http://{server}").port
    except ValueError:
        return False
    return server.isascii() and port != 0


def _load(paths: list[str], configuration: Any) -> Any:
    """Load the merged files into the configuration; returns their content."""
    merged = _Merger(paths)
    loader = _Loader(
        config_dict=merged.config,
        config_base_path=None,
        config_persister=merged.save_changes,
    )
    loader.load_and_set(configuration)
    if _failed:
        raise ConfigException(_failed[-1])
    if not _is_address(configuration.host):
        raise ConfigException(f"server: {configuration.host} is no address in ASCII")
    return merged.config


def files(path: str | None) -> list[str]:
    """The files that read() looks for."""
    paths = [path] if path else [p for p in default().split(os.pathsep) if p]
    return [os.path.expanduser(p) for p in paths]


def read(path: str | None, configuration: Any) -> kubernetes.client.ApiClient:
    """Read a kubeconfig into a kubernetes.client.Configuration.

    Args:
        path: of one file; None for the default, of which files may be missing.
    Returns:
        a client with that configuration. Files of certificates may exist only as long
        as its pool.
    Raises:
        ConfigError: the file cannot be used.
    """
    _failed.clear()
    _embedded.clear()
    paths = files(path)
    path = path or default()
    try:
        config = _load(paths, configuration)
        client = kubernetes.client.ApiClient(configuration)
        client.rest_client.pool_manager.embedded = _embedded[:]
        passed_over = configuration.proxy is None and _proxy(config)
    except _FAULTS as exc:
        known = isinstance(exc, (ConfigException, OSError, yaml.YAMLError))
        text = exc if known else f"not a kubeconfig ({exc})"
        if isinstance(exc, OSError) and exc.strerror:
            text = exc.strerror
        raise ConfigError(f"kubeconfig {path}: {text}") from exc
    finally:
        _embedded.clear()
    if passed_over:
        # Older packages ignore proxy-url and would connect directly.
        raise ConfigError(
            f"kubeconfig {path}: proxy-url needs a newer Python package kubernetes"
            f" than {kubernetes.__version__}"
        )
    return client
