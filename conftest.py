"""Examples that need a package which is not there are left out; the others are run."""

from importlib.util import find_spec

# their tests, in tests/rooms/dowhy, are skipped and say why
collect_ignore = [] if find_spec("dowhy") else ["docs/dowhy.md", "src/mutandis/rooms/dowhy.py"]
