"""``python -m opinionpool`` is the command ``opinionpool``."""

from opinionpool.cli.app import main

if __name__ == "__main__":
    main()
