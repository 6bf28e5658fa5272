"""Types of the REST interface's answers.

The page, its single file and the views share them.
"""
