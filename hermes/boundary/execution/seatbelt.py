"""Writes the profile with which macOS restricts a command (Seatbelt)."""

from collections.abc import Iterator, Sequence

SEATBELT = "/usr/bin/sandbox-exec"
_READABLE = (
    *("/usr", "/bin", "/sbin", "/opt", "/System", "/Library", "/private/etc", "/private/var/db"),
    *("/Applications/Xcode.app", "/dev"),
)
_DEVICES = ("/dev/null", "/dev/zero", "/dev/random", "/dev/urandom", "/dev/stdout", "/dev/stderr")
_ALWAYS = """\
(version 1)
(deny default)
(allow process-fork)
(allow process-exec)
(allow signal (target same-sandbox))
(allow sysctl-read)
(allow mach-lookup (global-name "com.apple.system.opendirectoryd.libinfo"))
(allow file-read-metadata)
(allow file-ioctl (literal "/dev/null"))"""


def seatbelt_profile(
    *,
    readable: Sequence[str],
    writable: Sequence[str],
    hidden: Sequence[str],
    private: Sequence[str],
) -> str:
    """Returns a profile. With this profile, a command can read the files of the system and the
    `readable` folders, can write to the `writable` folders, and has no network. It can't use the
    `hidden` folders. A `private` folder inside a hidden folder is an exception: the command can
    write to it."""
    return "\n".join((_ALWAYS, *_rules(readable, writable, hidden), *_writing(private)))


def seatbelt_arguments(profile: str, command: Sequence[str]) -> tuple[str, ...]:
    """Returns the command line that runs the command with the profile."""
    return (SEATBELT, "-p", profile, *command)


def _rules(
    readable: Sequence[str], writable: Sequence[str], hidden: Sequence[str]
) -> Iterator[str]:
    for path in (*_READABLE, *readable):
        yield f"(allow file-read* (subpath {_quoted(path)}))"
    yield from _writing(writable)
    for device in _DEVICES:
        yield f"(allow file-write-data (literal {_quoted(device)}))"
    # Seatbelt applies the last rule that matches a path, so the rules that deny access come last.
    for path in hidden:
        yield f"(deny file* (subpath {_quoted(path)}))"


def _writing(paths: Sequence[str]) -> Iterator[str]:
    for path in paths:
        yield f"(allow file-read* file-write* (subpath {_quoted(path)}))"


def _quoted(path: str) -> str:
    escaped = path.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
