"""The tools for files in the workspace."""

from hermes.core.tools.patch import patch
from hermes.core.tools.read_file import read_file_tool
from hermes.core.tools.search_files import SearchFile, search_files_tool
from hermes.core.tools.write_file import write_file
from hermes.state.spill import Spill
from hermes.types.tools import AnyTool


def file_tools(spill: Spill, search_file: SearchFile) -> tuple[AnyTool, ...]:
    """Returns the tools for files. `search_file` searches a long tool result that was stored in a
    file (spilled)."""
    return (read_file_tool(spill), write_file, patch, search_files_tool(spill, search_file))
