"""What an outcome is: the only package that knows.

`outcome` has the contract of a kind, `binary`, `score` and `ordered` fulfil it. A kind says what is
summed over groups (marks), how two sums are compared, and how results are worded.
"""
