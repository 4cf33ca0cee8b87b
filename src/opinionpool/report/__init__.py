"""Results for people and programs: tables, CSV, JSON, HTML."""
