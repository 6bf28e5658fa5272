"""Names the features that go with a shift of the loss, by stored observations of before and after."""
