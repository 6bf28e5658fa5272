"""Lists, creates and checks the topics that a worker needs."""

from .checks import check_topics
from .creation import create_topics, few_replicas
from .replication import TopicsThere, changelog_remarks, reassignment, topics_there
from .specs import TopicSpec, topic_specs
from .told import FoundTopic, Told

__all__ = [
    "FoundTopic",
    "Told",
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
