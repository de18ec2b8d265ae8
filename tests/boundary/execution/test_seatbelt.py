"""The profile for Seatbelt, the sandbox of macOS."""

from hermes.boundary.execution.seatbelt import seatbelt_arguments, seatbelt_profile


def test_the_profile_denies_by_default_and_allows_the_workspace() -> None:
    profile = seatbelt_profile(
        readable=["/data"], writable=["/out"], hidden=["/u/.hermes"], private=["/u/.hermes/s"]
    )
    lines = profile.splitlines()
    assert lines[:2] == ["(version 1)", "(deny default)"]
    assert '(allow file-read* (subpath "/data"))' in lines
    assert '(allow file-read* file-write* (subpath "/out"))' in lines
    assert "network" not in profile


def test_private_folders_can_be_inside_a_hidden_folder() -> None:
    profile = seatbelt_profile(readable=[], writable=["/u"], hidden=["/u/h"], private=["/u/h/s"])
    hidden = profile.index('(deny file* (subpath "/u/h"))')
    assert profile.index('(subpath "/u"))') < hidden < profile.index('(subpath "/u/h/s"))')


def test_a_path_with_quotes_can_not_change_the_profile() -> None:
    profile = seatbelt_profile(
        readable=['/a") (allow default) "\\'], writable=[], hidden=[], private=[]
    )
    assert r'(subpath "/a\") (allow default) \"\\")' in profile


def test_the_command_runs_with_the_profile() -> None:
    arguments = seatbelt_arguments("(version 1)", ("/bin/sh", "-c", "true"))
    assert arguments == ("/usr/bin/sandbox-exec", "-p", "(version 1)", "/bin/sh", "-c", "true")
