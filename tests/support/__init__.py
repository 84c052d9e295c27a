"""What several tests share: small worlds, stand-ins, builders of stores and records, and the program itself."""
