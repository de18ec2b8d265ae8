"""What is typed while the agent works: nothing is drawn but the line itself."""

import codecs

from prompt_toolkit.input.vt100_parser import Vt100Parser
from prompt_toolkit.key_binding.key_processor import KeyPress
from prompt_toolkit.keys import Keys


class TypeAhead:
    """A line that grows key by key; the keys that edit are those at its end."""

    def __init__(self) -> None:
        self.text = ""
        self._sent: list[str] = []
        self._alt = False
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._parser = Vt100Parser(self._press)

    def feed(self, keys: bytes) -> list[str]:
        """What they send; the rest is `text`."""
        self._parser.feed(self._decoder.decode(keys))
        sent, self._sent = self._sent, []
        return sent

    def take(self) -> str:
        """What was not sent, for whoever goes on with it."""
        text, self.text = self.text, ""
        return text

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
