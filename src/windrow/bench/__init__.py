"""Made-up data of known properties, and measurements of windrow against its peers."""
