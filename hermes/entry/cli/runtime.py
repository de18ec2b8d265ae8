"""What the commands need of the application, without knowing it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Sequence
    from contextlib import AbstractAsyncContextManager, AbstractContextManager
    from pathlib import Path

    from hermes.control.gateway import Gateway
    from hermes.settings import Settings
    from hermes.types.commands import SlashCommand
    from hermes.types.context_files import ContextFiles
    from hermes.types.deployment import GatewayRegistration, RunningGateway
    from hermes.types.messages import AssistantMessage, Origin, Sampling
    from hermes.types.offers import ModelOffers, ModelResolver
    from hermes.types.platforms import AnyPlatform
    from hermes.types.profile import ModelChoice
    from hermes.types.protocols import Emit
    from hermes.types.store import Store
    from hermes.types.store_copy import CopyResult, CopyStep
    from hermes.types.turns import Prompt


class Runtime(Protocol):
    """The application, as `hermes.__main__` passes it to the commands."""

    def open_gateway(
        self, settings: Settings, *, terminal: bool
    ) -> AbstractAsyncContextManager[Gateway]:
        """A gateway at work on the home's store; it drains when the block ends."""
        ...

    def open_store(self, settings: Settings) -> AbstractAsyncContextManager[Store]:
        """The home's store, for a look or a small change beside the gateway."""
        ...

    async def copy_store(
        self, settings: Settings, to: str, report: Callable[[CopyStep], None]
    ) -> CopyResult:
        """Copies the home's store to `to`: an address, the path of a new file, or `sqlite`.

        CopyRefused if the store is in use or the target holds something else.
        """
        ...

    def commands(self) -> Sequence[SlashCommand]:
        """The slash commands, with those of plugins."""
        ...

    def platforms(self) -> Sequence[AnyPlatform]:
        """The chat platforms that are installed."""
        ...

    def register_gateway(self, run: Path) -> AbstractContextManager[GatewayRegistration]:
        """Lists this process in the home's `run` folder as a gateway until the block ends."""
        ...

    def running_gateways(self, run: Path) -> list[RunningGateway]:
        """The gateways that are listed there and run, in the order of their ports."""
        ...

    def delete_session_files(self, settings: Settings, session: str) -> None:
        """Deletes the files of a session that was deleted."""
        ...

    def has_room(self, settings: Settings) -> bool:
        """Whether the disk of the home has room for a start."""
        ...

    def write_private(self, path: Path, text: str) -> None:
        """Replaces the content of a file that only its owner can read."""
        ...

    async def check(self, settings: Settings) -> Sequence[str]:
        """Warnings; ConfigError for settings that would keep an agent from working.

        It does not change the home.
        """
        ...

    async def new_prompt(self, settings: Settings, platform: str, origin: Origin) -> Prompt:
        """The prompt with which the owner's next conversation of that origin would begin."""
        ...

    async def run_housekeeping(self, settings: Settings) -> None:
        """Copies the store now and then, and asks for lists of models, until cancelled."""
        ...

    def api_key(self, settings: Settings) -> str:
        """The key of the API's clients; made and kept in the home when none is configured."""
        ...

    def secrets(self, settings: Settings) -> frozenset[str]:
        """The secrets of every hosted agent; none may be logged."""
        ...

    def unused_data(self, settings: Settings) -> str:
        """Data of a Hermes Agent in the home that is not taken over, in words; empty if none."""
        ...

    def context_files(self, settings: Settings) -> ContextFiles:
        """The context files that the agent of this home has written."""
        ...

    def models(self, settings: Settings) -> ModelResolver:
        """The models that the settings name."""
        ...

    def offers(self, settings: Settings) -> ModelOffers:
        """The providers and models that the settings could name."""
        ...

    def reachable(self, settings: Settings) -> Callable[[str], bool]:
        """A function that says whether a `provider/model` can be called with these settings."""
        ...

    def ignored_options(
        self, settings: Settings
    ) -> Callable[[str | None, Sampling], Collection[str]]:
        """A function that names the options that a model is not given.

        The model is a `provider/model`, or None for the one in the settings.
        """
        ...

    async def refresh_models(
        self, settings: Settings, endpoint: ModelChoice, *, fresh: bool
    ) -> None:
        """Asks a provider for its list of models: once a day, or now when `fresh`."""
        ...

    async def call_model(
        self, settings: Settings, choice: ModelChoice, text: str, emit: Emit
    ) -> AssistantMessage:
        """Puts one question to a model, with neither tools nor a second try."""
        ...

    async def download_model(self, settings: Settings, progress: Callable[[int, int], None]) -> str:
        """Downloads the embedded model unless it is here; its name, as `model.default` has it."""
        ...
