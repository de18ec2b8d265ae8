"""The seccomp filter refuses dangerous system calls. `tests/testing/test_escapes.py` tries to
bypass it."""

import struct

import pytest

from hermes.boundary.execution.seccomp import AF_UNIX, MACHINES, filter_program

ALLOWED = 0x7FFF0000


def decided(program: bytes, machine: str, number: int, argument: int = 0) -> int:
    """Runs the filter for a system call. All arguments of the call have the value `argument`.
    Returns the decision of the filter."""
    data = struct.pack("iIQ6Q", number, MACHINES[machine], 0, *([argument] * 6))
    at, value = 0, 0
    while True:
        code, if_true, if_false, operand = struct.unpack_from("HBBI", program, at * 8)
        at += 1
        match code:
            case 0x20:
                (value,) = struct.unpack_from("I", data, operand)
            case 0x06:
                return int(operand)
            case 0x15:
                at += if_true if value == operand else if_false
            case 0x35:
                at += if_true if value >= operand else if_false
            case 0x45:
                at += if_true if value & operand else if_false


@pytest.mark.parametrize(("machine", "read", "mount"), [("x86_64", 0, 165), ("aarch64", 63, 40)])
def test_only_dangerous_calls_are_refused(machine: str, read: int, mount: int) -> None:
    program = filter_program(machine, (AF_UNIX,), namespaces=True)
    assert decided(program, machine, read) == ALLOWED
    assert decided(program, machine, mount) != ALLOWED


def test_arguments_decide_about_some_calls() -> None:
    clone, socket, prlimit, chmod = 56, 41, 302, 90
    program = filter_program("x86_64", (AF_UNIX,), namespaces=True)
    assert decided(program, "x86_64", clone, 0x11) == ALLOWED
    assert decided(program, "x86_64", clone, 0x10000000) != ALLOWED
    assert decided(program, "x86_64", socket, AF_UNIX) == ALLOWED
    assert decided(program, "x86_64", socket, 2) != ALLOWED
    assert decided(program, "x86_64", chmod) == decided(program, "x86_64", prlimit, 1) == ALLOWED
    strict = filter_program("x86_64", (), namespaces=False)
    assert decided(strict, "x86_64", prlimit, 0) == ALLOWED
    assert decided(strict, "x86_64", prlimit, 1) != ALLOWED
    assert decided(strict, "x86_64", socket, AF_UNIX) != ALLOWED
    assert decided(strict, "x86_64", chmod) != ALLOWED


def test_calls_of_another_architecture_are_refused() -> None:
    program = filter_program("x86_64", (), namespaces=True)
    assert decided(program, "aarch64", 63) != ALLOWED
    assert decided(program, "x86_64", 0x40000000) != ALLOWED
    with pytest.raises(ValueError, match="riscv64"):
        filter_program("riscv64", (), namespaces=True)
