"""The public test kit: fakes, contract suites, the crash harness. Not used by the product."""
