"""The access rules that settings describe."""

from pathlib import Path

from hermes import settings as configuration
from hermes.control.access import AccessPolicy, AllowedUsers, PlatformAccess
from hermes.settings.access import access_policy
from hermes.types.identity import PersonId


def policy(home: Path, config: str, **environ: str) -> AccessPolicy:
    (home / "config.yaml").write_text(config)
    return access_policy(configuration.load(home, environ))


def test_variables_and_config_yaml_give_the_same_rules(tmp_path: Path) -> None:
    config = """
        access: {allowed_users: [5], owners: ["telegram:7"], unauthorized_dm_behavior: pair}
        platforms:
          telegram:
            allowed_users: [1, 2]
            group_allowed_users: [3]
            group_allowed_chats: [-100]
            allow_bots: mentions
    """
    variables = {
        "GATEWAY_ALLOWED_USERS": "5",
        "TELEGRAM_ALLOWED_USERS": "1,2",
        "TELEGRAM_GROUP_ALLOWED_USERS": "3",
        "TELEGRAM_GROUP_ALLOWED_CHATS": "-100",
        "TELEGRAM_ALLOW_BOTS": "mentions",
    }
    short = "{owners: ['telegram:7'], unauthorized_dm_behavior: pair}"
    made = policy(tmp_path, config)
    assert made == policy(tmp_path, short, **variables)
    assert made.platforms["telegram"] == PlatformAccess(
        allowed=AllowedUsers(
            users=frozenset({"1", "2"}),
            group_users=frozenset({"3"}),
            group_chats=frozenset({"-100"}),
        ),
        bots="mentions",
    )
    assert made.strangers == "pair"
    assert made.owners == frozenset({PersonId("telegram:7")})


def test_a_star_stands_for_everybody(tmp_path: Path) -> None:
    made = policy(tmp_path, "{}", TELEGRAM_ALLOWED_USERS="*", GATEWAY_ALLOWED_USERS="5, *")
    assert made.platforms["telegram"].allowed == AllowedUsers(everyone=True)
    assert made.anywhere == AllowedUsers(everyone=True, users=frozenset({"5"}))


def test_users_of_single_accounts_are_listed_by_the_name_of_the_account(tmp_path: Path) -> None:
    lists = '{telegram: "1", support: "2, 3", open: "*", closed: ""}'
    made = policy(tmp_path, f"platforms: {{telegram: {{account_users: {lists}}}}}")
    assert made.platforms["telegram"].accounts == {
        "telegram": AllowedUsers(users=frozenset({"1"})),
        "telegram.support": AllowedUsers(users=frozenset({"2", "3"})),
        "telegram.open": AllowedUsers(everyone=True),
        "telegram.closed": AllowedUsers(),
    }
