"""Code generated from the contract by generate.sh."""
