"""The settings for running commands can also have the names that Hermes Agent uses."""

from pathlib import Path

from hermes.settings import load
from hermes.settings.terminal import TerminalSettings

PEER = """
terminal:
  backend: docker
  docker_image: image:1
  docker_volumes: ["/a:/b"]
  docker_extra_args: ["--dns=1.1.1.1"]
  container_cpu: 2
  container_memory: 1024
  container_disk: 2048
  lifetime_seconds: 60
  singularity_image: docker://image
  ssh_host: build.example.org
  ssh_user: bot
  ssh_port: 2222
  ssh_key: /k
"""
EXPECTED = TerminalSettings(
    backend="docker",
    docker_image="image:1",
    docker_volumes=("/a:/b",),
    docker_extra_args=("--dns=1.1.1.1",),
    container_cpu=2.0,
    max_memory_mb=1024,
    max_workspace_mb=2048,
    idle_seconds=60.0,
    singularity_image="docker://image",
    ssh_host="build.example.org",
    ssh_user="bot",
    ssh_port=2222,
    ssh_key_file="/k",
)


def test_the_settings_of_hermes_agent_are_read(tmp_path: Path) -> None:
    (tmp_path / "config.yaml").write_text(PEER)
    found = load(tmp_path, {})
    assert found.terminal == EXPECTED
    assert found.warnings == ()


def test_the_variables_of_hermes_agent_are_read(tmp_path: Path) -> None:
    environ = {
        "TERMINAL_ENV": "docker",
        "TERMINAL_DOCKER_IMAGE": "image:1",
        "TERMINAL_CONTAINER_CPU": "2",
        "TERMINAL_CONTAINER_MEMORY": "1024",
        "TERMINAL_CONTAINER_DISK": "2048",
        "TERMINAL_LIFETIME_SECONDS": "60",
        "TERMINAL_SINGULARITY_IMAGE": "docker://image",
        "TERMINAL_SSH_HOST": "build.example.org",
        "TERMINAL_SSH_USER": "bot",
        "TERMINAL_SSH_PORT": "2222",
        "TERMINAL_SSH_KEY": "/k",
        "HERMES_DOCKER_BINARY": "podman",
    }
    found = load(tmp_path, environ).terminal
    assert found.docker_program == "podman"
    assert found.ssh_host == EXPECTED.ssh_host
    assert (found.max_memory_mb, found.max_workspace_mb) == (1024, 2048)
    assert (found.ssh_port, found.ssh_key_file, found.idle_seconds) == (2222, "/k", 60.0)
