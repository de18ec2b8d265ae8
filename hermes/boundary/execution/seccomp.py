"""Builds the seccomp filter of sandboxed commands.

Supervisors use this module, so it imports only the standard library.
"""

import errno
import struct
from collections.abc import Iterable, Sequence

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
"""The machines for which a filter can be built, with their audit numbers in Linux."""
AF_UNIX, AF_INET, AF_INET6, AF_NETLINK = 1, 2, 10, 16

_KERNEL_CALLS = {
    "ptrace": (101, 117),
    "mount": (165, 40),
    "umount2": (166, 39),
    "swapon": (167, 224),
    "swapoff": (168, 225),
    "reboot": (169, 142),
    "sethostname": (170, 161),
    "setdomainname": (171, 162),
    "iopl": (172, None),
    "ioperm": (173, None),
    "init_module": (175, 105),
    "delete_module": (176, 106),
    "quotactl": (179, 60),
    "acct": (163, 89),
    "settimeofday": (164, 170),
    "adjtimex": (159, 171),
    "chroot": (161, 51),
    "pivot_root": (155, 41),
    "syslog": (103, 116),
    "vhangup": (153, 58),
    "clock_settime": (227, 112),
    "clock_adjtime": (305, 266),
    "kexec_load": (246, 104),
    "kexec_file_load": (320, 294),
    "add_key": (248, 217),
    "request_key": (249, 218),
    "keyctl": (250, 219),
    "unshare": (272, 97),
    "setns": (308, 268),
    "perf_event_open": (298, 241),
    "finit_module": (313, 273),
    "process_vm_readv": (310, 270),
    "process_vm_writev": (311, 271),
    "kcmp": (312, 272),
    "bpf": (321, 280),
    "userfaultfd": (323, 282),
    "open_by_handle_at": (304, 265),
    "fanotify_init": (300, 262),
    # io_uring opens sockets and files without a system call that a filter could see.
    "io_uring_setup": (425, 425),
    "io_uring_enter": (426, 426),
    "io_uring_register": (427, 427),
    "open_tree": (428, 428),
    "move_mount": (429, 429),
    "fsopen": (430, 430),
    "fsconfig": (431, 431),
    "fsmount": (432, 432),
    "fspick": (433, 433),
    "pidfd_getfd": (438, 438),
    "mount_setattr": (442, 442),
    "quotactl_fd": (443, 443),
}
FORBIDDEN_CALLS = frozenset(_KERNEL_CALLS)
"""The names of the calls that no command may use."""
_SHARED_SYSTEM_CALLS = {
    "shmget": (29, 194),
    "shmat": (30, 196),
    "shmctl": (31, 195),
    "semget": (64, 190),
    "semop": (65, 193),
    "semctl": (66, 191),
    "semtimedop": (220, 192),
    "msgget": (68, 186),
    "msgsnd": (69, 189),
    "msgrcv": (70, 188),
    "msgctl": (71, 187),
    "mq_open": (240, 180),
    "mq_unlink": (241, 181),
    "setpriority": (141, 140),
    "sched_setparam": (142, 118),
    "sched_setscheduler": (144, 119),
    "sched_setaffinity": (203, 122),
    "sched_setattr": (314, 274),
    "ioprio_set": (251, 30),
    "migrate_pages": (256, 238),
    "move_pages": (279, 239),
    "chmod": (90, None),
    "chown": (92, None),
    "lchown": (94, None),
    "fchownat": (260, 54),
    "fchmodat": (268, 53),
    "fchmodat2": (452, 452),
    "utime": (132, None),
    "utimes": (235, None),
    "futimesat": (261, None),
    "utimensat": (280, 88),
    "setxattr": (188, 5),
    "lsetxattr": (189, 6),
    "removexattr": (197, 14),
    "lremovexattr": (198, 15),
    "setxattrat": (463, 463),
    "removexattrat": (466, 466),
    "file_setattr": (469, 469),
    # If the gateway runs as root, commands own the files of the system. These calls could change
    # such a file, even through a descriptor that is open only for reading.
    "fchmod": (91, 52),
    "fchown": (93, 55),
    "fsetxattr": (190, 7),
    "fremovexattr": (199, 16),
}
"""Calls that act on other processes of the user, or on files outside of the workspace. They are
forbidden for commands without a namespace, because Landlock does not check these calls. In a
namespace the calls are harmless."""
_CLONE, _CLONE3 = (56, 220), (435, 435)
_SOCKET, _IOCTL, _PRLIMIT = (41, 198), (16, 29), (302, 261)

NAMESPACE_FLAGS = 0x7E020000
"""The flags of `clone` that create namespaces."""
_TIOCSTI, _TIOCLINUX = 0x5412, 0x541C
"""Requests that put characters into the input of a terminal."""
_X32 = 0x40000000
"""The smallest number of a system call in the x32 ABI. This ABI offers the same calls under
other numbers. The filter refuses all x32 numbers, because it knows only the usual numbers."""

_LOAD, _EQUAL, _AT_LEAST, _ANY_BIT, _RETURN = 0x20, 0x15, 0x35, 0x45, 0x06
_ALLOW, _ERROR = 0x7FFF0000, 0x00050000
_NUMBER, _MACHINE, _ARGUMENTS = 0, 4, 16

Instruction = tuple[int, int, int, int]
"""An instruction of the filter: its code, the number of instructions to skip if the test of the
instruction is true, the number to skip if the test is false, and the operand."""


def filter_program(machine: str, families: Sequence[int], *, namespaces: bool) -> bytes:
    """Returns the filter in the form that the kernel expects. Raises ValueError for an unknown
    machine.

    `families` are the address families of sockets that a command can create. If `namespaces` is
    False, the command shares the namespaces of this machine, and more calls are forbidden.
    """
    column = list(MACHINES).index(machine)
    forbidden = dict(_KERNEL_CALLS)
    if not namespaces:
        forbidden |= _SHARED_SYSTEM_CALLS
    program: list[Instruction] = [
        (_LOAD, 0, 0, _MACHINE),
        (_EQUAL, 1, 0, MACHINES[machine]),
        _refuse(errno.ENOSYS),
        (_LOAD, 0, 0, _NUMBER),
        (_AT_LEAST, 0, 1, _X32),
        _refuse(errno.ENOSYS),
    ]
    numbers = (call[column] for call in forbidden.values())
    for number in filter(None, numbers):
        program += _if_call(number, [_refuse(errno.EPERM)])
    # The arguments of clone3 are in memory, which a filter can't read. Without clone3, programs
    # use clone.
    program += _if_call(_CLONE3[column], [_refuse(errno.ENOSYS)])
    program += _if_call(_CLONE[column], _if_argument(0, _ANY_BIT, [NAMESPACE_FLAGS], errno.EPERM))
    program += _if_call(_IOCTL[column], _if_argument(1, _EQUAL, [_TIOCSTI, _TIOCLINUX], 1))
    program += _if_call(_SOCKET[column], _only_families(families))
    if not namespaces:
        others = [(_LOAD, 0, 0, _ARGUMENTS), (_EQUAL, 1, 0, 0), _refuse(errno.EPERM)]
        program += _if_call(_PRLIMIT[column], [*others, (_RETURN, 0, 0, _ALLOW)])
    program.append((_RETURN, 0, 0, _ALLOW))
    return b"".join(struct.pack("HBBI", *one) for one in program)


def _refuse(error: int) -> Instruction:
    return (_RETURN, 0, 0, _ERROR | error)


def _if_call(number: int, then: Sequence[Instruction]) -> list[Instruction]:
    return [(_EQUAL, 0, len(then), number), *then]


def _if_argument(index: int, test: int, values: Iterable[int], error: int) -> list[Instruction]:
    """Returns instructions that refuse a call with `error` if the argument at `index` passes the
    test for one of the values, and allow the call otherwise."""
    program: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS + 8 * index)]
    for value in values:
        program += [(test, 0, 1, value), _refuse(error)]
    return [*program, (_RETURN, 0, 0, _ALLOW)]


def _only_families(families: Sequence[int]) -> list[Instruction]:
    program: list[Instruction] = [(_LOAD, 0, 0, _ARGUMENTS)]
    for family in families:
        program += [(_EQUAL, 0, 1, family), (_RETURN, 0, 0, _ALLOW)]
    return [*program, _refuse(errno.EAFNOSUPPORT)]
