"""What every test shares: how Hypothesis runs. Fixtures stand here when more than one folder needs them."""

import os

from hypothesis import HealthCheck, settings

# Time says nothing on a busy machine. On CI the examples are always the same, so a red run is the change's doing.
settings.register_profile(
    "overspill", deadline=None, derandomize="CI" in os.environ, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("overspill")
