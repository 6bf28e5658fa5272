"""What a scrape of many models takes."""
