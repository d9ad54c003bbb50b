"""Run the command line as ``mutandis`` or ``python -m mutandis``."""

import gc
import signal


def main() -> None:
    """Run the command line."""
    # until `stoppable` has its own handler, Ctrl-C is the end, without a traceback of the imports
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    # nearly all that a command makes lives until its end: it is not to be searched for garbage
    # again and again while libraries load
    gc.set_threshold(300_000, 20, 50)
    from mutandis.cli.app import main as run

    run()


if __name__ == "__main__":
    main()
