"""Edits the line that a person types while the agent works."""

import codecs
from collections.abc import Iterable

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys

ESCAPE = b"\x1b"


class TypeAhead:
    """A line that can only be edited at its end, key by key."""

    def __init__(self) -> None:
        self.text = ""
        """The text that is not sent yet."""
        self.pending = False
        """Whether the keys so far end with Esc, which may be the beginning of another key."""
        self._sent: list[str] = []
        self._alt = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = Vt100Parser(self._press)

    def feed(self, keys: bytes) -> list[str]:
        """Adds keys. Returns the lines that they complete."""
        self._parser.feed(self._decoder.decode(keys))
        self.pending = keys.endswith(ESCAPE)
        return self._take_sent()

    def feed_presses(self, presses: Iterable[KeyPress]) -> list[str]:
        """Adds keys that are parsed already. Returns the lines that they complete."""
        for press in presses:
            self._press(press)
        return self._take_sent()

    def end_pending(self) -> None:
        """Treats a pending Esc as the Esc key, because no other byte has followed it."""
        self._parser.flush()
        self.pending = self._alt = False

    def take(self) -> str:
        """Removes and returns the text that is not sent yet."""
        text, self.text = self.text, ""
        return text

    def _take_sent(self) -> list[str]:
        sent, self._sent = self._sent, []
        return sent

    def _press(self, press: KeyPress) -> None:
        alt, self._alt = self._alt, press.key == Keys.Escape
        match press.key:
            case Keys.ControlM if not alt and not self.text.endswith("\\"):
                if self.text.strip():
                    self._sent.append(self.text)
                self.text = ""
            case Keys.ControlM | Keys.ControlJ:
                self.text = self.text.removesuffix("\\") + "\n"
            case Keys.ControlH:
                self.text = self.text[:-1]
            case Keys.ControlU:
                self.text = self.text[: self.text.rfind("\n") + 1]
            case Keys.ControlW:
                kept = self.text.rstrip()
                self.text = kept[: len(kept) - len(kept.split()[-1])] if kept else ""
            case Keys.BracketedPaste:
                self.text += press.data.replace("\r\n", "\n").replace("\r", "\n")
            case Keys():
                pass
            case typed:
                self.text += typed
