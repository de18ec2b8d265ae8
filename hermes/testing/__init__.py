"""The public test kit: fakes, contract suites and the crash harness. The product does not import
this package."""
