"""The small shell of the memory sandbox behaves like a real shell."""

import pytest

from hermes.testing.memory_shell import MemoryFiles, MemoryShell


async def run(line: str, files: MemoryFiles | None = None) -> tuple[int, str]:
    printed = bytearray()

    async def no_input() -> bytes:
        return b""

    shell = MemoryShell(files or MemoryFiles(), "/work", "", printed.extend, no_input)
    return await shell.run(line), printed.decode()


@pytest.mark.parametrize(
    ("line", "code", "printed"),
    [
        ("echo 'a;  b' \"c\"", 0, "a;  b c\n"),
        ("false && echo never; echo then", 0, "then\n"),
        ("true && echo one && false && echo never", 1, "one\n"),
        ("echo a > f; echo b >> f; cat f f", 0, "a\nb\na\nb\n"),
        ("mkdir a\ncd a\npwd; cd ..; pwd", 0, "/work/a\n/work\n"),
        ("mkdir a; echo x > a/f; ln -s a/f g; cat g", 0, "x\n"),
        ("mkdir a; mkdir a", 1, "mkdir: a: exists\n"),
        ("cat missing; echo on", 0, "cat: missing: no such file\non\n"),
        ("echo x > missing/f", 1, "echo: missing: no such folder\n"),
        ("exit 7; echo never", 7, ""),
        ("rm -rf /", 127, "rm: command not found\n"),
        ("", 0, ""),
    ],
)
async def test_the_small_shell_behaves_like_a_real_shell(
    line: str, code: int, printed: str
) -> None:
    assert await run(line) == (code, printed)
