"""Advice for machines whose settings forbid user namespaces, which bubblewrap needs."""

from __future__ import annotations

from pathlib import Path

SETTINGS = Path("/proc/sys")
_ENOUGH = 15000
_APPARMOR = (
    "AppArmor forbids user namespaces (kernel.apparmor_restrict_unprivileged_userns is 1). Allow them to bubblewrap: "
    "printf 'abi <abi/4.0>,\\ninclude <tunables/global>\\nprofile bwrap {program} flags=(unconfined) {{\\n  userns,\\n}}\\n'"
    " | sudo tee /etc/apparmor.d/bwrap && sudo systemctl reload apparmor"
)
_RESTRICTIONS = (
    ("kernel/apparmor_restrict_unprivileged_userns", 1, _APPARMOR),
    (
        "user/max_user_namespaces",
        0,
        "this machine allows no user namespaces (user.max_user_namespaces is 0). "
        f"Allow some: sudo sysctl -w user.max_user_namespaces={_ENOUGH}",
    ),
    (
        "kernel/unprivileged_userns_clone",
        0,
        "only root may make user namespaces (kernel.unprivileged_userns_clone is 0). "
        "Allow them: sudo sysctl -w kernel.unprivileged_userns_clone=1",
    ),
)
_UNKNOWN = "let {program} make user namespaces; in a container its seccomp or AppArmor profile may forbid them"


def advice(program: Path, settings: Path = SETTINGS) -> str:
    """Return the advice for a bubblewrap that is installed and makes no sandbox.

    Args:
        settings: the directory with the kernel's settings.
    """
    for name, forbids, words in _RESTRICTIONS:
        try:
            value = int((settings / name).read_text())
        except (OSError, ValueError):  # this kernel has no such setting
            continue
        if value == forbids:
            return words.format(program=program)
    return _UNKNOWN.format(program=program)
