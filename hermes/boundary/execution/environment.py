"""The environment variables that commands see."""

from collections.abc import Iterable, Mapping

VISIBLE_VARIABLES = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def child_environment(
    environ: Mapping[str, str], passthrough: Iterable[str] = ()
) -> dict[str, str]:
    """The variables with harmless names and those that the operator names, and no others."""
    allowed = VISIBLE_VARIABLES.union(passthrough)
    chosen = {
        name: value for name, value in environ.items() if name in allowed or name.startswith("LC_")
    }
    return {"PATH": DEFAULT_PATH, **chosen}
