"""What comes on the observations topic beside whole observations: labels, requests, responses, mapped records."""
