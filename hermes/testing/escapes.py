"""Attempts to escape from a sandbox, as a script that runs inside it.

Each attempt is harmless if it succeeds: it opens files without writing to them, sets values to
their present values, or uses files and processes that the test has planted. The script needs only
the standard library. Its first argument is JSON that describes the planted things (see `Planted`).
Further arguments are the names of the attempts to make. The script prints the names of the attempts
that succeeded.
"""

import ctypes
import fcntl
import glob
import json
import os
import resource
import signal
import socket
import stat
import struct
import sys
import time
from collections.abc import Callable
from typing import TypedDict

SECONDS = 10
"""An attempt that takes longer than this number of seconds counts as failed."""


class Planted(TypedDict):
    """Things that the test has planted outside of the sandbox. The attempts try to reach them."""

    secret: str
    """The path of a secret file, which only its owner can read."""
    home: str
    """The path of the agent's home, which has a file `.env` with keys."""
    other: str
    """The path of a file in the workspace of another session."""
    pid: int
    """The id of a process that runs on the host, outside of the sandbox."""
    port: int
    """The port of a server of the host, which stands in for the gateway's API. The server listens
    on all addresses."""
    address: str
    """An address of the host that is not a loopback address; empty if the host has none."""
    socket: str
    """The path of a Unix socket on which the host listens."""
    abstract: str
    """The name of an abstract Unix socket on which the host listens."""
    shared_key: int
    """The key of a segment of shared memory of the host."""
    shared_file: str
    """The path of a file in /dev/shm of the host."""
    user_home: str
    """The path of a folder that stands in for the user's home directory. The folder contains a
    file, because listing an empty folder does not count as a success."""
    device: list[int]
    """The device number and inode of the host's /dev/null."""


Attempt = Callable[[Planted], bool]
ESCAPES: dict[str, Attempt] = {}
"""All attempts by name. An attempt has succeeded if it returns True. An OSError means failure."""
_libc = ctypes.CDLL(None, use_errno=True)


def attempt(function: Attempt) -> Attempt:
    """Registers an attempt."""
    ESCAPES[function.__name__.strip("_")] = function
    return function


def call(number: int, *arguments: object) -> bool:
    """Makes a system call. Returns whether it has succeeded."""
    done: int = _libc.syscall(number, *arguments)
    return done >= 0


def reads(path: str) -> bool:
    with open(path, "rb") as file:  # noqa: PTH123
        return bool(file.read(1))


def opens(path: str, flags: int = os.O_WRONLY) -> bool:
    os.close(os.open(path, flags))
    return True


def lists(path: str) -> bool:
    return bool(os.listdir(path))  # noqa: PTH208


def creates(family: int, kind: int, protocol: int) -> bool:
    socket.socket(family, kind, protocol).close()
    return True


def connects(family: int, address: object) -> bool:
    with socket.socket(family) as one:
        one.settimeout(2)
        one.connect(address)  # type: ignore[arg-type]  # the type depends on the family
        return True


for _name, _path in {
    "read_a_secret_file": "{secret}",
    "read_the_keys_of_the_agent": "{home}/.env",
    "read_a_file_of_another_session": "{other}",
    "read_through_the_root_of_init": "/proc/1/root{secret}",
    "read_through_the_root_of_a_process": "/proc/{pid}/root{secret}",
    "read_through_its_own_root": "/proc/self/root{secret}",
    "read_through_dots": "../../../../../../../../..{secret}",
    "read_the_environment_of_a_process": "/proc/{pid}/environ",
    "read_the_command_line_of_a_process": "/proc/{pid}/cmdline",
    "read_the_memory_map_of_a_process": "/proc/{pid}/maps",
    "read_password_hashes": "/etc/shadow",
    "read_group_passwords": "/etc/gshadow",
    "read_kernel_memory": "/proc/kcore",
    "read_physical_memory": "/dev/mem",
    "read_the_kernel_log": "/dev/kmsg",
    "read_shared_memory_of_the_host": "{shared_file}",
}.items():
    ESCAPES[_name] = lambda planted, path=_path: reads(path.format(**planted))  # type: ignore[misc]
for _name, _path in {
    "list_the_home_of_the_agent": "{home}",
    "list_the_home_of_the_user": "{user_home}",
    "list_the_folder_of_a_process": "/proc/{pid}/cwd/",
    "list_the_descriptors_of_a_process": "/proc/{pid}/fd",
    "list_the_folder_of_services": "/run",
    "list_the_logs_of_the_host": "/var/log",
    "list_the_devices_of_the_host": "/sys/devices",
}.items():
    ESCAPES[_name] = lambda planted, path=_path: lists(path.format(**planted))  # type: ignore[misc]
for _name, _path in {
    "write_a_file_of_the_host": "{secret}",
    "write_a_file_of_another_session": "{other}",
    "write_the_users_of_the_system": "/etc/passwd",
    "write_a_program_of_the_system": "/bin/sh",
    "write_the_memory_of_a_process": "/proc/{pid}/mem",
    "write_the_oom_score_of_a_process": "/proc/{pid}/oom_score_adj",
    "write_the_core_pattern": "/proc/sys/kernel/core_pattern",
    "write_the_program_for_modules": "/proc/sys/kernel/modprobe",
    "write_the_sysrq_trigger": "/proc/sysrq-trigger",
    "write_the_release_agent": "/sys/fs/cgroup/release_agent",
    "write_the_uevent_helper": "/sys/kernel/uevent_helper",
}.items():
    ESCAPES[_name] = lambda planted, path=_path: opens(path.format(**planted))  # type: ignore[misc]
for _name, (_number, *_arguments) in {
    "mount_a_file_system": (165, b"none", b".", b"tmpfs", 0, None),
    "make_a_user_namespace": (272, 0x10000000),
    "make_a_mount_namespace": (272, 0x00020000),
    "clone_into_a_user_namespace": (56, 0x10000000 | signal.SIGCHLD, None, None, None, None),
    "change_the_root": (161, b"."),
    "swap_the_root": (155, b".", b"."),
    "create_a_bpf_map": (321, 0, struct.pack("IIII", 2, 4, 4, 1), 16),
    "watch_the_kernel": (298, struct.pack("IIQQ", 1, 112, 0, 0) + bytes(96), -1, 0, -1, 0),
    "use_the_keys_of_the_user": (250, 0, -5, 0),
    "use_io_uring": (425, 1, bytes(120)),
    "handle_page_faults": (323, 0),
    "read_the_kernel_ring": (103, 3, ctypes.create_string_buffer(100), 100),
    "load_a_module": (313, -1, b"", 0),
    "open_a_tree_of_mounts": (428, -100, b"/", 1),
    "open_a_file_system": (430, b"tmpfs", 0),
    "mount_the_root_of_the_host": (165, b"/", b".", None, 0x1000, None),
    "become_another_user": (117, 1, 1, 1),
    "clone_anew_into_a_user_namespace": (435, struct.pack("11Q", 0x10000000, *[0] * 10), 88),
}.items():
    ESCAPES[_name] = lambda planted, made=(_number, *_arguments): call(*made)  # type: ignore[misc]

for _name, (_family, _kind, _protocol) in {
    "read_packets": (socket.AF_PACKET, socket.SOCK_RAW, 0x0300),
    "send_raw_packets": (socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP),
    "talk_to_the_hypervisor": (socket.AF_VSOCK, socket.SOCK_STREAM, 0),
    "use_the_crypto_interface": (socket.AF_ALG, socket.SOCK_SEQPACKET, 0),
}.items():
    ESCAPES[_name] = lambda planted, made=(_family, _kind, _protocol): creates(*made)  # type: ignore[misc]
for _name, (_family, _host) in {
    "call_the_api_of_the_gateway": (socket.AF_INET, "127.0.0.1"),
    "call_the_api_at_another_address": (socket.AF_INET, "{address}"),
    "call_the_api_over_ipv6": (socket.AF_INET6, "::ffff:127.0.0.1"),
}.items():
    ESCAPES[_name] = lambda planted, family=_family, host=_host: connects(  # type: ignore[misc]
        family, (host.format(**planted), planted["port"])
    )
for _name, _path in {
    "connect_to_a_service": "{socket}",
    "connect_to_docker": "/var/run/docker.sock",
    "connect_to_podman": "/run/podman/podman.sock",
    "connect_to_the_system_bus": "/run/dbus/system_bus_socket",
    "connect_to_an_abstract_socket": "\0{abstract}",
}.items():
    ESCAPES[_name] = lambda planted, path=_path: connects(  # type: ignore[misc]
        socket.AF_UNIX, path.format(**planted)
    )


_ACTIONS: dict[str, Callable[[Planted], None]] = {
    "rename_a_file_in": lambda planted: os.rename(planted["other"], "renamed-in"),  # noqa: PTH104
    "delete_a_file": lambda planted: os.unlink(planted["other"]),  # noqa: PTH108
    "change_permissions": lambda planted: os.chmod(planted["secret"], 0o600),  # noqa: PTH101
    "change_times": lambda planted: os.utime(planted["secret"]),
    "change_attributes": lambda planted: os.setxattr(planted["secret"], "user.escape", b"1"),
    "set_the_clock": lambda _: time.clock_settime(time.CLOCK_REALTIME, time.time()),
    "raise_own_limits": lambda _: resource.setrlimit(resource.RLIMIT_FSIZE, (-1, -1)),
    "signal_a_process": lambda planted: os.kill(planted["pid"], 0),
}
for _name, _action in _ACTIONS.items():
    ESCAPES[_name] = lambda planted, act=_action: act(planted) is None  # type: ignore[misc]


@attempt
def follow_a_link_out(planted: Planted) -> bool:
    os.symlink(planted["secret"], "link-out")  # noqa: PTH211
    return reads("link-out")


@attempt
def link_a_file_in(planted: Planted) -> bool:
    os.link(planted["secret"], "linked-in")
    return reads("linked-in")


@attempt
def create_a_file_of_the_system(planted: Planted) -> bool:
    path = f"/usr/local/hermes-escape-{os.getpid()}"
    opens(path, os.O_WRONLY | os.O_CREAT)
    os.unlink(path)  # noqa: PTH108
    return True


@attempt
def truncate_a_file(planted: Planted) -> bool:
    os.truncate(planted["secret"], os.stat(planted["secret"]).st_size)  # noqa: PTH116
    return True


@attempt
def change_permissions_of_the_system(planted: Planted) -> bool:
    os.chmod("/bin/sh", stat.S_IMODE(os.stat("/bin/sh").st_mode))  # noqa: PTH101, PTH116
    return True


@attempt
def change_permissions_by_descriptor(planted: Planted) -> bool:
    with open("/bin/sh", "rb") as file:  # noqa: PTH123
        os.fchmod(file.fileno(), stat.S_IMODE(os.fstat(file.fileno()).st_mode))
    return True


@attempt
def change_permissions_of_a_device(planted: Planted) -> bool:
    known = os.stat("/dev/null")  # noqa: PTH116
    os.chmod("/dev/null", stat.S_IMODE(known.st_mode))  # noqa: PTH101
    return [known.st_dev, known.st_ino] == planted["device"]


@attempt
def open_a_file_by_its_handle(planted: Planted) -> bool:
    handle, mount = ctypes.create_string_buffer(struct.pack("Ii", 128, 0), 136), ctypes.c_int()
    root = os.open("/", os.O_RDONLY)
    named = call(303, root, b"", handle, ctypes.byref(mount), 0x1000)
    return named and call(304, root, handle, os.O_RDONLY)


@attempt
def open_a_disk(planted: Planted) -> bool:
    disks = [*glob.glob("/dev/vd*"), *glob.glob("/dev/sd*"), *glob.glob("/dev/nvme*n*")]  # noqa: PTH207
    return any(opens(disk, os.O_RDONLY) for disk in disks)


@attempt
def make_a_disk(planted: Planted) -> bool:
    os.mknod("disk", stat.S_IFBLK | 0o600, os.makedev(254, 0))
    return True


@attempt
def open_the_terminal(planted: Planted) -> bool:
    return opens("/dev/tty", os.O_RDWR)


@attempt
def trace_a_process(planted: Planted) -> bool:
    return call(101, 0x4206, planted["pid"], 0, 0)


@attempt
def read_the_memory_of_a_process(planted: Planted) -> bool:
    local = ctypes.create_string_buffer(8)
    ours = struct.pack("PN", ctypes.addressof(local), 8)
    return call(310, planted["pid"], ours, 1, struct.pack("PN", 0x400000, 8), 1, 0)


@attempt
def steal_a_descriptor(planted: Planted) -> bool:
    return call(438, os.pidfd_open(planted["pid"]), 0, 0)


@attempt
def enter_the_namespace_of_a_process(planted: Planted) -> bool:
    return call(308, os.open(f"/proc/{planted['pid']}/ns/net", os.O_RDONLY), 0)


@attempt
def change_the_limits_of_a_process(planted: Planted) -> bool:
    limits = resource.prlimit(planted["pid"], resource.RLIMIT_NOFILE)
    resource.prlimit(planted["pid"], resource.RLIMIT_NOFILE, limits)
    return True


@attempt
def change_the_priority_of_a_process(planted: Planted) -> bool:
    now = os.getpriority(os.PRIO_PROCESS, planted["pid"])
    os.setpriority(os.PRIO_PROCESS, planted["pid"], now)
    return True


@attempt
def change_the_processors_of_a_process(planted: Planted) -> bool:
    os.sched_setaffinity(planted["pid"], os.sched_getaffinity(planted["pid"]))
    return True


@attempt
def keep_privileges(planted: Planted) -> bool:
    header, found = struct.pack("Ii", 0x20080522, 0), ctypes.create_string_buffer(24)
    bounding = any(_libc.prctl(23, number, 0, 0, 0) == 1 for number in range(41))
    return bounding or bool(_libc.capget(header, found)) or any(found.raw)


@attempt
def gain_privileges_by_execution(planted: Planted) -> bool:
    return bool(_libc.prctl(39, 0, 0, 0, 0) != 1)


@attempt
def use_an_inherited_descriptor(planted: Planted) -> bool:
    def is_open(descriptor: int) -> bool:
        try:
            return fcntl.fcntl(descriptor, fcntl.F_GETFD) >= 0
        except OSError:
            return False

    return any(map(is_open, range(3, 256)))


@attempt
def read_the_environment_of_the_gateway(planted: Planted) -> bool:
    _libc.getenv.restype = ctypes.c_void_p
    return _libc.getenv(b"HERMES_PLANTED") is not None


@attempt
def attach_shared_memory(planted: Planted) -> bool:
    return bool(_libc.shmget(planted["shared_key"], 0, 0) >= 0)


def succeeds(one: Attempt, planted: Planted) -> bool:
    """Makes the attempt in a separate process, because the attempt can crash or wait forever."""
    child = os.fork()
    if not child:
        code = 1
        try:
            signal.alarm(SECONDS)
            code = 0 if one(planted) else 1
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0


def main() -> None:
    """Makes the named attempts to escape, or all attempts. Prints which of them succeeded."""
    planted: Planted = json.loads(sys.argv[1])
    # The tracebacks of failed attempts are not shown.
    null = os.open(os.devnull, os.O_WRONLY)
    os.dup2(null, 2)
    os.close(null)
    names = sys.argv[2:] or list(ESCAPES)
    done = [name for name in names if succeeds(ESCAPES[name], planted)]
    sys.stdout.write(json.dumps({"tried": len(names), "succeeded": done}) + "\n")


if __name__ == "__main__":
    main()
