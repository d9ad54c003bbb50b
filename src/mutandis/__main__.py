"""Run the command line as ``python -m mutandis``."""

from mutandis.cli.app import main

if __name__ == "__main__":
    main()
