"""What is known of the brokers while they come and go: connecting with a back-off, answers, and the log about both."""
