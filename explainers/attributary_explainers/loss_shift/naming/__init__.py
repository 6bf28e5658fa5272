"""Names the features that go with a loss shift, from stored rows."""
