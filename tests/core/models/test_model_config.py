"""Every setting about models knows the source of its value."""

from pathlib import Path

from hermes.core.models.model_config import (
    EndpointConfig,
    ModelConfig,
    SettingLayer,
    SettingSource,
)

GIVEN = SettingSource(layer=SettingLayer.DOTENV, text=".env HERMES_MODEL")
CONFIG = ModelConfig(
    main=EndpointConfig(section="model", api_key="opensesame"),
    sources={"model.default": GIVEN},
    environ={"ACME_KEY": "opensesame", "OTHER_KEY": "k"},
    process=frozenset({"ACME_KEY"}),
    dotenv_file=Path("/home/.env"),
)


def test_the_source_of_a_setting_is_known() -> None:
    assert CONFIG.layer("model.default") > SettingLayer.CONFIG
    assert CONFIG.source("model.default") == ".env HERMES_MODEL"


def test_a_setting_that_was_not_given_is_a_default() -> None:
    assert CONFIG.layer("model.provider") == SettingLayer.DEFAULT
    assert CONFIG.source("model.provider") == "default"


def test_a_variable_can_be_set_in_the_environment_or_in_the_file() -> None:
    assert CONFIG.variable_source("ACME_KEY") == "environment ACME_KEY"
    assert CONFIG.variable_source("OTHER_KEY") == "/home/.env OTHER_KEY"
    assert CONFIG.variable_source("") == ""


def test_no_secret_is_shown() -> None:
    assert "opensesame" not in f"{CONFIG!r} {CONFIG.main!r}"
