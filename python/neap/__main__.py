# SPDX-License-Identifier: Apache-2.0
"""``python -m neap``: runs the command-line tool, as the command ``neap`` does."""
import os
import sys

from .errors import ToolMissing
from .tool import tool_path


def main() -> None:
    """Replaces this process with the tool, with the same arguments."""
    try:
        path = tool_path()
    except ToolMissing as error:
        print(f"neap: {error}", file=sys.stderr)
        sys.exit(2)
    os.execv(path, ["neap", *sys.argv[1:]])


if __name__ == "__main__":
    main()
