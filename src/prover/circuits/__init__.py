"""Built-in circuits: `registry.build` by name, each an R1CS and the function that fills its witness."""
