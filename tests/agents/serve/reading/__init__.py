"""Reading the output topics into the store."""
