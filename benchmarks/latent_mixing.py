"""Sample a hidden cause with one dimension a person, and with the hidden cause integrated out.

python benchmarks/latent_mixing.py FOLDER [ROWS ...]

FOLDER holds the published law_school.csv. For each number of rows (default: 2,000) it prints how
long 500 + 500 iterations of NUTS take, and how many independent draws the 500 are worth.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import numpyro
import numpyro.diagnostics
import numpyro.distributions as dist
import pandas as pd
from numpyro.infer import MCMC, NUTS

from mutandis.data.population import Population
from mutandis.scm import Count, Latent, Linear

CAUSES = ("sex", "race_nonwhite")
WARMUP, DRAWS, SEED = 500, 500, 7


def read(folder: Path, rows: int) -> pd.DataFrame:
    table = pd.read_csv(folder / "law_school.csv", sep="|").round({"LSAT": 0})
    return table if rows >= len(table) else table.sample(rows, random_state=SEED)


def one_dimension_a_person(table: pd.DataFrame) -> dict[str, Any]:
    """Sample U of everybody along with the parameters, the priors being the same."""
    causes = np.column_stack([(table[name] == table[name].min()).astype(float) for name in CAUSES])
    causes = (causes - causes.mean(axis=0)) / causes.std(axis=0)
    grades = ((table.UGPA - table.UGPA.mean()) / table.UGPA.std(ddof=0)).to_numpy()
    scores, centre = table.LSAT.to_numpy(), float(np.log(table.LSAT.mean()))

    def model() -> None:
        b_grades, b_scores = (numpyro.sample(f"b_{x}", dist.Normal(0, 1)) for x in ("U", "L"))
        beta_grades, beta_scores = (
            numpyro.sample(f"beta_{x}", dist.Normal(0, 1).expand([2])) for x in ("U", "L")
        )
        w_grades, w_scores = (numpyro.sample(f"w_{x}", dist.HalfNormal(0.5)) for x in ("U", "L"))
        # which is a Rayleigh distribution of scale 1
        sigma = numpyro.sample("sigma", dist.Weibull(np.sqrt(2.0), 2.0))
        with numpyro.plate("people", len(table)):
            hidden = numpyro.sample("hidden", dist.Normal(0, 1))
            mean = b_grades + causes @ beta_grades + w_grades * hidden
            numpyro.sample("grades", dist.Normal(mean, sigma), obs=grades)
            log_rate = centre + b_scores + causes @ beta_scores + w_scores * hidden
            numpyro.sample("scores", dist.Poisson(jnp.exp(log_rate)), obs=scores)

    with jax.enable_x64(True):  # noqa: FBT003
        sampler = MCMC(NUTS(model), num_warmup=WARMUP, num_samples=DRAWS, progress_bar=False)
        sampler.run(jax.random.key(SEED))
        samples = sampler.get_samples()
        return {
            name: numpyro.diagnostics.effective_sample_size(np.asarray(values)[np.newaxis])
            for name, values in samples.items()
        }


def integrated_out(table: pd.DataFrame) -> dict[str, Any]:
    """Sample the parameters only."""
    people = Population.from_frame(table, columns=["UGPA", "LSAT", *CAUSES])
    latent = Latent("Knowledge", {"UGPA": Linear(*CAUSES), "LSAT": Count(*CAUSES)})
    rng = np.random.default_rng(SEED)
    found = latent.sample(people, warmup=WARMUP, draws=DRAWS, rng=rng)
    names = ["b_U", "beta_U", "beta_U", "w_U", "log sigma", "b_L", "beta_L", "beta_L", "w_L"]
    sizes = {name: [] for name in names}
    for name, size in zip(names, found.effective_sizes.tolist(), strict=True):
        sizes[name].append(size)
    return sizes


def main() -> None:
    folder, *numbers = sys.argv[1:]
    for rows in [int(number) for number in numbers] or [2000]:
        table = read(Path(folder), rows)
        for sample in (integrated_out, one_dimension_a_person):
            start = time.perf_counter()
            sizes = sample(table)
            took = time.perf_counter() - start
            shown = ", ".join(f"{name} {np.min(size):.0f}" for name, size in sizes.items())
            print(f"{len(table)} rows, {sample.__name__}: {took:.0f} s; smallest ESS: {shown}")


if __name__ == "__main__":
    main()
