"""Records the writes and syncs of SQLite, so that the state after a power cut can be computed."""

import ctypes
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from hermes.types.value import Value

_Method = ctypes.c_void_p
_OPEN = ctypes.CFUNCTYPE(
    ctypes.c_int,
    ctypes.c_void_p,
    # The path must be the same pointer that SQLite passed: SQLite reads the path at this address
    # until the file is closed.
    ctypes.c_void_p,
    ctypes.c_void_p,
    ctypes.c_int,
    ctypes.POINTER(ctypes.c_int),
)
_WRITE = ctypes.CFUNCTYPE(
    ctypes.c_int, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int, ctypes.c_int64
)
_TRUNCATE = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int64)
_SYNC = ctypes.CFUNCTYPE(ctypes.c_int, ctypes.c_void_p, ctypes.c_int)


class DiskOperation(Value):
    """One operation on a file: a change or a sync. A sync makes all earlier changes of the file
    survive a power cut."""

    kind: Literal["write", "truncate", "sync"]
    file: str
    """The file's name without its folder."""
    at: int = 0
    """Offset of the write, or the size after the truncation."""
    data: bytes = b""


class _Vfs(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("file_size", ctypes.c_int),
        ("longest_path", ctypes.c_int),
        ("next", ctypes.c_void_p),
        ("name", ctypes.c_char_p),
        ("data", ctypes.c_void_p),
        ("open", _Method),
        ("others", _Method * 15),
    )


class _IoMethods(ctypes.Structure):
    _fields_ = (
        ("version", ctypes.c_int),
        ("close", _Method),
        ("read", _Method),
        ("write", _Method),
        ("truncate", _Method),
        ("sync", _Method),
        ("others", _Method * 14),
    )


class _File(ctypes.Structure):
    _fields_ = (("methods", ctypes.POINTER(_IoMethods)),)


class _Recorder:
    """A VFS (the layer through which SQLite uses files) that records operations and passes them on
    to the usual VFS."""

    def __init__(self, usual: _Vfs) -> None:
        self.operations: list[DiskOperation] = []
        self._usual_open = _OPEN(usual.open)
        self._names: dict[int, str] = {}
        self._methods: dict[int, _IoMethods] = {}
        self._kept: list[Any] = []
        """References to the callbacks, which must not be garbage-collected while SQLite may call
        them."""
        self.vfs = _Vfs()
        ctypes.memmove(ctypes.byref(self.vfs), ctypes.byref(usual), ctypes.sizeof(_Vfs))
        self.vfs.next, self.vfs.name = None, b"recording"
        self.vfs.open = self._callback(_OPEN, self._open)

    def _callback(self, kind: Any, function: Any) -> int | None:
        made = kind(function)
        self._kept.append(made)
        return ctypes.cast(made, ctypes.c_void_p).value

    def _open(self, vfs: int, path: int | None, file: int, flags: int, out: Any) -> int:
        code: int = self._usual_open(vfs, path, file, flags, out)
        methods = _File.from_address(file).methods
        if code == 0 and path is not None and methods:
            self._names[file] = Path(ctypes.string_at(path).decode()).name
            _File.from_address(file).methods = ctypes.pointer(self._recording(methods.contents))
        return code

    def _recording(self, usual: _IoMethods) -> _IoMethods:
        """Returns a copy of the file's methods in which write, truncate and sync are recorded."""
        address = ctypes.addressof(usual)
        if address in self._methods:
            return self._methods[address]
        write, truncate, sync = _WRITE(usual.write), _TRUNCATE(usual.truncate), _SYNC(usual.sync)

        def record_write(file: int, data: int, size: int, at: int) -> int:
            self._note("write", file, at, ctypes.string_at(data, size))
            result: int = write(file, data, size, at)
            return result

        def record_truncate(file: int, size: int) -> int:
            self._note("truncate", file, size)
            result: int = truncate(file, size)
            return result

        def record_sync(file: int, flags: int) -> int:
            result: int = sync(file, flags)
            if result == 0:
                self._note("sync", file)
            return result

        made = _IoMethods()
        ctypes.memmove(ctypes.byref(made), address, ctypes.sizeof(_IoMethods))
        made.write = self._callback(_WRITE, record_write)
        made.truncate = self._callback(_TRUNCATE, record_truncate)
        made.sync = self._callback(_SYNC, record_sync)
        self._methods[address] = made
        return made

    def _note(
        self, kind: Literal["write", "truncate", "sync"], file: int, at: int = 0, data: bytes = b""
    ) -> None:
        name = self._names[file]
        self.operations.append(DiskOperation(kind=kind, file=name, at=at, data=data))


@contextmanager
def recorded_disk() -> Iterator[list[DiskOperation]]:
    """Yields the operations of all connections that are opened in the block, in their order.

    The connections must be closed before the block ends.
    """
    library = ctypes.CDLL(_library())
    find, register = library.sqlite3_vfs_find, library.sqlite3_vfs_register
    find.restype = ctypes.POINTER(_Vfs)
    usual = find(None)
    recorder = _Recorder(usual.contents)
    register(ctypes.byref(recorder.vfs), 1)
    try:
        yield recorder.operations
    finally:
        library.sqlite3_vfs_unregister(ctypes.byref(recorder.vfs))
        register(usual, 1)


def _library() -> str:
    """Returns the SQLite library that this interpreter has loaded."""
    for line in Path("/proc/self/maps").read_text().splitlines():
        if "libsqlite3" in line:
            return line.split()[-1]
    raise RuntimeError(
        "SQLite is built into this interpreter, so its disk operations can't be recorded"
    )
