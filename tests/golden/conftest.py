"""The modules beside this one import each other by their names, as they do when `problems.py` runs as a program."""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parent))
collect_ignore_glob = ["[!tc]*.py", "cases.py", "command_runs.py"]
