"""Names of the caller's variables that other processes get. Imports nothing, since workers are
started before anything else is loaded.
"""

from __future__ import annotations

from collections.abc import Mapping

CARRIED = (
    *(
        "PATH",
        "HOME",
        "USER",
        "LOGNAME",
        "SHELL",
        "TMPDIR",
        "TERM",
        "TZ",
        "LANG",
        "LANGUAGE",
        "LC_ALL",
        "LC_CTYPE",
        "VIRTUAL_ENV",
        "CONDA_PREFIX",
    ),
    *("XDG_CONFIG_HOME", "XDG_CACHE_HOME", "XDG_DATA_HOME", "XDG_STATE_HOME", "XDG_RUNTIME_DIR"),
    *("SSL_CERT_FILE", "SSL_CERT_DIR", "REQUESTS_CA_BUNDLE", "NODE_EXTRA_CA_CERTS"),
    *("ANTHROPIC_BASE_URL", "OPENAI_BASE_URL"),
    *(
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "ALL_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "all_proxy",
    ),
)
"""Variables that every child process may see; none of them is a credential."""

KEY_VARIABLES = ("ANTHROPIC_API_KEY", "OPENAI_API_KEY")
"""Credentials that are secrets of the same name without being configured."""

KEYRING = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "PYTHON_KEYRING_BACKEND")
"""Further variables for access to the caller's keyring; passed on only if a secret comes from
there.
"""

INTERPRETER = (
    "PYTHONPATH",
    "PYTHONHOME",
    "PYTHONDONTWRITEBYTECODE",
    "PYTHONWARNINGS",
    "PYTHONUTF8",
    "LD_LIBRARY_PATH",
)
"""Variables of a Python interpreter that runs our own code."""


OBSERVERS_PREFIX = "OTEL_"
"""Begins the names of OpenTelemetry's variables. They reach the worker, and no other process."""


def observed_variables(environment: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a caller that ask for observers."""
    return {name: value for name, value in environment.items() if name.startswith(OBSERVERS_PREFIX)}


def select(environment: Mapping[str, str], wanted: tuple[str, ...]) -> dict[str, str]:
    return {name: environment[name] for name in wanted if name in environment}
