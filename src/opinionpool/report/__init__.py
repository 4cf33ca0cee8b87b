"""What people and programs are told: tables, CSV, JSON, HTML."""
