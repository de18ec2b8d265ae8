"""The settings of providers of remote sandboxes."""

from typing import Annotated

import msgspec

from hermes.settings.schema import Aliases
from hermes.types.execution import CloudAccount
from hermes.types.value import Value

DAYTONA_URL = "https://app.daytona.io/api"
DEFAULT_IMAGE = "python:3.12-slim"
Processors = Annotated[float, msgspec.Meta(gt=0)]


class ModalSettings(Value):
    token_id: Annotated[str, Aliases(env=("MODAL_TOKEN_ID",))] = ""
    """The id of the key for Modal."""
    token_secret: Annotated[str, Aliases(env=("MODAL_TOKEN_SECRET",), secret=True)] = ""
    """The secret of the key for Modal."""
    image: Annotated[
        str, Aliases(env=("TERMINAL_MODAL_IMAGE",), keys=("terminal.modal_image",))
    ] = DEFAULT_IMAGE
    """The container image of sandboxes at Modal. It needs Python 3.11 or newer."""
    cpus: Processors = 1.0
    """Number of processors of a sandbox at Modal."""

    def account(self) -> CloudAccount:
        return CloudAccount(
            image=self.image, key_id=self.token_id, key=self.token_secret, cpus=self.cpus
        )

    def __repr__(self) -> str:
        return f"ModalSettings(image={self.image!r})"


class DaytonaSettings(Value):
    api_key: Annotated[str, Aliases(env=("DAYTONA_API_KEY",), secret=True)] = ""
    """The key for Daytona."""
    api_url: Annotated[str, Aliases(env=("DAYTONA_API_URL",))] = DAYTONA_URL
    """The address of Daytona's API."""
    image: Annotated[
        str, Aliases(env=("TERMINAL_DAYTONA_IMAGE",), keys=("terminal.daytona_image",))
    ] = DEFAULT_IMAGE
    """The container image of sandboxes at Daytona. It needs Python 3.11 or newer."""
    cpus: Processors = 1.0
    """Number of processors of a sandbox at Daytona, rounded up."""

    def account(self) -> CloudAccount:
        return CloudAccount(image=self.image, key=self.api_key, url=self.api_url, cpus=self.cpus)

    def __repr__(self) -> str:
        return f"DaytonaSettings(image={self.image!r})"
