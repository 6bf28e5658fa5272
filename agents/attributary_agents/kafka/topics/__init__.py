"""Lists, creates and checks the topics that a worker needs."""

from .answers import Answer, FoundTopic
from .checks import check_topics
from .creation import create_topics, few_replicas
from .replication import TopicsThere, changelog_remarks, reassignment, topics_there
from .specs import TopicSpec, topic_specs

__all__ = [
    "Answer",
    "FoundTopic",
    "TopicSpec",
    "TopicsThere",
    "changelog_remarks",
    "check_topics",
    "create_topics",
    "few_replicas",
    "reassignment",
    "topic_specs",
    "topics_there",
]
