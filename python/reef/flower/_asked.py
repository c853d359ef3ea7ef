"""Whether the rule can work with as many nodes as are asked."""
from __future__ import annotations

from logging import WARNING

from flwr.common.logger import log

from .._federation import check_count
from .._rule import Rule


class Asked:
    """nodes: asked in the round under way."""

    def __init__(self) -> None:
        self.nodes = 0
        self._started = False

    def check(self, rule: Rule, nodes: int, where: str) -> None:
        """Raises reef.ReefError before anybody has trained; in later rounds a warning will do, since nodes come and go."""
        self.nodes = nodes
        if nodes == 0:
            return
        try:
            check_count(rule, nodes)
        except ValueError as error:
            if not self._started:
                raise
            log(WARNING, "%s: the rule cannot work with %d nodes, the model will stay as it is: %s", where, nodes, error)
        self._started = True
