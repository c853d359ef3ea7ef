"""scipy: the trimmed mean of scipy.stats."""
from __future__ import annotations

from case import Case, Peer


def load(k: int, f: int, threads: int) -> Peer:
    import scipy
    from scipy import stats

    del threads
    share = (f + 0.5) / k  # scipy cuts int(share * k) values on each side
    cases = [Case("trimmed", f"trimmed:f={f}", "stats.trim_mean", lambda x: stats.trim_mean(x, share, axis=0))]
    return Peer("scipy", scipy.__version__, cases)
