"""Running bound queries: sources on sources, totals, and how it is explained."""
