"""`rubezh`, for `python -m`."""

from daemon.cli import main

if __name__ == "__main__":
    main()
