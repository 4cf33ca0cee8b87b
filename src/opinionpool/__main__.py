"""``python -m opinionpool`` runs the command ``opinionpool``."""

from opinionpool.cli import main

if __name__ == "__main__":
    main()
