"""python -m reef: the command."""
from ._command import main

main()
