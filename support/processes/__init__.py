"""What makes processes of tests start with less work: workers that are forked, classes that Java has stored."""
