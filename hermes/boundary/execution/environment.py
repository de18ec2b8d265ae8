"""Chooses the environment variables of commands."""

from collections.abc import Iterable, Mapping

VISIBLE_VARIABLES = frozenset(
    {"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"}
)
DEFAULT_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def child_environment(
    environ: Mapping[str, str], passthrough: Iterable[str] = ()
) -> dict[str, str]:
    """Returns the variables that every command may see, such as PATH, and the variables that
    `passthrough` lists."""
    allowed = VISIBLE_VARIABLES.union(passthrough)
    chosen = {
        name: value for name, value in environ.items() if name in allowed or name.startswith("LC_")
    }
    return {"PATH": DEFAULT_PATH, **chosen}
