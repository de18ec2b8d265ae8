"""The API key: checks its strength, and reads and writes the generated key."""

import re
import secrets

from hermes.state.paths import Home, write_private
from hermes.text.quantity import counted
from hermes.types.errors import ConfigError

SHORTEST_KEY = 16
"""Minimum number of characters of a key."""
FEWEST_UNKNOWN = 8
"""Minimum number of letters and digits of a key that are not part of well-known words and
sequences."""
FEWEST_DISTINCT = 5
NEW_KEY_ADVICE = "`hermes gateway new-key` makes a good one"

_PLACEHOLDERS = ("changeme", "change-me", "change_me", "your-", "your_", "yourkey", "placeholder")
_WORDS = re.compile(
    "correcthorsebatterystaple|administrator|placeholder|passphrase|development|production"
    "|qwertyuiop|asdfghjkl|changeme|password|passw0rd|opensesame|username|default|example|letmein"
    "|mustbe|replace|welcome|whatever|zxcvbnm|access|apikey|bearer|dragon|gateway|hermes|master"
    "|monkey|public|qwerty|sample|secret|secure|server|sesame|string|testing|admin|agent|change"
    "|dummy|hello|login|local|token|trustno|value|asdf|demo|here|open|pass|root|temp|test|this|user"
    "|world|your|xxxx|abc|api|dev|foo|bar|baz|iam|key|llm|not|the|sk|me|my"
)
"""Well-known words, which make a key easy to guess. Longer words come first."""


def weakness(key: str) -> str | None:
    """Returns why the key is easy to guess, or None if it is strong."""
    if key.casefold().startswith(_PLACEHOLDERS):
        return "is a placeholder"
    if len(key) < SHORTEST_KEY:
        return f"has {counted(len(key), 'character')} and needs {SHORTEST_KEY} or more"
    plain = "".join(filter(str.isalnum, key.casefold()))
    if len(set(plain)) < FEWEST_DISTINCT or plain in (plain + plain)[1:-1]:
        return "repeats the same characters"
    if len(_without_sequences(_WORDS.sub("", plain))) < FEWEST_UNKNOWN:
        return "consists of well-known words"
    return None


def _without_sequences(text: str) -> str:
    """Removes sequences of characters such as `1234`, `fedc` and `0000`."""
    rest, run = "", text[:1]
    for letter in text[1:]:
        step = ord(letter) - ord(run[-1])
        if abs(step) <= 1 and (len(run) == 1 or step == ord(run[-1]) - ord(run[-2])):
            run += letter
        else:
            rest += run if len(run) < 4 else ""
            run = letter
    return rest + (run if len(run) < 4 else "")


def read_key(home: Home) -> str:
    """Returns the key in the home's key file, or "" if there is no file. Raises ConfigError if the
    key is unusable."""
    path = home.api_key
    try:
        key = path.read_text("utf-8").strip() if path.exists() else ""
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"{path} can't be read: {error}") from error
    if key and (problem := weakness(key)):
        raise ConfigError(f"the key in {path} {problem}: {NEW_KEY_ADVICE}")
    return key


def create_key(home: Home) -> str:
    """Creates a random key, writes it to the home's key file and returns it."""
    made = secrets.token_urlsafe(32)
    try:
        write_private(home.api_key, f"{made}\n")
    except OSError as error:
        raise ConfigError(f"{home.api_key} can't be written: {error.strerror}") from error
    return made
