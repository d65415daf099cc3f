"""What a user of windrow holds in hand: databases, arrays, batches, and files going in and out."""
