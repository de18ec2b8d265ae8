"""What a command may know of our environment."""

from collections.abc import Iterable, Mapping

NAMES = frozenset({"HOME", "LANG", "LOGNAME", "PATH", "SHELL", "TERM", "TMPDIR", "TZ", "USER"})
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


def child_environment(
    environ: Mapping[str, str], passthrough: Iterable[str] = ()
) -> dict[str, str]:
    """The variables with harmless names and those the operator names, never any other."""
    allowed = NAMES.union(passthrough)
    chosen = {
        name: value for name, value in environ.items() if name in allowed or name.startswith("LC_")
    }
    return {"PATH": PATH, **chosen}
