"""Every pool by its name, with its options: those whose rule is their own, and the Gaussian one."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

from opinionpool.pools import NAMES
from opinionpool.pools.averages import Average, Geometric, Median, RecentMedian, Trimmed
from opinionpool.pools.beta_linear import BetaLinear
from opinionpool.pools.linear import Linear
from opinionpool.pools.logarithmic import Extremized, Independent, Log, Recalibrated
from opinionpool.pools.rule import Option, Pool


class Gaussian(Pool):
    """The panel of experts that `opinionpool.learning.learn` learns."""

    title = "Gaussian pool"
    options = MappingProxyType(
        {
            "structure": Option("auto", "full, common, exchangeable, independent or auto"),
            "beliefs": Option(
                "default", 'beliefs beforehand: Beliefs, "default", or None to learn from the data alone'
            ),
            "class_model": Option("auto", "symmetric, full or auto, for more than two classes"),
        }
    )
    learns = True
    scale = "log-odds"


POOLS: Mapping[str, Pool] = MappingProxyType(
    dict(
        zip(
            NAMES,
            (
                Gaussian(),
                Linear(),
                Log(),
                Independent(),
                Average(),
                Geometric(),
                Median(),
                RecentMedian(),
                Trimmed(),
                Extremized(),
                Recalibrated(),
                BetaLinear(),
            ),
            strict=True,
        )
    )
)
