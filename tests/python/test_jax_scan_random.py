# SPDX-License-Identifier: Apache-2.0
"""Random steps for neap.jax.scan, compared with lax.scan and over plans (jax_scans.py)."""
import os

import pytest

jax = pytest.importorskip("jax")

from jax_scans import Case, findings  # noqa: E402

jax.config.update("jax_enable_x64", True)

MANY = int(os.environ.get("NEAP_MANY", "200"))


@pytest.mark.parametrize("seed", range(200 if MANY > 200 else 1))
def test_random_steps(seed):
    case = Case(seed)
    print(case.describe())
    findings(case)
