"""The options of a gateway determine its `Placement`, the object that decides which sessions the
gateway may run."""

import pytest

from hermes.control.gateway_options import GatewayOptions
from hermes.control.placement import Placement
from hermes.types.deployment import NodeFolder
from hermes.types.identity import FolderId

FOLDER = NodeFolder(id=FolderId("f1"), path="/srv/agent")


@pytest.mark.parametrize(
    ("options", "placement"),
    [
        (GatewayOptions(), Placement()),
        (GatewayOptions(folder=FOLDER), Placement(folder=FOLDER.id)),
        (
            GatewayOptions(folder=FOLDER, several_folders=True),
            Placement(folder=FOLDER.id, checked=True),
        ),
        (GatewayOptions(several_folders=True, terminal=True), Placement(terminal=True)),
    ],
    ids=["no files", "one folder", "several folders", "a terminal without files"],
)
def test_folders_are_checked_only_if_there_are_several(
    options: GatewayOptions, placement: Placement
) -> None:
    assert options.placement == placement
