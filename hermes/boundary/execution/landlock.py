"""Restricts this process to some files with Landlock, and takes away its privileges.

Supervisors use this module, so it imports only the standard library.
"""

import contextlib
import ctypes
import os
import stat
import struct
from collections.abc import Iterable

LOWEST_VERSION = 6
"""The lowest version of Landlock that can be used. Earlier versions do not restrict signals."""
_CREATE_RULESET, _ADD_RULE, _RESTRICT_SELF = 444, 445, 446
_VERSION = 1
_PATH_BENEATH = 1
_EXECUTE, _WRITE_FILE, _READ_FILE, _READ_DIR = 1, 2, 4, 8
_TRUNCATE, _IOCTL = 1 << 14, 1 << 15
_ALL_FILES = (1 << 16) - 1
_ALL_TCP = 0b11
_SIGNALS_AND_ABSTRACT_SOCKETS = 0b11
_READING = _EXECUTE | _READ_FILE | _READ_DIR
# This includes the right to create devices in a workspace. The right is harmless, because creating
# a device also needs a capability, and commands have no capabilities.
_WRITING = _ALL_FILES & ~_IOCTL
_ON_A_FILE = _EXECUTE | _WRITE_FILE | _READ_FILE | _TRUNCATE

_PR_SET_SECCOMP, _PR_CAPBSET_DROP, _PR_SET_NO_NEW_PRIVS, _PR_CAP_AMBIENT = 22, 24, 38, 47
_FILTER, _CLEAR_ALL = 2, 4
_LAST_CAPABILITY = 40
_CAPABILITY_VERSION = 0x20080522

_libc = ctypes.CDLL(None, use_errno=True)


def landlock_version() -> int:
    """Returns the version of Landlock in the running kernel; 0 if the kernel has no Landlock."""
    version: int = _libc.syscall(_CREATE_RULESET, None, ctypes.c_size_t(0), _VERSION)
    return max(0, version)


def restrict_files(
    readable: Iterable[str], listable: Iterable[str], writable: Iterable[str]
) -> None:
    """Allows this process and its children to read and execute some files, to list some folders,
    and to read and write other files. The processes can open no other files, can make no TCP
    connections, and can send signals only to each other. Paths that do not exist are left out."""
    _set(_PR_SET_NO_NEW_PRIVS, 1)
    attributes = struct.pack("QQQ", _ALL_FILES, _ALL_TCP, _SIGNALS_AND_ABSTRACT_SOCKETS)
    ruleset = _call(_CREATE_RULESET, attributes, ctypes.c_size_t(len(attributes)), 0)
    for paths, rights in ((readable, _READING), (listable, _READ_DIR), (writable, _WRITING)):
        for path in paths:
            with contextlib.suppress(FileNotFoundError):
                _allow(ruleset, path, rights)
    _call(_RESTRICT_SELF, ruleset, 0)
    os.close(ruleset)


def drop_privileges() -> None:
    """Gives up all capabilities. Programs that this process executes can't get capabilities
    either."""
    _set(_PR_SET_NO_NEW_PRIVS, 1)
    with contextlib.suppress(OSError):
        _set(_PR_CAP_AMBIENT, _CLEAR_ALL)
    for number in range(_LAST_CAPABILITY + 1):
        # This call fails in a process without privileges. The error is ignored, because the
        # programs that such a process executes can't get capabilities in any case.
        with contextlib.suppress(OSError):
            _set(_PR_CAPBSET_DROP, number)
    header, none = struct.pack("Ii", _CAPABILITY_VERSION, 0), bytes(24)
    if _libc.capset(header, none):
        raise OSError(ctypes.get_errno(), "the capabilities can't be dropped")


def install_filter(program: bytes) -> None:
    """Installs a seccomp filter for this process and its children."""
    code = ctypes.create_string_buffer(program, len(program))
    # The struct contains the number of instructions, which have 8 bytes each, and a pointer to the
    # instructions.
    described = struct.pack("HxxxxxxP", len(program) // 8, ctypes.addressof(code))
    buffer = ctypes.create_string_buffer(described, len(described))
    _set(_PR_SET_NO_NEW_PRIVS, 1)
    _set(_PR_SET_SECCOMP, _FILTER, ctypes.addressof(buffer))


def _allow(ruleset: int, path: str, rights: int) -> None:
    descriptor = os.open(path, os.O_PATH | os.O_CLOEXEC)
    try:
        if not stat.S_ISDIR(os.fstat(descriptor).st_mode):
            rights &= _ON_A_FILE
        _call(_ADD_RULE, ruleset, _PATH_BENEATH, struct.pack("=Qi", rights, descriptor), 0)
    finally:
        os.close(descriptor)


def _call(number: int, *arguments: object) -> int:
    result: int = _libc.syscall(number, *arguments)
    if result < 0:
        raise OSError(ctypes.get_errno(), f"Landlock: {os.strerror(ctypes.get_errno())}")
    return result


def _set(option: int, *values: int) -> None:
    rest = (*values, 0, 0, 0)[:4]
    if _libc.prctl(option, *map(ctypes.c_ulong, rest)):
        raise OSError(ctypes.get_errno(), f"prctl {option}: {os.strerror(ctypes.get_errno())}")
