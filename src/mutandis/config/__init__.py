"""An audit as settings: one schema for Python, YAML files, the command line and editors."""
