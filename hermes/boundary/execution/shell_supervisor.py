"""Shell scripts that run commands in a container or on another machine, where only a POSIX shell,
`grep` and `sleep` are needed."""

import shlex
from collections.abc import Mapping

from hermes.boundary.execution.handles import CALL_MARK
from hermes.types.errors import ToolFailed

LONGEST_SENT_COMMAND = 131_000
"""Maximum number of bytes of a command. Linux limits each argument of a program to this length."""
SUPERVISOR_NAME = "hermes-supervisor"
_LONGEST_INPUT_LINE = 4000
"""Maximum length of a line of input in bytes. A pipe takes a line of this length completely or not
at all."""

# `collect` sets `others` to two kinds of processes: those that carry the mark, and the descendants
# of the process `$top`. The processes in `own` are left out.
_FIND = r"""
descend() {
  for file in /proc/"$1"/task/*/children; do
    kids=; read -r kids < "$file"
    for kid in $kids; do found="$found $kid"; descend "$kid"; done
  done
}
pids() { for path in "$@"; do path=${path#/proc/}; found="$found ${path%%/*}"; done; }
collect() {
  found=
  [ -n "$top" ] && descend "$top"
  pids $(grep -ls "MARK=$mark" /proc/[0-9]*/environ)
  [ "$strays" = 1 ] && strangers
  others=
  for one in $found; do
    case " $own $ended $others " in *" $one "*) ;; *) kill -0 "$one" && others="$others $one";; esac
  done
  [ -n "$others" ]
}
strangers() {
  marked=$found; found=
  pids $(grep -Ls "MARK=" /proc/[0-9]*/environ)
  unmarked=$found; found=$marked
  for one in $unmarked; do
    parent=
    while read -r key value; do
      [ "$key" = PPid: ] && { parent=$value; break; }
    done < "/proc/$one/status"
    [ "$parent" = 1 ] && found="$found $one"
  done
}
finish() {
  while collect; do
    for one in $others; do kill -STOP "$one"; done
    for one in $others; do
      kill -KILL "$one" && left=$((left + 1))
      ended="$ended $one"
    done
  done
}
self() { read -r me rest < /proc/self/stat; }
""".replace("MARK", CALL_MARK)

SUPERVISOR = (
    r"""
exec 3>&2 2>/dev/null
# This trap does nothing when the signal PIPE arrives. If this script ignored the signal instead,
# the command would inherit that and ignore the signal too.
trap : PIPE
"""
    + _FIND
    + r"""
mark=$1 kind=$2 strays=$3 ended= left=0 top=$$ text=
[ "$kind" = background ] && exec 3>/dev/null
tell() { echo "hermes-$mark $*" >&3; }
while IFS= read -r line; do
  case $line in
    +*) text="$text${line#+}
";;
    *) break;;
  esac
done
[ "$line" = begin ] || exit 0
eval "$text"
cd "$hermes_folder" || { tell "failed the folder $hermes_folder can't be opened"; exit 0; }
[ "$strays" = 1 ] && echo x > /dev/shm/.hermes-used
shell=$(command -v bash) || shell=sh
follow() {
  trap : PIPE
  self; watcher=$me
  echo "$watcher"
  read -r line && [ "$line" = go ] || return
  # The process that executes `run` must not count as a process of the command. This loop waits
  # until that process exists.
  set --
  while [ $# -lt 2 ] && [ -e /proc/$$ ]; do
    children=; read -r children < "/proc/$$/task/$$/children"
    set -- $children
  done
  own="$$ $watcher $children"
  echo go
  while IFS= read -r line; do
    case $line in
      w*) printf '%b' "${line#w}";;
      term) collect; for one in $others; do kill -TERM "$one"; done;;
      *) break;;
    esac
  done
  finish
  for one in $own; do kill -CONT "$one"; done
}
run() {
  trap : PIPE
  read -r watcher
  self; own="$$ $watcher $me"
  tell ready
  read -r line && [ "$line" = go ] || exit 0
  tell begun
  if [ "$kind" = background ]; then
    (exec 2>&1 3>&-; exec "$shell" -c "$hermes_command")
    code=$?
    while collect; do sleep 0.2; done
  else
    (exec 2>&1 3>&- </dev/null; exec "$shell" -c "$hermes_command")
    code=$?
    collect && sleep 0.3
  fi
  finish
  tell "ended $code $left"
  kill -KILL "$watcher"
  exit "$code"
}
follow | run
"""
)
"""Runs one command. The script has three arguments: the mark, which is a text in the environment by
which the processes of the command are found; `foreground` or `background`; and 1 if the script also
ends processes that carry no mark and have lost their parent.

The script reads its orders from stdin: lines of shell code that begin with `+` and set the
variables `hermes_folder` and `hermes_command` and the environment, then `begin`, then `go`. The
command begins only after `go`. A line `w…` is input for a background command, and `term` sends
SIGTERM. Any other line, or the end of the input, ends everything that the command has started. So a
command never outlives the program that started this script. The script writes the output of the
command to stdout, and `ready`, `begun`, `failed <reason>` or `ended <code> <number killed>` to
stderr.
"""

TERMINATION = (
    "exec 2>/dev/null\n"
    + _FIND
    + r"""
mark=$1 strays=$2 ended= left=0 top= own=
shelter() {
  found=; pids $(grep -ls "NAME" /proc/[0-9]*/cmdline); own=$found
}
self
shelter
finish
# From here on, the supervisor has a second to report the end of the command and to exit. A
# supervisor that still runs after this second is killed.
own=$me
for pause in 0.1 0.2 0.3 0.4; do collect || break; sleep "$pause"; done
finish
echo "$left"
""".replace("NAME", SUPERVISOR_NAME)
)
"""Ends all processes with a mark, and prints the number of killed processes. The first argument is
the mark. The second argument is 1 if the script also ends processes that carry no mark and have
lost their parent, and otherwise 0."""


def orders(command: str, folder: str, environment: Mapping[str, str]) -> bytes:
    """Returns the lines that tell a supervisor about a command, up to the line `begin`. Raises
    ToolFailed if the command can't be passed on."""
    if "\0" in command + folder:
        raise ToolFailed("A command can't contain a NUL character.")
    if len(command.encode(errors="surrogateescape")) > LONGEST_SENT_COMMAND:
        raise ToolFailed(
            f"The command is longer than {LONGEST_SENT_COMMAND} bytes: write it to a file, and run"
            " the file."
        )
    code = [f"export {name}={shlex.quote(value)}" for name, value in environment.items()]
    code.append(f"hermes_folder={shlex.quote(folder)}")
    code.append(f"hermes_command={shlex.quote(command)}")
    lines = [f"+{line}\n" for line in "\n".join(code).split("\n")]
    return "".join([*lines, "begin\n"]).encode(errors="surrogateescape")


def input_lines(data: bytes) -> list[bytes]:
    """Returns the lines with which this input is sent to the supervisor of a background command.
    The supervisor passes the input on to the command."""
    lines, line = [], b""
    for byte in data:
        plain = 32 <= byte < 127 and byte != ord("\\")
        line += bytes([byte]) if plain else b"\\0%03o" % byte
        if len(line) > _LONGEST_INPUT_LINE - 8:
            lines.append(b"w" + line + b"\n")
            line = b""
    return [*lines, b"w" + line + b"\n"] if line else lines
