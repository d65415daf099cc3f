"""A modelled cluster: the same planner on chunks of made-up surveys, at sizes that no machine at hand has."""
