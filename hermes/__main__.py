"""The `hermes` command."""

from hermes.app.application import Application
from hermes.entry.cli.main import run


def main() -> None:
    run(Application())


if __name__ == "__main__":
    main()
