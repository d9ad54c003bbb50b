"""The paper's scenarios: generated, and read from a folder with the published data."""

from mutandis.datasets.loan import loan
from mutandis.datasets.loan_truth import loan_counterfactuals, loan_expected_refusals
from mutandis.datasets.paper import SCENARIOS, Scenario

__all__ = ["SCENARIOS", "Scenario", "loan", "loan_counterfactuals", "loan_expected_refusals"]
