"""Commands about topics of others: what maps them, where that stands, and how it begins again."""
