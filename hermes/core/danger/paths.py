"""Classifies the files and folders that a command names."""

import re
from typing import Literal

from hermes.core.danger.holes import HOLES, PLAIN_NAME, is_known, is_open
from hermes.core.danger.scope import HOME
from hermes.text.secret_files import is_secret_file

PathClass = (
    Literal["root", "home", "system_folder", "system", "device", "startup", "secret", "temporary"]
    | Literal["workspace", "outside", "unknown", "harmless_device", "network"]
)
"""`root`, `home` and `system_folder` are whole folders, and `system` is a file in a system folder.
`device` is a disk or other block device. `network` is a path such as `/dev/tcp/host/80`, which
opens a connection. `startup` is a file whose code runs later, for example at the next login.
`secret` is a file of keys or passwords. `temporary` is a path in a folder such as `/tmp`. `outside`
is any other file outside of the workspace. A path that begins with unknown text is `unknown`."""

MAX_PATH = 4096
"""Length of the longest path that Linux accepts, in characters."""

_SYSTEM = (
    "bin|boot|dev|etc|lib|lib32|lib64|opt|proc|root|run|sbin|srv|sys|usr|var|System|Library"
    "|Applications|private|home|Users|snap"
)
_SYSTEM_FOLDER = re.compile(
    rf"/(?!opt\b|srv\b)(?:{_SYSTEM})(?:/(?:\*|\.\*|\{{.*\}})?)?"
    r"|/(?:usr|var|private)/(?:bin|etc|lib|lib64|local|sbin|share|var)/?\*?"
)
_SYSTEM_FILE = re.compile(rf"/(?:{_SYSTEM})(?:/.*)?")
_ROOT = re.compile(r"/[*?./]*")
_HOME = re.compile(rf"(?:{HOME}[\w.-]*|/home/[^/]+|/Users/[^/]+|/root)(?:/(?:\*|\.\*|\{{.*\}})?)?")
_IN_HOME = re.compile(rf"(?:{HOME}[^/]*|/home/[^/]+|/Users/[^/]+|/root)/(.+)")
_TEMPORARY = re.compile(r"(?:/private)?(?:/tmp|/var/tmp|/dev/shm|/var/folders)(?:/.*)?")
_OWN_TEMPORARY = re.compile(
    r"(?:/private)?(?:/tmp|/var/tmp|/dev/shm)/[^/*?[]*[^/*?[.][^/*?[]*(?:/.*)?"
)
_GENERATED = re.compile(
    r"node_modules|bower_components|__pycache__|package-lock\.json|yarn\.lock|build|dist|target|out|coverage|htmlcov|site|_build"
    r"|\.(?:pytest|mypy|ruff)_cache|\.(?:tox|nox|eggs|cache|gradle|next|nuxt|turbo|parcel-cache"
    r"|svelte-kit|nyc_output|hypothesis|ipynb_checkpoints|venv|terraform|DS_Store)|venv"
    r"|cmake-build-\w+|DerivedData|\*?[\w-]*\.(?:egg-info|dist-info|pyc|pyo|o|class)"
)
_BLOCK_DEVICE = re.compile(
    r"/dev/(?:sd|hd|vd|xvd|nvme|mmcblk|md|dm-|loop|disk|mapper/|r?disk|zd|nbd|bcache|ram|sr|mtd"
    r"|block/|mem$|kmem$|port$)\S*"
)
_HARMLESS_DEVICE = re.compile(
    r"/dev/(?:null|zero|full|stdin|stdout|stderr|tty\w*|random|urandom|ptmx)|/dev/(?:fd|pts)/.*"
    r"|/proc/self/fd/\d+"
)
_NETWORK = re.compile(r"/dev/(?:tcp|udp)/.*")
_STARTUP = re.compile(
    r"(?:.*/)?(?:\.(?:bashrc|bash_profile|bash_login|bash_logout|bash_aliases|profile|zshrc|zshenv"
    r"|zprofile|zlogin|zlogout|kshrc|cshrc|tcshrc|login|xinitrc|xprofile|xsession|inputrc"
    r"|pam_environment|gitconfig|vimrc|exrc|emacs|gdbinit|curlrc|wgetrc|pythonrc|Rprofile|irbrc"
    r"|tmux\.conf|screenrc|npmrc|envrc|pypirc|pythonstartup)"
    r"|\.ssh/(?:authorized_keys2?|config|rc|environment)|\.git/(?:hooks(?:/.*)?|config)"
    r"|\.config/(?:autostart|systemd|fish|environment\.d|git|nvim|pip)(?:/.*)?"
    r"|\.local/share/(?:systemd|applications)(?:/.*)?|Library/LaunchAgents(?:/.*)?"
    r"|\.cargo/config(?:\.toml)?|\.gnupg/.*|\.oh-my-zsh/.*|\.vim/.*|\.bashrc\.d/.*|\.husky/.*)"
)
_STRONG_SECRET = re.compile(
    r"(?:.*/)?(?:\.ssh(?:/\*?)?|\.ssh/(?!config$|known_hosts|authorized_keys$|.*\.pub$).+"
    r"|\.aws(?:/(?:credentials|\*)?)?|\.netrc|_netrc|\.pgpass|\.my\.cnf|\.git-credentials|\.vault-token"
    r"|\.gnupg(?:/.*)?|\.kube(?:/config)?|\.docker/config\.json|\.config/gcloud(?:/.*)?|\.azure(?:/.*)?"
    r"|\.config/gh/hosts\.yml|\.password-store(?:/.*)?|\.local/share/keyrings(?:/.*)?"
    r"|\.mozilla(?:/.*)?|\.config/(?:google-chrome|chromium)(?:/.*)?|Library/Keychains(?:/.*)?"
    r"|id_(?:rsa|dsa|ecdsa|ed25519)(?:_sk)?|\.(?:bash|zsh|psql|mysql|python)_history"
    r"|\.hermes/(?:\.env|auth\.json|api_server\.key))"
    r"|/etc/(?:g?shadow-?|sudoers|sudoers\.d/.*|ssl/private/.*|ssh/ssh_host_\w+_key|krb5\.keytab)"
    r"|/proc/(?:self|\d+|\*|[^/]+)/(?:environ|mem)|/proc/kcore|/dev/k?mem|/var/run/secrets/.*|/run/secrets/.*"
)

_PRIVATE = re.compile(r"/etc/(?:passwd|group)$|/var/(?:log|lib|mail|spool|backups)/|/root/")
"""Files that a program may read, but whose content should not leave the machine."""


_FOLDERS: tuple[tuple[re.Pattern[str], PathClass], ...] = (
    (_ROOT, "root"),
    (_HOME, "home"),
    (_SYSTEM_FOLDER, "system_folder"),
    (_STRONG_SECRET, "secret"),
)


def classify(path: str) -> PathClass:
    """Returns the class of a path, which is absolute or relative to the workspace."""
    if not path:
        return "workspace"
    if len(path) > MAX_PATH:
        return "unknown"
    if is_open(path[0]):
        return "unknown"
    if path.startswith(("/", HOME)):
        return _absolute(path)
    if _STARTUP.fullmatch(path) and not path.startswith((".envrc", ".npmrc", ".vimrc")):
        return "startup"
    if path == ".." or path.startswith("../"):
        return "outside"
    if is_secret_file(path):
        return "secret"
    return "workspace"


def _absolute(path: str) -> PathClass:
    if _TEMPORARY.fullmatch(path):
        return "temporary"
    if path.startswith(("/dev/", "/proc/self/fd")):
        return _device(path)
    for pattern, kind in _FOLDERS:
        if pattern.fullmatch(path):
            return kind
    if found := _IN_HOME.fullmatch(path):
        inside = found[1]
        if _STARTUP.fullmatch(inside):
            return "startup"
        return "secret" if is_secret_file(inside) else "outside"
    anywhere = path[0] == "/" and is_open(path[1:2])
    return "system" if anywhere or _SYSTEM_FILE.fullmatch(path) else "outside"


def _device(path: str) -> PathClass:
    if _HARMLESS_DEVICE.fullmatch(path):
        return "harmless_device"
    if _NETWORK.fullmatch(path):
        return "network"
    if _BLOCK_DEVICE.fullmatch(path):
        return "device"
    return "system"


def is_generated(path: str) -> bool:
    """Returns whether nothing is lost if the path is deleted. This is so if a build or a package
    manager creates the path again, or if it is inside a folder for temporary files."""
    if not is_certain(path) or ".." in path.split("/"):
        return False
    match classify(path):
        case "workspace":
            return any(map(_GENERATED.fullmatch, path.split("/")))
        case "temporary":
            return _OWN_TEMPORARY.fullmatch(path) is not None
        case _:
            return False


def holds_secret(path: str) -> bool:
    """Returns whether the path is a file or folder of keys or passwords."""
    if len(path) > MAX_PATH:
        return False
    return _STRONG_SECRET.fullmatch(path.rstrip("/") if len(path) > 1 else path) is not None


def may_hold_secret(path: str) -> bool:
    """Returns whether the content of the path may be secret, so that it is dangerous to send it to
    the network."""
    return (
        holds_secret(path)
        or is_secret_file(path)
        or classify(path) in ("root", "home")
        or _PRIVATE.match(path) is not None
    )


def is_certain(path: str) -> bool:
    """Returns whether the class of the path is certain. This is the case if all unknown parts of
    the path are plain names, because a plain name does not change the class."""
    return is_known(path) or not (HOLES - {PLAIN_NAME}) & set(path)


def matches_several(path: str) -> bool:
    """Returns whether the last part of the path is a pattern such as `*`, which matches all
    names."""
    return re.fullmatch(r"[*?.]*\*[*?.]*", path.rstrip("/").rpartition("/")[2]) is not None
