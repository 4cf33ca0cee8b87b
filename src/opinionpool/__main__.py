"""``python -m opinionpool`` is the command ``opinionpool``."""

from opinionpool.cli import main

if __name__ == "__main__":
    main()
