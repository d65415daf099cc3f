"""Views brought up to date by several nodes: joined where a plan says, merged at the homes of results."""
